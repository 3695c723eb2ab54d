package msm

import (
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
)

// group is what the algorithms need of G1 or G2; A are its affine points
// (infinity is (0, 0)), J its Jacobian ones (infinity has Z = 0).
type group[A, J any] struct {
	// blockPoints is how many points a worker sums at a time: block and
	// adder's scratch, of either kind, together fill about two thirds of a
	// 1 MiB L2 cache.
	blockPoints int
	newAdder    func(maxPairs int) adder[A]

	// load sets block[i] to bases[refs[i]>>1], negated if refs[i] is odd.
	load func(block, bases []A, refs []uint32)
	// touch brings bases[refs[i]>>1] into the cache; the number it returns only
	// keeps the compiler from leaving the loads out.
	touch        func(bases []A, refs []uint32) uint64
	isInfinity   func(*A) bool
	add          func(z, x, y *A) *A
	fromJacobian func(z *A, x *J) *A

	addJacobian func(z, x *J) *J // z += x
	addMixed    func(z *J, x *A) *J
	double      func(z *J) *J
}

var g1 = &group[bls12381.G1Affine, bls12381.G1Jac]{
	blockPoints:  4096,
	newAdder:     newG1Adder,
	load:         loadG1,
	touch:        touchG1,
	isInfinity:   (*bls12381.G1Affine).IsInfinity,
	add:          (*bls12381.G1Affine).Add,
	fromJacobian: (*bls12381.G1Affine).FromJacobian,
	addJacobian:  (*bls12381.G1Jac).AddAssign,
	addMixed:     (*bls12381.G1Jac).AddMixed,
	double:       (*bls12381.G1Jac).DoubleAssign,
}

var g2 = &group[bls12381.G2Affine, bls12381.G2Jac]{
	blockPoints:  2048,
	newAdder:     newG2Adder,
	load:         loadG2,
	touch:        touchG2,
	isInfinity:   (*bls12381.G2Affine).IsInfinity,
	add:          (*bls12381.G2Affine).Add,
	fromJacobian: (*bls12381.G2Affine).FromJacobian,
	addJacobian:  (*bls12381.G2Jac).AddAssign,
	addMixed:     (*bls12381.G2Jac).AddMixed,
	double:       (*bls12381.G2Jac).DoubleAssign,
}

// useVectors chooses the adders for processors with wide vectors. Only tests and
// benchmarks change it, to compare both.
var useVectors = vectorsSupported

func newG1Adder(maxPairs int) adder[bls12381.G1Affine] {
	if useVectors {
		return newG1VectorAdder(maxPairs)
	}
	return newG1ScalarAdder(maxPairs)
}

func newG2Adder(maxPairs int) adder[bls12381.G2Affine] {
	if useVectors {
		return newG2VectorAdder(maxPairs)
	}
	return newG2ScalarAdder(maxPairs)
}

// pair asks for points[into] += points[from].
type pair struct{ into, from uint32 }

// adder adds many pairs of affine points with one field inversion.
type adder[A any] interface {
	// addPairs does points[p.into] += points[p.from] for every pair. No point
	// may be the target of two pairs, nor target of one and operand of
	// another; several pairs may share an operand. Any points on the curve
	// are added right, infinity, equal and opposite ones included.
	addPairs(points []A, pairs []pair)
}
