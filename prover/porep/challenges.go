package porep

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"

	"golang.org/x/crypto/blake2b"
)

// challengeSource is what challenges are derived from.
type challengeSource struct {
	variant                Variant
	replicaID, commR, seed [32]byte
	nodes                  uint64
}

// challenge returns the node that challenge number index of the whole proof opens
// (Challenges in storage-proofs-porep, challenges.rs).
func (s *challengeSource) challenge(index int) uint64 {
	number := binary.LittleEndian.AppendUint32(nil, uint32(index))
	switch s.variant {
	case Synthetic:
		return s.synthetic(uint32(index))
	case NonInteractive:
		return s.node(sha256.Sum256(concat([]byte("filecoin.io|PoRep|1|NonInteractive|1"), s.replicaID[:], s.commR[:], number)))
	default:
		return s.node(sha256.Sum256(concat(s.replicaID[:], s.seed[:], number)))
	}
}

// maxSynthetic is the number of synthetic challenges of a large sector
// (DEFAULT_SYNTH_CHALLENGE_COUNT).
const maxSynthetic = 1 << 18

// synthetic draws challenge number index out of the synthetic ones, which depend on the
// replica alone; which of them is drawn depends on the seed (FIP-0059;
// SynthChallengeGenerator).
func (s *challengeSource) synthetic(index uint32) uint64 {
	selected := keyStream("Selection", s.replicaID[:], s.seed[:], 4*index)
	i := binary.LittleEndian.Uint32(selected[:]) % uint32(min(s.nodes, maxSynthetic))
	return s.node(keyStream("Generation", s.replicaID[:], s.commR[:], 32*i))
}

// keyStream returns the 32 bytes at an offset, a multiple of 4, of a ChaCha20 key stream.
func keyStream(purpose string, replicaID, hash []byte, offset uint32) (out [32]byte) {
	h, err := blake2b.New256([]byte("filecoin.io|PoRep|1|Synthetic|1|" + purpose))
	if err != nil {
		panic(err) // the key is not too long
	}
	h.Write(replicaID)
	h.Write(hash)
	key := [32]byte(h.Sum(nil))
	var stream [2 * chachaBlockBytes]byte
	for i := range 2 {
		tail := [4]uint32{offset/chachaBlockBytes + uint32(i)}
		for k := range 3 {
			tail[1+k] = binary.LittleEndian.Uint32([]byte("synth-porep\x00")[4*k:])
		}
		chachaBlock(20, &key, tail, stream[chachaBlockBytes*i:])
	}
	copy(out[:], stream[offset%chachaBlockBytes:])
	return out
}

// node is a hash, read as a little-endian number, modulo the number of nodes that can be
// challenged: all but the first (bigint_to_challenge).
func (s *challengeSource) node(hash [32]byte) uint64 {
	n := s.nodes - 1
	var rem uint64
	for i := 3; i >= 0; i-- {
		_, rem = bits.Div64(rem, binary.LittleEndian.Uint64(hash[8*i:]), n)
	}
	return rem + 1
}

func concat(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}
