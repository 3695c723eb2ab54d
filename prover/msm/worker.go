package msm

import (
	"context"
	"math"
	"math/bits"
)

// worker is the memory of one goroutine, reused from task to task, and the sums
// it can make with it.
type worker[A, J any] struct {
	ctx      context.Context
	group    *group[A, J]
	adder    adder[A]
	block    []A
	pairs    []pair
	segments []segment

	touched uint64 // see group.touch

	// for windowSum only, made on first use
	buckets []A
	keys    []uint32
	sorted  []uint32 // 2*base + (1 to negate it), by bucket
	ends    []uint32 // where each bucket's part of sorted ends
}

// segment is a run of points to be summed into the first of them.
type segment struct {
	start, length uint32
	bucket        uint32 // where the caller wants the sum
}

func newWorker[A, J any](ctx context.Context, g *group[A, J]) *worker[A, J] {
	return &worker[A, J]{
		ctx:   ctx,
		group: g,
		adder: g.newAdder(g.blockPoints / 2),
		block: make([]A, g.blockPoints),
		pairs: make([]pair, 0, g.blockPoints/2),
	}
}

// newWorkers makes the workers' list of a parallel call; each is made by the
// goroutine that first needs it.
func newWorkers[A, J any](ctx context.Context, g *group[A, J], threads int) func(i int) *worker[A, J] {
	workers := make([]*worker[A, J], threads)
	return func(i int) *worker[A, J] {
		if workers[i] == nil {
			workers[i] = newWorker(ctx, g)
		}
		return workers[i]
	}
}

// add asks for points[into+k] += points[from+k], for all k below count, by the
// next flush.
func (w *worker[A, J]) add(points []A, into, from, count uint32) {
	for k := range count {
		if len(w.pairs) == cap(w.pairs) {
			w.flush(points)
		}
		w.pairs = append(w.pairs, pair{into + k, from + k})
	}
}

// flush does the additions asked for, or nothing after ctx has ended.
func (w *worker[A, J]) flush(points []A) {
	if w.ctx.Err() == nil {
		w.adder.addPairs(points, w.pairs)
	}
	w.pairs = w.pairs[:0]
}

// sumSegments halves all segments until each has at most limit points: their
// first ones, whose sum is that of the whole segment.
func (w *worker[A, J]) sumSegments(points []A, segments []segment, limit uint32) {
	for longest := uint32(math.MaxUint32); longest > limit; {
		longest = 0
		for i := range segments {
			s := &segments[i]
			half := s.length / 2
			s.length -= half
			w.add(points, s.start, s.start+s.length, half)
			longest = max(longest, s.length)
		}
		w.flush(points)
	}
}

// windowSum is the sum of digit times base over a window's digits of amount
// t.lo+1..t.hi. Terms are sorted by bucket, so that a bucket's bases come
// together in the block, where all buckets' trees are summed at once.
func (w *worker[A, J]) windowSum(bases []A, d *digits, t windowTask) J {
	count := t.hi - t.lo
	w.sort(d, t.window, t.lo, count)
	w.buckets = resize(w.buckets, count)
	clear(w.buckets)
	fill, next := uint32(0), w.ends[0]
	loaded, last := next, w.ends[count]
	for b := 1; b <= count && w.ctx.Err() == nil; b++ {
		for end := w.ends[b]; next < end; {
			if next == loaded {
				loaded = min(next+loadAhead, last)
				w.touched += w.group.touch(bases, w.sorted[next:loaded])
			}
			n := min(end-next, loaded-next, uint32(len(w.block))-fill)
			w.group.load(w.block[fill:], bases, w.sorted[next:next+n])
			w.segments = append(w.segments, segment{fill, n, uint32(b - 1)})
			next += n
			fill += n
			if fill == uint32(len(w.block)) {
				w.emptyBlock()
				fill = 0
			}
		}
	}
	w.emptyBlock()
	return w.weightedSum(w.buckets, t.lo)
}

