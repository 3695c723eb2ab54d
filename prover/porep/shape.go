package porep

import (
	"crypto/sha256"
	"fmt"

	"github.com/interlock-prover/interlock/prover/merkle"
)

// Degrees of the graph: a node's label depends on labels of baseDegree nodes of its own
// layer and of expansionDegree nodes of the one before. Source: storage-proofs-core,
// drgraph.rs, BASE_DEGREE; storage-proofs-porep, graph.rs, EXP_DEGREE.
const (
	baseDegree      = 6
	expansionDegree = 8
	degree          = baseDegree + expansionDegree
)

// labelParents is how many parents' labels a label hashes, repeated in turn (TOTAL_PARENTS
// in storage-proofs-porep, params.rs).
const labelParents = 37

// Params are what a circuit is made from: the originals' public parameters. The variants
// of a proof (1.0, 1.1, synthetic, non-interactive) share it.
type Params struct {
	SectorSize uint64       // bytes
	Layers     int          // of labels: 2 or 11
	Challenges int          // of one partition
	Tree       merkle.Shape // of trees C and R last
}

// Layers of mainnet's sectors, and of the others. Source: filecoin-proofs, constants.rs,
// LAYERS.
const (
	mainnetLayers = 11
	testLayers    = 2
)

// ParamsFor returns the parameters of a sector size in bytes, of a proof that has the given
// number of partitions; 0 is the number in use, 10 on mainnet and 1 in test sizes. A size or
// number that has none is a *FieldError.
func ParamsFor(sectorSize uint64, partitions int) (Params, error) {
	tree, ok := merkle.ForSector(sectorSize)
	if !ok {
		return Params{}, fault("sector_size", "no proofs exist for sectors of %d bytes", sectorSize)
	}
	p := Params{SectorSize: sectorSize, Layers: testLayers, Tree: tree}
	if isMainnet(sectorSize) {
		p.Layers = mainnetLayers
	}
	for _, form := range forms(sectorSize) {
		if form.partitions == partitions || partitions == 0 {
			p.Challenges = form.challenges
			return p, nil
		}
	}
	return Params{}, fault("partitions", "is %d; a proof of a sector of %d bytes has %s", partitions, sectorSize, formNames(sectorSize))
}

// SetupPartitions is the number of partitions that ParamsFor needs to be told to give p
// again; 0 where the usual one does.
func (p Params) SetupPartitions() int {
	for i, f := range forms(p.SectorSize) {
		if f.challenges == p.Challenges {
			if i == 0 {
				return 0
			}
			return f.partitions
		}
	}
	return 0
}

// form is a way to divide a proof's challenges among partitions.
type form struct {
	partitions, challenges int // challenges of each partition
	nonInteractive         bool
}

// forms lists the divisions known for a sector size, the usual one first: the least number
// of challenges (176, and 2253 if they are not interactive; 2 and 26 in test sizes) over
// the number of partitions (select_challenges in filecoin-proofs, parameters.rs, and
// constants.rs). Ten partitions of test size are mainnet's work flow in miniature.
func forms(sectorSize uint64) []form {
	if isMainnet(sectorSize) {
		return []form{{10, 18, false}, {126, 18, true}}
	}
	return []form{{1, 2, false}, {13, 2, true}, {10, 1, false}}
}

// formNames lists the numbers of partitions that are known: "1 (the usual), 13 or 10".
func formNames(sectorSize uint64) string {
	names := ""
	known := forms(sectorSize)
	for i, f := range known {
		switch {
		case i == 0:
			names = fmt.Sprintf("%d (the usual)", f.partitions)
		case i < len(known)-1:
			names += fmt.Sprintf(", %d", f.partitions)
		default:
			names += fmt.Sprintf(" or %d", f.partitions)
		}
	}
	return names
}

func isMainnet(sectorSize uint64) bool { return sectorSize >= 32<<30 }

// Nodes is the number of nodes of a layer, which is that of the trees' leaves.
func (p Params) Nodes() uint64 { return p.SectorSize / merkle.NodeBytes }

// dataTree is the shape of tree D, over the sector's data.
func (p Params) dataTree() merkle.Shape { return merkle.Binary(p.Nodes()) }

// ParameterSet names the circuit's parameters, as files of them are named between "v28-"
// and the extension: the proof's name, the replica tree's hasher and arities, the data
// tree's hasher, and SHA-256 of the parameters' description (cache_identifier in
// storage-proofs-core, parameter_cache.rs; identifier in storage-proofs-porep, params.rs,
// and of the graphs).
func (p Params) ParameterSet() string {
	description := fmt.Sprintf("layered_drgporep::PublicParams{ "+
		"graph: stacked_graph::StackedGraph{expansion_degree: %d base_graph: "+
		"drgraph::BucketGraph{size: %d; degree: %d; hasher: poseidon_hasher} }, "+
		"challenges: LayerChallenges { layers: %d, max_count: %d }, tree: merkletree-poseidon_hasher-%s }",
		expansionDegree, p.Nodes(), baseDegree, p.Layers, p.Challenges, p.Tree)
	return fmt.Sprintf("stacked-proof-of-replication-merkletree-poseidon_hasher-%s-sha256_hasher-%x",
		p.Tree, sha256.Sum256([]byte(description)))
}
