package post

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/bincode"
	"github.com/interlock-prover/interlock/prover/merkle"
	"github.com/interlock-prover/interlock/prover/poseidon"
)

// FieldError names a field of a request that is wrong, and says how:
// vanilla[2].inclusion_proofs[7].path, root is not comm_r_last.
type FieldError = bincode.FieldError

func fault(field, format string, args ...any) error {
	return &FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// Inclusion is the proof that one leaf is in a sector's tree R last.
type Inclusion = merkle.Proof

// SectorProof is a sector with proofs for challenged leaves: what a vanilla proof says of
// it, or, in a winning PoSt's partition, one of its challenges.
type SectorProof struct {
	SectorID   uint64     // sector number
	CommR      fr.Element // H(CommC, CommRLast), on the chain
	CommC      fr.Element // root of the tree over the columns of labels
	CommRLast  fr.Element // root of the tree over the replica
	Inclusions []Inclusion
}

// DecodeSectorProof reads a sector's vanilla proof, the bincode form of filecoin-proofs'
// FallbackPoStSectorProof, for the kind and sector size of p. Anything but exactly its
// form, field elements below the modulus, and one root throughout is a *FieldError. What
// the hashes are, checkRelation and checkInclusion say.
func DecodeSectorProof(p Params, data []byte) (*SectorProof, error) {
	r := bincode.NewReader(data)
	s := new(SectorProof)
	s.SectorID = r.Uint64("sector_id")
	s.CommR = r.Element("comm_r")
	r.Count("vanilla_proof.sectors", 1)
	r.Count("inclusion_proofs", p.vanillaChallenges())
	if r.Err() == nil {
		s.Inclusions = make([]Inclusion, p.vanillaChallenges())
	}
	for i := range s.Inclusions {
		if s.Inclusions[i] = merkle.Read(r, p.Tree); r.Err() != nil {
			r.In(inclusionField(i))
			break
		}
	}
	s.CommC = r.Element("comm_c")
	s.CommRLast = r.Element("comm_r_last")
	if err := r.Finish(); err != nil {
		return nil, err
	}
	for i := range s.Inclusions {
		if s.Inclusions[i].Root != s.CommRLast {
			return nil, fault(inclusionField(i)+".root", "is not comm_r_last")
		}
	}
	return s, nil
}

// checkRelation checks that comm_r is the hash of the trees' roots.
func (s *SectorProof) checkRelation() error {
	if poseidon.Hash([]fr.Element{s.CommC, s.CommRLast}) != s.CommR {
		return fault("comm_r", "is not the hash of comm_c and comm_r_last")
	}
	return nil
}

// checkInclusion checks that the path of inclusion i leads to the root.
func (s *SectorProof) checkInclusion(i int) error {
	if s.Inclusions[i].ComputeRoot(poseidon.Hash) != s.CommRLast {
		return fault(inclusionField(i)+".path", "root is not comm_r_last")
	}
	return nil
}

func inclusionField(i int) string { return fmt.Sprintf("inclusion_proofs[%d]", i) }
