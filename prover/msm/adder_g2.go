package msm

import (
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
)

// g2ScalarAdder is the adder of G2 on any processor. It inverts the norms of the
// denominators, in the base field, since 1/d = conj(d)/norm(d): 7 base
// multiplications an addition for the inversion where Montgomery's trick in Fp2
// takes 9, and with two products and a square in Fp2 15 in all.
type g2ScalarAdder struct{ slopes []g2Slope }

// g2Slope is a pending addition: the slope of its chord or tangent as a
// fraction, the norm of the denominator and the product of all norms before it.
type g2Slope struct {
	num, den     bls12381.E2
	norm, before fp.Element
	pair
}

func newG2ScalarAdder(maxPairs int) adder[bls12381.G2Affine] {
	return &g2ScalarAdder{slopes: make([]g2Slope, maxPairs)}
}

func (a *g2ScalarAdder) addPairs(points []bls12381.G2Affine, pairs []pair) {
	var product, t fp.Element
	product.SetOne()
	n := 0
	for _, pr := range pairs {
		p, q := &points[pr.into], &points[pr.from]
		if q.X.A0[0] == 0 && q.IsInfinity() {
			continue
		}
		if p.X.A0[0] == 0 && p.IsInfinity() {
			*p = *q
			continue
		}
		s := &a.slopes[n]
		s.num.Sub(&q.Y, &p.Y)
		s.den.Sub(&q.X, &p.X)
		if s.den.A0[0] == 0 && s.den.IsZero() {
			if !s.num.IsZero() || p.Y.IsZero() { // opposite
				*p = bls12381.G2Affine{}
				continue
			}
			s.num.Square(&p.X) // tangent: 3x² / 2y
			fp.MulBy3(&s.num.A0)
			fp.MulBy3(&s.num.A1)
			s.den.Double(&p.Y)
		}
		s.norm.Square(&s.den.A0)
		t.Square(&s.den.A1)
		add(&s.norm, &s.norm, &t)
		s.pair = pr
		s.before = product
		product.Mul(&product, &s.norm)
		n++
	}
	if n == 0 {
		return
	}
	var inverse fp.Element
	var slope, x bls12381.E2
	product.Inverse(&product)
	for n--; n >= 0; n-- {
		s := &a.slopes[n]
		p, q := &points[s.into], &points[s.from]
		inverse.Mul(&product, &s.before)
		product.Mul(&product, &s.norm)
		slope.A0.Mul(&s.den.A0, &inverse)
		slope.A1.Mul(&s.den.A1, &inverse)
		slope.A1.Neg(&slope.A1)
		slope.Mul(&slope, &s.num)
		// x = slope² - p.x - q.x, y = slope (p.x - x) - p.y
		x.Square(&slope)
		subBoth(&x.A0, &x.A0, &p.X.A0, &q.X.A0)
		subBoth(&x.A1, &x.A1, &p.X.A1, &q.X.A1)
		p.X.Sub(&p.X, &x)
		slope.Mul(&slope, &p.X)
		p.Y.Sub(&slope, &p.Y)
		p.X = x
	}
}

func loadG2(block, bases []bls12381.G2Affine, refs []uint32) {
	block = block[:len(refs)]
	for i, ref := range refs {
		p, base := &block[i], &bases[ref>>1]
		p.X = base.X
		signed(&p.Y.A0, &base.Y.A0, ref)
		signed(&p.Y.A1, &base.Y.A1, ref)
	}
}

func touchG2(bases []bls12381.G2Affine, refs []uint32) (sum uint64) {
	for _, ref := range refs {
		p := &bases[ref>>1]
		sum += p.X.A0[0] + p.X.A1[2] + p.Y.A0[4] + p.Y.A1[5]
	}
	return sum
}
