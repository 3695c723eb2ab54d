package params

import (
	"os"
	"path/filepath"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/shared/sharedtest/bounded"
)

// Whatever a file holds, opening, reading and verifying it end with an *Error
// that names it, or succeed on a file that is encoded the one right way.
func FuzzOpen(f *testing.F) {
	_, _, r := setup(f, 1)
	good, err := os.ReadFile(r.ParamsPath)
	require.NoError(f, err)
	f.Add(good)
	f.Add(good[:vkHeaderBytes])
	f.Add([]byte{})
	path := filepath.Join(f.TempDir(), "fuzzed.params")
	f.Fuzz(func(t *testing.T, b []byte) {
		require.NoError(t, os.WriteFile(path, b, 0o644))
		var file *File
		var err error
		bounded.Allocation(t, len(b), func() { file, err = Open(path) })
		if err != nil {
			requireNamed(t, err, path)
			return
		}
		defer file.Close()
		require.Equal(t, int64(len(b)), file.SizeBytes())
		h := make([]bls12381.G1Affine, file.Len(groth16.QueryH))
		readErr := file.ReadG1(t.Context(), groth16.QueryH, 0, h)
		var report *Report
		bounded.Allocation(t, len(b), func() { report, err = file.Verify(t.Context(), nil) })
		if err != nil {
			requireNamed(t, err, path)
			return
		}
		require.NoError(t, readErr)
		require.Equal(t, int64(len(b)), report.SizeBytes)
		for i := range h {
			require.True(t, h[i].IsInSubGroup())
		}
		require.Equal(t, b[:file.queries[groth16.QueryH].offset-countBytes], AppendVK(nil, file.VerifyingKey()))
	})
}

// FuzzReadVK is FuzzOpen for key files.
func FuzzReadVK(f *testing.F) {
	_, _, r := setup(f, 1)
	good, err := os.ReadFile(r.VKPath)
	require.NoError(f, err)
	f.Add(good)
	f.Add(good[:vkHeaderBytes])
	path := filepath.Join(f.TempDir(), "fuzzed.vk")
	f.Fuzz(func(t *testing.T, b []byte) {
		require.NoError(t, os.WriteFile(path, b, 0o644))
		var vk *groth16.VerifyingKey
		var err error
		bounded.Allocation(t, len(b), func() { vk, err = ReadVK(t.Context(), path) })
		if err != nil {
			requireNamed(t, err, path)
			return
		}
		require.Equal(t, b, AppendVK(nil, vk))
	})
}

func requireNamed(t *testing.T, err error, path string) {
	t.Helper()
	var typed *Error
	require.ErrorAs(t, err, &typed)
	require.Equal(t, path, typed.Path)
	require.NotEmpty(t, typed.Reason)
}
