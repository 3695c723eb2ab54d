package post

import (
	"crypto/sha256"
	"fmt"

	"github.com/interlock-prover/interlock/prover/merkle"
)

// Kind is the kind of a proof of spacetime.
type Kind uint8

const (
	Winning Kind = iota + 1 // 66 challenges of one sector
	Window                  // 10 challenges of each sector
)

func (k Kind) String() string {
	switch k {
	case Winning:
		return "winning-post"
	case Window:
		return "window-post"
	default:
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
}

// Params are what a circuit is made from: the originals' public parameters. The challenges
// of a winning PoSt are as many sectors of one challenge each there, though all of the same
// sector (winning_post_setup_params in filecoin-proofs, parameters.rs).
type Params struct {
	Kind                Kind
	SectorSize          uint64       // bytes
	Challenges          int          // of a sector in the circuit: 1 winning, 10 window
	SectorsPerPartition int          // in the circuit: 66 winning; 2, 2349 or 2300 window
	Tree                merkle.Shape // of tree R last
}

// Challenges of a whole vanilla proof. Source: filecoin-proofs, constants.rs,
// WINNING_POST_CHALLENGE_COUNT and WINDOW_POST_CHALLENGE_COUNT.
const (
	winningChallenges = 66
	windowChallenges  = 10
)

// ParamsFor returns the parameters of a kind and a sector size in bytes. A size that has
// none is a *FieldError.
func ParamsFor(kind Kind, sectorSize uint64) (Params, error) {
	tree, ok := merkle.ForSector(sectorSize)
	if !ok {
		return Params{}, fault("sector_size", "no proofs exist for sectors of %d bytes", sectorSize)
	}
	p := Params{Kind: kind, SectorSize: sectorSize, Tree: tree}
	switch kind {
	case Winning:
		p.Challenges, p.SectorsPerPartition = 1, winningChallenges
	case Window:
		p.Challenges, p.SectorsPerPartition = windowChallenges, windowSectors(sectorSize)
	default:
		return Params{}, fault("kind", "%v is not a proof of spacetime", kind)
	}
	return p, nil
}

// windowSectors is WINDOW_POST_SECTOR_COUNT in filecoin-proofs, constants.rs: as many as
// fit into the 2^27 constraints that a parameter set may have.
func windowSectors(sectorSize uint64) int {
	switch sectorSize {
	case 32 << 30:
		return 2349
	case 64 << 30:
		return 2300
	default:
		return 2
	}
}

// vanillaChallenges is the number of inclusion proofs in a sector's vanilla proof.
func (p Params) vanillaChallenges() int {
	if p.Kind == Winning {
		return p.SectorsPerPartition
	}
	return p.Challenges
}

// ParameterSet names the circuit's parameters, as files of them are named between "v28-"
// and the extension: the proof's name, the hasher and arities of the tree, and SHA-256 of
// the parameters' description (cache_identifier in storage-proofs-core,
// parameter_cache.rs; identifier in storage-proofs-post, fallback/vanilla.rs).
func (p Params) ParameterSet() string {
	description := fmt.Sprintf("FallbackPoSt::PublicParams{sector_size: %d, challenge_count: %d, sector_count: %d}",
		p.SectorSize, p.Challenges, p.SectorsPerPartition)
	return fmt.Sprintf("proof-of-spacetime-fallback-merkletree-poseidon_hasher-%s-%x",
		p.Tree, sha256.Sum256([]byte(description)))
}
