package msm

import (
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/interlock-prover/interlock/prover/msm/fp8"
)

// The adders for processors that multiply eight elements of the base field at
// once. Their formulas are those of the scalar adders. Comments say how many
// times p a number is at most: fp8 does not reduce results fully, nor needs it.

var vectorsSupported = fp8.Supported

// lanes lists the additions of one kind, eight to a group. Points have the
// numbers of their first coordinates' elements.
type lanes struct {
	n          int
	into, from [][8]uint32
}

func makeLanes(groups int) lanes {
	return lanes{into: make([][8]uint32, groups), from: make([][8]uint32, groups)}
}

func (l *lanes) add(into, from uint32) {
	g, lane := l.n/8, l.n%8
	l.into[g][lane], l.from[g][lane] = into, from
	l.n++
}

// fill repeats the last addition in the last group's free lanes, whose sums are
// then the same, and returns the number of groups.
func (l *lanes) fill() int {
	for l.n%8 != 0 {
		last := l.n - 1
		l.add(l.into[last/8][last%8], l.from[last/8][last%8])
	}
	return l.n / 8
}

// maxGroups is for any mixture of two kinds of additions.
func maxGroups(maxPairs int) int { return maxPairs/8 + 2 }

var one = *new(fp.Element).SetOne()

// g1VectorAdder is the adder of G1. It takes infinity and opposite points out of
// the pairs and sorts the rest into chords and tangents.
type g1VectorAdder struct {
	chords, tangents lanes
	den, before      []fp8.Vec // of each group: the denominators, and the product of all before

	// What an addition is made of, here for alignment.
	px, py, qx, qy, num, slope, product *fp8.Vec
}

func newG1VectorAdder(maxPairs int) adder[bls12381.G1Affine] {
	groups := maxGroups(maxPairs)
	v := make([]fp8.Vec, 2*groups+8)
	a := &g1VectorAdder{chords: makeLanes(groups), tangents: makeLanes(groups)}
	a.px, a.py, a.qx, a.qy, a.num, a.slope, a.product = &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6]
	a.den, a.before = v[7:7+groups], v[7+groups:]
	return a
}

func (a *g1VectorAdder) addPairs(points []bls12381.G1Affine, pairs []pair) {
	a.chords.n, a.tangents.n = 0, 0
	for _, pr := range pairs {
		p, q := &points[pr.into], &points[pr.from]
		switch {
		case q.X[0] == 0 && q.IsInfinity():
		case p.X[0] == 0 && p.IsInfinity():
			*p = *q
		case p.X[0] != q.X[0] || p.X != q.X:
			a.chords.add(2*pr.into, 2*pr.from)
		case p.Y == q.Y && !p.Y.IsZero():
			a.tangents.add(2*pr.into, 2*pr.from)
		default: // opposite
			*p = bls12381.G1Affine{}
		}
	}
	chords, tangents := a.chords.fill(), a.tangents.fill()
	groups := chords + tangents
	if groups == 0 {
		return
	}
	x, y := &points[0].X, &points[0].Y
	fp8.Set(&a.before[0], &one)
	for g := range groups {
		den := &a.den[g]
		if g < chords {
			fp8.Load(a.px, x, &a.chords.into[g])
			fp8.Load(a.qx, x, &a.chords.from[g])
			fp8.Sub(den, a.qx, a.px) // 3
		} else {
			fp8.Load(a.py, y, &a.tangents.into[g-chords])
			fp8.Add(den, a.py, a.py) // 2
		}
		fp8.Mul(&a.before[g+1], &a.before[g], den) // 1.45
	}
	fp8.Inverse(a.product, &a.before[groups])
	for g := groups - 1; g >= chords; g-- {
		into := &a.tangents.into[g-chords]
		fp8.Load(a.px, x, into)
		fp8.Load(a.py, y, into)
		*a.qx = *a.px
		fp8.Mul(a.slope, a.px, a.px) // 1.2
		fp8.Add(a.num, a.slope, a.slope)
		fp8.Add(a.num, a.num, a.slope) // 3.6
		a.finish(g, x, y, into)
	}
	for g := chords - 1; g >= 0; g-- {
		into, from := &a.chords.into[g], &a.chords.from[g]
		fp8.Load(a.px, x, into)
		fp8.Load(a.py, y, into)
		fp8.Load(a.qx, x, from)
		fp8.Load(a.qy, y, from)
		fp8.Sub(a.num, a.qy, a.py) // 3
		a.finish(g, x, y, into)
	}
}

