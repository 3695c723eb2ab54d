package prover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/params"
)

// key is an opened proving key with its verifying key.
type key struct {
	set      params.Set
	file     *params.File
	vk       *groth16.PreparedVerifyingKey
	insecure bool // development parameters
	loadTime time.Duration
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
