package update

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/gadget"
	"github.com/interlock-prover/interlock/prover/merkle"
	"github.com/interlock-prover/interlock/prover/poseidon"
)

// Sparse describes the update of a sector that nobody sealed, for tests and benchmarks: its
// old replica and its new data repeat themselves. Nothing in a proof shows that, so its
// vanilla proofs pass all checks and satisfy the circuit completely.
type Sparse struct {
	SectorSize uint64 // bytes
	Seed       uint64 // updates of different seeds are different
}

// Request makes the vanilla proofs of all partitions.
func (sp *Sparse) Request() (*Request, error) {
	p, err := ParamsFor(sp.SectorSize)
	if err != nil {
		return nil, err
	}
	all := make([]int, p.Partitions)
	for k := range all {
		all[k] = k
	}
	c, proofs := sp.sector(p, all...)
	req := &Request{
		SectorSize: p.SectorSize,
		CommROld:   littleEndian(c.ROld), CommRNew: littleEndian(c.RNew), CommDNew: littleEndian(c.DNew),
	}
	for k := range all {
		req.Vanilla = append(req.Vanilla, encode(p, proofs[k]))
	}
	return req, nil
}

// periodicTree is a tree whose leaves depend on some digits of their number alone, so that
// one of any size has few different nodes.
type periodicTree struct {
	arities []int
	digits  uint64 // those that matter, as bits
	leaf    func(number uint64) fr.Element
	hash    merkle.Hash
	nodes   []map[uint64]fr.Element // by level and number
}

func newPeriodicTree(shape merkle.Shape, digits uint64, hash merkle.Hash, leaf func(number uint64) fr.Element) *periodicTree {
	t := &periodicTree{arities: shape.Arities(), digits: digits, leaf: leaf, hash: hash}
	for range len(t.arities) + 1 {
		t.nodes = append(t.nodes, map[uint64]fr.Element{})
	}
	return t
}

// node is a node by its level above the leaves and its number there.
func (t *periodicTree) node(level int, number uint64) fr.Element {
	digits := t.digits
	for _, arity := range t.arities[:level] {
		digits >>= log2(uint64(arity))
	}
	number &= digits
	if x, ok := t.nodes[level][number]; ok {
		return x
	}
	var x fr.Element
	if level == 0 {
		x = t.leaf(number)
	} else {
		x = t.hash(t.children(level, number))
	}
	t.nodes[level][number] = x
	return x
}

func (t *periodicTree) children(level int, number uint64) []fr.Element {
	children := make([]fr.Element, t.arities[level-1])
	for i := range children {
		children[i] = t.node(level-1, number*uint64(len(children))+uint64(i))
	}
	return children
}

func (t *periodicTree) root() fr.Element { return t.node(len(t.arities), 0) }

func (t *periodicTree) prove(leaf uint64) merkle.Proof {
	p := merkle.Proof{Leaf: t.node(0, leaf), Root: t.root()}
	for level, arity := range t.arities {
		at := int(leaf % uint64(arity))
		leaf /= uint64(arity)
		siblings := t.children(level+1, leaf)
		p.Path = append(p.Path, merkle.Step{Index: at, Siblings: append(siblings[:at:at], siblings[at+1:]...)})
	}
	return p
}

// sector makes the update, by the definition of the encoding: the commitments, and the
// vanilla proofs of the partitions named.
func (sp *Sparse) sector(p Params, partitions ...int) (Commitments, map[int]*PartitionProof) {
	// The highest digits select rho; some of the lowest and in between tell paths apart.
	digits := (p.leaves() - 1) &^ (p.leaves()>>p.high() - 1)
	digits |= (0b11<<(p.leafBits()/2) | 0b1111) & (p.leaves() - 1)
	random := func(what string) func(uint64) fr.Element {
		return func(number uint64) fr.Element {
			return gadget.HashElement(sha256.Sum256(fmt.Appendf(nil, "sparse update %d: %s %d", sp.Seed, what, number)))
		}
	}
	dNew := newPeriodicTree(p.dataTree(), digits, gadget.HashPair, random("data"))
	rOld := newPeriodicTree(p.Tree, digits, poseidon.Hash, random("replica"))
	commC := random("comm_c")(0)
	c := Commitments{ROld: poseidon.Hash([]fr.Element{commC, rOld.root()}), DNew: dNew.root()}

	rhos := map[uint64]fr.Element{}
	high := p.leafBits() - p.high()
	phi := c.phi()
	rNew := newPeriodicTree(p.Tree, digits, poseidon.Hash, func(number uint64) fr.Element {
		rho, ok := rhos[number>>high]
		if !ok {
			rho = p.rho(phi, number)
			rhos[number>>high] = rho
		}
		old, data := rOld.node(0, number), dNew.node(0, number)
		rho.Mul(&rho, &data)
		rho.Add(&rho, &old)
		return rho
	})
	c.RNew = poseidon.Hash([]fr.Element{commC, rNew.root()})

	proofs := map[int]*PartitionProof{}
	for _, k := range partitions {
		proof := &PartitionProof{CommC: commC}
		for i := range p.ApexLeaves {
			proof.ApexLeaves = append(proof.ApexLeaves, dNew.node(p.apexHeight(), uint64(k*p.ApexLeaves+i)))
		}
		for _, leaf := range p.challenges(k, c.RNew) {
			proof.Challenges = append(proof.Challenges, ChallengeProof{rOld.prove(leaf), dNew.prove(leaf), rNew.prove(leaf)})
		}
		proofs[k] = proof
	}
	return c, proofs
}

// encode is the bincode form of a vanilla proof, which DecodePartitionProof reads.
func encode(p Params, proof *PartitionProof) []byte {
	out := littleEndian(proof.CommC)
	out = binary.LittleEndian.AppendUint64(out, uint64(len(proof.ApexLeaves)))
	for _, leaf := range proof.ApexLeaves {
		out = append(out, littleEndian(leaf)...)
	}
	out = binary.LittleEndian.AppendUint64(out, uint64(len(proof.Challenges)))
	for i := range proof.Challenges {
		c := &proof.Challenges[i]
		out = c.ROld.Append(out, p.Tree)
		out = c.DNew.Append(out, p.dataTree())
		out = c.RNew.Append(out, p.Tree)
	}
	return out
}

func littleEndian(x fr.Element) []byte {
	var raw [fr.Bytes]byte
	fr.LittleEndian.PutElement(&raw, x)
	return raw[:]
}
