package msm

import (
	"context"
	"errors"
	"math/big"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// curve is a group with what the tests compare it to: gnark-crypto's sums,
// which use other formulas (Jacobian buckets at these sizes).
type curve[A comparable, J any] struct {
	*group[A, J]
	generator A
	compact   func(context.Context, []A, *Compact, int) (J, error)
	multiples func(*A, []fr.Element) []A
	reference func([]A, []fr.Element) A
}

var curve1 = func() curve[bls12381.G1Affine, bls12381.G1Jac] {
	_, _, generator, _ := bls12381.Generators()
	return curve[bls12381.G1Affine, bls12381.G1Jac]{
		g1, generator, G1Compact, bls12381.BatchScalarMultiplicationG1,
		func(bases []bls12381.G1Affine, scalars []fr.Element) (sum bls12381.G1Affine) {
			if _, err := sum.MultiExp(bases, scalars, ecc.MultiExpConfig{}); err != nil {
				panic(err)
			}
			return
		},
	}
}()

var curve2 = func() curve[bls12381.G2Affine, bls12381.G2Jac] {
	_, _, _, generator := bls12381.Generators()
	return curve[bls12381.G2Affine, bls12381.G2Jac]{
		g2, generator, G2Compact, bls12381.BatchScalarMultiplicationG2,
		func(bases []bls12381.G2Affine, scalars []fr.Element) (sum bls12381.G2Affine) {
			if _, err := sum.MultiExp(bases, scalars, ecc.MultiExpConfig{}); err != nil {
				panic(err)
			}
			return
		},
	}
}()

// full is the sum of multiples by scalars of which none is known to be a bit.
func (c *curve[A, J]) full(ctx context.Context, bases []A, scalars []fr.Element, threads int) (J, error) {
	return sumFull(ctx, c.group, bases, scalars, threads)
}

// bits is the sum of the bases that a bitmap selects.
func (c *curve[A, J]) bits(ctx context.Context, bases []A, selected []uint64, threads int) (J, error) {
	return c.compact(ctx, bases, &Compact{N: len(bases), IsBit: allBits(len(bases)), Bits: selected}, threads)
}

func allBits(n int) []uint64 {
	all := make([]uint64, words(n))
	for k := range all {
		all[k] = wordOf(nil, k, n)
	}
	return all
}

// fixed are the multiples of one point.
func (c *curve[A, J]) fixed(ctx context.Context, base *A, scalars []fr.Element, threads int) ([]A, error) {
	f, err := newFixedBase(ctx, c.group, base, fixedWidth(len(scalars)), threads)
	if err != nil {
		return nil, err
	}
	products := make([]A, len(scalars))
	return products, f.Multiply(ctx, products, scalars, threads)
}

func (c *curve[A, J]) affine(p J) (a A) {
	c.fromJacobian(&a, &p)
	return
}

func (c *curve[A, J]) negative(p A) A {
	n := make([]A, 1)
	c.load(n, []A{p}, []uint32{1})
	return n[0]
}

// randomBases are distinct points.
func (c *curve[A, J]) randomBases(n int) []A { return c.multiples(&c.generator, randomScalars(n)) }

func randomScalars(n int) []fr.Element {
	scalars := make([]fr.Element, n)
	for i := range scalars {
		scalars[i].MustSetRandom()
	}
	return scalars
}

// edgeScalars are where signs, windows and carries change.
func edgeScalars() []fr.Element {
	var half, one big.Int
	one.SetUint64(1)
	half.Rsh(fr.Modulus(), 1)
	var scalars []fr.Element
	add := func(v *big.Int) {
		var s fr.Element
		s.SetBigInt(v)
		scalars = append(scalars, s, *new(fr.Element).Neg(&s))
	}
	add(new(big.Int))
	add(&half)
	for bit := range uint(255) {
		v := new(big.Int).Lsh(&one, bit)
		add(v)
		add(new(big.Int).Sub(v, &one))
	}
	return scalars
}

func drawScalar(t *rapid.T) fr.Element {
	edges := edgeScalars()
	if rapid.Bool().Draw(t, "edge") {
		return edges[rapid.IntRange(0, len(edges)-1).Draw(t, "which")]
	}
	var s fr.Element
	s.SetBytes(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "scalar"))
	return s
}

