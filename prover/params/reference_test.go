package params_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/params"
	"github.com/interlock-prover/interlock/prover/post"
)

var postKinds = map[string]post.Kind{"winning-2KiB": post.Winning, "window-2KiB": post.Window}

func postCircuit(t testing.TB, kind post.Kind) (params.Set, *groth16.Circuit) {
	t.Helper()
	p, err := post.ParamsFor(kind, 2<<10)
	require.NoError(t, err)
	circuit, err := groth16.NewCircuit(post.NewCircuit(p).System)
	require.NoError(t, err)
	return params.Set{ID: p.ParameterSet(), Kind: kind.String(), SectorSize: "2KiB"}, circuit
}

// Setup writes, for Filecoin's PoSt circuits, the very bytes that bellperson
// writes for the same toxic waste.
func TestSetupEqualsBellperson(t *testing.T) {
	for name, kind := range postKinds {
		t.Run(name, func(t *testing.T) {
			var ref struct {
				ID           string `json:"parameter_set"`
				ParamsBytes  int64  `json:"params_bytes"`
				ParamsSHA256 string `json:"params_sha256"`
				VKBytes      int64  `json:"vk_bytes"`
				VKSHA256     string `json:"vk_sha256"`
			}
			b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(b, &ref))

			set, circuit := postCircuit(t, kind)
			require.Equal(t, ref.ID, set.ID)
			r, err := set.SetupInsecure(t.Context(), circuit, t.TempDir(), nil, nil)
			require.NoError(t, err)
			require.Equal(t, ref.VKBytes, r.VKBytes)
			require.Equal(t, ref.VKSHA256, r.VKSHA256)
			require.Equal(t, ref.ParamsBytes, r.ParamsBytes)
			require.Equal(t, ref.ParamsSHA256, r.ParamsSHA256)
		})
	}
}

// Winning 2 KiB: bellperson takes 58 s on two cores, of which it uses one.
func BenchmarkSetup(b *testing.B) {
	set, circuit := postCircuit(b, post.Winning)
	dir := b.TempDir()
	for b.Loop() {
		if _, err := set.SetupInsecure(b.Context(), circuit, dir, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
