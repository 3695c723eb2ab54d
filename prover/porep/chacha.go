package porep

import (
	"encoding/binary"
	"math/bits"
)

// chachaBlockBytes is the size of a block of the key stream.
const chachaBlockBytes = 64

// chachaBlock writes one block of ChaCha's key stream to out. tail is the state's last
// row: a counter and a nonce, of 64 bits each in the original cipher (as in rand_chacha,
// which draws the graph), of 32 and 96 bits in RFC 8439 (which draws synthetic
// challenges). The graph needs 8 rounds, the challenges 20.
func chachaBlock(rounds int, key *[32]byte, tail [4]uint32, out []byte) {
	var start [16]uint32
	start[0], start[1], start[2], start[3] = 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574
	for i := range 8 {
		start[4+i] = binary.LittleEndian.Uint32(key[4*i:])
	}
	copy(start[12:], tail[:])
	s := start
	quarter := func(a, b, c, d int) {
		s[a] += s[b]
		s[d] = bits.RotateLeft32(s[d]^s[a], 16)
		s[c] += s[d]
		s[b] = bits.RotateLeft32(s[b]^s[c], 12)
		s[a] += s[b]
		s[d] = bits.RotateLeft32(s[d]^s[a], 8)
		s[c] += s[d]
		s[b] = bits.RotateLeft32(s[b]^s[c], 7)
	}
	for range rounds / 2 {
		for i := range 4 { // columns
			quarter(i, 4+i, 8+i, 12+i)
		}
		for i := range 4 { // diagonals
			quarter(i, 4+(i+1)%4, 8+(i+2)%4, 12+(i+3)%4)
		}
	}
	for i := range s {
		binary.LittleEndian.PutUint32(out[4*i:], s[i]+start[i])
	}
}