// drawBases are points from a small pool with their opposites and infinity, so
// that equal and opposite ones often meet in a bucket.
func drawBases[A comparable, J any](t *rapid.T, c *curve[A, J], pool []A, n int) []A {
	bases := make([]A, n)
	for i := range bases {
		switch k := rapid.IntRange(0, 2*len(pool)).Draw(t, "base"); {
		case k < len(pool):
			bases[i] = pool[k]
		case k < 2*len(pool):
			bases[i] = c.negative(pool[k-len(pool)])
		}
	}
	return bases
}

// onBoth runs a test on both groups, with each kind of adder that the processor
// can run.
func onBoth(t *testing.T, test1 func(*testing.T, *curve[bls12381.G1Affine, bls12381.G1Jac]), test2 func(*testing.T, *curve[bls12381.G2Affine, bls12381.G2Jac])) {
	defer func(before bool) { useVectors = before }(useVectors)
	useVectors = false
	t.Run("G1", func(t *testing.T) { test1(t, &curve1) })
	t.Run("G2", func(t *testing.T) { test2(t, &curve2) })
	if vectorsSupported {
		useVectors = true
		t.Run("G1 vectors", func(t *testing.T) { test1(t, &curve1) })
		t.Run("G2 vectors", func(t *testing.T) { test2(t, &curve2) })
	}
}

func TestAdditionIsComplete(t *testing.T) { onBoth(t, testAddition, testAddition) }

// Every kind of pair, in one batch, is as gnark-crypto's complete affine
// addition has it.
func testAddition[A comparable, J any](t *testing.T, c *curve[A, J]) {
	random := c.randomBases(2)
	var infinity A
	kinds := []A{infinity, random[0], c.negative(random[0]), random[1]}
	var points, want []A
	var pairs []pair
	for range 5 {
		for _, p := range kinds {
			for _, q := range kinds {
				pairs = append(pairs, pair{uint32(len(points)), uint32(len(points) + 1)})
				var sum A
				c.add(&sum, &p, &q)
				points = append(points, p, q)
				want = append(want, sum, q)
			}
		}
	}
	adder := c.newAdder(len(pairs))
	adder.addPairs(points, pairs)
	require.Equal(t, want, points)
	adder.addPairs(points, nil)
	require.Equal(t, want, points)
}

func TestAdditionOfAnyBatch(t *testing.T) { onBoth(t, testAnyBatch, testAnyBatch) }

// Batches of any length and mixture are added right, operands are shared, and
// nothing else is written.
func testAnyBatch[A comparable, J any](t *testing.T, c *curve[A, J]) {
	pool := c.randomBases(3)
	adder := c.newAdder(64)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 64).Draw(t, "pairs")
		points := drawBases(t, c, pool, n+10)
		want := slices.Clone(points)
		pairs := make([]pair, n)
		for i := range pairs {
			from := n + rapid.IntRange(0, 9).Draw(t, "operand")
			pairs[i] = pair{uint32(i), uint32(from)}
			c.add(&want[i], &want[i], &points[from])
		}
		adder.addPairs(points, pairs)
		require.Equal(t, want, points)
	})
}

// Windows cut from a scalar make up the scalar again, whatever their width.
func TestDigitsMakeUpScalar(t *testing.T) {
	scalars := append(edgeScalars(), randomScalars(100)...)
	keys := make([]uint32, len(scalars))
	for width := 3; width <= maxWidth; width++ {
		d := makeDigits(len(scalars), width)
		for j := range scalars {
			d.set(j, &scalars[j])
		}
		sums := make([]big.Int, len(scalars))
		for i := d.windows - 1; i >= 0; i-- {
			d.keys(keys, 0, i, 0, 1<<20)
			for j, key := range keys {
				digit := int64(key >> 1)
				require.LessOrEqual(t, digit, int64(maxDigit(width, i)))
				if key&1 == 1 {
					digit = -digit
				}
				sums[j].Lsh(&sums[j], uint(width))
				sums[j].Add(&sums[j], big.NewInt(digit))
			}
		}
		for j := range scalars {
			var got fr.Element
			got.SetBigInt(&sums[j])
			require.Equal(t, scalars[j], got, "width %d", width)
		}
	}
}

