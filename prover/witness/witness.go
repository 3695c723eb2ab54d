package witness

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/memory"
)

// Witness is the compact assignment of one circuit.
type Witness struct {
	Layout *Layout
	Inputs []fr.Element // public inputs; Inputs[0] is one
	Bits   []uint64     // bit i is the value of auxiliary variable i, if that is a bit; else 0
	Full   []fr.Element // the values of the other auxiliary variables, in order

	inBlocks bool // Bits and Full are blocks of package memory
}

// blockBytes is from where on the values of auxiliary variables are in blocks of
// package memory: gigabytes that the garbage collector would give back late.
const blockBytes = 1 << 20

// New makes a witness of layout l with every value zero but the constant one. It
// is to be freed.
func New(l *Layout) *Witness {
	w := &Witness{Layout: l, Inputs: make([]fr.Element, l.numInputs)}
	w.Inputs[0].SetOne()
	if l.Bytes() >= blockBytes {
		var err error
		if w.Bits, err = memory.Alloc[uint64](Words(l.numAux)); err == nil {
			if w.Full, err = memory.Alloc[fr.Element](l.numFull); err == nil {
				w.inBlocks = true
				return w
			}
			memory.Free(w.Bits)
		}
		// The system refused; Go's heap may have what is needed.
	}
	w.Bits = make([]uint64, Words(l.numAux))
	w.Full = make([]fr.Element, l.numFull)
	return w
}

// Free gives the memory of the values back, which must not be used any more. It may
// be called twice.
func (w *Witness) Free() {
	if w.inBlocks {
		memory.Free(w.Bits)
		memory.Free(w.Full)
	}
	w.Bits, w.Full, w.inBlocks = nil, nil, false
}

// Bit is the value of auxiliary variable i, which must be a bit.
func (w *Witness) Bit(i int) bool { return w.Bits[i/64]>>(i%64)&1 == 1 }

// Aux returns the value of auxiliary variable i, bit or full.
func (w *Witness) Aux(i int) fr.Element {
	if w.Layout.IsBit(i) {
		if w.Bit(i) {
			return fr.One()
		}
		return fr.Element{}
	}
	return w.Full[w.Layout.FullBefore(i)]
}

// Expand writes the values of the auxiliary variables from..from+len(dst) as
// field elements.
func (w *Witness) Expand(dst []fr.Element, from int) {
	one := fr.One()
	next := w.Layout.FullBefore(from)
	for k := range dst {
		i := from + k
		switch {
		case !w.Layout.IsBit(i):
			dst[k] = w.Full[next]
			next++
		case w.Bit(i):
			dst[k] = one
		default:
			dst[k] = fr.Element{}
		}
	}
}

// Position is a place in a witness: where the next input, the next auxiliary
// variable, and the next full one among those go.
type Position struct {
	Input, Aux, Full int
}

// Add is p moved on by d.
func (p Position) Add(d Position) Position {
	return Position{p.Input + d.Input, p.Aux + d.Aux, p.Full + d.Full}
}

// Times is p repeated n times.
func (p Position) Times(n int) Position {
	return Position{n * p.Input, n * p.Aux, n * p.Full}
}

// Start is the position of the first variables after the constant one.
var Start = Position{Input: 1}

// End is the position after the last variable of layout l.
func (l *Layout) End() Position { return Position{l.numInputs, l.numAux, l.numFull} }

// String gives the position for error messages.
func (p Position) String() string {
	return fmt.Sprintf("input %d, auxiliary %d (full %d)", p.Input, p.Aux, p.Full)
}
