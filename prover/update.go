package prover

import (
	"context"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/params"
	"github.com/interlock-prover/interlock/prover/update"
	"github.com/interlock-prover/interlock/prover/witness"
	"github.com/interlock-prover/interlock/shared"
)

// updateBlueprint is the circuit of a sector update.
type updateBlueprint struct{ params update.Params }

func updateBlueprintOf(r shared.CircuitRequest) (blueprint, error) {
	p, err := update.ParamsFor(uint64(r.SectorSize))
	if err != nil {
		return nil, err
	}
	return updateBlueprint{p}, nil
}

func (b updateBlueprint) set() params.Set {
	return params.Set{
		ID:         b.params.ParameterSet(),
		Kind:       shared.KindUpdate.String(),
		SectorSize: shared.SectorSize(b.params.SectorSize).String(),
	}
}

func (b updateBlueprint) compile() compiled { return updateCircuit{update.NewCircuit(b.params)} }

type updateCircuit struct{ *update.Circuit }

func (c updateCircuit) system() *constraint.System { return c.System }

// updateStatement is a decoded sector update.
type updateStatement struct{ *update.Statement }

func decodeUpdate(ctx context.Context, r *shared.Request) (statement, error) {
	s, err := update.Decode(ctx, &update.Request{
		SectorSize: uint64(r.SectorSize),
		CommROld:   r.CommROld,
		CommRNew:   r.CommRNew,
		CommDNew:   r.CommDNew,
		Vanilla:    r.Vanilla,
	})
	if err != nil {
		return nil, err
	}
	return updateStatement{s}, nil
}

func (s updateStatement) blueprint() blueprint            { return updateBlueprint{s.Params} }
func (s updateStatement) partitions() int                 { return len(s.Partitions) }
func (s updateStatement) check(ctx context.Context) error { return s.Check(ctx) }

func (s updateStatement) witness(ctx context.Context, c compiled, k int) (*witness.Witness, error) {
	circuit, ok := c.(updateCircuit)
	if !ok {
		return nil, fmt.Errorf("a statement of a sector update with a circuit %T", c)
	}
	return circuit.Witness(ctx, &s.Partitions[k])
}

func (s updateStatement) publicInputs(k int) []fr.Element { return s.Partitions[k].PublicInputs() }
