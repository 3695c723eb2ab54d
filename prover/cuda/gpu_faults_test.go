//go:build gpu

package cuda

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/witness"
)

// failingCard is a real card, one of whose calls fails.
type failingCard struct {
	api
	calls atomic.Int64 // that may fail, so far
	at    int64        // which of them fails, counted from 1
	kind  Kind
}

func (f *failingCard) fault() error {
	if f.calls.Add(1) == f.at {
		return &Error{Kind: f.kind, Message: "so the test wants it"}
	}
	return nil
}

// or makes a call unless it is the one that fails.
func or[R any](f *failingCard, call func() (R, error)) (r R, err error) {
	if err := f.fault(); err != nil {
		return r, err
	}
	return call()
}

func (f *failingCard) createBases(h handle, g group, capacity, multiples int) (handle, error) {
	return or(f, func() (handle, error) { return f.api.createBases(h, g, capacity, multiples) })
}

func (f *failingCard) loadBases(h, bases handle, at, count int, encoded []byte) error {
	_, err := or(f, func() (struct{}, error) { return struct{}{}, f.api.loadBases(h, bases, at, count, encoded) })
	return err
}

func (f *failingCard) createCircuit(h handle, flat *constraint.Flat, domain int) (handle, error) {
	return or(f, func() (handle, error) { return f.api.createCircuit(h, flat, domain) })
}

func (f *failingCard) createWitness(h, circuit handle) (handle, error) {
	return or(f, func() (handle, error) { return f.api.createWitness(h, circuit) })
}

func (f *failingCard) loadWitness(h, onDevice handle, w *witness.Witness, part witnessPart, from, to int) error {
	_, err := or(f, func() (struct{}, error) { return struct{}{}, f.api.loadWitness(h, onDevice, w, part, from, to) })
	return err
}

func (f *failingCard) createQuotient(h, circuit, onDevice handle) (handle, error) {
	return or(f, func() (handle, error) { return f.api.createQuotient(h, circuit, onDevice) })
}

func (f *failingCard) multiplyQuotient(h, quotient handle) error {
	_, err := or(f, func() (struct{}, error) { return struct{}{}, f.api.multiplyQuotient(h, quotient) })
	return err
}

func (f *failingCard) evaluateC(h, quotient, circuit, onDevice handle) error {
	_, err := or(f, func() (struct{}, error) { return struct{}{}, f.api.evaluateC(h, quotient, circuit, onDevice) })
	return err
}

func (f *failingCard) finishQuotient(h, quotient handle) error {
	_, err := or(f, func() (struct{}, error) { return struct{}{}, f.api.finishQuotient(h, quotient) })
	return err
}

func (f *failingCard) sumQuotient(h, quotient handle, from int, bases handle, count int) (bls12381.G1Affine, error) {
	return or(f, func() (bls12381.G1Affine, error) { return f.api.sumQuotient(h, quotient, from, bases, count) })
}

func (f *failingCard) sumG1(h, circuit, onDevice handle, q groth16.Query, from int, bases handle, count int) (bls12381.G1Affine, error) {
	return or(f, func() (bls12381.G1Affine, error) { return f.api.sumG1(h, circuit, onDevice, q, from, bases, count) })
}

func (f *failingCard) sumG2(h, circuit, onDevice handle, q groth16.Query, from int, bases handle, count int) (bls12381.G2Affine, error) {
	return or(f, func() (bls12381.G2Affine, error) { return f.api.sumG2(h, circuit, onDevice, q, from, bases, count) })
}

// Whichever call fails, in the loading of a key or in a proof, the next try succeeds and nothing is left on the card: 200
// times, with the key on the card and streamed, and with the witness late.
func TestGPUAnyCallFails(t *testing.T) {
	k := newCase(t, 4, 300)
	random := rand.New(rand.NewPCG(4, 0))
	for _, kind := range kindsOfProofs {
		d := gpu(t, 2e9)
		d.plan.segment, d.plan.streamed, d.plan.pinnedBytes = leastSegment, leastSegment, 50*192
		k.makeRoom(d, kind)
		f := &failingCard{api: d.api}
		d.api = f
		// How many calls can fail while the key is loaded and a proof made, and in the next proof.
		k.requireProof(t, d)
		fresh := f.calls.Swap(0)
		k.requireProof(t, d)
		loaded := f.calls.Load()
		require.Equal(t, kind == "resident", loaded < fresh)
		used, _ := d.MemoryUsed()
		d.Evict(k.key)
		empty, _ := d.MemoryUsed()
		k.requireProof(t, d)
		for n := range 100 {
			calls := loaded
			if n%2 == 0 {
				d.Evict(k.key)
				calls = fresh
			}
			f.calls.Store(0)
			f.at, f.kind = 1+random.Int64N(calls), []Kind{DeviceFailed, OutOfMemory}[n/2%2]
			_, err := k.prove(t.Context(), d)
			var e *Error
			require.ErrorAs(t, err, &e, "call %d of %d", f.at, calls)
			require.Equal(t, f.kind, e.Kind)
			f.at = 0
			k.requireProof(t, d)
			now, _ := d.MemoryUsed()
			require.LessOrEqual(t, now, used, "cycle %d", n)
		}
		d.Evict(k.key)
		now, _ := d.MemoryUsed()
		require.LessOrEqual(t, now, empty)
		t.Logf("%s: %d calls with the key's loading, %d without; %d bytes in use with the key, %d without", kind, fresh, loaded, used, now)
	}
}
