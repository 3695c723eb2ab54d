package cuda

import (
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/porep"
	"github.com/interlock-prover/interlock/prover/post"
	"github.com/interlock-prover/interlock/prover/update"
)

// The flat form of the smallest real circuits evaluates to the same as the
// circuits themselves.
func TestFlatFormOfRealCircuits(t *testing.T) {
	for name, system := range realCircuits(t) {
		t.Run(name, func(t *testing.T) {
			w := randomWitness(rand.New(rand.NewPCG(1, 2)), system.Layout())
			n := system.NumConstraints()
			var want [3][]fr.Element
			for m := range want {
				want[m] = make([]fr.Element, n)
			}
			require.NoError(t, system.Evaluate(t.Context(), w, want[0], want[1], want[2], 2))
			f := system.Flat()
			got := evaluateFlat(f, w)
			for m := range want {
				for i := range want[m] {
					if want[m][i] != got[m][i] {
						t.Fatalf("constraint %d, matrix %d", i, m)
					}
				}
			}
			t.Logf("%d constraints: %d templates, %d instances, %d ports, %d rows, %d terms, %d bytes on a card",
				n, len(f.Templates), len(f.Instances), len(f.Ports), len(f.RowPlaces), len(f.Terms), circuitBytes(f))
		})
	}
}

func realCircuits(t *testing.T) map[string]*constraint.System {
	t.Helper()
	const sector = 2 << 10
	seal, err := porep.ParamsFor(sector, 1)
	require.NoError(t, err)
	winning, err := post.ParamsFor(post.Winning, sector)
	require.NoError(t, err)
	window, err := post.ParamsFor(post.Window, sector)
	require.NoError(t, err)
	updated, err := update.ParamsFor(sector)
	require.NoError(t, err)
	return map[string]*constraint.System{
		"porep": porep.NewCircuit(seal).System, "winning": post.NewCircuit(winning).System,
		"window": post.NewCircuit(window).System, "update": update.NewCircuit(updated).System,
	}
}
