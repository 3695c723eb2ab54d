package update

import (
	"context"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/bincode"
	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/gadget"
	"github.com/interlock-prover/interlock/prover/merkle"
	"github.com/interlock-prover/interlock/prover/poseidon"
)

// Request asks for a proof of a sector update.
type Request struct {
	SectorSize uint64   // bytes
	CommROld   []byte   // of the sector before; 32 bytes, little endian, below the field's modulus
	CommRNew   []byte   // of the sector after
	CommDNew   []byte   // of the new data
	Vanilla    [][]byte // a bincode vanilla proof for each partition, in order
}

// Commitments say what was updated to what.
type Commitments struct {
	ROld fr.Element // H(CommC, root of tree R last) before
	DNew fr.Element // root of the tree over the new data
	RNew fr.Element // H(CommC, root of tree R last) after
}

// Statement is a request whose form, fields, challenges and commitments are right. Check
// does the rest.
type Statement struct {
	Params Params
	Commitments
	Partitions []Partition
}

// Partition is the instance of the circuit that one Groth16 proof is about.
type Partition struct {
	Params Params
	Commitments
	Index int // among the partitions of the whole proof
	Proof *PartitionProof
}

// Decode reads a request and checks all of it that needs no tree's hashes: form, sizes,
// field elements, whether all partitions are there in order, whether the roots are those
// of the commitments, and whether the leaves are those that comm_r_new demands. What is
// wrong is a *FieldError.
func Decode(ctx context.Context, req *Request) (*Statement, error) {
	params, err := ParamsFor(req.SectorSize)
	if err != nil {
		return nil, err
	}
	s := &Statement{Params: params}
	for _, c := range []struct {
		field string
		bytes []byte
		to    *fr.Element
	}{
		{"comm_r_old", req.CommROld, &s.ROld},
		{"comm_r_new", req.CommRNew, &s.RNew},
		{"comm_d_new", req.CommDNew, &s.DNew},
	} {
		if *c.to, err = readCommitment(c.field, c.bytes); err != nil {
			return nil, err
		}
	}
	if n := len(req.Vanilla); n != params.Partitions {
		return nil, fault("vanilla", "has %d vanilla proofs; the update of a sector of %d bytes has %d partitions",
			n, params.SectorSize, params.Partitions)
	}

	s.Partitions = make([]Partition, params.Partitions)
	err = constraint.Lowest(ctx, params.Partitions, func(k int) error {
		proof, err := DecodePartitionProof(params, req.Vanilla[k])
		s.Partitions[k] = Partition{Params: params, Commitments: s.Commitments, Index: k, Proof: proof}
		return bincode.In(vanillaField(k), err)
	})
	if err != nil {
		return nil, err
	}
	return s, constraint.Lowest(ctx, params.Partitions, func(k int) error {
		part := &s.Partitions[k]
		if err := part.checkOrder(); err != nil {
			return err
		}
		if err := part.checkCommitments(); err != nil {
			return err
		}
		return bincode.In(vanillaField(k), part.checkChallenges())
	})
}

// readCommitment reads a commitment, which the originals take as a field element.
func readCommitment(field string, b []byte) (fr.Element, error) {
	if len(b) != fr.Bytes {
		return fr.Element{}, fault(field, "has %d bytes, not %d", len(b), fr.Bytes)
	}
	e, err := fr.LittleEndian.Element((*[fr.Bytes]byte)(b))
	if err != nil {
		return fr.Element{}, fault(field, "is not below the field's modulus")
	}
	return e, nil
}

// checkOrder checks that the vanilla proof is not another partition's.
func (p *Partition) checkOrder() error {
	of := p.Proof.Challenges[0].DNew.Position() >> p.Params.randomBits()
	for i := range p.Proof.Challenges {
		if p.Proof.Challenges[i].DNew.Position()>>p.Params.randomBits() != of {
			return nil // not any partition's: checkChallenges says what is wrong
		}
	}
	if of != uint64(p.Index) {
		return fault(vanillaField(p.Index), "is the vanilla proof of partition %d; they must be in the partitions' order", of)
	}
	return nil
}