// finish makes a group's sums from px, py, qx and the slopes' numerators.
func (a *g1VectorAdder) finish(g int, x, y *fp.Element, into *[8]uint32) {
	fp8.Mul(a.slope, a.product, &a.before[g])   // 1.22, the denominators' inverses
	fp8.Mul(a.product, a.product, &a.den[g])    // 1.45
	fp8.Mul(a.slope, a.slope, a.num)            // 1.45
	fp8.Mul(a.num, a.slope, a.slope)            // 1.22
	fp8.SubBothReduce(a.num, a.num, a.px, a.qx) // the sums' x
	fp8.Store(x, into, a.num)
	fp8.Sub(a.num, a.px, a.num)    // 3
	fp8.Mul(a.num, a.num, a.slope) // 1.45
	fp8.SubReduce(a.num, a.num, a.py)
	fp8.Store(y, into, a.num)
}

// vec2 is eight elements of the quadratic extension.
type vec2 struct{ a0, a1 fp8.Vec }

// g2VectorAdder is the adder of G2.
type g2VectorAdder struct {
	chords, tangents lanes
	norm, before     []fp8.Vec // of each group: the denominators' norms, and the product of all before
	conj             []vec2    // the denominators' conjugates

	px, py, qx, qy, num, slope *vec2
	product, zero, t1, t2, t3  *fp8.Vec
}

func newG2VectorAdder(maxPairs int) adder[bls12381.G2Affine] {
	groups := maxGroups(maxPairs)
	a := &g2VectorAdder{chords: makeLanes(groups), tangents: makeLanes(groups)}
	v := make([]fp8.Vec, 2*groups+6)
	a.product, a.zero, a.t1, a.t2, a.t3 = &v[0], &v[1], &v[2], &v[3], &v[4]
	a.norm, a.before = v[5:5+groups], v[5+groups:]
	w := make([]vec2, groups+6)
	a.px, a.py, a.qx, a.qy, a.num, a.slope, a.conj = &w[0], &w[1], &w[2], &w[3], &w[4], &w[5], w[6:]
	return a
}

func (a *g2VectorAdder) addPairs(points []bls12381.G2Affine, pairs []pair) {
	a.chords.n, a.tangents.n = 0, 0
	for _, pr := range pairs {
		p, q := &points[pr.into], &points[pr.from]
		switch {
		case q.X.A0[0] == 0 && q.IsInfinity():
		case p.X.A0[0] == 0 && p.IsInfinity():
			*p = *q
		case p.X.A0[0] != q.X.A0[0] || p.X != q.X:
			a.chords.add(4*pr.into, 4*pr.from)
		case p.Y == q.Y && !p.Y.IsZero():
			a.tangents.add(4*pr.into, 4*pr.from)
		default: // opposite
			*p = bls12381.G2Affine{}
		}
	}
	chords, tangents := a.chords.fill(), a.tangents.fill()
	groups := chords + tangents
	if groups == 0 {
		return
	}
	x, y := &points[0].X, &points[0].Y
	fp8.Set(&a.before[0], &one)
	for g := range groups {
		conj, norm := &a.conj[g], &a.norm[g]
		if g < chords {
			a.px.load(x, &a.chords.into[g])
			a.qx.load(x, &a.chords.from[g])
			fp8.Sub(&conj.a0, &a.qx.a0, &a.px.a0) // 3
			fp8.Sub(&conj.a1, &a.px.a1, &a.qx.a1) // 3
		} else {
			a.py.load(y, &a.tangents.into[g-chords])
			fp8.Add(&conj.a0, &a.py.a0, &a.py.a0) // 2
			fp8.Add(&conj.a1, &a.py.a1, &a.py.a1)
			fp8.Sub(&conj.a1, a.zero, &conj.a1) // 2
		}
		fp8.Mul(norm, &conj.a0, &conj.a0)           // 1.92
		fp8.Mul(a.t1, &conj.a1, &conj.a1)           // 1.92
		fp8.Add(norm, norm, a.t1)                   // 3.84
		fp8.Mul(&a.before[g+1], &a.before[g], norm) // 1.65
	}
	fp8.Inverse(a.product, &a.before[groups])
	for g := groups - 1; g >= chords; g-- {
		into := &a.tangents.into[g-chords]
		a.px.load(x, into)
		a.py.load(y, into)
		*a.qx = *a.px
		fp8.Add(a.t1, &a.px.a0, &a.px.a1) // 2
		fp8.Sub(a.t2, &a.px.a0, &a.px.a1) // 3
		fp8.Mul(a.t1, a.t1, a.t2)         // 1.61
		fp8.Mul(a.t2, &a.px.a0, &a.px.a1) // 1.11
		fp8.Add(a.t2, a.t2, a.t2)         // 2.22
		fp8.Reduce(a.t1, a.t1)
		fp8.Reduce(a.t2, a.t2)
		fp8.Add(&a.num.a0, a.t1, a.t1)
		fp8.Add(&a.num.a0, &a.num.a0, a.t1) // 3
		fp8.Add(&a.num.a1, a.t2, a.t2)
		fp8.Add(&a.num.a1, &a.num.a1, a.t2) // 3
		a.finish(g, x, y, into)
	}
	for g := chords - 1; g >= 0; g-- {
		into, from := &a.chords.into[g], &a.chords.from[g]
		a.px.load(x, into)
		a.py.load(y, into)
		a.qx.load(x, from)
		a.qy.load(y, from)
		fp8.Sub(&a.num.a0, &a.qy.a0, &a.py.a0) // 3
		fp8.Sub(&a.num.a1, &a.qy.a1, &a.py.a1) // 3
		a.finish(g, x, y, into)
	}
}

