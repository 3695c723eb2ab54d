package update

import (
	"crypto/sha256"
	"fmt"
	"math/bits"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/merkle"
)

// Params are what a circuit is made from: the originals' public parameters.
//
// The leaves of the new data's tree are divided among the partitions. Each has a tree of
// its own under a node of comm_d_new's tree. The top of that is its apex tree, whose leaves
// are computed once for all challenges. So a leaf's number has, from the lowest bit, a path
// to an apex leaf, the apex leaf's number, and the partition's.
type Params struct {
	SectorSize uint64       // bytes
	Partitions int          // of a proof; a power of two
	Challenges int          // of one partition
	ApexLeaves int          // of one partition; a power of two
	Tree       merkle.Shape // of tree R last, old and new
}

// ParamsFor returns the parameters of a sector size in bytes. A size that has none is a
// *FieldError. Source: storage-proofs-update, constants.rs, partition_count,
// challenge_count and apex_leaf_count.
func ParamsFor(sectorSize uint64) (Params, error) {
	tree, ok := merkle.ForSector(sectorSize)
	if !ok {
		return Params{}, fault("sector_size", "no proofs exist for sectors of %d bytes", sectorSize)
	}
	p := Params{SectorSize: sectorSize, Challenges: 10, ApexLeaves: 128, Tree: tree}
	switch {
	case sectorSize <= 8<<10:
		p.Partitions, p.ApexLeaves = 1, 8
	case sectorSize <= 32<<10:
		p.Partitions = 2
	case sectorSize <= 16<<20:
		p.Partitions = 4
	default:
		p.Partitions, p.Challenges = 16, 86
	}
	return p, nil
}

// leaves is the number of leaves of a sector's trees.
func (p Params) leaves() uint64 { return p.SectorSize / merkle.NodeBytes }

// dataTree is the shape of tree D, over the new data.
func (p Params) dataTree() merkle.Shape { return merkle.Binary(p.leaves()) }

// Digits of a leaf's number: all of them, those drawn at random (all but the partition's),
// and the heights in tree D of the apex tree's leaves and root.
func (p Params) leafBits() int      { return log2(p.leaves()) }
func (p Params) partitionBits() int { return log2(uint64(p.Partitions)) }
func (p Params) randomBits() int    { return p.leafBits() - p.partitionBits() }
func (p Params) apexHeight() int    { return p.randomBits() - log2(uint64(p.ApexLeaves)) }
func (p Params) apexRoot() int      { return p.randomBits() }

// digests is the number of hashes that a partition's challenges are drawn from, and
// perDigest how many one of them gives: what fits into 254 bits (Challenges in
// storage-proofs-update, challenges.rs).
func (p Params) digests() int   { return (p.Challenges + p.perDigest() - 1) / p.perDigest() }
func (p Params) perDigest() int { return (fr.Bits - 1) / p.randomBits() }

// highBits are the choices of how many of the highest digits of a leaf's number select the
// factor that its data is encoded with. Test sizes choose among equals (hs in
// storage-proofs-update, constants.rs).
func (p Params) highBits() []int {
	if p.SectorSize <= 32<<10 {
		return []int{1, 1, 1, 1, 1, 1}
	}
	return []int{7, 8, 9, 10, 11, 12}
}

// high is the choice in use (h_default), and highIndex its place among the choices: the
// first equal one (h_select).
func (p Params) high() int      { return p.highBits()[3] }
func (p Params) highIndex() int { return slices.Index(p.highBits(), p.high()) }

// ParameterSet names the circuit's parameters, as files of them are named between "v28-"
// and the extension: the proof's name, the replica tree's hasher and arities, and SHA-256
// of the parameters' description (cache_identifier in storage-proofs-core,
// parameter_cache.rs; identifier in storage-proofs-update, vanilla.rs).
func (p Params) ParameterSet() string {
	description := fmt.Sprintf("empty_sector_update::PublicParams{ sector_nodes: %d }", p.leaves())
	return fmt.Sprintf("empty-sector-update-merkletree-poseidon_hasher-%s-%x", p.Tree, sha256.Sum256([]byte(description)))
}

func log2(n uint64) int { return bits.Len64(n) - 1 }
