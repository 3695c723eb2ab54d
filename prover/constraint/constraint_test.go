package constraint

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/prover/witness"
)

// randomCircuit describes a circuit that can be synthesised with templates or
// without. Each gadget's shape depends on nothing but its number.
type randomCircuit struct {
	seed  uint64
	depth int
}

// gadget synthesises gadget number n into b with the given ports.
func (c randomCircuit) gadget(b *Builder, n, depth int, ports []Var, inline bool) ([]Var, any) {
	define := func(b *Builder, ports []Var) ([]Var, any) {
		r := rand.New(rand.NewPCG(c.seed, uint64(n)))
		vars := append([]Var{One}, ports...)
		pick := func() Var { return vars[r.IntN(len(vars))] }
		for range 1 + r.IntN(30) {
			switch r.IntN(6) {
			case 0:
				vars = append(vars, b.Alloc())
			case 1:
				vars = append(vars, b.AllocBit())
			case 2:
				vars = append(vars, b.AllocInput())
			case 3:
				if depth > 0 {
					outs, _ := c.gadget(b, r.IntN(4)+10*depth, depth-1, []Var{pick(), pick()}, inline)
					vars = append(vars, outs...)
				}
			default:
				var lc [3]LC
				for m := range lc {
					for range r.IntN(4) {
						var x fr.Element
						x.SetInt64(int64(r.IntN(5) - 2))
						lc[m] = lc[m].Plus(pick(), x)
					}
				}
				b.Enforce(lc[0], lc[1], lc[2])
			}
		}
		return []Var{pick(), pick()}, n
	}
	if inline {
		return define(b, ports)
	}
	return b.Call(fmt.Sprintf("gadget %d/%d", n, depth), ports, define)
}

func (c randomCircuit) build(inline bool) *System {
	b := NewBuilder()
	a, bit := b.Alloc(), b.AllocBit()
	for i := range 5 {
		outs, _ := c.gadget(b, i%3, c.depth, []Var{a, bit}, inline)
		a = outs[0]
		b.Enforce(Lin(outs[0]), Lin(bit), Lin(outs[1]))
	}
	return b.Finish()
}

func drawCircuit(t *rapid.T) randomCircuit {
	return randomCircuit{rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 3).Draw(t, "depth")}
}

// Property: a system of templates is the same as the flat one: same digest,
// layout and density. That is what the whole package promises.
func TestTemplatesEqualFlatSynthesis(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCircuit(t)
		flat, nested := c.build(true), c.build(false)
		chunk := rapid.IntRange(1, 40).Draw(t, "chunk")
		df, err := flat.Digest(context.Background(), chunk, nil)
		require.NoError(t, err)
		dn, err := nested.Digest(context.Background(), chunk, nil)
		require.NoError(t, err)
		require.Equal(t, df, dn)
		require.Equal(t, flat.Layout(), nested.Layout())
	})
}

// Property: the density marks exactly the variables that Rows shows in A and B.
func TestDensityIsWhatRowsShow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCircuit(t).build(false)
		want := Density{
			AAux:    make([]uint64, witness.Words(s.NumAux())),
			BAux:    make([]uint64, witness.Words(s.NumAux())),
			BInputs: make([]uint64, witness.Words(s.NumInputs())),
		}
		s.Rows(0, s.NumConstraints(), func(_ int, a, b, _ []Entry) bool {
			for _, e := range a {
				if e.Var&AuxFlag != 0 {
					set(want.AAux, e.Var&^AuxFlag)
				}
			}
			for _, e := range b {
				if e.Var&AuxFlag != 0 {
					set(want.BAux, e.Var&^AuxFlag)
				} else {
					set(want.BInputs, e.Var)
				}
			}
			return true
		})
		require.Equal(t, want, *s.Density())
	})
}

// Property: any range of rows is that part of all rows.
func TestRowsOfARange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCircuit(t).build(false)
		var all []string
		s.Rows(0, s.NumConstraints(), func(n int, a, b, c []Entry) bool {
			require.Equal(t, len(all), n)
			all = append(all, fmt.Sprint(a, b, c))
			return true
		})
		require.Len(t, all, s.NumConstraints())
		from := rapid.IntRange(0, len(all)).Draw(t, "from")
		to := rapid.IntRange(from, len(all)).Draw(t, "to")
		next := from
		s.Rows(from, to, func(n int, a, b, c []Entry) bool {
			require.Equal(t, next, n)
			require.Equal(t, all[n], fmt.Sprint(a, b, c))
			next++
			return true
		})
		require.Equal(t, to, next)
	})
}

