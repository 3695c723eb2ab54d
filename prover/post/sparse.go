package post

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"runtime"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/gadget"
	"github.com/interlock-prover/interlock/prover/merkle"
	"github.com/interlock-prover/interlock/prover/poseidon"
)

// Sparse describes sectors that nobody sealed, for tests and benchmarks: their replicas are
// zero but for the leaves that are challenged. Nothing in a proof shows that, so their
// vanilla proofs pass all checks and satisfy the circuit completely.
type Sparse struct {
	Kind       Kind
	SectorSize uint64 // bytes
	Sectors    int    // window: any number; winning: 1
	Seed       uint64 // requests of different seeds are different
}

// Request makes the sectors' vanilla proofs for the API version in use.
func (sp *Sparse) Request(ctx context.Context) (*Request, error) {
	p, err := ParamsFor(sp.Kind, sp.SectorSize)
	if err != nil {
		return nil, err
	}
	version, err := ParseAPIVersion(sp.Kind, "")
	if err != nil {
		return nil, err
	}
	if sp.Kind == Winning && sp.Sectors != 1 || sp.Sectors < 1 {
		return nil, fault("sectors", "is %d, which no %s has", sp.Sectors, sp.Kind)
	}
	randomness := sp.random("randomness", 0, 0)
	randomness[31] &= 0x3f
	req := &Request{
		Kind: sp.Kind, SectorSize: sp.SectorSize, Randomness: randomness[:],
		Vanilla: make([][]byte, sp.Sectors),
	}
	return req, constraint.Parallel(ctx, sp.Sectors, 1, runtime.GOMAXPROCS(0), func(i, _ int) error {
		number := uint64(i + 1) // in ascending order, so that number i is at place i
		s := sp.sector(p, number, sectorChallenges(p, version, &randomness, number, uint64(i)))
		req.Vanilla[i] = encode(p, s)
		return nil
	})
}

func (sp *Sparse) sector(p Params, number uint64, challenges []uint64) *SectorProof {
	leaves := map[uint64]fr.Element{}
	for _, leaf := range challenges {
		leaves[leaf] = gadget.HashElement(sp.random("leaf", number, leaf))
	}
	var empty fr.Element
	tree := merkle.NewSparse(p.Tree, empty, leaves, poseidon.Hash)
	s := &SectorProof{
		SectorID:  number,
		CommC:     gadget.HashElement(sp.random("comm_c", number, 0)),
		CommRLast: tree.Root(),
	}
	s.CommR = poseidon.Hash([]fr.Element{s.CommC, s.CommRLast})
	for _, leaf := range challenges {
		s.Inclusions = append(s.Inclusions, tree.Prove(leaf))
	}
	return s
}

// random is a value that depends on the seed and on what it is for.
func (sp *Sparse) random(what string, i, j uint64) [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "sparse sectors %d: %s %d %d", sp.Seed, what, i, j))
}

// encode is the bincode form of a vanilla proof, which DecodeSectorProof reads.
func encode(p Params, s *SectorProof) (out []byte) {
	element := func(e fr.Element) {
		var b [fr.Bytes]byte
		fr.LittleEndian.PutElement(&b, e)
		out = append(out, b[:]...)
	}
	out = binary.LittleEndian.AppendUint64(out, s.SectorID)
	element(s.CommR)
	out = binary.LittleEndian.AppendUint64(out, 1)
	out = binary.LittleEndian.AppendUint64(out, uint64(len(s.Inclusions)))
	for i := range s.Inclusions {
		out = s.Inclusions[i].Append(out, p.Tree)
	}
	element(s.CommC)
	element(s.CommRLast)
	return out
}
