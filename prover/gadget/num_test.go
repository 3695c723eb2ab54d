package gadget

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/poseidon"
	"github.com/interlock-prover/interlock/prover/witness"
)

// Property: Select's result is the number at the index, for every index, and another
// index's is refused.
func TestSelect(t *testing.T) {
	for _, digits := range []int{0, 1, 3, 7} {
		b := constraint.NewBuilder()
		index := make([]constraint.Var, digits)
		for i := range index {
			index[i] = Bit(b)
		}
		from := make([]constraint.Var, 1<<digits)
		for i := range from {
			from[i] = b.Alloc()
		}
		Inputize(b, Select(b, from, index))
		s := b.Finish()
		values := randomElements(len(from), uint64(digits))
		for at := range values {
			w := witness.New(s.Layout())
			wr := witness.NewWriter(w, witness.Start)
			wr.Word(uint64(at), digits)
			copy(wr.Fulls(len(values)), values)
			WriteSelect(wr, values, at)
			wr.Input(&values[at])
			wr.Close()
			require.Equal(t, s.Layout().End(), wr.Position())
			require.NoError(t, s.Check(context.Background(), w))
			if digits > 0 {
				w.Bits[0] ^= 1
				require.Error(t, s.Check(context.Background(), w))
			}
		}
	}
}

// Property: hashes of the same inputs for another use are another template, with its own
// result.
func TestPoseidonOf(t *testing.T) {
	b := constraint.NewBuilder()
	in := []constraint.Var{b.Alloc(), b.Alloc()}
	Inputize(b, Poseidon(b, in))
	Inputize(b, PoseidonOf(b, poseidon.Randomness(), in))
	s := b.Finish()
	values := randomElements(2, 1)
	w := witness.New(s.Layout())
	wr := witness.NewWriter(w, witness.Start)
	copy(wr.Fulls(2), values)
	node := WritePoseidon(wr, values)
	random := WritePoseidonOf(wr, poseidon.Randomness(), values)
	wr.Input(&node)
	wr.Input(&random)
	wr.Close()
	require.Equal(t, s.Layout().End(), wr.Position())
	require.NoError(t, s.Check(context.Background(), w))
	require.True(t, node == poseidon.Hash(values))
	require.True(t, random == poseidon.Randomness().Hash(values))
	require.False(t, node == random)
}
