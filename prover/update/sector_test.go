package update

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// sectorRequest asks for a proof of a sparse update, with all partitions.
func sectorRequest(p Params) *Request {
	req, err := (&Sparse{SectorSize: p.SectorSize}).Request()
	if err != nil {
		panic(err) // p has a size that exists
	}
	return req
}

// requireSectorProvable requires that an update of a sector of the given size passes all
// checks, and that its last partition satisfies the circuit.
func requireSectorProvable(t *testing.T, size uint64) {
	t.Helper()
	p, err := ParamsFor(size)
	require.NoError(t, err)
	s, err := decodeAndCheck(sectorRequest(p))
	require.NoError(t, err)
	circuit := NewCircuit(p)
	part := &s.Partitions[p.Partitions-1]
	w, err := circuit.Witness(context.Background(), part)
	require.NoError(t, err)
	require.NoError(t, circuit.System.Check(context.Background(), w))
	require.Equal(t, part.PublicInputs(), w.Inputs[1:])
}
