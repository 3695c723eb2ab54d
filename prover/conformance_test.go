//go:build conformance

package prover

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/shared"
)

// PoRep of one and of ten partitions: parameters and proofs are the originals',
// byte for byte, from either form of the phase-1 output. The other variants share
// the circuit; they are proven and verified.
func TestConformancePoRep(t *testing.T) {
	dir := t.TempDir()
	one := shared.CircuitRequest{Kind: shared.KindPoRep, SectorSize: shared.SectorSize2KiB}
	ten := one
	ten.Partitions = 10
	setup := newEngine(t, dir, randomBlinding)
	setupReference(t, setup, "porep-2KiB", dir, one)
	setupReference(t, setup, "porep10-2KiB", dir, ten)

	fixed := newEngine(t, dir, referenceBlinding)
	requireReferenceProof(t, fixed, "porep-2KiB", phase1(t, "porep-2KiB", "c1-wrapped.json"))
	requireReferenceProof(t, fixed, "porep10-2KiB", phase1(t, "porep10-2KiB", "c1.json"))

	e := newEngine(t, dir, randomBlinding)
	for name, partitions := range map[string]int{"porep-1.0-2KiB": 1, "porep-synthetic-2KiB": 1, "porep-ni-2KiB": 13} {
		r := phase1(t, name, "c1.json")
		got, err := e.Prove(context.Background(), r, nil)
		require.NoError(t, err, name)
		require.Equal(t, partitions, got.Partitions, name)
		valid, err := e.Verify(context.Background(), r, got.Proof)
		require.NoError(t, err, name)
		require.True(t, valid, name)
	}
}