func TestSumOfRandomTerms(t *testing.T) { onBoth(t, testRandom, testRandom) }

func testRandom[A comparable, J any](t *testing.T, c *curve[A, J]) {
	const most = 3001
	bases, scalars := c.randomBases(most), randomScalars(most)
	before := slices.Clone(bases)
	for i, n := range []int{0, 1, 2, 3, 17, 64, 255, 1000, most} {
		threads := []int{0, 1, 2, 5, 40}[i%5]
		sum, err := c.full(t.Context(), bases[:n], scalars[:n], threads)
		require.NoError(t, err)
		require.Equal(t, c.reference(bases[:n], scalars[:n]), c.affine(sum), "%d terms, %d threads", n, threads)
	}
	require.Equal(t, before, bases, "bases were changed")
}

func TestSumOfEdgeScalars(t *testing.T) { onBoth(t, testEdges, testEdges) }

func testEdges[A comparable, J any](t *testing.T, c *curve[A, J]) {
	scalars := edgeScalars()
	bases := c.randomBases(len(scalars))
	sum, err := c.full(t.Context(), bases, scalars, 2)
	require.NoError(t, err)
	require.Equal(t, c.reference(bases, scalars), c.affine(sum))
}

// All terms meet in one bucket a window, which spans several blocks.
func TestSumOfOneBucket(t *testing.T) { onBoth(t, testOneBucket, testOneBucket) }

func testOneBucket[A comparable, J any](t *testing.T, c *curve[A, J]) {
	n := 2*c.blockPoints + 77
	bases := slices.Repeat(c.randomBases(1), n)
	scalars := slices.Repeat(randomScalars(1), n)
	check := func() {
		sum, err := c.full(t.Context(), bases, scalars, 2)
		require.NoError(t, err)
		require.Equal(t, c.reference(bases, scalars), c.affine(sum))
	}
	check()
	for i := 1; i < n; i += 2 { // opposites: all but one cancel
		bases[i] = c.negative(bases[i])
	}
	check()
	copy(bases, c.randomBases(n))
	check()
	clear(bases) // infinity
	check()
}

func TestSumOfAnyTerms(t *testing.T) { onBoth(t, testAnyTerms, testAnyTerms) }

func testAnyTerms[A comparable, J any](t *testing.T, c *curve[A, J]) {
	pool := c.randomBases(3)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(t, "n")
		bases := drawBases(t, c, pool, n)
		scalars := make([]fr.Element, n)
		for i := range scalars {
			scalars[i] = drawScalar(t)
		}
		sum, err := c.full(context.Background(), bases, scalars, 2)
		require.NoError(t, err)
		require.Equal(t, c.reference(bases, scalars), c.affine(sum))
	})
}

func TestCompactIsExpanded(t *testing.T) { onBoth(t, testCompact, testCompact) }

// A compact vector means the same as the scalars it stands for.
func testCompact[A comparable, J any](t *testing.T, c *curve[A, J]) {
	pool := c.randomBases(3)
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 200).Draw(t, "n")
		word := rapid.SliceOfN(rapid.Uint64(), words(n), words(n))
		compact := Compact{N: n}
		if rapid.Bool().Draw(t, "has bits") {
			compact.IsBit, compact.Bits = word.Draw(t, "IsBit"), word.Draw(t, "Bits")
		}
		if rapid.Bool().Draw(t, "has density") {
			compact.Dense = word.Draw(t, "Dense")
		}
		var scalars []fr.Element // of the dense
		for i := range n {
			var s fr.Element
			if compact.IsBit == nil || compact.IsBit[i/64]>>(i%64)&1 == 0 {
				s = drawScalar(t)
				compact.Full = append(compact.Full, s)
			} else {
				s.SetUint64(compact.Bits[i/64] >> (i % 64) & 1)
			}
			if compact.Dense == nil || compact.Dense[i/64]>>(i%64)&1 == 1 {
				scalars = append(scalars, s)
			}
		}
		bases := drawBases(t, c, pool, len(scalars))
		sum, err := c.compact(context.Background(), bases, &compact, 2)
		require.NoError(t, err)
		require.Equal(t, c.reference(bases, scalars), c.affine(sum))
	})
}

