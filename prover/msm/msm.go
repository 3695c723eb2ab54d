package msm

import (
	"context"
	"fmt"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// G1 is the sum of scalars[i] bases[i]. Bases may be any points of the group,
// infinity included, in memory that cannot be written. It uses threads
// goroutines, or GOMAXPROCS if that is not positive. Memory beside the
// arguments is 32 bytes a scalar for at most 4 Mi scalars at a time, and for
// each goroutine 8 bytes a scalar and the buckets: 6 MiB at 1 Mi scalars.
//
// The error is that the slices differ in length, or the context's cause if it
// ends meanwhile; work then stops within 100 ms.
func G1(ctx context.Context, bases []bls12381.G1Affine, scalars []fr.Element, threads int) (bls12381.G1Jac, error) {
	return sumFull(ctx, g1, bases, scalars, threads)
}

// Compact is a vector of N scalars of which many are known to be bits. In the
// bitmaps, bit i%64 of word i/64 is about scalar i.
type Compact struct {
	N     int
	IsBit []uint64     // which scalars are bits; nil: none
	Bits  []uint64     // the values of those
	Full  []fr.Element // the scalars that are not bits, in order
	Dense []uint64     // which scalars have a base; nil: all
}

// G1Compact is the sum of the bases times their scalars; the k-th base is that
// of the k-th dense scalar. Threads, memory and errors are as with G1, with 8
// bytes more for each full scalar.
func G1Compact(ctx context.Context, bases []bls12381.G1Affine, scalars *Compact, threads int) (bls12381.G1Jac, error) {
	return sumCompact(ctx, g1, bases, scalars, threads)
}

// G2Compact is G1Compact for the other group, whose points and buckets take twice
// the memory.
func G2Compact(ctx context.Context, bases []bls12381.G2Affine, scalars *Compact, threads int) (bls12381.G2Jac, error) {
	return sumCompact(ctx, g2, bases, scalars, threads)
}

func sumFull[A, J any](ctx context.Context, g *group[A, J], bases []A, scalars []fr.Element, threads int) (sum J, err error) {
	if len(bases) != len(scalars) {
		return sum, fmt.Errorf("multi-exponentiation of %d bases by %d scalars", len(bases), len(scalars))
	}
	return multiExp(ctx, g, bases, &terms{n: len(scalars), scalars: scalars}, &selection{}, chunkTerms, threads)
}

func sumCompact[A, J any](ctx context.Context, g *group[A, J], bases []A, scalars *Compact, threads int) (sum J, err error) {
	t, s, err := scalars.split(len(bases))
	if err != nil {
		return sum, fmt.Errorf("multi-exponentiation: %w", err)
	}
	return multiExp(ctx, g, bases, t, s, chunkTerms, threads)
}

// chunkTerms bounds the memory for scalars; with as many the buckets cost less
// than 3 % of the additions.
const chunkTerms = 1 << 22

// multiExp is the sum of the terms, chunk of them at a time, and of the selected
// bases.
func multiExp[A, J any](ctx context.Context, g *group[A, J], bases []A, t *terms, s *selection, chunk, threads int) (sum J, err error) {
	if len(bases) > maxBases {
		return sum, fmt.Errorf("multi-exponentiation of %d bases, more than %d", len(bases), maxBases)
	}
	threads = defaultThreads(threads)
	worker := newWorkers(ctx, g, threads)
	for from, to := 0, -1; to < t.n; from = to {
		to = min(from+chunk, t.n)
		d, err := newDigits(ctx, t, from, to, threads)
		if err != nil {
			return sum, err
		}
		tasks := windowTasks(d, threads)
		parts := 0
		if to == t.n { // the selection's small tasks even out the end
			parts = s.parts()
		}
		sums := make([]J, len(tasks)+parts)
		err = parallel(ctx, threads, len(sums), func(i, task int) {
			if task < len(tasks) {
				sums[task] = worker(i).windowSum(bases, d, tasks[task])
			} else {
				sums[task] = worker(i).selectedSum(bases, s, task-len(tasks))
			}
		})
		d.free()
		if err != nil {
			return sum, err
		}
		var part J
		for task, window := 0, d.windows-1; window >= 0; window-- {
			for range d.width {
				g.double(&part)
			}
			for ; task < len(tasks) && tasks[task].window == window; task++ {
				g.addJacobian(&part, &sums[task])
			}
		}
		g.addJacobian(&sum, &part)
		for i := len(tasks); i < len(sums); i++ {
			g.addJacobian(&sum, &sums[i])
		}
	}
	return sum, nil
}

// windowTask asks for the part of a window's sum with digits of amount lo+1..hi.
type windowTask struct{ window, lo, hi int }

// windowTasks cuts a sum into tasks, the last window's first. As many windows
// as there are threads are cut finely, so that the threads end together.
func windowTasks(d *digits, threads int) []windowTask {
	if d.n == 0 {
		return nil
	}
	var tasks []windowTask
	for window := d.windows - 1; window >= 0; window-- {
		parts := 1
		if window < threads {
			parts = max(4, (4*threads+d.windows-1)/d.windows)
		}
		count := maxDigit(d.width, window)
		for part := range parts {
			lo, hi := part*count/parts, (part+1)*count/parts
			if lo < hi {
				tasks = append(tasks, windowTask{window, lo, hi})
			}
		}
	}
	return tasks
}
