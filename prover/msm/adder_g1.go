package msm

import (
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
)

// g1ScalarAdder is the adder of G1 on any processor: 6 multiplications an
// addition.
type g1ScalarAdder struct{ slopes []g1Slope }

// g1Slope is a pending addition: the slope of its chord or tangent as a
// fraction, and the product of all denominators before it.
type g1Slope struct {
	num, den, before fp.Element
	pair
}

func newG1ScalarAdder(maxPairs int) adder[bls12381.G1Affine] {
	return &g1ScalarAdder{slopes: make([]g1Slope, maxPairs)}
}

func (a *g1ScalarAdder) addPairs(points []bls12381.G1Affine, pairs []pair) {
	var product fp.Element
	product.SetOne()
	n := 0
	for _, pr := range pairs {
		p, q := &points[pr.into], &points[pr.from]
		if q.X[0] == 0 && q.IsInfinity() {
			continue
		}
		if p.X[0] == 0 && p.IsInfinity() {
			*p = *q
			continue
		}
		s := &a.slopes[n]
		sub(&s.num, &q.Y, &p.Y)
		sub(&s.den, &q.X, &p.X)
		if s.den[0] == 0 && s.den.IsZero() {
			if !s.num.IsZero() || p.Y.IsZero() { // opposite
				*p = bls12381.G1Affine{}
				continue
			}
			s.num.Square(&p.X) // tangent: 3x² / 2y
			fp.MulBy3(&s.num)
			s.den.Double(&p.Y)
		}
		s.pair = pr
		s.before = product
		product.Mul(&product, &s.den)
		n++
	}
	if n == 0 {
		return
	}
	var inverse, slope, x fp.Element
	product.Inverse(&product)
	for n--; n >= 0; n-- {
		s := &a.slopes[n]
		p, q := &points[s.into], &points[s.from]
		inverse.Mul(&product, &s.before)
		product.Mul(&product, &s.den)
		slope.Mul(&s.num, &inverse)
		// x = slope² - p.x - q.x, y = slope (p.x - x) - p.y
		x.Square(&slope)
		subBoth(&x, &x, &p.X, &q.X)
		sub(&p.X, &p.X, &x)
		slope.Mul(&slope, &p.X)
		sub(&p.Y, &slope, &p.Y)
		p.X = x
	}
}

func loadG1(block, bases []bls12381.G1Affine, refs []uint32) {
	block = block[:len(refs)]
	for i, ref := range refs {
		p, base := &block[i], &bases[ref>>1]
		p.X = base.X
		signed(&p.Y, &base.Y, ref)
	}
}

func touchG1(bases []bls12381.G1Affine, refs []uint32) (sum uint64) {
	for _, ref := range refs {
		p := &bases[ref>>1]
		sum += p.X[0] + p.Y[5]
	}
	return sum
}
