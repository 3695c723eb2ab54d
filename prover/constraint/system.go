package constraint

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/witness"
)

// System is a finished circuit. It never changes and is safe for concurrent
// use.
type System struct {
	root   *template
	coeffs []fr.Element
	layout *witness.Layout

	densityOnce sync.Once
	density     *Density

	flatOnce sync.Once
	flat     *Flat
}

func newSystem(root *template, coeffs []fr.Element) *System {
	return &System{
		root: root, coeffs: coeffs,
		layout: witness.NewLayout(root.inputs+1, root.aux, root.isBit.words),
	}
}

// NumInputs counts the public inputs, the constant one included.
func (s *System) NumInputs() int { return s.root.inputs + 1 }

// NumAux counts the auxiliary variables.
func (s *System) NumAux() int { return s.root.aux }

// NumConstraints counts the constraints. Those that setup and prover add, one
// for each input (bellperson's generator.rs), are not among them.
func (s *System) NumConstraints() int { return s.root.constraints }

// Layout says which auxiliary variables are bits.
func (s *System) Layout() *witness.Layout { return s.layout }

// AuxFlag marks an auxiliary variable in a circuit-wide variable number.
const AuxFlag uint32 = 1 << 31

// Entry is one non-zero of a matrix: a circuit-wide variable (an input's index,
// or an auxiliary variable's index with AuxFlag set) and the number of its
// coefficient in Coefficients.
type Entry struct {
	Var   uint32
	Coeff uint32
}

// Coefficients lists the distinct coefficients. The first is 1, the second -1.
// The slice must not be changed.
func (s *System) Coefficients() []fr.Element { return s.coeffs }

// Coefficient numbers that need no multiplication.
const (
	CoeffOne      = 0
	CoeffMinusOne = 1
)

// Rows calls visit for the constraints from..to in order with the terms of A, B
// and C. A variable may occur twice in one list, where a template's ports are
// connected to the same variable. The slices are valid during the call only.
// It stops when visit returns false.
func (s *System) Rows(from, to int, visit func(number int, a, b, c []Entry) bool) {
	var buf [3][]Entry
	s.walk(from, to, func(f *frame, first, last, number int) bool {
		for row := first; row < last; row++ {
			for m := range buf {
				lc := f.t.lc(3*row + m)
				out := slices.Grow(buf[m][:0], len(lc))[:len(lc)]
				for i, term := range lc {
					out[i] = Entry{f.global(term.v), term.coeff}
				}
				buf[m] = out
			}
			if !visit(number+row-first, buf[0], buf[1], buf[2]) {
				return false
			}
		}
		return true
	})
}

func (s *System) walk(from, to int, rows func(f *frame, first, last, number int) bool) {
	f := s.rootFrame()
	f.walk(from, min(to, s.NumConstraints()), portStack(), rows)
}

// portStack is scratch space for the ports of nested frames; deeper nesting
// than it holds only costs allocations.
func portStack() []uint32 { return make([]uint32, 0, 1<<13) }

func (s *System) rootFrame() frame {
	return frame{t: s.root, ports: []uint32{0}, inputBase: 1}
}

// Positions lists where in a witness the variables of each instance of the named
// template begin, in the order of synthesis. Instances within instances of the
// same name are not listed.
func (s *System) Positions(template string) []witness.Position {
	var out []witness.Position
	f := s.rootFrame()
	f.instances(portStack(), func(f *frame) bool {
		if f.t.name != template {
			return true
		}
		aux := int(f.auxBase)
		out = append(out, witness.Position{Input: int(f.inputBase), Aux: aux, Full: s.layout.FullBefore(aux)})
		return false
	})
	return out
}

// Density says which variables occur in A and in B, as bitmaps. Bases of the
// proving key exist only for those (bellperson's DensityTracker).
type Density struct {
	AAux, BAux, BInputs []uint64
}

// Density computes the densities of the circuit, once. That of A over the
// inputs is full, because of the constraint that the prover adds for each.
func (s *System) Density() *Density {
	s.densityOnce.Do(func() {
		d := &Density{
			AAux:    make([]uint64, witness.Words(s.NumAux())),
			BAux:    make([]uint64, witness.Words(s.NumAux())),
			BInputs: make([]uint64, witness.Words(s.NumInputs())),
		}
		f := s.rootFrame()
		f.instances(portStack(), func(f *frame) bool {
			for _, v := range f.t.inA {
				if g := f.global(v); g&AuxFlag != 0 {
					set(d.AAux, g&^AuxFlag)
				}
			}
			for _, v := range f.t.inB {
				if g := f.global(v); g&AuxFlag != 0 {
					set(d.BAux, g&^AuxFlag)
				} else {
					set(d.BInputs, g)
				}
			}
			return true
		})
		s.density = d
	})
	return s.density
}