// Sums of more terms than are held at a time, with bits and without, are whole.
func TestSumInChunks(t *testing.T) {
	const n = 1000
	bases, scalars := curve1.randomBases(n), randomScalars(n)
	compact := Compact{N: n, IsBit: make([]uint64, words(n)), Bits: make([]uint64, words(n))}
	for i := range scalars {
		if scalars[i][0]&3 == 0 {
			scalars[i].SetOne()
			compact.IsBit[i/64] |= 1 << (i % 64)
			compact.Bits[i/64] |= 1 << (i % 64)
		} else {
			compact.Full = append(compact.Full, scalars[i])
		}
	}
	want := curve1.reference(bases, scalars)
	mixed, bits, err := compact.split(n)
	require.NoError(t, err)
	for _, chunk := range []int{1 << 20, 300, mixed.n / 2, mixed.n} {
		sum, err := multiExp(t.Context(), g1, bases, &terms{n: n, scalars: scalars}, &selection{}, chunk, 2)
		require.NoError(t, err)
		require.Equal(t, want, curve1.affine(sum), "full, %d at a time", chunk)
		sum, err = multiExp(t.Context(), g1, bases, mixed, bits, chunk, 2)
		require.NoError(t, err)
		require.Equal(t, want, curve1.affine(sum), "with bits, %d at a time", chunk)
	}
}

func TestSumOfSelected(t *testing.T) { onBoth(t, testSelected, testSelected) }

func testSelected[A comparable, J any](t *testing.T, c *curve[A, J]) {
	most := partVariables + 3*64 + 5 // two parts
	pool := c.randomBases(300)
	pool = append(pool, c.negative(pool[7]), pool[9], *new(A))
	bases := make([]A, most)
	scalars := make([]fr.Element, most)
	selected := make([]uint64, words(most))
	for i, s := range randomScalars(most) {
		bases[i] = pool[s[1]%uint64(len(pool))]
		if s[0]&1 == 1 {
			scalars[i].SetOne()
			selected[i/64] |= 1 << (i % 64)
		}
	}
	selected[most/64] |= ^uint64(0) << (most % 64) // beyond the bases: no matter
	for _, n := range []int{0, 1, 2, 63, 64, 65, 1000, most} {
		sum, err := c.bits(t.Context(), bases[:n], selected, 2)
		require.NoError(t, err)
		require.Equal(t, c.reference(bases[:n], scalars[:n]), c.affine(sum), "%d bases", n)
	}
}

func TestFixedBase(t *testing.T) { onBoth(t, testFixedBase, testFixedBase) }

func testFixedBase[A comparable, J any](t *testing.T, c *curve[A, J]) {
	edges := edgeScalars()
	want := c.multiples(&c.generator, edges)
	for _, width := range []int{3, 4, 5, 13, 15, maxFixedWidth} {
		f, err := newFixedBase(t.Context(), c.group, &c.generator, width, 2)
		require.NoError(t, err)
		got := make([]A, len(edges))
		require.NoError(t, f.Multiply(t.Context(), got, edges, 2))
		require.Equal(t, want, got, "width %d", width)
	}

	n := c.blockPoints/2 + 3 // two blocks
	scalars := randomScalars(n)
	want = c.multiples(&c.generator, scalars)
	for _, n := range []int{0, 1, 2, n} {
		got, err := c.fixed(t.Context(), &c.generator, scalars[:n], 2)
		require.NoError(t, err)
		require.Equal(t, want[:n], got)
	}
	got, err := c.fixed(t.Context(), new(A), scalars[:3], 2)
	require.NoError(t, err)
	require.Equal(t, make([]A, 3), got, "multiples of infinity")
}

