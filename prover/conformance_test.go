//go:build conformance

package prover

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/shared"
)

// setupReference makes development parameters and compares the files with the
// digests of those that the originals made.
func setupReference(t *testing.T, name, dir string, r shared.CircuitRequest) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "params", name+".json"))
	require.NoError(t, err)
	var want struct {
		ParamsSHA256 string `json:"params_sha256"`
		VKSHA256     string `json:"vk_sha256"`
	}
	require.NoError(t, json.Unmarshal(raw, &want))
	got, err := newEngine(t, dir, randomBlinding).SetupParams(context.Background(), shared.SetupRequest{CircuitRequest: r, Dir: dir}, nil)
	require.NoError(t, err)
	require.Equal(t, want.ParamsSHA256, got.ParamsSHA256)
	require.Equal(t, want.VKSHA256, got.VKSHA256)
}

func phase1(t *testing.T, name, file string) shared.Request {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("porep", "testdata", "cases", name, file))
	require.NoError(t, err)
	return shared.Request{Kind: shared.KindPoRep, MinerID: 138228, Vanilla: [][]byte{data}}
}

func requireReferenceProof(t *testing.T, e *Engine, name string, r shared.Request) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join("testdata", name, "proof.bin"))
	require.NoError(t, err)
	got, err := e.Prove(context.Background(), r, nil)
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(got.Proof))
}

// PoRep of one and of ten partitions: parameters and proofs are the originals',
// byte for byte, from either form of the phase-1 output. The other variants share
// the circuit; they are proven and verified.
func TestConformancePoRep(t *testing.T) {
	dir := t.TempDir()
	one := shared.CircuitRequest{Kind: shared.KindPoRep, SectorSize: shared.SectorSize2KiB}
	ten := one
	ten.Partitions = 10
	setupReference(t, "porep-2KiB", dir, one)
	setupReference(t, "porep10-2KiB", dir, ten)

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
