package gadget

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/poseidon"
	"github.com/interlock-prover/interlock/prover/witness"
)

func randomElements(n int, seed uint64) []fr.Element {
	r := rand.New(rand.NewPCG(seed, 0))
	out := make([]fr.Element, n)
	for i := range out {
		out[i].SetUint64(r.Uint64())
		out[i].Square(&out[i])
		out[i].Square(&out[i])
	}
	return out
}

// Constraint counts of the legacy circuit: 3 for an S-box, of which the constant
// tag's is saved, and one for each variable that a linear layer needs (the
// formula of neptune's own test: 311, 377, 505 for arity 2, 4, 8).
func TestPoseidonCounts(t *testing.T) {
	for arity, want := range map[int]int{2: 311, 4: 377, 8: 505} {
		b := constraint.NewBuilder()
		in := make([]constraint.Var, arity)
		for i := range in {
			in[i] = b.Alloc()
		}
		Poseidon(b, in)
		require.Equal(t, want, b.Finish().NumConstraints(), "arity %d", arity)
	}
}

// Property: the witness half satisfies the constraint half, and the last variable
// is the native hash; any other value of any variable breaks a constraint.
func TestPoseidonWitness(t *testing.T) {
	for _, arity := range []int{2, 4, 8, 11} {
		b := constraint.NewBuilder()
		in := make([]constraint.Var, arity)
		for i := range in {
			in[i] = b.Alloc()
		}
		Poseidon(b, in)
		s := b.Finish()
		values := randomElements(arity, uint64(arity))
		w := witness.New(s.Layout())
		wr := witness.NewWriter(w, witness.Start)
		copy(wr.Fulls(arity), values)
		got := WritePoseidon(wr, values)
		wr.Close()
		require.Equal(t, s.Layout().End(), wr.Position())
		require.True(t, got == poseidon.Hash(values))
		require.True(t, got == w.Aux(s.NumAux()-1))
		require.NoError(t, s.Check(context.Background(), w))
		for i := range w.Full {
			old := w.Full[i]
			w.Full[i].Add(&old, &one)
			require.Error(t, s.Check(context.Background(), w), "arity %d, variable %d", arity, i)
			w.Full[i] = old
		}
	}
}

// Property: for every arity and index, the step's hash is that of the children
// in their order, and both halves agree on every variable.
func TestMerkleStep(t *testing.T) {
	for _, arity := range []int{2, 4, 8} {
		b := constraint.NewBuilder()
		node := b.Alloc()
		parent, index := MerkleStep(b, arity, node)
		PackInput(b, index)
		Inputize(b, parent)
		s := b.Finish()
		for at := range arity {
			t.Run(fmt.Sprintf("%d/%d", arity, at), func(t *testing.T) {
				values := randomElements(arity, uint64(8*arity+at))
				w := witness.New(s.Layout())
				wr := witness.NewWriter(w, witness.Start)
				wr.Full(&values[0])
				got := WriteMerkleStep(wr, &values[0], at, values[1:])
				var position fr.Element
				position.SetUint64(uint64(at))
				wr.Input(&position)
				wr.Input(&got)
				wr.Close()
				require.Equal(t, s.Layout().End(), wr.Position())
				require.NoError(t, s.Check(context.Background(), w))

				children := append([]fr.Element{}, values[1:at+1]...)
				children = append(children, values[0])
				children = append(children, values[at+1:]...)
				require.True(t, got == poseidon.Hash(children))

				for _, broken := range w.Inputs[1:] {
					broken := broken
					for i := 1; i < len(w.Inputs); i++ {
						if w.Inputs[i] == broken {
							w.Inputs[i].Add(&broken, &one)
							require.Error(t, s.Check(context.Background(), w))
							w.Inputs[i] = broken
						}
					}
				}
			})
		}
	}
}
