package witness

import (
	"sync/atomic"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// Writer fills a range of a Witness in the order in which the circuit
// allocates. Writers of disjoint ranges may work at the same time: a bitmap
// word that two of them share is merged atomically.
//
// Whether a variable is written as a bit or as a full element must agree with
// the circuit's allocation. A disagreement shows in Position after the last
// write, which callers compare with what the circuit says.
type Writer struct {
	w    *Witness
	pos  Position
	word uint64 // bits of word pos.Aux/64 not stored yet
}

// NewWriter starts writing at p.
func NewWriter(w *Witness, p Position) *Writer { return &Writer{w: w, pos: p} }

// Position is where the next value goes.
func (wr *Writer) Position() Position { return wr.pos }

// Input writes the next public input.
func (wr *Writer) Input(x *fr.Element) {
	wr.w.Inputs[wr.pos.Input] = *x
	wr.pos.Input++
}

// Full writes the next auxiliary variable as a field element.
func (wr *Writer) Full(x *fr.Element) {
	wr.w.Full[wr.pos.Full] = *x
	wr.pos.Full++
	wr.advance(1)
}

// Fulls hands out the next n auxiliary variables, all full, to be written in
// place.
func (wr *Writer) Fulls(n int) []fr.Element {
	out := wr.w.Full[wr.pos.Full : wr.pos.Full+n]
	wr.pos.Full += n
	for rest := n; rest > 0; {
		k := min(rest, 64-wr.pos.Aux%64)
		wr.advance(k)
		rest -= k
	}
	return out
}

// Bit writes the next auxiliary variable as a bit.
func (wr *Writer) Bit(b bool) {
	if b {
		wr.word |= 1 << (wr.pos.Aux % 64)
	}
	wr.advance(1)
}

// Word writes the n low bits of v as the next n auxiliary variables, lowest bit
// first. n is at most 64.
func (wr *Writer) Word(v uint64, n int) {
	v &= lowMask(n)
	shift := wr.pos.Aux % 64
	wr.word |= v << shift
	if over := shift + n - 64; over >= 0 {
		wr.advance(n - over)
		if over > 0 {
			wr.word = v >> (n - over)
			wr.advance(over)
		}
		return
	}
	wr.advance(n)
}

// Close stores what is pending. The Writer must not be used afterwards.
func (wr *Writer) Close() { wr.flush() }

// advance moves on by n variables that lie in the current word.
func (wr *Writer) advance(n int) {
	if wr.pos.Aux%64+n == 64 {
		wr.flush()
	}
	wr.pos.Aux += n
}

func (wr *Writer) flush() {
	if wr.word != 0 {
		atomic.OrUint64(&wr.w.Bits[wr.pos.Aux/64], wr.word)
		wr.word = 0
	}
}