func randomWitness(s *System, seed uint64) *witness.Witness {
	r := rand.New(rand.NewPCG(seed, 1))
	w := witness.New(s.Layout())
	wr := witness.NewWriter(w, witness.Start)
	for i := range s.NumAux() {
		if s.Layout().IsBit(i) {
			wr.Bit(r.IntN(2) == 1)
		} else {
			var x fr.Element
			x.SetUint64(r.Uint64())
			wr.Full(&x)
		}
	}
	for range s.NumInputs() - 1 {
		var x fr.Element
		x.SetUint64(r.Uint64())
		wr.Input(&x)
	}
	wr.Close()
	return w
}

// Property: Evaluate gives the inner products that Rows and the witness's
// values define, and Check finds the first constraint where they disagree.
func TestEvaluateAndCheck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawCircuit(t).build(false)
		w := randomWitness(s, rapid.Uint64().Draw(t, "witness"))
		n := s.NumConstraints()
		var got [3][]fr.Element
		for m := range got {
			got[m] = make([]fr.Element, n)
		}
		require.NoError(t, s.Evaluate(context.Background(), w, got[0], got[1], got[2], 2))
		broken := -1
		s.Rows(0, n, func(i int, a, b, c []Entry) bool {
			var want [3]fr.Element
			for m, lc := range [3][]Entry{a, b, c} {
				for _, e := range lc {
					var x fr.Element
					if e.Var&AuxFlag != 0 {
						x = w.Aux(int(e.Var &^ AuxFlag))
					} else {
						x = w.Inputs[e.Var]
					}
					x.Mul(&x, &s.Coefficients()[e.Coeff])
					want[m].Add(&want[m], &x)
				}
				require.True(t, want[m] == got[m][i], "constraint %d, matrix %d", i, m)
			}
			want[0].Mul(&want[0], &want[1])
			if broken < 0 && want[0] != want[2] {
				broken = i
			}
			return true
		})
		err := s.Check(context.Background(), w)
		if broken < 0 {
			require.NoError(t, err)
			return
		}
		var unsatisfied *UnsatisfiedError
		require.ErrorAs(t, err, &unsatisfied)
		require.Equal(t, broken, unsatisfied.Constraint)
	})
}

// Property: Positions lists where each instance's variables begin.
func TestPositions(t *testing.T) {
	b := NewBuilder()
	var want []witness.Position
	pos := witness.Start
	for range 5 {
		b.Alloc()
		b.AllocBit()
		pos = pos.Add(witness.Position{Aux: 2, Full: 1})
		want = append(want, pos)
		b.Call("piece", nil, func(b *Builder, _ []Var) ([]Var, any) {
			b.AllocInput()
			b.Alloc()
			b.Call("inner", nil, func(b *Builder, _ []Var) ([]Var, any) {
				b.AllocBit()
				return nil, nil
			})
			return nil, nil
		})
		pos = pos.Add(witness.Position{Input: 1, Aux: 2, Full: 1})
	}
	s := b.Finish()
	require.Equal(t, want, s.Positions("piece"))
	require.Len(t, s.Positions("inner"), 5)
	require.Empty(t, s.Positions("absent"))
}

// Property: a witness of another circuit is refused, not evaluated.
func TestWitnessOfAnotherCircuit(t *testing.T) {
	s := randomCircuit{1, 2}.build(false)
	b := NewBuilder()
	b.Enforce(Lin(b.Alloc()), Lin(One), nil)
	other := b.Finish()
	require.Error(t, s.Check(context.Background(), witness.New(other.Layout())))
}

// Property: a done context stops every long computation with its cause.
func TestCancelledContext(t *testing.T) {
	s := randomCircuit{1, 2}.build(false)
	cause := errors.New("stop")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	_, err := s.Digest(ctx, 10, nil)
	require.Error(t, err)
	require.ErrorIs(t, s.Check(ctx, witness.New(s.Layout())), cause)
}

// Property: a panic in a piece of parallel work is that work's error, and ends
// nothing else.
func TestPanicInParallelIsItsError(t *testing.T) {
	err := Parallel(context.Background(), 8, 1, 2, func(from, _ int) error {
		if from == 5 {
			panic("five")
		}
		return nil
	})
	var stopped *interlock.PanicError
	require.ErrorAs(t, err, &stopped)
	require.Equal(t, "five", stopped.Value)
}

// Property: misuse of a template is a bug that is named.
func TestTemplateMisuse(t *testing.T) {
	none := func(*Builder, []Var) ([]Var, any) { return nil, nil }
	b := NewBuilder()
	b.Call("x", []Var{One}, none)
	require.PanicsWithValue(t, `constraint: template "x" has 1 ports, called with 0`, func() { b.Call("x", nil, none) })
	require.PanicsWithValue(t, `constraint: template "y" calls itself`, func() {
		b.Call("y", nil, func(b *Builder, _ []Var) ([]Var, any) { return b.Call("y", nil, none) })
	})
}
