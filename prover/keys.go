package prover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/params"
	"github.com/interlock-prover/interlock/shared"
)

// key is an opened proving key with its verifying key.
type key struct {
	set      params.Set
	file     *params.File
	vk       *groth16.PreparedVerifyingKey
	insecure bool // development parameters
	loadTime time.Duration
	evicted  bool // under the engine's mu
}

// hold returns a circuit's parameters, which nobody evicts until release.
func (e *Engine) hold(ctx context.Context, c *circuit) (*key, error) {
	for {
		k, err := e.key(ctx, c)
		if err != nil {
			return nil, err
		}
		e.mu.Lock()
		evicted := k.evicted // between key and here
		if !evicted {
			e.users[k]++
		}
		e.mu.Unlock()
		if !evicted {
			return k, nil
		}
	}
}

// release undoes a hold.
func (e *Engine) release(k *key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.users[k]--; e.users[k] == 0 {
		delete(e.users, k)
	}
}

// Preload implements shared.Toolbox.
func (e *Engine) Preload(ctx context.Context, r shared.CircuitRequest) (shared.PreloadResult, error) {
	start := time.Now()
	b, err := e.blueprint(r)
	if err != nil {
		return shared.PreloadResult{}, err
	}
	c, err := e.circuit(ctx, b)
	if err != nil {
		return shared.PreloadResult{}, err
	}
	_, loaded := e.keys.lookUp(b)
	k, err := e.hold(ctx, c)
	if err != nil {
		return shared.PreloadResult{}, atBoundary(err)
	}
	defer e.release(k)
	if err := e.device.Preload(ctx, k.file, c.groth); err != nil {
		return shared.PreloadResult{}, atBoundary(err)
	}
	return shared.PreloadResult{AlreadyLoaded: loaded, Elapsed: time.Since(start)}, nil
}

// Evict implements shared.Toolbox.
func (e *Engine) Evict(ctx context.Context, r shared.CircuitRequest) (shared.EvictResult, error) {
	b, err := e.blueprint(r)
	if err != nil {
		return shared.EvictResult{}, err
	}
	c, err := e.circuit(ctx, b)
	if err != nil {
		return shared.EvictResult{}, err
	}
	e.mu.Lock()
	k, loaded := e.keys.lookUp(b)
	users := e.users[k]
	if loaded && users == 0 {
		k.evicted = true
		e.keys.drop(b)
	}
	e.mu.Unlock()
	switch {
	case !loaded:
		return shared.EvictResult{}, nil
	case users > 0:
		return shared.EvictResult{}, &shared.BusyError{Resource: fmt.Sprintf("the parameter set %s, held by %d requests,", k.set.ID, users)}
	}
	freed := e.device.Footprint(k.file, c.groth).KeyBytes
	e.device.Evict(k.file)
	e.log.Info("evicted parameters", "set", k.set.ID)
	return shared.EvictResult{WasLoaded: true, FreedBytes: uint64(freed)}, k.file.Close()
}

// blueprint checks a request for a circuit and says which it means.
func (e *Engine) blueprint(r shared.CircuitRequest) (blueprint, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	b, err := blueprintOf(r)
	return b, atBoundary(err)
}

// openKey maps a parameter file and compares it with its verifying key's file
// and with the circuit. full also checks every point.
func openKey(ctx context.Context, dir string, c *circuit, full bool) (*key, error) {
	start := time.Now()
	set := c.blueprint.set()
	file, err := set.Open(dir)
	if err != nil {
		return nil, err
	}
	k := &key{set: set, file: file, insecure: params.IsInsecureVK(file.VerifyingKey())}
	if err := k.check(ctx, dir, c, full); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	k.loadTime = time.Since(start)
	return k, nil
}

func (k *key) check(ctx context.Context, dir string, c *circuit, full bool) error {
	path := k.set.ParamsPath(dir)
	vk, err := k.set.ReadVK(ctx, dir)
	if err != nil {
		return err
	}
	if !bytes.Equal(params.AppendVK(nil, vk), params.AppendVK(nil, k.file.VerifyingKey())) {
		return &params.Error{
			Path:   path,
			Reason: fmt.Sprintf("its verifying key is not the one in %s: the two files belong to different sets", k.set.VKPath(dir)),
			Remedy: "fetch both files again",
		}
	}
	for q := range groth16.Query(groth16.NumQueries) {
		if got, want := k.file.Len(q), c.groth.QueryLen(q); got != want {
			return &params.Error{
				Path:   path,
				Reason: fmt.Sprintf("query %s has %d points where the circuit needs %d: it belongs to another circuit", q, got, want),
				Remedy: "fetch the file again",
			}
		}
	}
	if full {
		if _, err := k.file.Verify(ctx, nil); err != nil {
			return err
		}
	}
	k.vk, err = vk.Prepare()
	if err != nil {
		return &params.Error{Path: k.set.VKPath(dir), Reason: err.Error(), Remedy: "fetch the file again", Err: err}
	}
	return nil
}

// readVK is the verifying key of a circuit, for verification alone.
func readVK(ctx context.Context, dir string, b blueprint) (*groth16.PreparedVerifyingKey, error) {
	vk, err := b.set().ReadVK(ctx, dir)
	if err != nil {
		return nil, err
	}
	prepared, err := vk.Prepare()
	if err != nil {
		return nil, &params.Error{Path: b.set().VKPath(dir), Reason: err.Error(), Remedy: "fetch the file again", Err: err}
	}
	return prepared, nil
}
