package gadget

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
)

// Coefficients that gadgets use throughout.
var (
	one      = fr.One()
	minusOne = func() fr.Element {
		var x fr.Element
		x.Neg(&one)
		return x
	}()
)

// not is 1 - v.
func not(v constraint.Var) constraint.LC {
	return constraint.Lin(constraint.One).Plus(v, minusOne)
}

// Bit makes a variable and constrains it to 0 or 1: (1 - a) · a = 0.
// Its witness is one Bit (bellpepper's AllocatedBit::alloc).
func Bit(b *constraint.Builder) constraint.Var {
	a := b.AllocBit()
	b.Enforce(not(a), constraint.Lin(a), nil)
	return a
}

// And makes the bit x ∧ y: x · y = a (AllocatedBit::and).
func And(b *constraint.Builder, x, y constraint.Var) constraint.Var {
	a := b.AllocBit()
	b.Enforce(constraint.Lin(x), constraint.Lin(y), constraint.Lin(a))
	return a
}

// Nor makes the bit ¬x ∧ ¬y: (1 - x) · (1 - y) = a (AllocatedBit::nor).
func Nor(b *constraint.Builder, x, y constraint.Var) constraint.Var {
	a := b.AllocBit()
	b.Enforce(not(x), not(y), constraint.Lin(a))
	return a
}