// The branchless operations are gnark-crypto's, also where results wrap.
func TestFieldOperations(t *testing.T) {
	var one, minusOne fp.Element
	one.SetOne()
	minusOne.Neg(&one)
	top := fp.Element{q0 - 1, q1, q2, q3, q4, q5} // the largest representation
	elements := []fp.Element{{}, {1}, one, minusOne, top}
	for range 20 {
		var e fp.Element
		elements = append(elements, *e.MustSetRandom())
	}
	for i := range elements {
		x := &elements[i]
		var got, want fp.Element
		signed(&got, x, 6)
		require.Equal(t, *x, got)
		signed(&got, x, 7)
		require.Equal(t, *want.Neg(x), got)
		for j := range elements {
			y := &elements[j]
			sub(&got, x, y)
			require.Equal(t, *want.Sub(x, y), got)
			add(&got, x, y)
			require.Equal(t, *want.Add(x, y), got)
			for k := range elements {
				subBoth(&got, x, y, &elements[k])
				want.Sub(x, y)
				require.Equal(t, *want.Sub(&want, &elements[k]), got)
			}
		}
	}
}

func TestLengthsMustAgree(t *testing.T) {
	bases := make([]bls12381.G1Affine, 65)
	scalars := make([]fr.Element, 65)
	check := func(_ any, err error) {
		t.Helper()
		require.Error(t, err)
	}
	check(G1(t.Context(), bases, scalars[:64], 1))
	for _, c := range []Compact{
		{N: 65, Full: scalars[:64]},
		{N: 64, Full: scalars[:64]}, // one base too many
		{N: 65, IsBit: make([]uint64, 2), Full: scalars},
		{N: 65, IsBit: make([]uint64, 1), Bits: make([]uint64, 2), Full: scalars},
		{N: 65, IsBit: make([]uint64, 2), Bits: make([]uint64, 2), Full: scalars[1:]},
		{N: 65, IsBit: make([]uint64, 2), Bits: make([]uint64, 2), Full: scalars, Dense: make([]uint64, 2)},
		{N: 65, Full: scalars, Dense: make([]uint64, 1)},
	} {
		check(G1Compact(t.Context(), bases, &c, 1))
	}
	f, err := NewFixedBaseG1(t.Context(), &curve1.generator, 1, 1)
	require.NoError(t, err)
	require.Error(t, f.Multiply(t.Context(), bases, scalars[1:], 1))
}

// failingContext is cancelled from the after-th look at it on.
type failingContext struct {
	context.Context
	after int64
	looks atomic.Int64
}

func (c *failingContext) Err() error {
	if c.looks.Add(1) > c.after {
		return context.Canceled
	}
	return nil
}

// A context that ends at any moment ends the work, and each goroutine then
// looks at it only a few times more: there is no long way to the end.
func TestCancelAtAnyMoment(t *testing.T) {
	const n = 3000
	bases, scalars := curve1.randomBases(n), randomScalars(n)
	full := &failingContext{Context: t.Context(), after: 1 << 40}
	_, err := G1(full, bases, scalars, 2)
	require.NoError(t, err)
	for after := int64(0); after < full.looks.Load(); after += 1 + full.looks.Load()/40 {
		ctx := &failingContext{Context: t.Context(), after: after}
		_, err := G1(ctx, bases, scalars, 2)
		require.Error(t, err)
		require.Less(t, ctx.looks.Load(), after+150)
	}
}

func TestCancelledBefore(t *testing.T) {
	cause := errors.New("no longer needed")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	bases, scalars := curve1.randomBases(10), randomScalars(10)
	_, err := G1(ctx, bases, scalars, 2)
	require.ErrorIs(t, err, cause)
	_, err = curve1.bits(ctx, bases, []uint64{3}, 2)
	require.ErrorIs(t, err, cause)
	_, err = NewFixedBaseG1(ctx, &bases[0], 10, 2)
	require.ErrorIs(t, err, cause)
	f, err := NewFixedBaseG1(t.Context(), &bases[0], 10, 2)
	require.NoError(t, err)
	err = f.Multiply(ctx, bases, scalars, 2)
	require.ErrorIs(t, err, cause)
}

// Sums over the same bases at the same time do not disturb each other.
func TestConcurrentSums(t *testing.T) {
	const n = 700
	bases, scalars := curve1.randomBases(n), randomScalars(n)
	want := curve1.reference(bases, scalars)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			sum, err := G1(t.Context(), bases, scalars, 2)
			if err != nil || curve1.affine(sum) != want {
				t.Errorf("sum beside others: %v", err)
			}
		})
	}
	group.Wait()
}
