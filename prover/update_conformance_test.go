//go:build conformance

package prover

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/shared"
)

// Development parameters of an update and a proof with the reference's blinding are the
// originals', byte for byte; a proof blinded at random verifies, for its request alone.
func TestConformanceUpdate(t *testing.T) {
	dir := t.TempDir()
	e := newEngine(t, dir, referenceBlinding)
	setup, err := e.SetupParams(context.Background(), shared.SetupRequest{
		CircuitRequest: shared.CircuitRequest{Kind: shared.KindUpdate, SectorSize: shared.SectorSize2KiB}, Dir: dir,
	}, nil)
	require.NoError(t, err)
	raw, err := os.ReadFile("update/testdata/params-2KiB.json")
	require.NoError(t, err)
	var want struct {
		ParamsSHA256 string `json:"params_sha256"`
		VKSHA256     string `json:"vk_sha256"`
	}
	require.NoError(t, json.Unmarshal(raw, &want))
	require.Equal(t, want.ParamsSHA256, setup.ParamsSHA256)
	require.Equal(t, want.VKSHA256, setup.VKSHA256)

	request := loadUpdate(t, "update-2KiB")
	proof, err := os.ReadFile("update/testdata/cases/update-2KiB/proof.bin")
	require.NoError(t, err)
	got, err := e.Prove(context.Background(), request, nil)
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(proof), hex.EncodeToString(got.Proof))

	got, err = newEngine(t, dir, randomBlinding).Prove(context.Background(), request, nil)
	require.NoError(t, err)
	require.NotEqual(t, proof, got.Proof)
	valid, err := e.Verify(context.Background(), request, got.Proof)
	require.NoError(t, err)
	require.True(t, valid)
}
