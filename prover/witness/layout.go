package witness

import (
	"fmt"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// Layout says which auxiliary variables of a circuit are bits. It is shared by
// all witnesses of that circuit and never changes.
type Layout struct {
	numInputs int
	numAux    int
	numFull   int
	isBit     []uint64 // bit i: auxiliary variable i is a bit
	rank      []uint32 // rank[j]: full variables before 64*j
}

// NewLayout makes the layout of a circuit with numInputs public inputs
// (including the constant one) and numAux auxiliary variables, of which those
// with a set bit in isBit are bits. The slice is kept.
func NewLayout(numInputs, numAux int, isBit []uint64) *Layout {
	if need := Words(numAux); len(isBit) < need {
		panic(fmt.Sprintf("witness: bitmap of %d words for %d variables", len(isBit), numAux))
	}
	l := &Layout{numInputs: numInputs, numAux: numAux, isBit: isBit}
	l.rank = make([]uint32, Words(numAux)+1)
	full := 0
	for j := range Words(numAux) {
		l.rank[j] = uint32(full)
		n := min(64, numAux-64*j)
		full += n - bits.OnesCount64(isBit[j]&lowMask(n))
	}
	l.rank[Words(numAux)] = uint32(full)
	l.numFull = full
	return l
}

// Words is the number of 64-bit words of a bitmap over n variables.
func Words(n int) int { return (n + 63) / 64 }

func lowMask(n int) uint64 {
	if n >= 64 {
		return ^uint64(0)
	}
	return 1<<n - 1
}

// NumInputs counts the public inputs, the constant one included.
func (l *Layout) NumInputs() int { return l.numInputs }

// NumAux counts the auxiliary variables.
func (l *Layout) NumAux() int { return l.numAux }

// NumFull counts the auxiliary variables that are not bits.
func (l *Layout) NumFull() int { return l.numFull }

// IsBit reports whether auxiliary variable i is a bit.
func (l *Layout) IsBit(i int) bool { return l.isBit[i/64]>>(i%64)&1 == 1 }

// BitMap is the bitmap of bit variables, one bit for each auxiliary variable.
// It must not be changed.
func (l *Layout) BitMap() []uint64 { return l.isBit }

// FullBefore counts the full variables before auxiliary variable i: the index
// of variable i in Witness.Full if it is full itself.
func (l *Layout) FullBefore(i int) int {
	j, n := i/64, i%64
	if n == 0 {
		return int(l.rank[j])
	}
	return int(l.rank[j]) + n - bits.OnesCount64(l.isBit[j]&lowMask(n))
}

// Bytes is the size of a witness of this layout.
func (l *Layout) Bytes() int64 {
	return int64(l.numInputs+l.numFull)*fr.Bytes + int64(Words(l.numAux))*8
}
