package porep

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/gadget"
	"github.com/interlock-prover/interlock/prover/merkle"
	"github.com/interlock-prover/interlock/prover/poseidon"
)

// Sparse describes a sector that nobody sealed, for tests and benchmarks of sizes that take
// hours to seal: its data is one value throughout, its trees have real leaves only where
// nodes are opened, and the labels of parents are invented. Nothing in a proof shows that,
// so its phase-1 output passes all checks and satisfies the circuit completely.
type Sparse struct {
	SectorSize   uint64 // bytes
	Variant      Variant
	Partitions   int    // 0: the number in use
	Seed         uint64 // sectors of different seeds are different
	MinerID      uint64
	SectorNumber uint64
}

// sparseNote labels a sparse sector in its phase-1 output, and sparseTicket in its replica
// id.
const (
	sparseNote   = "synthetic: no sector was sealed; for tests and benchmarks only"
	sparseTicket = "synthetic, not a sealed sector"
)

// Statement makes the sector. Challenges must not depend on the replica's trees, as they do
// in synthetic and non-interactive proofs.
func (sp *Sparse) Statement() (*Statement, error) {
	p, err := ParamsFor(sp.SectorSize, sp.Partitions)
	if err != nil {
		return nil, err
	}
	if sp.Variant != V1 && sp.Variant != V1_1 {
		return nil, fault("variant", "is %s: its challenges depend on the replica, which a sparse sector's replica depends on", sp.Variant)
	}
	for _, f := range forms(sp.SectorSize) {
		if f.partitions == sp.Partitions && f.nonInteractive {
			return nil, fault("partitions", "is %d, which only non-interactive proofs have", sp.Partitions)
		}
	}
	partitions := sp.Partitions
	if partitions == 0 {
		partitions = forms(sp.SectorSize)[0].partitions
	}
	s := &Statement{
		Params: p, Variant: sp.Variant, Note: sparseNote, SectorNumber: &sp.SectorNumber,
		Seed: sp.random("seed", 0, 0),
	}
	copy(s.Ticket[:], sparseTicket)

	data := merkle.NewSparse(p.dataTree(), gadget.HashElement(sp.random("data", 0, 0)), nil, gadget.HashPair)
	s.CommD = data.Root()
	s.ReplicaID = s.replicaID(sp.MinerID, sp.SectorNumber)

	// Labels of all nodes that are opened. Those of parents that are not challenged
	// themselves can be anything.
	graph, source := s.graph(), s.challengeSource()
	labels := map[uint64][]fr.Element{}
	nodes := make([]uint64, partitions*p.Challenges)
	for i := range nodes {
		nodes[i] = source.challenge(i)
		for _, node := range append([]uint64{nodes[i]}, parentsOf(graph, nodes[i])...) {
			if labels[node] == nil {
				labels[node] = make([]fr.Element, p.Layers)
				for layer := range labels[node] {
					labels[node][layer] = gadget.HashElement(sp.random("label", node, uint64(layer)))
				}
			}
		}
	}
	proofs := make([]*ChallengeProof, len(nodes))
	order := make([]int, len(nodes)) // by node, as labels depend on those of nodes before
	for i, node := range nodes {
		order[i] = i
		proofs[i] = &ChallengeProof{Column: Column{Rows: labels[node]}}
		for j, parent := range parentsOf(graph, node) {
			proofs[i].Parents[j].Rows = labels[parent]
		}
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(nodes[i], nodes[j]) })
	for layer := range p.Layers {
		for _, i := range order {
			labels[nodes[i]][layer] = s.label(nodes[i], proofs[i], layer)
		}
	}

	columns := map[uint64]fr.Element{}
	for node, rows := range labels {
		columns[node] = poseidon.Hash(rows)
	}
	replicas := map[uint64]fr.Element{}
	for _, node := range nodes {
		replica := data.Leaf(node)
		replica.Add(&replica, &labels[node][p.Layers-1])
		replicas[node] = replica
	}
	var empty fr.Element
	treeC := merkle.NewSparse(p.Tree, empty, columns, poseidon.Hash)
	treeR := merkle.NewSparse(p.Tree, empty, replicas, poseidon.Hash)
	s.CommC, s.CommRLast = treeC.Root(), treeR.Root()
	s.CommR = poseidon.Hash([]fr.Element{s.CommC, s.CommRLast})

	for i, node := range nodes {
		c := proofs[i]
		c.Data, c.Replica = data.Prove(node), treeR.Prove(node)
		c.Column.Inclusion = treeC.Prove(node)
		for j, parent := range parentsOf(graph, node) {
			c.Parents[j].Inclusion = treeC.Prove(parent)
		}
	}
	for k := range partitions {
		s.Partitions = append(s.Partitions, Partition{k, proofs[k*p.Challenges : (k+1)*p.Challenges]})
	}
	return s, nil
}

// random is a value that depends on the seed and on what it is for.
func (sp *Sparse) random(what string, i, j uint64) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "sparse sector %d: %s %d %d", sp.Seed, what, i, j))
}

func parentsOf(g *graph, node uint64) []uint64 {
	parents := g.parents(node)
	return parents[:]
}
