package prover

import (
	"context"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/bincode"
	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/params"
	"github.com/interlock-prover/interlock/prover/porep"
	"github.com/interlock-prover/interlock/prover/witness"
	"github.com/interlock-prover/interlock/shared"
)

// porepBlueprint is the circuit of a PoRep.
type porepBlueprint struct{ params porep.Params }

func porepBlueprintOf(r shared.CircuitRequest) (blueprint, error) {
	p, err := porep.ParamsFor(uint64(r.SectorSize), r.Partitions)
	if err != nil {
		return nil, err
	}
	return porepBlueprint{p}, nil
}

func (b porepBlueprint) set() params.Set {
	return params.Set{
		ID:         b.params.ParameterSet(),
		Kind:       shared.KindPoRep.String(),
		SectorSize: shared.SectorSize(b.params.SectorSize).String(),
		Partitions: b.params.SetupPartitions(),
	}
}

func (b porepBlueprint) compile() compiled { return porepCircuit{porep.NewCircuit(b.params)} }

type porepCircuit struct{ *porep.Circuit }

func (c porepCircuit) system() *constraint.System { return c.System }

// porepStatement is a decoded phase-1 output.
type porepStatement struct{ *porep.Statement }

func decodePoRep(ctx context.Context, r *shared.Request) (statement, error) {
	request := &porep.Request{Phase1: r.Vanilla[0], SectorSize: uint64(r.SectorSize), SectorNumber: r.SectorNumber, RegisteredProof: r.RegisteredProof}
	if r.MinerID != 0 {
		request.MinerID = &r.MinerID
	}
	s, err := porep.Decode(ctx, request)
	if err != nil {
		return nil, bincode.In("vanilla[0]", err)
	}
	return porepStatement{s}, nil
}

func (s porepStatement) blueprint() blueprint { return porepBlueprint{s.Params} }
func (s porepStatement) partitions() int      { return len(s.Partitions) }
func (s porepStatement) check(ctx context.Context) error {
	return bincode.In("vanilla[0]", s.Check(ctx))
}

func (s porepStatement) witness(ctx context.Context, c compiled, k int) (*witness.Witness, error) {
	circuit, ok := c.(porepCircuit)
	if !ok {
		return nil, fmt.Errorf("a PoRep statement with a circuit %T", c)
	}
	return circuit.Witness(ctx, s.Statement, k)
}

func (s porepStatement) publicInputs(k int) []fr.Element { return s.PublicInputs(k) }
