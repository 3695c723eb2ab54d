package update

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shape is a constraint system as the originals' circuit makes it (the reference data's
// shapes).
type shape struct {
	Inputs, Aux, Constraints, Chunk int
	Chunks                          []string
	Digest                          string
	SectorSize                      uint64 `json:"sector_size"`
	ParameterSet                    string `json:"parameter_set"`
	Terms                           struct{ A, B, C uint64 }
}

func loadShape(t testing.TB, name string) (shape, Params) {
	data, err := os.ReadFile(filepath.Join("testdata", "shapes", name+".json"))
	require.NoError(t, err)
	var s shape
	require.NoError(t, json.Unmarshal(data, &s))
	p, err := ParamsFor(s.SectorSize)
	require.NoError(t, err)
	return s, p
}

func requireShape(t *testing.T, name string) {
	t.Helper()
	want, p := loadShape(t, name)
	got, err := NewCircuit(p).System.Digest(context.Background(), want.Chunk, nil)
	require.NoError(t, err)
	require.Equal(t, want.Inputs, got.Inputs)
	require.Equal(t, want.Aux, got.Aux)
	require.Equal(t, want.Constraints, got.Constraints)
	require.Equal(t, want.Chunks, got.Chunks)
	require.Equal(t, [3]uint64{want.Terms.A, want.Terms.B, want.Terms.C}, [3]uint64{got.TermsA, got.TermsB, got.TermsC})
	require.Equal(t, want.Digest, got.Total)
}

// The circuits are the originals', constraint for constraint, so that parameters made for
// those fit. The larger ones are in the conformance run.
func TestCircuitIsTheOriginals(t *testing.T) {
	for _, name := range []string{"update-2KiB", "update-4KiB", "update-16KiB", "update-32KiB", "update-8MiB"} {
		t.Run(name, func(t *testing.T) { requireShape(t, name) })
	}
}

// Parameter files of every size have the originals' names.
func TestParameterSet(t *testing.T) {
	files, err := filepath.Glob("testdata/shapes/*.json")
	require.NoError(t, err)
	require.Len(t, files, 8)
	for _, file := range files {
		want, p := loadShape(t, strings.TrimSuffix(filepath.Base(file), ".json"))
		require.Equal(t, want.ParameterSet, p.ParameterSet(), file)
	}
}
