package post

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Names of parameter sets for all kinds and sizes, as the originals compute them
// (parameter_set in the reference shapes).
func TestParameterSet(t *testing.T) {
	data, err := os.ReadFile("testdata/parameter_sets.json")
	require.NoError(t, err)
	var sets map[string]struct {
		SectorSize   uint64 `json:"sector_size"`
		ParameterSet string `json:"parameter_set"`
	}
	require.NoError(t, json.Unmarshal(data, &sets))
	require.Len(t, sets, 16)
	for name, want := range sets {
		kind := Window
		if strings.HasPrefix(name, "winning") {
			kind = Winning
		}
		p, err := ParamsFor(kind, want.SectorSize)
		require.NoError(t, err)
		require.Equal(t, want.ParameterSet, p.ParameterSet(), name)
	}
}

func TestParamsForRefuses(t *testing.T) {
	_, err := ParamsFor(Window, 1<<30)
	require.EqualError(t, err, "sector_size: no proofs exist for sectors of 1073741824 bytes")
	_, err = ParamsFor(0, 2<<10)
	require.EqualError(t, err, "kind: Kind(0) is not a proof of spacetime")
}
