package msm

import (
	"fmt"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// terms lists full scalars and the bases they multiply.
type terms struct {
	n       int
	scalars []fr.Element
	scalar  []uint32 // where in scalars the scalar of each term is; nil: in order
	base    []uint32 // number of each term's base; nil: in order
}

// maxBases is what a base's number and a sign in 32 bits allow.
const maxBases = 1 << 31

// selection lists bases whose scalar is a bit that is set.
type selection struct {
	n     int
	set   [2][]uint64 // selected are the variables set in both bitmaps
	dense []uint64    // which variables have a base; nil: all
	ranks []int       // bases before each part's variables
}

// partVariables is the size of a selection's parts: about 3 ms in G1.
const partVariables = 1 << 15

func (s *selection) parts() int { return (s.n + partVariables - 1) / partVariables }

// visit calls f with the number of every selected base of a part, in order.
func (s *selection) visit(part int, f func(base int)) {
	first := part * partVariables / 64
	last := min(first+partVariables/64, words(s.n))
	rank := first * 64
	if s.dense != nil {
		rank = s.ranks[part]
	}
	for k := first; k < last; k++ {
		dense := wordOf(s.dense, k, s.n)
		for set := s.set[0][k] & s.set[1][k] & dense; set != 0; set &= set - 1 {
			before := set&-set - 1
			f(rank + bits.OnesCount64(dense&before))
		}
		rank += bits.OnesCount64(dense)
	}
}

// split separates the full scalars from the bits that are set.
func (c *Compact) split(bases int) (*terms, *selection, error) {
	for _, bitmap := range []struct {
		name     string
		words    []uint64
		optional bool
	}{
		{"IsBit", c.IsBit, true},
		{"Bits", c.Bits, c.IsBit == nil},
		{"Dense", c.Dense, true},
	} {
		if len(bitmap.words) < words(c.N) && (!bitmap.optional || bitmap.words != nil) {
			return nil, nil, fmt.Errorf("bitmap %s of %d words for %d scalars", bitmap.name, len(bitmap.words), c.N)
		}
	}
	if c.Dense == nil && c.IsBit == nil {
		if len(c.Full) != c.N || bases != c.N {
			return nil, nil, fmt.Errorf("%d full scalars and %d bases for %d scalars", len(c.Full), bases, c.N)
		}
		return &terms{n: c.N, scalars: c.Full}, &selection{}, nil
	}

	s := &selection{}
	if c.IsBit != nil {
		s = &selection{n: c.N, set: [2][]uint64{c.IsBit, c.Bits}, dense: c.Dense}
	}
	t := &terms{scalars: c.Full}
	rank, full := 0, 0
	for k := range words(c.N) {
		if k%(partVariables/64) == 0 {
			s.ranks = append(s.ranks, rank)
		}
		dense := wordOf(c.Dense, k, c.N)
		notBit := wordOf(nil, k, c.N)
		if c.IsBit != nil {
			notBit &^= c.IsBit[k]
		}
		for set := notBit & dense; set != 0; set &= set - 1 {
			before := set&-set - 1
			t.base = append(t.base, uint32(rank+bits.OnesCount64(dense&before)))
			t.scalar = append(t.scalar, uint32(full+bits.OnesCount64(notBit&before)))
		}
		rank += bits.OnesCount64(dense)
		full += bits.OnesCount64(notBit)
	}
	t.n = len(t.base)
	if rank != bases || full != len(c.Full) {
		return nil, nil, fmt.Errorf("%d bases for %d dense scalars, %d full scalars where the bitmap has %d", bases, rank, len(c.Full), full)
	}
	return t, s, nil
}

// words is the number of words of a bitmap of n bits.
func words(n int) int { return (n + 63) / 64 }

// wordOf is word k of a bitmap of n bits, or of one with all bits set if it is
// nil.
func wordOf(bitmap []uint64, k, n int) uint64 {
	all := ^uint64(0)
	if left := n - 64*k; left < 64 {
		all = 1<<left - 1
	}
	if bitmap == nil {
		return all
	}
	return bitmap[k] & all
}