// checkCommitments checks that the roots are the same throughout, and what the commitments
// say.
func (p *Partition) checkCommitments() error {
	first := &p.Proof.Challenges[0]
	for i := range p.Proof.Challenges {
		c := &p.Proof.Challenges[i]
		for _, tree := range []struct {
			field     string
			root, one *fr.Element
		}{
			{"proof_r_old", &c.ROld.Root, &first.ROld.Root},
			{"proof_d_new", &c.DNew.Root, &first.DNew.Root},
			{"proof_r_new", &c.RNew.Root, &first.RNew.Root},
		} {
			if *tree.root != *tree.one {
				return fault(fmt.Sprintf("%s.%s.%s.root", vanillaField(p.Index), challengeField(i), tree.field),
					"is not that of %s", challengeField(0))
			}
		}
	}

	old := poseidon.Hash([]fr.Element{p.Proof.CommC, first.ROld.Root})
	updated := poseidon.Hash([]fr.Element{p.Proof.CommC, first.RNew.Root})
	switch vanilla := vanillaField(p.Index); {
	case old == p.RNew && updated == p.ROld && p.ROld != p.RNew:
		return fault("comm_r_old", "and comm_r_new are exchanged: each is the other's of %s", vanilla)
	case old != p.ROld && updated != p.RNew:
		return fault(vanilla+".comm_c", "has neither comm_r_old nor comm_r_new as its hash with the roots of tree R")
	case old != p.ROld:
		return fault("comm_r_old", "is not the hash of comm_c and the root in proof_r_old of %s", vanilla)
	case updated != p.RNew:
		return fault("comm_r_new", "is not the hash of comm_c and the root in proof_r_new of %s", vanilla)
	case first.DNew.Root != p.DNew:
		return fault("comm_d_new", "is not the root in proof_d_new of %s", vanilla)
	}
	return nil
}

// checkChallenges checks that the proven leaves are the challenged ones.
func (p *Partition) checkChallenges() error {
	for i, want := range p.Params.challenges(p.Index, p.RNew) {
		c := &p.Proof.Challenges[i]
		for _, tree := range []struct {
			field string
			proof *merkle.Proof
		}{{"proof_r_old", &c.ROld}, {"proof_d_new", &c.DNew}, {"proof_r_new", &c.RNew}} {
			if got := tree.proof.Position(); got != want {
				return fault(challengeField(i)+"."+tree.field,
					"proves leaf %d, but comm_r_new and partition %d demand leaf %d", got, p.Index, want)
			}
		}
	}
	return nil
}

// Check computes all hashes of a statement on all cores: the apex trees, all paths, and the
// encoding of the challenged leaves. What is wrong is a *FieldError; after that, or when ctx
// is done, it returns as soon as the challenges in hand are finished.
func (s *Statement) Check(ctx context.Context) error {
	phi := s.phi()
	n := 1 + s.Params.Challenges
	return constraint.Lowest(ctx, n*len(s.Partitions), func(at int) error {
		k, i := at/n, at%n-1
		part := &s.Partitions[k]
		if i < 0 {
			return bincode.In(vanillaField(k), part.checkApex())
		}
		return bincode.In(vanillaField(k)+"."+challengeField(i), part.checkChallenge(&part.Proof.Challenges[i], phi))
	})
}

// checkApex checks that the apex leaves are those of the tree over the data: their root is
// the node on the first challenge's path. That each challenge's path passes through its apex
// leaf follows, since both are below the same root.
func (p *Partition) checkApex() error {
	first := &p.Proof.Challenges[0].DNew
	below := merkle.Proof{Leaf: first.Leaf, Path: first.Path[:p.Params.apexRoot()]}
	above := merkle.Proof{Leaf: below.ComputeRoot(gadget.HashPair), Path: first.Path[p.Params.apexRoot():]}
	if above.ComputeRoot(gadget.HashPair) != p.DNew {
		return fault(challengeField(0)+".proof_d_new.path", "does not lead to comm_d_new")
	}
	tree := apexTree(p.Proof.ApexLeaves)
	if tree[len(tree)-1] != above.Leaf {
		return fault("apex_leafs", "are not the nodes below comm_d_new that this partition has")
	}
	return nil
}

// apexTree returns the nodes of the tree over the leaves, level after level from the leaves
// to the root: node len(leaves)+i is the parent of nodes 2i and 2i+1.
func apexTree(leaves []fr.Element) []fr.Element {
	tree := make([]fr.Element, len(leaves), 2*len(leaves)-1)
	copy(tree, leaves)
	for i := range len(leaves) - 1 {
		tree = append(tree, gadget.HashPair(tree[2*i:2*i+2]))
	}
	return tree
}

// checkChallenge checks the paths of a challenge, and that the new replica's leaf is the old
// one's plus rho times the data's.
func (p *Partition) checkChallenge(c *ChallengeProof, phi fr.Element) error {
	switch {
	case c.ROld.ComputeRoot(poseidon.Hash) != c.ROld.Root:
		return fault("proof_r_old.path", "does not lead to the root that comm_r_old has")
	case c.DNew.ComputeRoot(gadget.HashPair) != p.DNew:
		return fault("proof_d_new.path", "does not lead to comm_d_new")
	case c.RNew.ComputeRoot(poseidon.Hash) != c.RNew.Root:
		return fault("proof_r_new.path", "does not lead to the root that comm_r_new has")
	}
	encoded := p.Params.rho(phi, c.DNew.Position())
	encoded.Mul(&encoded, &c.DNew.Leaf)
	if encoded.Add(&encoded, &c.ROld.Leaf); encoded != c.RNew.Leaf {
		return fault("proof_r_new.leaf", "is not the old replica's leaf plus rho times the new data's")
	}
	return nil
}

func vanillaField(k int) string { return fmt.Sprintf("vanilla[%d]", k) }
