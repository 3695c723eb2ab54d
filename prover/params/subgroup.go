package params

import (
	"context"
	"crypto/rand"
	"fmt"
)

const (
	// subgroupBatch points are tested together: some 50 ms in G1, 150 in G2.
	subgroupBatch = 1 << 14
	// minSubgroupBatch is from where on that is cheaper than one by one.
	minSubgroupBatch = 1 << 9

	windowBits = 8
	windows    = 64 / windowBits
)

// inSubgroup says whether all of many points on the curve are in the subgroup
// of prime order. It adds up 64 random subsets of them and checks those sums.
// If a point is outside, so is each sum with a probability of at least one
// half, since choosing that point or not takes the sum to another coset: a bad
// point is missed with a probability of 2^-64 at most.
//
// For each point a random byte for each of eight windows says in which of the
// window's eight subsets it is. Points with the same byte are added up first:
// 8 additions a point instead of 32, where testing a point alone takes over a
// hundred doublings.
func inSubgroup[A, J any](ctx context.Context, points []A, addMixed func(*J, *A) *J, add func(*J, *J) *J, isInSubgroup func(*J) bool) (bool, error) {
	random := make([]byte, windows*len(points))
	if _, err := rand.Read(random); err != nil {
		return false, fmt.Errorf("drawing random subsets: %w", err)
	}
	var sums [windows][1 << windowBits]J
	for i := range points {
		if i%1024 == 0 && ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		for w, subset := range random[i*windows : (i+1)*windows] {
			addMixed(&sums[w][subset], &points[i])
		}
	}
	for w := range sums {
		// The sum of the upper half is that of one subset; folded onto the
		// lower half, the next bit becomes the highest.
		for half := len(sums[w]) / 2; half > 0; half /= 2 {
			var sum J
			for i := range half {
				add(&sum, &sums[w][half+i])
				add(&sums[w][i], &sums[w][half+i])
			}
			if !isInSubgroup(&sum) {
				return false, nil
			}
		}
	}
	return true, nil
}
