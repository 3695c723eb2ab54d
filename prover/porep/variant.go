package porep

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Variant is the way in which a sector is sealed and its challenges are chosen. The circuit
// is the same for all.
type Variant uint8

const (
	V1             Variant = iota // 1.0: a graph that does not reach all nodes of 64 GiB
	V1_1                          // 1.1
	Synthetic                     // 1.1 with challenges out of a set known before the seed (FIP-0059)
	NonInteractive                // 1.2 without a seed from the chain (FIP-0092)
)

// suffixes end the names of registered proofs (filecoin-proofs-api, RegisteredSealProof).
var suffixes = [...]string{
	V1:             "",
	V1_1:           "_1",
	Synthetic:      "_1_Feat_SyntheticPoRep",
	NonInteractive: "_2_Feat_NonInteractivePoRep",
}

func (v Variant) String() string {
	switch v {
	case V1:
		return "1.0"
	case V1_1:
		return "1.1"
	case Synthetic:
		return "synthetic"
	case NonInteractive:
		return "non-interactive"
	default:
		return fmt.Sprintf("Variant(%d)", uint8(v))
	}
}

// sectorSizes are the sizes that registered proofs exist for, by name. Of those, number is
// the place among the sizes that the API registers; the others are for tests, and use the
// number of the smallest.
var sectorSizes = []struct {
	name   string
	bytes  uint64
	number uint64
}{
	{"2KiB", 2 << 10, 0},
	{"8MiB", 8 << 20, 1},
	{"512MiB", 512 << 20, 2},
	{"32GiB", 32 << 30, 3},
	{"64GiB", 64 << 30, 4},
	{"4KiB", 4 << 10, 0},
	{"16KiB", 16 << 10, 0},
	{"32KiB", 32 << 10, 0},
}

const registeredSizes = 5

// shapeName is the name of a sector size in phase-1 outputs: StackedDrg32GiBV1.
func shapeName(size string) string { return "StackedDrg" + size + "V1" }

// parseRegisteredProof takes the name of a registered proof apart.
func parseRegisteredProof(name string) (sectorSize uint64, v Variant, ok bool) {
	for _, s := range sectorSizes {
		suffix, found := strings.CutPrefix(name, shapeName(s.name))
		if !found {
			continue
		}
		for v, known := range suffixes {
			if suffix == known {
				return s.bytes, Variant(v), true
			}
		}
	}
	return 0, 0, false
}

// RegisteredProof is the name of the registered proof of a sector size in bytes and a
// variant, such as StackedDrg32GiBV1_1.
func RegisteredProof(sectorSize uint64, v Variant) string {
	return shapeOf(sectorSize) + suffixes[v]
}

// shapeOf is the name of the shape of a sector size that exists.
func shapeOf(sectorSize uint64) string {
	for _, s := range sectorSizes {
		if s.bytes == sectorSize {
			return shapeName(s.name)
		}
	}
	panic(fmt.Sprintf("porep: no sectors of %d bytes", sectorSize))
}

// registeredNumber is the number of the registered proof of a sector size that exists.
func registeredNumber(sectorSize uint64, v Variant) uint64 {
	for _, s := range sectorSizes {
		if s.bytes == sectorSize {
			return uint64(v)*registeredSizes + s.number
		}
	}
	panic(fmt.Sprintf("porep: no sectors of %d bytes", sectorSize))
}

// porepID is the id that the graph and replica ids depend on: the registered proof's number
// and a nonce of zero (porep_id in filecoin-proofs-api, registry.rs).
func porepID(sectorSize uint64, v Variant) (id [32]byte) {
	binary.LittleEndian.PutUint64(id[:], registeredNumber(sectorSize, v))
	return id
}
