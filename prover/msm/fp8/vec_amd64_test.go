package fp8

import (
	"math/big"
	"slices"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// words is the number that an element's words stand for, of Montgomery's form.
func words(e *fp.Element) *big.Int {
	v := new(big.Int)
	for _, w := range slices.Backward(e[:]) {
		v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(w))
	}
	return v
}

// get is the number in lane j; its limbs must have 52 bits.
func (x *Vec) get(t require.TestingT, j int) *big.Int {
	v := new(big.Int)
	for _, limb := range slices.Backward(x[:]) {
		require.Less(t, limb[j], uint64(1)<<limbBits)
		v.Lsh(v, limbBits).Or(v, new(big.Int).SetUint64(limb[j]))
	}
	return v
}

func (x *Vec) set(j int, v *big.Int) {
	for i, l := range limbs(v) {
		x[i][j] = l
	}
}

func times(k int64, v *big.Int) *big.Int { return new(big.Int).Mul(big.NewInt(k), v) }

// drawNumber is below the limit, often at an end of the range, or next to a
// multiple of p or of a power of two.
func drawNumber(t *rapid.T, limit *big.Int) *big.Int {
	v := new(big.Int)
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		v.SetBytes(rapid.SliceOfN(rapid.Byte(), 49, 49).Draw(t, "bytes"))
	case 1:
		v.Sub(limit, big.NewInt(rapid.Int64Range(1, 3).Draw(t, "below")))
	case 2:
		v.Add(times(rapid.Int64Range(0, 9).Draw(t, "multiple"), fp.Modulus()), big.NewInt(rapid.Int64Range(-2, 2).Draw(t, "beside")))
	case 3:
		v.Lsh(big.NewInt(1), rapid.UintRange(0, 383).Draw(t, "bit"))
		v.Sub(v, big.NewInt(rapid.Int64Range(0, 1).Draw(t, "less")))
	}
	return v.Mod(v, limit)
}

// drawVec draws eight numbers below the limit.
func drawVec(t *rapid.T, limit *big.Int) (x Vec, v [8]*big.Int) {
	for j := range v {
		v[j] = drawNumber(t, limit)
		x.set(j, v[j])
	}
	return
}

var (
	p     = fp.Modulus()
	radix = new(big.Int).Lsh(big.NewInt(1), 384) // of Montgomery's form, and the limit of factors
)

func congruent(t require.TestingT, want, got *big.Int) {
	difference := new(big.Int).Sub(want, got)
	require.Zero(t, difference.Mod(difference, p).Sign(), "%x is not congruent to %x", got, want)
}

func TestConstants(t *testing.T) {
	number := func(limbs [8]uint64) *big.Int {
		v := new(big.Int)
		for _, l := range slices.Backward(limbs[:]) {
			v.Lsh(v, limbBits).Add(v, new(big.Int).SetUint64(l))
		}
		return v
	}
	require.Equal(t, p, number(modulus))
	require.Equal(t, times(2, p), number(twice))
	require.Equal(t, mask, inverse*modulus[0]&mask, "the product with p is -1")
	for k := range 8 {
		v := new(big.Int)
		for _, l := range slices.Backward(multiples[:]) {
			v.Lsh(v, limbBits).Add(v, big.NewInt(l[k]))
		}
		require.Zero(t, v.Cmp(times(int64(3-k), p)), "multiple %d", k)
	}
	for u := range 8 * (modulus[7] + 1) { // all that REDUCE may look up
		if u*reciprocal>>limbBits != u/(modulus[7]+1) {
			t.Fatalf("the estimate for %d is wrong", u)
		}
	}
	require.Less(t, offset, 3*(modulus[7]+1))
}

func TestMul(t *testing.T) {
	needed(t)
	inverse := new(big.Int).ModInverse(radix, p)
	rapid.Check(t, func(t *rapid.T) {
		x, vx := drawVec(t, radix)
		y, vy := drawVec(t, radix)
		var z Vec
		Mul(&z, &x, &y)
		for j := range vx {
			got, product := z.get(t, j), new(big.Int).Mul(vx[j], vy[j])
			congruent(t, new(big.Int).Mul(product, inverse), got)
			bound := product.Rsh(product, 384)
			require.LessOrEqual(t, got.Cmp(bound.Add(bound, p)), 0)
		}
		same := x
		Mul(&same, &same, &y)
		require.Equal(t, z, same)
		same = y
		Mul(&same, &x, &same)
		require.Equal(t, z, same)
	})
}

func TestAddAndSub(t *testing.T) {
	needed(t)
	rapid.Check(t, func(t *rapid.T) {
		x, vx := drawVec(t, times(4, p))
		y, vy := drawVec(t, new(big.Int).Add(times(2, p), big.NewInt(1)))
		var sum, difference Vec
		Add(&sum, &x, &y)
		Sub(&difference, &x, &y)
		for j := range vx {
			require.Equal(t, new(big.Int).Add(vx[j], vy[j]).Text(16), sum.get(t, j).Text(16))
			want := new(big.Int).Sub(vx[j], vy[j])
			require.Equal(t, want.Add(want, times(2, p)).Text(16), difference.get(t, j).Text(16))
		}
	})
}

