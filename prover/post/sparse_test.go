package post

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Property: sparse sectors pass all checks and satisfy the circuit.
func TestSparse(t *testing.T) {
	for _, sp := range []Sparse{
		{Kind: Winning, SectorSize: 2 << 10, Sectors: 1},
		{Kind: Window, SectorSize: 4 << 10, Sectors: 3, Seed: 7},
		{Kind: Window, SectorSize: 32 << 10, Sectors: 2},
		{Kind: Winning, SectorSize: 32 << 30, Sectors: 1},
	} {
		req, err := sp.Request(t.Context())
		require.NoError(t, err)
		s, err := Decode(t.Context(), req)
		require.NoError(t, err)
		require.NoError(t, s.Check(t.Context()))
		circuit := NewCircuit(s.Params)
		for _, part := range s.Partitions {
			w, err := circuit.Witness(t.Context(), part.Sectors)
			require.NoError(t, err)
			require.NoError(t, circuit.System.Check(t.Context(), w))
			require.Equal(t, part.PublicInputs(), w.Inputs[1:])
		}
	}
	_, err := (&Sparse{Kind: Winning, SectorSize: 2 << 10, Sectors: 2}).Request(t.Context())
	require.ErrorContains(t, err, "sectors: is 2")
}
