package groth16

import (
	"context"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
)

// cosetShift takes the roots of unity to the coset on which the quotient is
// computed: the multiplicative generator, as in bellperson.
const cosetShift = 7

// quotient computes the coefficients of H = (A·B - C)/Z, where A, B and C
// interpolate a, b and c on the domain and Z = x^n - 1 vanishes there: what
// bellperson's execute_fft computes, with one transform less. The result is in
// a, in natural order; its last coefficient is zero if the circuit is
// satisfied. b is overwritten.
//
// On the coset g·w^i, Z is g^n - 1 everywhere, and the polynomial of degree
// below n with the values of A·B = C + Z·H there is C + (g^n - 1)·H. So C need
// not go to the coset: its coefficients are subtracted afterwards. Its values
// are not needed before either, so evaluateC is asked for them when b is free to
// take them, and a third buffer is spared.
func (d *domain) quotient(ctx context.Context, a, b []fr.Element, evaluateC func(c []fr.Element) error, threads int) error {
	shift := fr.NewElement(cosetShift)
	unscale := d.unscaled()
	unscale.Inverse(&unscale)
	for _, v := range [][]fr.Element{a, b} {
		if err := d.interpolate(ctx, v, threads); err != nil {
			return err
		}
		if err := d.scalePowers(ctx, v, &shift, &unscale, threads); err != nil {
			return err
		}
		if err := d.evaluate(ctx, v, threads); err != nil {
			return err
		}
	}
	err := constraint.Parallel(ctx, d.n, quotientGrain, threads, func(from, to int) error {
		x, y := fr.Vector(a[from:to]), fr.Vector(b[from:to])
		x.Mul(x, y)
		return nil
	})
	if err != nil {
		return err
	}
	if err := d.interpolate(ctx, a, threads); err != nil {
		return err
	}
	c := b
	if err := evaluateC(c); err != nil {
		return err
	}
	if err := d.interpolate(ctx, c, threads); err != nil {
		return err
	}

	// H = (coefficients of A·B on the coset - C) / (g^n - 1)
	var zInverse, factor, shiftInverse fr.Element
	one := fr.One()
	zInverse = shift
	for k := d.n; k > 1; k /= 2 {
		zInverse.Square(&zInverse)
	}
	zInverse.Sub(&zInverse, &one)
	zInverse.Inverse(&zInverse)
	factor.Mul(&zInverse, &unscale)
	shiftInverse.Inverse(&shift)
	if err := d.scalePowers(ctx, a, &shiftInverse, &factor, threads); err != nil {
		return err
	}
	err = constraint.Parallel(ctx, d.n, quotientGrain, threads, func(from, to int) error {
		x, y := fr.Vector(a[from:to]), fr.Vector(c[from:to])
		y.ScalarMul(y, &factor)
		x.Sub(x, y)
		return nil
	})
	if err != nil {
		return err
	}
	return permute(ctx, a, threads)
}

// permute takes coefficients from bit-reversed to natural order.
func permute(ctx context.Context, v []fr.Element, threads int) error {
	return constraint.Parallel(ctx, len(v), quotientGrain, threads, func(from, to int) error {
		for i := from; i < to; i++ {
			if j := reverse(i, len(v)); i < j { // the pair belongs to its lower index
				v[i], v[j] = v[j], v[i]
			}
		}
		return nil
	})
}

// quotientGrain elements are handled at a time.
const quotientGrain = 1 << 12
