package poseidon

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// grain is the 80-bit Grain LFSR of the paper's section E, in self-shrinking mode.
// state[pos] is b_i of the recurrence, and the 80 bits follow it cyclically.
type grain struct {
	state [80]byte
	pos   int
}

// newGrain seeds the generator with the description of an instance: a prime field
// (1), the S-box x^5 (1), the field's size in bits, the width and the numbers of
// full and partial rounds. The first 160 bits are thrown away.
func newGrain(width, fullRounds, partialRounds int) *grain {
	g := new(grain)
	n := 0
	put := func(value uint64, bits int) {
		for i := bits - 1; i >= 0; i-- {
			g.state[n] = byte(value >> i & 1)
			n++
		}
	}
	put(1, 2)
	put(1, 4)
	put(fr.Bits, 12)
	put(uint64(width), 12)
	put(uint64(fullRounds), 10)
	put(uint64(partialRounds), 10)
	put(1<<30-1, 30)
	for range 160 {
		g.step()
	}
	return g
}

// step makes one raw bit: b[i+80] = b[i+62] ^ b[i+51] ^ b[i+38] ^ b[i+23] ^ b[i+13] ^ b[i].
func (g *grain) step() byte {
	at := func(i int) byte { return g.state[(g.pos+i)%80] }
	bit := at(62) ^ at(51) ^ at(38) ^ at(23) ^ at(13) ^ at(0)
	g.state[g.pos] = bit
	g.pos = (g.pos + 1) % 80
	return bit
}

// bit makes one output bit: raw bits come in pairs, and the second of a pair counts
// if the first is 1.
func (g *grain) bit() byte {
	for g.step() == 0 {
		g.step()
	}
	return g.step()
}

// element makes the next field element: fr.Bits bits, most significant first, drawn
// again until they are below the modulus.
func (g *grain) element() fr.Element {
	for {
		var be [fr.Bytes]byte
		for i := fr.Bytes*8 - fr.Bits; i < fr.Bytes*8; i++ {
			be[i/8] |= g.bit() << (7 - i%8)
		}
		var e fr.Element
		if e.SetBytesCanonical(be[:]) == nil {
			return e
		}
	}
}

// roundKeys returns the width constants of every round, in the order of the rounds.
func roundKeys(width, fullRounds, partialRounds int) [][]fr.Element {
	g := newGrain(width, fullRounds, partialRounds)
	keys := make([][]fr.Element, fullRounds+partialRounds)
	for r := range keys {
		keys[r] = make([]fr.Element, width)
		for i := range keys[r] {
			keys[r][i] = g.element()
		}
	}
	return keys
}
