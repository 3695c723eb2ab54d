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

// Boolean is a bit, the negation of one, or a constant: the constant true is the
// variable One, false its negation. Operations on constants and negations make
// no variables where they can do without, in the same cases as bellpepper's
// Boolean, so that the same operations make the same variables.
type Boolean struct {
	Var     constraint.Var
	Negated bool
}

// Constants.
var (
	True  = Boolean{Var: constraint.One}
	False = Boolean{Var: constraint.One, Negated: true}
)

// Is is the Boolean of bit v.
func Is(v constraint.Var) Boolean { return Boolean{Var: v} }

// Not is ¬x.
func (x Boolean) Not() Boolean { return Boolean{x.Var, !x.Negated} }

// IsConstant reports whether x is True or False.
func (x Boolean) IsConstant() bool { return x.Var == constraint.One }

// plus is lc + coeff·x.
func (x Boolean) plus(lc constraint.LC, coeff fr.Element) constraint.LC {
	switch {
	case x == False:
		return lc
	case x.Negated:
		var neg fr.Element
		return append(lc, constraint.Term{Var: constraint.One, Coeff: coeff}, constraint.Term{Var: x.Var, Coeff: *neg.Neg(&coeff)})
	default:
		return append(lc, constraint.Term{Var: x.Var, Coeff: coeff})
	}
}

// lc is x as a linear combination.
func (x Boolean) lc() constraint.LC { return x.plus(nil, one) }

// sumOf is the linear combination of Booleans with small coefficients.
func sumOf(terms ...weighted) constraint.LC {
	var lc constraint.LC
	for _, t := range terms {
		var c fr.Element
		lc = t.x.plus(lc, *c.SetInt64(t.coeff))
	}
	return lc
}

type weighted struct {
	coeff int64
	x     Boolean
}

// xor is x ⊕ y: 2x · y = x + y - a for the bits under x and y (Boolean::xor).
func xor(b *constraint.Builder, x, y Boolean) Boolean {
	switch {
	case x.IsConstant():
		return Boolean{y.Var, y.Negated != (x == True)}
	case y.IsConstant():
		return Boolean{x.Var, x.Negated != (y == True)}
	}
	a := b.AllocBit()
	u, v := Is(x.Var), Is(y.Var)
	b.Enforce(sumOf(weighted{2, u}), v.lc(), sumOf(weighted{1, u}, weighted{1, v}, weighted{-1, Is(a)}))
	return Boolean{a, x.Negated != y.Negated}
}

// and is x ∧ y: x · y = a (Boolean::and).
func and(b *constraint.Builder, x, y Boolean) Boolean {
	switch {
	case x == False || y == False:
		return False
	case x == True:
		return y
	case y == True:
		return x
	case x.Negated && !y.Negated:
		x, y = y, x // the original has the negated operand second
	}
	a := b.AllocBit()
	b.Enforce(x.lc(), y.lc(), constraint.Lin(a))
	return Is(a)
}

// choose is y if x, else z: (y - z) · x = a - z (Boolean::sha256_ch).
func choose(b *constraint.Builder, x, y, z Boolean) Boolean {
	switch {
	case x == False, x == True && y.IsConstant() && z.IsConstant():
		if x == False {
			return z
		}
		return y
	case y == False:
		return and(b, x.Not(), z)
	case z == False:
		return and(b, x, y)
	case z == True:
		return and(b, x, y.Not()).Not()
	case y == True:
		return and(b, x.Not(), z.Not()).Not()
	}
	a := b.AllocBit()
	b.Enforce(sumOf(weighted{1, y}, weighted{-1, z}), x.lc(), sumOf(weighted{1, Is(a)}, weighted{-1, z}))
	return Is(a)
}

// majority is what at least two of x, y, z are: with yz = y ∧ z,
// (2yz - y - z) · x = yz - a (Boolean::sha256_maj).
func majority(b *constraint.Builder, x, y, z Boolean) Boolean {
	switch {
	case x == False:
		return and(b, y, z)
	case y == False:
		return and(b, x, z)
	case z == False:
		return and(b, x, y)
	case z == True:
		return and(b, x.Not(), y.Not()).Not()
	case y == True:
		return and(b, x.Not(), z.Not()).Not()
	case x == True:
		return and(b, y.Not(), z.Not()).Not()
	}
	a := b.AllocBit()
	yz := and(b, y, z)
	b.Enforce(
		sumOf(weighted{2, yz}, weighted{-1, y}, weighted{-1, z}), x.lc(),
		sumOf(weighted{1, yz}, weighted{-1, Is(a)}))
	return Is(a)
}
