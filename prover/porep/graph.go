package porep

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"

	"golang.org/x/crypto/blake2b"
)

// graph is a sector's stacked graph, which says of each node whose labels its own depends
// on. It follows from the number of nodes and the PoRep id alone.
type graph struct {
	nodes       uint64
	drgSeed     [28]byte
	feistelKeys [feistelRounds]uint64
	legacy      bool // API version 1.0.0
}

// newGraph makes the graph of a layer of nodes (derive_drg_seed in storage-proofs-core,
// drgraph.rs; derive_feistel_keys in storage-proofs-porep, graph.rs).
func newGraph(nodes uint64, porepID [32]byte, legacy bool) *graph {
	g := &graph{nodes: nodes, legacy: legacy}
	seed := domainSeed("Filecoin_DRSample", porepID)
	copy(g.drgSeed[:], seed[:])
	seed = domainSeed("Filecoin_Feistel", porepID)
	for i := range g.feistelKeys {
		g.feistelKeys[i] = binary.LittleEndian.Uint64(seed[8*i:])
	}
	return g
}

// domainSeed is derive_porep_domain_seed in storage-proofs-core, crypto/mod.rs.
func domainSeed(tag string, porepID [32]byte) [32]byte {
	return sha256.Sum256(append([]byte(tag), porepID[:]...))
}

// parents returns the nodes whose labels the label of a node is made from: those in its own
// layer, then those in the layer before.
func (g *graph) parents(node uint64) (parents [degree]uint64) {
	g.baseParents(node, (*[baseDegree]uint64)(parents[:]))
	for i := range expansionDegree {
		parents[baseDegree+i] = g.expansionParent(node, i)
	}
	return parents
}

// baseParents samples the depth robust graph (BucketGraph::parents in storage-proofs-core,
// drgraph.rs): the node before, and others at distances that are uniform within buckets
// whose sizes double. Distances are in a graph of five nodes for each one here.
func (g *graph) baseParents(node uint64, parents *[baseDegree]uint64) {
	if node < 2 {
		*parents = [baseDegree]uint64{}
		return
	}
	const m = baseDegree - 1
	var seed [32]byte
	copy(seed[:], g.drgSeed[:])
	binary.LittleEndian.PutUint32(seed[28:], uint32(node))
	// At most ten numbers are drawn: two blocks of eight.
	var stream [2 * chachaBlockBytes]byte
	for i := range 2 {
		chachaBlock(8, &seed, [4]uint32{uint32(i)}, stream[chachaBlockBytes*i:])
	}
	draw := 0
	random := func(n uint64) uint64 {
		x := binary.LittleEndian.Uint64(stream[8*draw:])
		draw++
		return x % n
	}

	others := parents[1:]
	predecessor := &parents[0]
	if g.legacy {
		others, predecessor = parents[:m], &parents[m]
	}
	at := node * m
	buckets := uint64(bits.Len64(at - 1)) // log2, rounded up
	for i := range others {
		bucket := random(buckets) + 1
		largest := min(at, 1<<bucket)
		smallest := max(2, largest>>1)
		distance := smallest + random(largest-smallest+1)
		others[i] = (at - distance) / m
		if others[i] == node {
			others[i]--
		}
	}
	*predecessor = node - 1
}

const feistelRounds = 3

// expansionParent is Chung's construction: a permutation of all (node, i) says which node's
// i-th parent is which node (StackedGraph::correspondent in storage-proofs-porep,
// graph.rs).
func (g *graph) expansionParent(node uint64, i int) uint64 {
	n := g.nodes * expansionDegree
	x := g.feistel(node*expansionDegree + uint64(i))
	for x >= n {
		x = g.feistel(x)
	}
	if g.legacy {
		x = uint64(uint32(x)) // as released first; it keeps 64 GiB from using all nodes
	}
	return x / expansionDegree
}

// feistel permutes the numbers of twice half bits, the least even number of bits that has
// room for all (node, i). Source: storage-proofs-core, crypto/feistel.rs.
func (g *graph) feistel(x uint64) uint64 {
	half := max(1, (bits.Len64(g.nodes*expansionDegree-1)+1)/2)
	mask := uint64(1)<<half - 1
	left, right := x>>half&mask, x&mask
	for _, key := range g.feistelKeys {
		var in [16]byte
		binary.BigEndian.PutUint64(in[:], right)
		binary.BigEndian.PutUint64(in[8:], key)
		out := blake2b.Sum512(in[:])
		left, right = right, left^binary.BigEndian.Uint64(out[:])&mask
	}
	return left<<half | right
}