// loadAhead is how many bases are brought into the cache by loads that do not
// wait for each other. Loading each only when it is copied costs 15 % in all,
// since the bases of a bucket are anywhere in memory.
const loadAhead = 1024

// sort fills sorted and ends. Bucket 0 is for the digits not asked for.
func (w *worker[A, J]) sort(d *digits, window, lo, count int) {
	w.keys = resize(w.keys, d.n)
	w.sorted = resize(w.sorted, d.n)
	w.ends = resize(w.ends, count+1)
	clear(w.ends)
	const step = 1 << 16 // a cancelled context is seen within a millisecond
	for from := 0; from < d.n && w.ctx.Err() == nil; from += step {
		keys := w.keys[from:min(from+step, d.n)]
		d.keys(keys, from, window, uint32(lo), uint32(count))
		for _, k := range keys {
			w.ends[k>>1]++
		}
	}
	var sum uint32
	for b, size := range w.ends {
		w.ends[b], sum = sum, sum+size // where it begins, for now
	}
	for from := 0; from < d.n && w.ctx.Err() == nil; from += step {
		for j, k := range w.keys[from:min(from+step, d.n)] {
			at := w.ends[k>>1]
			w.ends[k>>1] = at + 1
			w.sorted[at] = d.base(from+j)<<1 | k&1
		}
	}
}

// emptyBlock sums the block's segments and adds them to their buckets.
func (w *worker[A, J]) emptyBlock() {
	w.sumSegments(w.block, w.segments, 1)
	for _, s := range w.segments {
		bucket := &w.buckets[s.bucket]
		if w.group.isInfinity(bucket) {
			*bucket = w.block[s.start]
		} else { // a bucket begun in an earlier block: at most one in a block
			w.group.add(bucket, bucket, &w.block[s.start])
		}
	}
	w.segments = w.segments[:0]
}

// weightedSum is the sum of (lo+1+i) points[i]; it overwrites points. The upper
// half is added onto the lower, again and again; a point that was moved down by
// h must count h times more, so the sum is (lo+1) times the last point left plus
// h times the sum of the upper half, for each h. Two additions a point in all,
// none waiting for another.
func (w *worker[A, J]) weightedSum(points []A, lo int) J {
	var sum J
	if len(points) == 0 {
		return sum
	}
	var halves []segment
	for n := len(points); n > 1; {
		h := 1 << (bits.Len(uint(n-1)) - 1)
		w.add(points, 0, uint32(h), uint32(n-h))
		w.flush(points)
		halves = append(halves, segment{start: uint32(h), length: uint32(n - h)})
		n = h
	}
	w.sumSegments(points, halves, 1)
	for _, s := range halves {
		w.group.double(&sum)
		w.group.addMixed(&sum, &points[s.start])
	}
	var rest J
	for i := bits.Len(uint(lo+1)) - 1; i >= 0; i-- {
		w.group.double(&rest)
		if (lo+1)>>i&1 == 1 {
			w.group.addMixed(&rest, &points[0])
		}
	}
	w.group.addJacobian(&sum, &rest)
	return sum
}

// selectedSum is the sum of the bases of the selected variables of a range.
func (w *worker[A, J]) selectedSum(bases []A, s *selection, part int) J {
	const keep = 64 // points left over between blocks: fewer, and inversions would cost more than the additions they serve
	fill := 0
	shrink := func(limit int) {
		whole := []segment{{length: uint32(fill)}}
		w.sumSegments(w.block, whole, uint32(limit))
		fill = int(whole[0].length)
	}
	s.visit(part, func(base int) {
		w.block[fill] = bases[base]
		if fill++; fill == len(w.block) {
			shrink(keep)
		}
	})
	shrink(keep / 4)
	var sum J
	for i := range fill {
		w.group.addMixed(&sum, &w.block[i])
	}
	return sum
}

// resize returns a slice of length n, s itself if it is large enough. The
// contents are arbitrary.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
