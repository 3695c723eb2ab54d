package post

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/interlock-prover/interlock/prover/bincode"
	"github.com/interlock-prover/interlock/prover/constraint"
)

// Request asks for a proof of spacetime.
type Request struct {
	Kind         Kind
	SectorSize   uint64   // bytes
	Randomness   []byte   // 32 bytes, below the field's modulus
	APIVersion   string   // see ParseAPIVersion
	SectorNumber *uint64  // winning, if known: the sector that must be proven
	Partition    *uint32  // window: Vanilla are the sectors of this partition alone
	Vanilla      [][]byte // a bincode vanilla proof for each sector, in any order
}

// Statement is a request whose form, fields and challenges are right. Check does the rest.
type Statement struct {
	Params     Params
	Partitions []Partition

	vanilla []*SectorProof // as the request has them
}

// Partition is the instance of the circuit that one Groth16 proof is about.
type Partition struct {
	Index   int            // among the partitions of the whole proof
	Sectors []*SectorProof // Params.SectorsPerPartition; the last ones may be the same
}

// Decode reads a request and checks all of it that needs no tree's hashes: form, sizes,
// field elements, duplicate sectors, and whether the leaves are those that randomness and
// sector numbers demand. What is wrong is a *FieldError.
func Decode(ctx context.Context, req *Request) (*Statement, error) {
	params, err := ParamsFor(req.Kind, req.SectorSize)
	if err != nil {
		return nil, err
	}
	version, err := ParseAPIVersion(req.Kind, req.APIVersion)
	if err != nil {
		return nil, err
	}
	randomness, err := checkRandomness(req.Randomness)
	if err != nil {
		return nil, err
	}
	if err := checkCounts(params, req); err != nil {
		return nil, err
	}

	vanilla := make([]*SectorProof, len(req.Vanilla))
	err = constraint.Lowest(ctx, len(vanilla), func(i int) (err error) {
		vanilla[i], err = DecodeSectorProof(params, req.Vanilla[i])
		return bincode.In(vanillaField(i), err)
	})
	if err != nil {
		return nil, err
	}
	if n := req.SectorNumber; n != nil && vanilla[0].SectorID != *n {
		return nil, fault(vanillaField(0)+".sector_id", "is %d, not %d", vanilla[0].SectorID, *n)
	}

	// order has the sectors' places in vanilla, by ascending sector number.
	order := make([]int, len(vanilla))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(vanilla[i].SectorID, vanilla[j].SectorID) })
	for k := 1; k < len(order); k++ {
		if i, j := order[k-1], order[k]; vanilla[i].SectorID == vanilla[j].SectorID {
			return nil, fault(vanillaField(j)+".sector_id", "is %d, as in %s", vanilla[j].SectorID, vanillaField(i))
		}
	}

	first := uint64(0) // sectors in partitions before these
	if req.Partition != nil {
		first = uint64(*req.Partition) * uint64(params.SectorsPerPartition)
	}
	err = constraint.Lowest(ctx, len(order), func(k int) error {
		i := order[k]
		return bincode.In(vanillaField(i), checkChallenges(vanilla[i],
			sectorChallenges(params, version, &randomness, vanilla[i].SectorID, first+uint64(k))))
	})
	if err != nil {
		return nil, err
	}

	s := &Statement{Params: params, vanilla: vanilla}
	if params.Kind == Winning {
		s.Partitions = []Partition{{Sectors: unroll(vanilla[0])}}
		return s, nil
	}
	for from := 0; from < len(order); from += params.SectorsPerPartition {
		part := Partition{Index: int(first/uint64(params.SectorsPerPartition)) + len(s.Partitions)}
		for k := range params.SectorsPerPartition {
			part.Sectors = append(part.Sectors, vanilla[order[min(from+k, len(order)-1)]])
		}
		s.Partitions = append(s.Partitions, part)
	}
	return s, nil
}

// checkCounts checks the number of vanilla proofs, and the fields that one kind alone has.
func checkCounts(p Params, req *Request) error {
	n := len(req.Vanilla)
	switch {
	case p.Kind == Winning && n != 1:
		return fault("vanilla", "has %d vanilla proofs; a winning PoSt is of one sector", n)
	case p.Kind == Winning && req.Partition != nil:
		return fault("partition", "is given, but a winning PoSt has one partition only")
	case n == 0:
		return fault("vanilla", "has no vanilla proofs")
	case p.Kind == Window && req.SectorNumber != nil:
		return fault("sector_number", "is given, but a window PoSt is of the sectors that its vanilla proofs name")
	case req.Partition != nil && n > p.SectorsPerPartition:
		return fault("vanilla", "has %d vanilla proofs; a partition has %d sectors", n, p.SectorsPerPartition)
	}
	return nil
}

// checkChallenges checks that the proven leaves are the challenged ones.
func checkChallenges(s *SectorProof, challenges []uint64) error {
	for i, want := range challenges {
		if got := s.Inclusions[i].Position(); got != want {
			return fault(inclusionField(i),
				"proves leaf %d, but randomness, sector number %d and API version demand leaf %d", got, s.SectorID, want)
		}
	}
	return nil
}

// unroll makes a sector of each challenge, as winning PoSt's circuit has them
// (single_partition_vanilla_proofs in filecoin-proofs, api/post_util.rs).
func unroll(s *SectorProof) []*SectorProof {
	sectors := make([]*SectorProof, len(s.Inclusions))
	for i := range sectors {
		one := *s
		one.Inclusions = s.Inclusions[i : i+1]
		sectors[i] = &one
	}
	return sectors
}

// Check computes all hashes of a statement on all cores, and compares them with the
// commitments. What is wrong is a *FieldError; after that, or when ctx is done, it returns
// as soon as the paths in hand are finished.
func (s *Statement) Check(ctx context.Context) error {
	n := s.Params.vanillaChallenges()
	return constraint.Lowest(ctx, n*len(s.vanilla), func(k int) error {
		sector, i := s.vanilla[k/n], k%n
		err := error(nil)
		if i == 0 {
			err = sector.checkRelation()
		}
		if err == nil {
			err = sector.checkInclusion(i)
		}
		return bincode.In(vanillaField(k/n), err)
	})
}

func vanillaField(i int) string { return fmt.Sprintf("vanilla[%d]", i) }
