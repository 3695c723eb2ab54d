package params

import (
	"context"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

type multiplier struct{}

func newMultiplier(int) *multiplier { return &multiplier{} }

func (m *multiplier) g1(ctx context.Context, dst []bls12381.G1Affine, s []fr.Element) error {
	_, _, g1, _ := bls12381.Generators()
	copy(dst, bls12381.BatchScalarMultiplicationG1(&g1, s))
	return nil
}

func (m *multiplier) g2(ctx context.Context, dst []bls12381.G2Affine, s []fr.Element) error {
	_, _, _, g2 := bls12381.Generators()
	copy(dst, bls12381.BatchScalarMultiplicationG2(&g2, s))
	return nil
}
