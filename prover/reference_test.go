//go:build conformance || gpu

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
func setupReference(t *testing.T, e *Engine, name, dir string, r shared.CircuitRequest) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "params", name+".json"))
	require.NoError(t, err)
	var want struct {
		ParamsSHA256 string `json:"params_sha256"`
		VKSHA256     string `json:"vk_sha256"`
	}
	require.NoError(t, json.Unmarshal(raw, &want))
	got, err := e.SetupParams(context.Background(), shared.SetupRequest{CircuitRequest: r, Dir: dir}, nil)
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
