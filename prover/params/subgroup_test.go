package params

import (
	"context"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"
)

// smallOrderG1 is a point of order 3, the smallest that the curve has outside
// of the subgroup: the cofactor is (x-1)²/3 with x = -0xd201000000010000, and
// multiples of such a point cancel out in one sum of three.
func smallOrderG1(t testing.TB) bls12381.G1Affine {
	t.Helper()
	// y² = x³ + 4 has the points (0, ±2); their tangents meet the curve there
	// three times.
	var p bls12381.G1Affine
	p.Y.SetUint64(2)
	require.True(t, p.IsOnCurve())
	require.False(t, p.IsInSubGroup())
	var three bls12381.G1Affine
	three.Add(&p, &p)
	three.Add(&three, &p)
	require.True(t, three.IsInfinity())
	return p
}

// The batched test finds one bad point among many, of the smallest order as of
// any, and passes good points, repeated and opposite ones included.
func TestBatchedSubgroupTest(t *testing.T) {
	_, _, g1, g2 := bls12381.Generators()
	scalars := make(fr.Vector, 300)
	require.NoError(t, scalars.SetRandom())
	scalars[1] = scalars[0]
	scalars[2].Neg(&scalars[0])
	p1 := bls12381.BatchScalarMultiplicationG1(&g1, scalars)
	p2 := bls12381.BatchScalarMultiplicationG2(&g2, scalars)
	test1 := func(ctx context.Context, p []bls12381.G1Affine) (bool, error) {
		return inSubgroup(ctx, p, (*bls12381.G1Jac).AddMixed, (*bls12381.G1Jac).AddAssign, (*bls12381.G1Jac).IsInSubGroup)
	}
	test2 := func(p []bls12381.G2Affine) (bool, error) {
		return inSubgroup(t.Context(), p, (*bls12381.G2Jac).AddMixed, (*bls12381.G2Jac).AddAssign, (*bls12381.G2Jac).IsInSubGroup)
	}
	ok, err := test1(t.Context(), p1)
	require.NoError(t, err)
	require.True(t, ok)
	ok, err = test2(p2)
	require.NoError(t, err)
	require.True(t, ok)

	jac := bls12381.GeneratePointNotInG1(fp.NewElement(5))
	outside := *new(bls12381.G1Affine).FromJacobian(&jac)
	for name, bad := range map[string]bls12381.G1Affine{"any": outside, "order 3": smallOrderG1(t)} {
		for _, at := range []int{0, 150, 299} {
			spoilt := append([]bls12381.G1Affine(nil), p1...)
			spoilt[at] = bad
			ok, err := test1(t.Context(), spoilt)
			require.NoError(t, err)
			require.False(t, ok, "%s at %d", name, at)
		}
		// Three that cancel out in the sum of all.
		spoilt := append([]bls12381.G1Affine(nil), p1...)
		spoilt[7].Add(&spoilt[7], &bad)
		spoilt[8].Add(&spoilt[8], &bad)
		spoilt[9].Add(&spoilt[9], &bad)
		ok, err := test1(t.Context(), spoilt)
		require.NoError(t, err)
		require.False(t, ok, name)
	}
	jac2 := bls12381.GeneratePointNotInG2(bls12381.E2{A0: fp.NewElement(5), A1: fp.NewElement(7)})
	spoilt := append([]bls12381.G2Affine(nil), p2...)
	spoilt[100].FromJacobian(&jac2)
	ok, err = test2(spoilt)
	require.NoError(t, err)
	require.False(t, ok)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = test1(ctx, p1)
	require.ErrorIs(t, err, context.Canceled)
}

func BenchmarkSubgroup(b *testing.B) {
	_, _, g1, _ := bls12381.Generators()
	scalars := make(fr.Vector, subgroupBatch)
	require.NoError(b, scalars.SetRandom())
	points := bls12381.BatchScalarMultiplicationG1(&g1, scalars)
	b.Run("together", func(b *testing.B) {
		for b.Loop() {
			ok, err := inSubgroup(b.Context(), points, (*bls12381.G1Jac).AddMixed, (*bls12381.G1Jac).AddAssign, (*bls12381.G1Jac).IsInSubGroup)
			if !ok || err != nil {
				b.Fatal(ok, err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(points)), "ns/point")
	})
	b.Run("alone", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if !points[i%len(points)].IsInSubGroup() {
				b.Fatal("not in the subgroup")
			}
		}
	})
}
