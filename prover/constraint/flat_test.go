package constraint

import (
	"context"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-prover/interlock/prover/witness"
)

// evaluateFlat computes A·w, B·w and C·w from the tables of the flat form alone,
// and says which constraints it met.
func evaluateFlat(f *Flat, w *witness.Witness) (values [3][]fr.Element, met []int) {
	met = make([]int, f.Constraints)
	for m := range values {
		values[m] = make([]fr.Element, f.Constraints)
	}
	value := func(reference uint32, first FlatInstance) fr.Element {
		n := reference & FlatNumber
		switch FlatKind(reference) {
		case FlatInput:
			return w.Inputs[first.Input+n]
		case FlatBit:
			if w.Bit(int(first.Aux + n)) {
				return fr.One()
			}
			return fr.Element{}
		case FlatFull:
			return w.Full[first.Full+n]
		}
		panic("a port among ports")
	}
	for _, t := range f.Templates {
		for k := range t.Instances {
			first := f.Instances[t.FirstInstance+k]
			ports := f.Ports[t.FirstPort+k*t.Ports:][:t.Ports]
			for row := t.FirstRow; row < t.FirstRow+t.Rows; row++ {
				constraint := first.Constraint + f.RowPlaces[row]
				met[constraint]++
				for m := range uint32(3) {
					from := uint32(0)
					if i := 3*row + m; i > 0 {
						from = f.RowEnds[i-1]
					}
					for _, term := range f.Terms[from:f.RowEnds[3*row+m]] {
						var x fr.Element
						if FlatKind(term.Variable) == FlatPort {
							x = value(ports[term.Variable&FlatNumber], FlatInstance{})
						} else {
							x = value(term.Variable, first)
						}
						x.Mul(&x, &f.Coefficients[term.Coefficient])
						values[m][constraint].Add(&values[m][constraint], &x)
					}
				}
			}
		}
	}
	return values, met
}

// Property: the flat form has every constraint once, and evaluates to the same
// as the system.
func TestFlatIsTheSystem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCircuit(t).build(rapid.Bool().Draw(t, "inline"))
		w := randomWitness(s, rapid.Uint64().Draw(t, "witness"))
		n := s.NumConstraints()
		var want [3][]fr.Element
		for m := range want {
			want[m] = make([]fr.Element, n)
		}
		require.NoError(t, s.Evaluate(context.Background(), w, want[0], want[1], want[2], 1))
		f := s.Flat()
		got, met := evaluateFlat(f, w)
		for i := range met {
			require.Equal(t, 1, met[i], "constraint %d", i)
			for m := range want {
				require.True(t, want[m][i] == got[m][i], "constraint %d, matrix %d", i, m)
			}
		}
		require.Equal(t, [4]int{n, s.NumInputs(), s.NumAux(), s.Layout().NumFull()}, [4]int{f.Constraints, f.Inputs, f.Aux, f.Full})
		require.True(t, f.Coefficients[CoeffOne].IsOne())
		for _, template := range f.Templates {
			for k := range template.Instances {
				require.Zero(t, f.Ports[template.FirstPort+k*template.Ports], "port 0 is the constant one")
			}
		}
	})
}