// All of the range is reduced, ends and neighbours of multiples of p included.
func TestReducedDifferences(t *testing.T) {
	needed(t)
	most := times(29, p)
	most.Div(most, big.NewInt(10))
	rapid.Check(t, func(t *rapid.T) {
		x, vx := drawVec(t, times(4, p))
		y, vy := drawVec(t, most)
		y1, v1 := drawVec(t, times(2, p))
		y2, v2 := drawVec(t, new(big.Int).Sub(most, times(2, p)))
		var one, both Vec
		SubReduce(&one, &x, &y)
		SubBothReduce(&both, &x, &y1, &y2)
		for j := range vx {
			want := new(big.Int).Sub(vx[j], vy[j])
			require.Equal(t, want.Mod(want, p).Text(16), one.get(t, j).Text(16))
			want.Sub(vx[j], v1[j])
			want.Sub(want, v2[j])
			require.Equal(t, want.Mod(want, p).Text(16), both.get(t, j).Text(16))
		}
	})
}

// Which multiple is added depends on the top limbs of the difference: every
// place where it changes is tried, with most and with least carried from below,
// and with a y whose limbs make the estimate err.
func TestReducedWhereMultiplesChange(t *testing.T) {
	needed(t)
	unit := new(big.Int).Lsh(big.NewInt(1), 364) // of the top limb
	full := new(big.Int).Sub(unit, big.NewInt(1))
	top := new(big.Int).Div(times(2, p), unit)
	for _, y := range []*big.Int{
		new(big.Int),
		times(2, p),
		new(big.Int).Mul(top, unit), // other limbs 0
		new(big.Int).Sub(new(big.Int).Mul(top, unit), big.NewInt(1)), // other limbs 2^52-1
	} {
		for k := int64(-2); k < 4; k++ {
			for near := int64(-20); near <= 20; near++ {
				for _, low := range []*big.Int{new(big.Int), big.NewInt(1), full} {
					difference := new(big.Int).Add(times(k, p), times(near, unit))
					difference.Div(difference, unit).Mul(difference, unit).Add(difference, low)
					x := new(big.Int).Add(y, difference)
					if x.Sign() < 0 {
						continue
					}
					var vx, vy, z Vec
					for j := range 8 {
						vx.set(j, x)
						vy.set(j, y)
					}
					SubReduce(&z, &vx, &vy)
					require.Equal(t, difference.Mod(difference, p).Text(16), z.get(t, 5).Text(16))
				}
			}
		}
	}
}

func TestInverse(t *testing.T) {
	needed(t)
	var x, z Vec
	for range 20 {
		var want [8]fp.Element
		for j := range want {
			var e fp.Element
			e.MustSetRandom()
			x.set(j, new(big.Int).Add(words(&e), times(int64(j%4), p)))
			want[j].Inverse(&e)
		}
		Inverse(&z, &x)
		for j := range want {
			require.Equal(t, words(&want[j]).Text(16), z.get(t, j).Text(16))
		}
	}
	var e fp.Element
	e.MustSetRandom()
	Set(&z, &e)
	for j := range 8 {
		require.Equal(t, words(&e).Text(16), z.get(t, j).Text(16))
	}
}

// Elements are read and written where the index says, and nowhere else.
func TestLoadAndStore(t *testing.T) {
	needed(t)
	rapid.Check(t, func(t *rapid.T) {
		from := make([]fp.Element, 30)
		for i := range from {
			v := drawNumber(t, p)
			for k := range from[i] {
				from[i][k] = new(big.Int).Rsh(v, uint(64*k)).Uint64()
			}
		}
		numbers := make([]uint32, len(from))
		for i := range numbers {
			numbers[i] = uint32(i)
		}
		index := [8]uint32(rapid.Permutation(numbers).Draw(t, "index"))
		var x Vec
		Load(&x, &from[0], &index)
		to := make([]fp.Element, len(from))
		want := make([]fp.Element, len(from))
		for j, i := range index {
			require.Equal(t, words(&from[i]).Text(16), x.get(t, j).Text(16))
			want[i] = from[i]
		}
		Store(&to[0], &index, &x)
		require.Equal(t, want, to)
	})
}

// needed ends a test on a processor that cannot run what it tests.
func needed(t *testing.T) {
	if !Supported {
		t.Skip("processor without AVX-512 IFMA and VBMI2")
	}
}

// BenchmarkMul compares eight multiplications at once with gnark-crypto's.
func BenchmarkMul(b *testing.B) {
	if !Supported {
		b.Skip("processor without AVX-512 IFMA and VBMI2")
	}
	v := make([]Vec, 2)
	var e fp.Element
	e.MustSetRandom()
	Set(&v[0], &e)
	b.Run("8", func(b *testing.B) {
		for b.Loop() {
			Mul(&v[1], &v[0], &v[1])
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(8*b.N), "ns/mul")
	})
	b.Run("gnark", func(b *testing.B) {
		var x fp.Element
		for b.Loop() {
			x.Mul(&x, &e)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/mul")
	})
}

// BenchmarkOthers are the operations that a multiplication's operands need.
func BenchmarkOthers(b *testing.B) {
	if !Supported {
		b.Skip("processor without AVX-512 IFMA and VBMI2")
	}
	v := make([]Vec, 3)
	elements := make([]fp.Element, 8)
	for _, op := range []struct {
		name string
		f    func()
	}{
		{"Load", func() { Load(&v[0], &elements[0], &inOrder) }},
		{"Store", func() { Store(&elements[0], &inOrder, &v[0]) }},
		{"Sub", func() { Sub(&v[0], &v[1], &v[2]) }},
		{"SubReduce", func() { SubReduce(&v[0], &v[1], &v[2]) }},
	} {
		b.Run(op.name, func(b *testing.B) {
			for b.Loop() {
				op.f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(8*b.N), "ns/element")
		})
	}
}
