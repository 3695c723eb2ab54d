package witness

import (
	"sync"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// value is one variable of a random circuit.
type value struct {
	bit bool
	x   uint64
}

func drawValues(t *rapid.T) []value {
	n := rapid.IntRange(0, 2000).Draw(t, "n")
	bits := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "kinds")
	seed := rapid.Uint64().Draw(t, "seed")
	vs := make([]value, n)
	for i := range vs {
		seed = seed*6364136223846793005 + 1442695040888963407
		vs[i] = value{bits[i], seed >> 33}
		if vs[i].bit {
			vs[i].x &= 1
		}
	}
	return vs
}

func layoutOf(vs []value) *Layout {
	m := make([]uint64, Words(len(vs)))
	for i, v := range vs {
		if v.bit {
			m[i/64] |= 1 << (i % 64)
		}
	}
	return NewLayout(1, len(vs), m)
}

func write(wr *Writer, vs []value) {
	for _, v := range vs {
		if v.bit {
			wr.Bit(v.x == 1)
		} else {
			var e fr.Element
			e.SetUint64(v.x)
			wr.Full(&e)
		}
	}
	wr.Close()
}

// Property: what concurrent writers of adjoining ranges wrote, Aux and Expand
// read back, whatever the kinds and the cut.
func TestWritersOfAdjoiningRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := drawValues(t)
		l := layoutOf(vs)
		w := New(l)
		cut := rapid.IntRange(0, len(vs)).Draw(t, "cut")
		mid := Position{1, cut, l.FullBefore(cut)}
		if cut == len(vs) {
			mid = l.End()
		}
		var wg sync.WaitGroup
		wg.Go(func() { write(NewWriter(w, Start), vs[:cut]) })
		wg.Go(func() {
			wr := NewWriter(w, mid)
			write(wr, vs[cut:])
			require.Equal(t, l.End(), wr.Position())
		})
		wg.Wait()
		all := make([]fr.Element, len(vs))
		w.Expand(all, 0)
		for i, v := range vs {
			var e fr.Element
			e.SetUint64(v.x)
			require.True(t, w.Aux(i) == e, "variable %d", i)
			require.True(t, all[i] == e, "expanded variable %d", i)
		}
	})
}

// Property: Word writes the same bits as Bit one at a time.
func TestWordIsBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.Uint64()).Draw(t, "words")
		var lens []int
		n := 0
		for range words {
			k := rapid.IntRange(0, 64).Draw(t, "len")
			lens = append(lens, k)
			n += k
		}
		all := make([]uint64, Words(n))
		for i := range all {
			all[i] = ^uint64(0)
		}
		l := NewLayout(1, n, all)
		a, b := New(l), New(l)
		wa, wb := NewWriter(a, Start), NewWriter(b, Start)
		for i, v := range words {
			wa.Word(v, lens[i])
			for k := range lens[i] {
				wb.Bit(v>>k&1 == 1)
			}
		}
		wa.Close()
		wb.Close()
		require.Equal(t, b.Bits, a.Bits)
		require.Equal(t, l.End(), wa.Position())
	})
}

// Property: Fulls is a run of Full, and what follows it lands where it should.
func TestFullsIsARunOfFull(t *testing.T) {
	for _, before := range []int{0, 1, 63, 64, 65} {
		for _, n := range []int{0, 1, 63, 64, 65, 200} {
			total := before + n + 1
			m := make([]uint64, Words(total))
			for i := range total {
				if i < before || i == total-1 {
					m[i/64] |= 1 << (i % 64)
				}
			}
			l := NewLayout(1, total, m)
			w := New(l)
			wr := NewWriter(w, Start)
			for range before {
				wr.Bit(true)
			}
			run := wr.Fulls(n)
			for i := range run {
				run[i].SetUint64(uint64(i + 2))
			}
			wr.Bit(true)
			wr.Close()
			require.Equal(t, l.End(), wr.Position())
			for i := range total {
				var want fr.Element
				want.SetOne()
				if !l.IsBit(i) {
					want.SetUint64(uint64(i - before + 2))
				}
				require.True(t, want == w.Aux(i), "variable %d of %d+%d", i, before, n)
			}
		}
	}
}

func BenchmarkWriterWord(b *testing.B) {
	const n = 1 << 20
	all := make([]uint64, Words(n))
	for i := range all {
		all[i] = ^uint64(0)
	}
	w := New(NewLayout(1, n, all))
	b.SetBytes(n / 8)
	for b.Loop() {
		wr := NewWriter(w, Start)
		for i := range n / 32 {
			wr.Word(uint64(i), 32)
		}
		wr.Close()
	}
}
