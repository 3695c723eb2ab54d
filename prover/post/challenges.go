package post

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/merkle"
)

// APIVersion is the version of the proofs API after which challenges are derived.
type APIVersion uint8

const (
	V1_0 APIVersion = iota + 1 // 1.0.0 and 1.1.0: challenges are numbered through all sectors
	V1_2                       // 1.2.0: challenges are numbered within a sector
)

// ParseAPIVersion returns the version that a request of the kind names; empty is the one in
// use, 1.0.0 for winning PoSt and 1.2.0 for window PoSt. Winning PoSt has no 1.2.0: there,
// each challenge would be the same.
func ParseAPIVersion(kind Kind, name string) (APIVersion, error) {
	switch {
	case name == "1.0.0", name == "1.1.0", name == "" && kind == Winning:
		return V1_0, nil
	case kind == Window && (name == "1.2.0" || name == ""):
		return V1_2, nil
	case kind == Window:
		return 0, fault("api_version", "is %q; window PoSt has 1.0.0, 1.1.0 and 1.2.0", name)
	default:
		return 0, fault("api_version", "is %q; winning PoSt has 1.0.0 and 1.1.0", name)
	}
}

// checkRandomness returns the randomness if it is a field element, as the originals demand
// (as_safe_commitment in filecoin-proofs). The chain's has its two top bits cleared.
func checkRandomness(b []byte) (randomness [32]byte, err error) {
	if len(b) != len(randomness) {
		return randomness, fault("randomness", "has %d bytes, not 32", len(b))
	}
	copy(randomness[:], b)
	if _, err := fr.LittleEndian.Element(&randomness); err != nil {
		return randomness, fault("randomness", "is not below the field's modulus: the two top bits of its last byte must be cleared first")
	}
	return randomness, nil
}

// challenge returns the leaf that a sector must prove: the first eight bytes of
// SHA-256(randomness, sector, index), modulo the number of leaves
// (generate_leaf_challenge_inner in storage-proofs-post, fallback/vanilla.rs).
func challenge(randomness *[32]byte, sector, index, leaves uint64) uint64 {
	var in [48]byte
	copy(in[:], randomness[:])
	binary.LittleEndian.PutUint64(in[32:], sector)
	binary.LittleEndian.PutUint64(in[40:], index)
	out := sha256.Sum256(in[:])
	return binary.LittleEndian.Uint64(out[:]) % leaves
}

// sectorChallenges returns the leaves that the vanilla proof of a sector must prove. at is
// the sector's place among all sectors of the whole proof, in ascending order and with
// earlier partitions counted (get_challenge_index in storage-proofs-post,
// fallback/utils.rs).
func sectorChallenges(p Params, version APIVersion, randomness *[32]byte, sector, at uint64) []uint64 {
	n := uint64(p.vanillaChallenges())
	first := uint64(0)
	if version == V1_0 {
		first = at * n
	}
	leaves := p.SectorSize / merkle.NodeBytes
	challenges := make([]uint64, n)
	for i := range challenges {
		challenges[i] = challenge(randomness, sector, first+uint64(i), leaves)
	}
	return challenges
}
