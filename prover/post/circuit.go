package post

import (
	"context"
	"fmt"
	"runtime"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/gadget"
	"github.com/interlock-prover/interlock/prover/witness"
)

// Template names; witnesses are written by instance of these.
const (
	sectorTemplate    = "post-sector"
	inclusionTemplate = "post-inclusion"
)

// Circuit is the constraint system of one partition: the fallback PoSt circuit
// of storage-proofs-post (fallback/circuit.rs), the same for winning and window
// PoSt but for its counts.
type Circuit struct {
	Params Params
	System *constraint.System

	sectors    []witness.Position // where each sector's variables begin
	inclusions []witness.Position // where each inclusion's begin, sector after sector
}

// NewCircuit compiles the circuit of p.
func NewCircuit(p Params) *Circuit {
	b := constraint.NewBuilder()
	arities := p.Tree.Arities()
	for range p.SectorsPerPartition {
		b.Call(sectorTemplate, nil, func(b *constraint.Builder, _ []constraint.Var) ([]constraint.Var, any) {
			sector(b, arities, p.Challenges)
			return nil, nil
		})
	}
	s := b.Finish()
	return &Circuit{
		Params: p, System: s,
		sectors:    s.Positions(sectorTemplate),
		inclusions: s.Positions(inclusionTemplate),
	}
}

// sector adds one sector: its three commitments, of which comm_r is public, the
// relation comm_r = H(comm_c, comm_r_last), and the inclusion of each challenged
// leaf under comm_r_last (Sector::synthesize).
func sector(b *constraint.Builder, arities []int, challenges int) {
	commRLast := b.Alloc()
	commC := b.Alloc()
	commR := b.Alloc()
	gadget.Inputize(b, commR)
	gadget.Equal(b, commR, gadget.Poseidon(b, []constraint.Var{commC, commRLast}))
	for range challenges {
		b.Call(inclusionTemplate, []constraint.Var{commRLast},
			func(b *constraint.Builder, ports []constraint.Var) ([]constraint.Var, any) {
				inclusion(b, arities, ports[0])
				return nil, nil
			})
	}
}

// inclusion adds a leaf and its path to root. The leaf's position, packed from
// the path's index bits, is a public input (PoRCircuit::synthesize in
// storage-proofs-core, with a private root).
func inclusion(b *constraint.Builder, arities []int, root constraint.Var) {
	node := b.Alloc()
	var position []constraint.Var
	for _, arity := range arities {
		var index []constraint.Var
		node, index = gadget.MerkleStep(b, arity, node)
		position = append(position, index...)
	}
	gadget.PackInput(b, position)
	gadget.Equal(b, node, root)
}

// Witness assigns all variables of one partition. sectors are its sectors, as
// many as Params.SectorsPerPartition, whose proofs have been checked. It works
// on all cores, inclusion by inclusion.
func (c *Circuit) Witness(ctx context.Context, sectors []*SectorProof) (*witness.Witness, error) {
	if len(sectors) != c.Params.SectorsPerPartition {
		return nil, fmt.Errorf("%d sectors for a partition of %d", len(sectors), c.Params.SectorsPerPartition)
	}
	w := witness.New(c.System.Layout())
	for i, s := range sectors {
		wr := witness.NewWriter(w, c.sectors[i])
		wr.Full(&s.CommRLast)
		wr.Full(&s.CommC)
		wr.Full(&s.CommR)
		wr.Input(&s.CommR)
		gadget.WritePoseidon(wr, []fr.Element{s.CommC, s.CommRLast})
		wr.Close()
	}
	n := c.Params.Challenges
	err := constraint.Parallel(ctx, len(c.inclusions), 1, runtime.GOMAXPROCS(0), func(from, to int) error {
		for k := from; k < to; k++ {
			wr := witness.NewWriter(w, c.inclusions[k])
			writeInclusion(wr, &sectors[k/n].Inclusions[k%n])
			wr.Close()
		}
		return nil
	})
	if err != nil {
		w.Free()
		return nil, err
	}
	return w, nil
}

// writeInclusion writes the values of the variables that inclusion makes.
func writeInclusion(w *witness.Writer, p *Inclusion) {
	w.Full(&p.Leaf)
	node := p.Leaf
	for i := range p.Path {
		step := &p.Path[i]
		node = gadget.WriteMerkleStep(w, &node, step.Index, step.Siblings)
	}
	var position fr.Element
	position.SetUint64(p.Position())
	w.Input(&position)
}
