package msm

import (
	"context"
	"fmt"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// FixedBase holds the multiples of one point by all digits of all windows, from
// which its multiples by many scalars are summed. It may be used by many
// goroutines at once.
type FixedBase[A, J any] struct {
	group *group[A, J]
	width int
	table [][]A // table[i][k] = k 2^(i*width) times the point
}

// NewFixedBaseG1 prepares to multiply a point by about n scalars. The table
// takes at most 48 MiB and for large n about 0.1 s to make.
func NewFixedBaseG1(ctx context.Context, base *bls12381.G1Affine, n, threads int) (*FixedBase[bls12381.G1Affine, bls12381.G1Jac], error) {
	return newFixedBase(ctx, g1, base, fixedWidth(n), threads)
}

// NewFixedBaseG2 is NewFixedBaseG1 for the other group; the table takes twice
// the memory.
func NewFixedBaseG2(ctx context.Context, base *bls12381.G2Affine, n, threads int) (*FixedBase[bls12381.G2Affine, bls12381.G2Jac], error) {
	return newFixedBase(ctx, g2, base, fixedWidth(n), threads)
}

// fixedWidth is the window width with the least additions, those that make the
// table included.
func fixedWidth(n int) int {
	best, bestCost := 0, 0
	for width := 3; width <= maxFixedWidth; width++ {
		cost := (numWindows(width)-1)*n + numWindows(width)<<(width-1)
		if best == 0 || cost < bestCost {
			best, bestCost = width, cost
		}
	}
	return best
}

// maxFixedWidth bounds the table's size: 16 windows of 32768 points.
const maxFixedWidth = 16

func newFixedBase[A, J any](ctx context.Context, g *group[A, J], base *A, width, threads int) (*FixedBase[A, J], error) {
	f := &FixedBase[A, J]{group: g, width: width, table: make([][]A, numWindows(width))}
	var power J // 2^(i*width) times the point
	g.addMixed(&power, base)
	for i := range f.table {
		f.table[i] = make([]A, maxDigit(width, i)+1)
		g.fromJacobian(&f.table[i][1], &power)
		for range width {
			g.double(&power)
		}
	}
	threads = defaultThreads(threads)
	worker := newWorkers(ctx, g, threads)
	err := parallel(ctx, threads, len(f.table), func(i, window int) {
		w, table := worker(i), f.table[window]
		for most := 1; most < len(table)-1; most *= 2 { // most+k = most + k
			n := min(most, len(table)-1-most)
			for k := 1; k <= n; k++ {
				table[most+k] = table[most]
			}
			w.add(table, uint32(most+1), 1, uint32(n))
			w.flush(table)
		}
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Multiply sets products[i] to scalars[i] times the point. It uses threads
// goroutines, or GOMAXPROCS if that is not positive, and 32 bytes a scalar
// beside the arguments: callers with many call it for a part at a time. A zero
// scalar gives infinity. The
// error is that the slices differ in length, or the context's cause, if it ends
// meanwhile; work then stops within 100 ms.
func (f *FixedBase[A, J]) Multiply(ctx context.Context, products []A, scalars []fr.Element, threads int) error {
	if len(products) != len(scalars) {
		return fmt.Errorf("multiples by %d scalars into a slice of %d points", len(scalars), len(products))
	}
	threads = defaultThreads(threads)
	worker := newWorkers(ctx, f.group, threads)
	size := f.group.blockPoints / 2
	return parallel(ctx, threads, (len(scalars)+size-1)/size, func(i, part int) {
		first := part * size
		last := min(first+size, len(scalars))
		f.multiplyBlock(worker(i), products[first:last], scalars[first:last])
	})
}

// multiplyBlock adds one window's multiples to all products at a time. The
// products are the first half of the worker's block, the multiples the second.
func (f *FixedBase[A, J]) multiplyBlock(w *worker[A, J], products []A, scalars []fr.Element) {
	n := len(scalars)
	d := makeDigits(n, f.width)
	for j := range scalars {
		d.set(j, &scalars[j])
	}
	clear(w.block[:n])
	w.keys = resize(w.keys, n)
	for window, table := range f.table {
		d.keys(w.keys, 0, window, 0, uint32(len(table)-1))
		w.touched += f.group.touch(table, w.keys)
		f.group.load(w.block[n:], table, w.keys)
		w.add(w.block, 0, uint32(n), uint32(n))
		w.flush(w.block)
	}
	copy(products, w.block)
}
