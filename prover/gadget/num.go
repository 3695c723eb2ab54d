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

// Pack makes the number whose binary digits, lowest first, are bits. There must be at
// most 254 (bellpepper's multipack::pack_bits).
func Pack(b *constraint.Builder, bits []constraint.Var) constraint.Var {
	if len(bits) > packCapacity {
		panic("gadget: too many bits for one number")
	}
	a := b.Alloc()
	b.Enforce(Packed(bits), constraint.Lin(constraint.One), constraint.Lin(a))
	return a
}

// Multiply makes the product x · y = a (bellpepper's AllocatedNum::mul).
func Multiply(b *constraint.Builder, x, y constraint.Var) constraint.Var {
	a := b.Alloc()
	b.Enforce(constraint.Lin(x), constraint.Lin(y), constraint.Lin(a))
	return a
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

// Select makes the number at the place among from whose binary digits, lowest first,
// are index, by picking halves (storage-proofs-core's insertion::select). There are as
// many numbers as index can tell apart.
func Select(b *constraint.Builder, from, index []constraint.Var) constraint.Var {
	for k := len(index) - 1; k >= 0; k-- {
		half := len(from) / 2
		picked := make([]constraint.Var, half)
		for i := range picked {
			picked[i] = Pick(b, index[k], from[half+i], from[i])
		}
		from = picked
	}
	return from[0]
}

// WriteSelect writes the values of the variables that Select makes.
func WriteSelect(w *witness.Writer, from []fr.Element, index int) {
	for half := len(from) / 2; half > 0; half /= 2 {
		if index&half != 0 {
			from = from[half:]
		}
		from = from[:half]
		copy(w.Fulls(half), from)
	}
}
