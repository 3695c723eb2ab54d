package update

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/bincode"
	"github.com/interlock-prover/interlock/prover/merkle"
)

// PartitionProof is the vanilla proof of one partition.
type PartitionProof struct {
	CommC      fr.Element   // root of the tree over the columns of labels, which an update keeps
	ApexLeaves []fr.Element // the nodes of tree D below which the partition's leaves are
	Challenges []ChallengeProof
}

// ChallengeProof opens one challenged leaf in three trees.
type ChallengeProof struct {
	ROld merkle.Proof // in tree R last of the sector before
	DNew merkle.Proof // in the tree over the new data
	RNew merkle.Proof // in tree R last of the sector after
}

// DecodePartitionProof reads a vanilla proof, the bincode form of storage-proofs-update's
// PartitionProof, for the sector size of p. Anything but exactly its form and field elements
// below the modulus is a *FieldError.
func DecodePartitionProof(p Params, data []byte) (*PartitionProof, error) {
	r := bincode.NewReader(data)
	proof := &PartitionProof{ApexLeaves: make([]fr.Element, p.ApexLeaves)}
	proof.CommC = r.Element("comm_c")
	r.Elements("apex_leafs", proof.ApexLeaves)
	r.Count("challenge_proofs", p.Challenges)
	if r.Err() == nil {
		proof.Challenges = make([]ChallengeProof, p.Challenges)
	}
	for i := range proof.Challenges {
		c := &proof.Challenges[i]
		for _, tree := range []struct {
			field string
			to    *merkle.Proof
			shape merkle.Shape
		}{
			{"proof_r_old", &c.ROld, p.Tree},
			{"proof_d_new", &c.DNew, p.dataTree()},
			{"proof_r_new", &c.RNew, p.Tree},
		} {
			*tree.to = merkle.Read(r, tree.shape)
			if r.Err() != nil {
				r.In(challengeField(i) + "." + tree.field)
				return nil, r.Finish()
			}
		}
	}
	if err := r.Finish(); err != nil {
		return nil, err
	}
	return proof, nil
}

func challengeField(i int) string { return fmt.Sprintf("challenge_proofs[%d]", i) }
