package msm

import (
	"context"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/memory"
)

// halfBits bounds the scalars that windows are cut from: s or r-s, whichever
// is less, is below 2^254.
const halfBits = 254

// digits holds the scalars of some terms, ready to be cut into signed windows
// of width bits. A scalar above r/2 stands for minus its opposite, which saves
// the bit that would need one more window at widths 15 and 17. To every scalar
// is added half a window's range in each window but the last; window i then is
// the digit plus 2^(width-1), without carries from the windows below.
type digits struct {
	n       int
	width   int
	windows int
	words   [4][]uint64 // word k of every scalar; the top bit of word 3 is the sign
	bias    [4]uint64
	block   []uint64 // of package memory, with the words; nil if they are few
	first   int      // number of the first term's base, if they are in order
	bases   []uint32 // else number of every term's base
}

// blockTerms is from how many terms on their words lie outside Go's heap, gone
// when they are freed: 32 MiB a million.
const blockTerms = 1 << 15

// newDigits prepares the terms from..to-1: 32 bytes each, until free.
func newDigits(ctx context.Context, t *terms, from, to, threads int) (*digits, error) {
	n, width := to-from, chooseWidth(to-from)
	var d *digits
	if n < blockTerms {
		d = makeDigits(n, width)
	} else {
		block, err := memory.Alloc[uint64](4 * n)
		if err != nil {
			return nil, err
		}
		d = digitsIn(block, width)
		d.block = block
	}
	d.first = from
	if t.base != nil {
		d.bases = t.base[from:to]
	}
	const step = 1 << 13 // about 300 microseconds
	err := parallel(ctx, threads, (d.n+step-1)/step, func(_, part int) {
		for j := part * step; j < min((part+1)*step, d.n); j++ {
			if t.scalar == nil {
				d.set(j, &t.scalars[from+j])
			} else {
				d.set(j, &t.scalars[t.scalar[from+j]])
			}
		}
	})
	if err != nil {
		d.free()
		return nil, err
	}
	return d, nil
}

// free gives the words back.
func (d *digits) free() {
	memory.Free(d.block)
	d.block = nil
}

// makeDigits makes room for n scalars.
func makeDigits(n, width int) *digits { return digitsIn(make([]uint64, 4*n), width) }

// digitsIn lays out room for scalars, of four words each.
func digitsIn(all []uint64, width int) *digits {
	n := len(all) / 4
	d := &digits{n: n, width: width, windows: numWindows(width)}
	for k := range d.words {
		d.words[k] = all[k*n : (k+1)*n]
	}
	for i := range d.windows - 1 {
		bit := i*width + width - 1
		d.bias[bit/64] |= 1 << (bit % 64)
	}
	return d
}

// base is the number of term j's base.
func (d *digits) base(j int) uint32 {
	if d.bases == nil {
		return uint32(d.first + j)
	}
	return d.bases[j]
}

// numWindows is the number of signed windows of the given width that hold any
// number below 2^halfBits.
func numWindows(width int) int { return halfBits/width + 1 }

// maxDigit bounds the digits of window i: they are in -maxDigit..maxDigit.
func maxDigit(width, i int) int {
	if left := halfBits - i*width; left < width-1 {
		return 1<<left + 1
	}
	return 1 << (width - 1)
}

// set stores scalar s at place j.
func (d *digits) set(j int, s *fr.Element) {
	v := s.Bits()
	var opposite [4]uint64
	var borrow, carry uint64
	for k := range v {
		opposite[k], borrow = bits.Sub64(modulus[k], v[k], borrow)
	}
	borrow = 0
	for k := range v {
		_, borrow = bits.Sub64(opposite[k], v[k], borrow)
	}
	negative := -borrow // all ones if r-s < s
	for k := range v {
		v[k] ^= (v[k] ^ opposite[k]) & negative
		d.words[k][j], carry = bits.Add64(v[k], d.bias[k], carry)
	}
	d.words[3][j] |= borrow << 63
}

var modulus = func() (words [4]uint64) {
	for k, w := range fr.Modulus().Bits() {
		words[k] = uint64(w)
	}
	return
}()

// keys writes for scalars from..from+len(keys) the digit of window i as
// 2*(|digit|-lo) + (1 if it is negative), or 0 or 1 if |digit|-lo is not in
// 1..count.
func (d *digits) keys(keys []uint32, from, i int, lo, count uint32) {
	pos := i * d.width
	limb, shift := pos/64, uint(pos%64)
	low := d.words[limb][from:][:len(keys)]
	high := d.words[min(limb+1, 3)][from:][:len(keys)]
	sign := d.words[3][from:][:len(keys)]
	mask := uint64(1)<<min(d.width, 255-pos) - 1
	bias := int32(1) << (d.width - 1)
	if i == d.windows-1 {
		bias = 0
	}
	for j := range keys {
		digit := int32((low[j]>>shift|high[j]<<(64-shift))&mask) - bias
		negative := digit >> 31
		bucket := uint32((digit^negative)-negative) - lo
		if bucket > count {
			bucket = 0
		}
		keys[j] = bucket<<1 | (uint32(negative)&1 ^ uint32(sign[j]>>63))
	}
}

// chooseWidth finds the window width for a sum of n multiples: that with the
// least additions, of bases into buckets and of buckets with each other, where
// an inversion, needed about twice for each level of buckets, counts as 12.
func chooseWidth(n int) int {
	best, bestCost := 0, 0
	for width := 3; width <= maxWidth; width++ {
		cost := numWindows(width) * (n + 1<<(width-1) + 12*2*width)
		if best == 0 || cost < bestCost {
			best, bestCost = width, cost
		}
	}
	return best
}

// maxWidth keeps a worker's buckets within 12 MiB in G1 and 24 MiB in G2.
const maxWidth = 18