// finish makes a group's sums from px, py, qx and the slopes' numerators.
func (a *g2VectorAdder) finish(g int, x, y *bls12381.E2, into *[8]uint32) {
	num, slope, conj, t1, t2, t3 := a.num, a.slope, &a.conj[g], a.t1, a.t2, a.t3
	fp8.Mul(t1, a.product, &a.before[g])          // 1.28, the norms' inverses
	fp8.Mul(a.product, a.product, &a.norm[g])     // 1.65
	fp8.Mul(&conj.a0, &conj.a0, t1)               // 1.4, the denominators' inverses
	fp8.Mul(&conj.a1, &conj.a1, t1)               // 1.4
	a.multiply(num, conj)                         // 1.43, 1.43, 3.08
	fp8.SubReduce(&slope.a0, t1, t2)              // 1
	fp8.SubBothReduce(&slope.a1, t3, t1, t2)      // 1
	fp8.Add(t1, &slope.a0, &slope.a1)             // 2
	fp8.Sub(t2, &slope.a0, &slope.a1)             // 3
	fp8.Mul(t1, t1, t2)                           // 1.61
	fp8.Mul(t2, &slope.a0, &slope.a1)             // 1.11
	fp8.Add(t2, t2, t2)                           // 2.22
	fp8.SubBothReduce(t1, t1, &a.px.a0, &a.qx.a0) // the sums' x
	fp8.SubBothReduce(t2, t2, &a.px.a1, &a.qx.a1)
	fp8.Store(&x.A0, into, t1)
	fp8.Store(&x.A1, into, t2)
	fp8.Sub(&num.a0, &a.px.a0, t1) // 3
	fp8.Sub(&num.a1, &a.px.a1, t2) // 3
	a.multiply(num, slope)         // 1.31, 1.31, 2.22
	fp8.SubBothReduce(&num.a0, t1, t2, &a.py.a0)
	fp8.SubBothReduce(&num.a1, t3, t1, t2)
	fp8.SubReduce(&num.a1, &num.a1, &a.py.a1)
	fp8.Store(&y.A0, into, &num.a0)
	fp8.Store(&y.A1, into, &num.a1)
}

// multiply sets t1, t2 and t3 to v0 w0, v1 w1 and (v0 + v1)(w0 + w1): the
// product v w is t1 - t2 and t3 - t1 - t2.
func (a *g2VectorAdder) multiply(v, w *vec2) {
	fp8.Add(a.t1, &v.a0, &v.a1)
	fp8.Add(a.t2, &w.a0, &w.a1)
	fp8.Mul(a.t3, a.t1, a.t2)
	fp8.Mul(a.t1, &v.a0, &w.a0)
	fp8.Mul(a.t2, &v.a1, &w.a1)
}

func (v *vec2) load(elements *bls12381.E2, index *[8]uint32) {
	fp8.Load(&v.a0, &elements.A0, index)
	fp8.Load(&v.a1, &elements.A1, index)
}