func set(bitmap []uint64, i uint32) { bitmap[i/64] |= 1 << (i % 64) }

// Evaluate computes A·w, B·w and C·w of every constraint into the first
// NumConstraints elements of a, b and c, with the given number of threads. What
// is nil is left out.
func (s *System) Evaluate(ctx context.Context, w *witness.Witness, a, b, c []fr.Element, threads int) error {
	if err := s.fits(w); err != nil {
		return err
	}
	return Parallel(ctx, s.NumConstraints(), evaluateGrain, threads, func(from, to int) error {
		e := evaluator{s: s, w: w}
		s.walk(from, to, func(f *frame, first, last, number int) bool {
			for row := first; row < last; row++ {
				i := number + row - first
				for m, values := range [...][]fr.Element{a, b, c} {
					if values != nil {
						e.lc(f, 3*row+m, &values[i])
					}
				}
			}
			return true
		})
		return nil
	})
}

// evaluateGrain constraints are evaluated at a time: some 3 ms of work, so that
// a cancelled context is noticed at once.
const evaluateGrain = 1 << 14

func (s *System) fits(w *witness.Witness) error {
	if len(w.Inputs) != s.NumInputs() || w.Layout.NumAux() != s.NumAux() || len(w.Full) != s.layout.NumFull() {
		return fmt.Errorf("witness of %d inputs and %d auxiliary variables (%d full) for a circuit of %d and %d (%d full)",
			len(w.Inputs), w.Layout.NumAux(), len(w.Full), s.NumInputs(), s.NumAux(), s.layout.NumFull())
	}
	return nil
}

// evaluator computes linear combinations over one witness.
type evaluator struct {
	s *System
	w *witness.Witness
}

func (e *evaluator) lc(f *frame, i int, sum *fr.Element) {
	*sum = fr.Element{}
	for _, term := range f.t.lc(i) {
		e.add(sum, f.global(term.v), term.coeff)
	}
}

// add adds coefficient number coeff times variable v.
func (e *evaluator) add(sum *fr.Element, v, coeff uint32) {
	x := &e.s.coeffs[coeff]
	if v == 0 {
		sum.Add(sum, x)
		return
	}
	var val *fr.Element
	if v&AuxFlag == 0 {
		val = &e.w.Inputs[v]
	} else if i := int(v &^ AuxFlag); e.w.Layout.IsBit(i) {
		if e.w.Bit(i) {
			sum.Add(sum, x)
		}
		return
	} else {
		val = &e.w.Full[e.w.Layout.FullBefore(i)]
	}
	switch coeff {
	case CoeffOne:
		sum.Add(sum, val)
	case CoeffMinusOne:
		sum.Sub(sum, val)
	default:
		var p fr.Element
		p.Mul(val, x)
		sum.Add(sum, &p)
	}
}

// UnsatisfiedError names the first constraint that a witness breaks.
type UnsatisfiedError struct {
	Constraint int    // its number
	Template   string // the template it belongs to
	Row        int    // its number among that template's own constraints
}

// Error implements error.
func (e *UnsatisfiedError) Error() string {
	return fmt.Sprintf("constraint %d is not satisfied: row %d of %s", e.Constraint, e.Row, e.Template)
}

// Check verifies every constraint for w. It returns an *UnsatisfiedError if one
// does not hold.
func (s *System) Check(ctx context.Context, w *witness.Witness) error {
	if err := s.fits(w); err != nil {
		return err
	}
	var mu sync.Mutex
	var worst *UnsatisfiedError
	err := Parallel(ctx, s.NumConstraints(), evaluateGrain, runtime.GOMAXPROCS(0), func(from, to int) error {
		e := evaluator{s: s, w: w}
		s.walk(from, to, func(f *frame, first, last, number int) bool {
			for row := first; row < last; row++ {
				var a, b, c fr.Element
				e.lc(f, 3*row, &a)
				e.lc(f, 3*row+1, &b)
				e.lc(f, 3*row+2, &c)
				if a.Mul(&a, &b); a == c {
					continue
				}
				mu.Lock()
				defer mu.Unlock()
				if n := number + row - first; worst == nil || n < worst.Constraint {
					worst = &UnsatisfiedError{n, f.t.name, row}
				}
				return false
			}
			return true
		})
		return nil
	})
	if worst != nil {
		return worst
	}
	return err
}
