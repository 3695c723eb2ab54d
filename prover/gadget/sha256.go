package gadget

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/witness"
)

// Constants of FIPS 180-4, sections 4.2.2 and 5.3.3.
var (
	sha256K = [64]uint32{
		0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
		0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
		0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
		0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
		0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
		0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
		0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
		0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
	}
	sha256Initial = [8]uint32{
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	}
)

// compress is SHA-256's compression function (FIPS 180-4, section 6.2.2), with
// its operations in the order of bellpepper's sha256_compression_function: the
// sums that give e and a wait until the next round needs them.
func compress[W any](m words[W], state [8]W, block [16]W) [8]W {
	var w [64]W
	copy(w[:], block[:])
	for i := 16; i < 64; i++ {
		s0 := m.xor(m.rotr(w[i-15], 7), m.rotr(w[i-15], 18))
		s0 = m.xor(s0, m.shr(w[i-15], 3))
		s1 := m.xor(m.rotr(w[i-2], 17), m.rotr(w[i-2], 19))
		s1 = m.xor(s1, m.shr(w[i-2], 10))
		w[i] = m.sum(w[i-16], s0, w[i-7], s1)
	}

	a, b, c, d := state[0], state[1], state[2], state[3]
	e, f, g, h := state[4], state[5], state[6], state[7]
	// What e and a are the sums of, with room for a word of the state.
	var sumE [7]W
	var sumA [8]W
	for i := range 64 {
		if i > 0 {
			e = m.sum(sumE[:6]...)
		}
		s1 := m.xor(m.rotr(e, 6), m.rotr(e, 11))
		s1 = m.xor(s1, m.rotr(e, 25))
		ch := m.choose(e, f, g)
		k := m.constant(sha256K[i])
		if i > 0 {
			a = m.sum(sumA[:7]...)
		}
		s0 := m.xor(m.rotr(a, 2), m.rotr(a, 13))
		s0 = m.xor(s0, m.rotr(a, 22))
		maj := m.majority(a, b, c)
		sumE = [7]W{h, s1, ch, k, w[i], d}
		sumA = [8]W{h, s1, ch, k, w[i], s0, maj}
		h, g, f = g, f, e
		d, c, b = c, b, a
	}
	sumA[7], sumE[6] = state[0], state[4]
	var out [8]W
	out[0] = m.sum(sumA[:]...)
	out[1] = m.sum(state[1], b)
	out[2] = m.sum(state[2], c)
	out[3] = m.sum(state[3], d)
	out[4] = m.sum(sumE[:]...)
	out[5] = m.sum(state[5], f)
	out[6] = m.sum(state[6], g)
	out[7] = m.sum(state[7], h)
	return out
}

// initialState is the state before the first block.
func initialState[W any](m words[W]) (state [8]W) {
	for i, v := range sha256Initial {
		state[i] = m.constant(v)
	}
	return state
}

// SHA256 makes the hash of a message whose bits are in the order of its bytes,
// the highest bit of each byte first, and returns the hash in that order too
// (bellpepper's sha256). The message is a whole number of bytes.
func SHA256(b *constraint.Builder, message []Boolean) []Boolean {
	if len(message)%8 != 0 {
		panic(fmt.Sprintf("gadget: SHA-256 of %d bits", len(message)))
	}
	padded := append(message[:len(message):len(message)], True)
	for len(padded)%512 != 448 {
		padded = append(padded, False)
	}
	var length uint32Bits
	c := circuitWords{b: b}
	for _, v := range [2]uint32{uint32(len(message) >> 32), uint32(len(message))} {
		length = c.constant(v)
		padded = appendWord(padded, &length)
	}
	state := initialState(&c)
	for ; len(padded) > 0; padded = padded[512:] {
		var block [16]uint32Bits
		for i := range block {
			block[i] = wordOf(padded[32*i:])
		}
		state = compressBlock(b, state, block)
	}
	var hash []Boolean
	for i := range state {
		hash = appendWord(hash, &state[i])
	}
	return hash
}

// WriteSHA256 writes the values of the variables that SHA256 makes for a message
// of whole words, and returns the hash.
func WriteSHA256(w *witness.Writer, message []Word) [32]byte {
	m := witnessWords{w}
	bits := uint64(32 * len(message))
	padded := append(message[:len(message):len(message)], m.constant(1<<31))
	for len(padded)%16 != 14 {
		padded = append(padded, m.constant(0))
	}
	padded = append(padded, m.constant(uint32(bits>>32)), m.constant(uint32(bits)))
	state := initialState(m)
	for ; len(padded) > 0; padded = padded[16:] {
		state = compress(m, state, [16]Word(padded))
	}
	var hash [32]byte
	for i := range state {
		binary.BigEndian.PutUint32(hash[4*i:], state[i].Value)
	}
	return hash
}

// wordOf is the word of the next 32 bits of a message.
func wordOf(bits []Boolean) (w uint32Bits) {
	for i := range w {
		w[31-i] = bits[i]
	}
	return w
}

// appendWord appends the bits of w, highest first.
func appendWord(bits []Boolean, w *uint32Bits) []Boolean {
	for i := range w {
		bits = append(bits, w[31-i])
	}
	return bits
}

// compressBlock calls the template of compress for the pattern of constants and
// negations in its operands. The bits that are variables are its ports.
func compressBlock(b *constraint.Builder, state [8]uint32Bits, block [16]uint32Bits) (out [8]uint32Bits) {
	var key strings.Builder
	key.WriteString("sha256-block")
	var ports []constraint.Var
	for _, w := range append(state[:], block[:]...) {
		key.WriteByte(' ')
		key.WriteString(w.pattern())
		for i := range w {
			if bit := w[31-i]; !bit.IsConstant() {
				ports = append(ports, bit.Var)
			}
		}
	}
	outs, note := b.Call(key.String(), ports, func(b *constraint.Builder, ports []constraint.Var) ([]constraint.Var, any) {
		local := func(words []uint32Bits) {
			for k := range words {
				for i := 31; i >= 0; i-- {
					if bit := &words[k][i]; !bit.IsConstant() {
						bit.Var = ports[0]
						ports = ports[1:]
					}
				}
			}
		}
		state, block := state, block
		local(state[:])
		local(block[:])
		c := circuitWords{b: b}
		out := compress(&c, state, block)
		c.flush()
		var vars []constraint.Var
		for k := range out {
			for i := range out[k] {
				vars = append(vars, out[k][i].Var)
			}
		}
		return vars, out
	})
	out = note.([8]uint32Bits)
	for k := range out {
		for i := range out[k] {
			out[k][i].Var = outs[32*k+i]
		}
	}
	return out
}

// pattern says which bits of w are constant or negated: v if none is, the value
// in hexadecimal if all are constant, else bit for bit, the highest first.
func (w *uint32Bits) pattern() string {
	if v, ok := constantSum([]uint32Bits{*w}); ok {
		return fmt.Sprintf("%08x", v)
	}
	var p strings.Builder
	for i := range w {
		switch bit := w[31-i]; {
		case bit == True:
			p.WriteByte('1')
		case bit == False:
			p.WriteByte('0')
		case bit.Negated:
			p.WriteByte('n')
		default:
			p.WriteByte('v')
		}
	}
	if strings.Trim(p.String(), "v") == "" {
		return "v"
	}
	return p.String()
}
