package gadget

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/witness"
)

// Equal constrains x · 1 = y (storage-proofs-core's constraint::equal).
func Equal(b *constraint.Builder, x, y constraint.Var) {
	b.Enforce(constraint.Lin(x), constraint.Lin(constraint.One), constraint.Lin(y))
}

// Inputize makes a public input equal to x (bellpepper's AllocatedNum::inputize).
func Inputize(b *constraint.Builder, x constraint.Var) {
	Equal(b, b.AllocInput(), x)
}

// PackInput makes the public input whose binary digits, lowest first, are bits.
// There must be at most 254 (bellpepper's multipack::pack_into_inputs).
func PackInput(b *constraint.Builder, bits []constraint.Var) {
	if len(bits) > packCapacity {
		panic("gadget: too many bits for one input")
	}
	b.Enforce(Packed(bits), constraint.Lin(constraint.One), constraint.Lin(b.AllocInput()))
}

// packCapacity is the number of bits that every field element can hold.
const packCapacity = fr.Bits - 1

// Packed is the number whose binary digits, lowest first, are bits.
func Packed(bits []constraint.Var) constraint.LC {
	lc := make(constraint.LC, len(bits))
	coeff := one
	for i, bit := range bits {
		lc[i] = constraint.Term{Var: bit, Coeff: coeff}
		coeff.Double(&coeff)
	}
	return lc
}

// Pick makes the number x if condition is 1, else y:
// (y - x) · condition = y - a (storage-proofs-core's insertion::pick).
func Pick(b *constraint.Builder, condition, x, y constraint.Var) constraint.Var {
	a := b.Alloc()
	b.Enforce(constraint.Lin(y).Plus(x, minusOne), constraint.Lin(condition), constraint.Lin(y).Plus(a, minusOne))
	return a
}

// WritePick writes the value that Pick makes and returns it.
func WritePick(w *witness.Writer, condition bool, x, y *fr.Element) *fr.Element {
	if condition {
		y = x
	}
	w.Full(y)
	return y
}
