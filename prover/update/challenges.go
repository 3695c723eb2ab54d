package update

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/poseidon"
)

// challenges returns the numbers of the leaves that partition k must prove: random digits
// from hashes of comm_r_new and a number, below the digits of k (Challenges in
// storage-proofs-update, challenges.rs).
func (p Params) challenges(k int, commRNew fr.Element) []uint64 {
	n := p.randomBits()
	out := make([]uint64, 0, p.Challenges)
	for j := range p.digests() {
		number := fr.NewElement(p.digestNumber(k, j))
		digest := poseidon.Randomness().Hash([]fr.Element{commRNew, number})
		digits := digest.Bits()
		for i := range min(p.perDigest(), p.Challenges-len(out)) {
			out = append(out, uint64(k)<<n|extract(&digits, i*n, n))
		}
	}
	return out
}

// digestNumber is the number among all of a proof's of the hash that partition k draws
// challenges from, j counting from 0.
func (p Params) digestNumber(k, j int) uint64 { return uint64(k*p.digests() + j) }

// extract returns n digits of x from digit from; n is at most 32.
func extract(x *[fr.Limbs]uint64, from, n int) uint64 {
	v := x[from/64] >> (from % 64)
	if from%64+n > 64 {
		v |= x[from/64+1] << (64 - from%64)
	}
	return v & (1<<n - 1)
}

// phi is what the factors of an update's encoding are derived from (phi in
// storage-proofs-update, vanilla.rs).
func (c *Commitments) phi() fr.Element {
	return poseidon.Randomness().Hash([]fr.Element{c.DNew, c.ROld})
}

// rho is the factor that the data's leaf of the given number is encoded with (rho in
// storage-proofs-update, vanilla.rs).
func (p Params) rho(phi fr.Element, leaf uint64) fr.Element {
	high := fr.NewElement(leaf >> (p.leafBits() - p.high()))
	return poseidon.Randomness().Hash([]fr.Element{phi, high})
}
