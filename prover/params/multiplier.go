package params

import (
	"context"
	"runtime"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/msm"
)

// Multiplier multiplies the generators of both groups. Its methods are called by
// one goroutine at a time.
type Multiplier interface {
	// Batch is how many scalars a call is given at most, and mostly is given.
	Batch() int
	// MultiplesG1 writes the multiple of G1's generator by each scalar, none of
	// which is zero, to points: 96 bytes each, encoded as in parameter files.
	MultiplesG1(ctx context.Context, points []byte, scalars []fr.Element) error
	// MultiplesG2 is MultiplesG1 for the other group, with 192 bytes a point.
	MultiplesG2(ctx context.Context, points []byte, scalars []fr.Element) error
}

// cpuMultiplier multiplies with all of GOMAXPROCS.
type cpuMultiplier struct {
	g1       *msm.FixedBase[bls12381.G1Affine, bls12381.G1Jac]
	g2       *msm.FixedBase[bls12381.G2Affine, bls12381.G2Jac]
	pointsG1 []bls12381.G1Affine
	pointsG2 []bls12381.G2Affine
}

// newCPUMultiplier prepares for about that many multiples in each group.
func newCPUMultiplier(ctx context.Context, numG1, numG2 int) (*cpuMultiplier, error) {
	_, _, g1, g2 := bls12381.Generators()
	m := &cpuMultiplier{}
	var err error
	if m.g1, err = msm.NewFixedBaseG1(ctx, &g1, numG1, 0); err != nil {
		return nil, err
	}
	if m.g2, err = msm.NewFixedBaseG2(ctx, &g2, numG2, 0); err != nil {
		return nil, err
	}
	m.pointsG1 = make([]bls12381.G1Affine, min(m.Batch(), numG1))
	m.pointsG2 = make([]bls12381.G2Affine, min(m.Batch(), numG2))
	return m, nil
}

// Batch implements Multiplier.
func (m *cpuMultiplier) Batch() int { return 1 << 16 }

// MultiplesG1 implements Multiplier.
func (m *cpuMultiplier) MultiplesG1(ctx context.Context, points []byte, scalars []fr.Element) error {
	p := m.pointsG1[:len(scalars)]
	if err := m.g1.Multiply(ctx, p, scalars, 0); err != nil {
		return err
	}
	return encodeAll(ctx, points, p, func(to []byte, p *bls12381.G1Affine) { b := p.RawBytes(); copy(to, b[:]) })
}

// MultiplesG2 implements Multiplier.
func (m *cpuMultiplier) MultiplesG2(ctx context.Context, points []byte, scalars []fr.Element) error {
	p := m.pointsG2[:len(scalars)]
	if err := m.g2.Multiply(ctx, p, scalars, 0); err != nil {
		return err
	}
	return encodeAll(ctx, points, p, func(to []byte, p *bls12381.G2Affine) { b := p.RawBytes(); copy(to, b[:]) })
}

func encodeAll[P any](ctx context.Context, to []byte, points []P, encode func(to []byte, p *P)) error {
	size := len(to) / len(points)
	return constraint.Parallel(ctx, len(points), decodeGrain, runtime.GOMAXPROCS(0), func(lo, hi int) error {
		for i := lo; i < hi; i++ {
			encode(to[i*size:], &points[i])
		}
		return nil
	})
}
