package prover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/params"
	"github.com/interlock-prover/interlock/shared"
)

// Verify implements shared.Toolbox. The request is decoded and checked as for
// proving; a proof that is not one at all is invalid, not an error.
func (e *Engine) Verify(ctx context.Context, r shared.Request, proof []byte) (bool, error) {
	if err := r.Validate(); err != nil {
		return false, err
	}
	s, err := decode(ctx, &r)
	if err != nil {
		return false, atBoundary(err)
	}
	if err := s.check(ctx); err != nil {
		return false, atBoundary(err)
	}
	vk, err := readVK(ctx, e.paramsDir, s.blueprint())
	if err != nil {
		return false, atBoundary(err)
	}
	public := allPublicInputs(s)
	if got, want := vk.VerifyingKey().NumPublicInputs(), len(public[0]); got != want {
		return false, atBoundary(&params.Error{
			Path:   s.blueprint().set().VKPath(e.paramsDir),
			Reason: fmt.Sprintf("it has %d public inputs where the circuit has %d: it belongs to another circuit", got, want),
			Remedy: "fetch the file again",
		})
	}
	if len(proof) != groth16.ProofSizeBytes*s.partitions() {
		return false, nil
	}
	proofs, err := groth16.ParseProofs(proof)
	if err != nil {
		return false, nil
	}
	return vk.VerifyBatch(public, proofs)
}

func allPublicInputs(s statement) [][]fr.Element {
	all := make([][]fr.Element, s.partitions())
	for k := range all {
		all[k] = s.publicInputs(k)
	}
	return all
}

// SetupParams implements shared.Toolbox.
func (e *Engine) SetupParams(ctx context.Context, r shared.SetupRequest, progress func(shared.Progress)) (shared.SetupResult, error) {
	if err := r.Validate(); err != nil {
		return shared.SetupResult{}, err
	}
	start := time.Now()
	b, err := blueprintOf(r.CircuitRequest)
	if err != nil {
		return shared.SetupResult{}, atBoundary(err)
	}
	if err := writable(r.Dir); err != nil {
		return shared.SetupResult{}, &shared.ParamsError{Path: r.Dir, Reason: err.Error(), Remedy: "name a directory that can be written to"}
	}
	c, err := compile(b)
	if err != nil {
		return shared.SetupResult{}, err
	}
	e.log.Warn("making INSECURE development parameters", "set", b.set().ID, "dir", r.Dir)
	multiplier, on := e.multiplier()
	made, err := b.set().SetupInsecure(ctx, c.groth, r.Dir, multiplier, reporter(start, "points made", progress))
	if on != nil {
		err = on.explain(err)
		e.pipeline.Observe(on.name, err)
	}
	if err != nil {
		return shared.SetupResult{}, atBoundary(err)
	}
	for _, path := range made.Removed {
		e.log.Warn("removed what a setup that was killed had left", "file", path)
	}
	return shared.SetupResult{
		ParamsPath: made.ParamsPath, VKPath: made.VKPath,
		ParamsSHA256: made.ParamsSHA256, VKSHA256: made.VKSHA256,
		ParamsBytes: made.ParamsBytes, VKBytes: made.VKBytes,
		Elapsed: time.Since(start),
	}, nil
}

// writable makes a directory if there is none, and finds out whether files can be
// made in it, before hours are spent on them.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".interlock-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// CheckParams implements shared.Toolbox.
func (e *Engine) CheckParams(ctx context.Context, path string, progress func(shared.Progress)) (shared.ParamsReport, error) {
	start := time.Now()
	report := reporter(start, "MiB checked", progress)
	r, err := params.Verify(ctx, path, func(done, total int64) { report(int(done>>20), int(total>>20)) })
	if err == nil && e.manifest != nil {
		err = e.manifest.Check(path, r.Blake2b)
	}
	if err != nil {
		return shared.ParamsReport{}, atBoundary(err)
	}
	for _, file := range r.Leftovers {
		e.log.Warn("a setup that was killed left a file, which the next setup removes", "file", file)
	}
	set := parameterSetOf(path)
	circuit := circuitOf(set)
	return shared.ParamsReport{
		Path:         path,
		ParameterSet: set,
		Kind:         circuit.Kind,
		SectorSize:   circuit.SectorSize,
		Listed:       e.manifest != nil,
		Leftovers:    r.Leftovers,
		Bytes:        r.SizeBytes,
		SHA256:       r.SHA256,
		Blake2b:      r.Blake2b[:32],
		Insecure:     r.Insecure,
		IC:           r.Inputs,
		H:            r.Points[groth16.QueryH],
		L:            r.Points[groth16.QueryL],
		A:            r.Points[groth16.QueryA],
		BG1:          r.Points[groth16.QueryBG1],
		BG2:          r.Points[groth16.QueryBG2],
		Elapsed:      time.Since(start),
	}, nil
}

// parameterSetOf is the part of a file's name that varies between circuits; the
// whole name if it is not named in that way.
func parameterSetOf(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	_, set, found := strings.Cut(name, "-")
	if !found {
		return name
	}
	return set
}

// circuitOf is the circuit that a parameter set is for, whose number of
// partitions is its size's own; the zero value if it is that of none.
func circuitOf(set string) shared.CircuitRequest {
	for _, kind := range shared.Kinds() {
		for _, size := range shared.SectorSizes() {
			r := shared.CircuitRequest{Kind: kind, SectorSize: size}
			if b, err := blueprintOf(r); err == nil && b.set().ID == set {
				return r
			}
		}
	}
	return shared.CircuitRequest{}
}

// reportInterval is how often a long task tells how far it is.
const reportInterval = 200 * time.Millisecond

// reporter makes a progress function of a task that counts something; it may be
// called from several goroutines and as often as one likes.
func reporter(start time.Time, what string, progress func(shared.Progress)) func(done, total int) {
	if progress == nil {
		return func(int, int) {}
	}
	var mu sync.Mutex
	var last time.Time
	return func(done, total int) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) < reportInterval && done < total {
			return
		}
		last = time.Now()
		progress(shared.Progress{
			Stage: shared.StageDevice, Partition: -1, Elapsed: time.Since(start),
			Message: fmt.Sprintf("%d of %d %s", done, total, what),
		})
	}
}
