package prover

import (
	"context"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/params"
	"github.com/interlock-prover/interlock/prover/post"
	"github.com/interlock-prover/interlock/prover/witness"
	"github.com/interlock-prover/interlock/shared"
)

// postKinds are the kinds of the package post.
var postKinds = map[shared.Kind]post.Kind{
	shared.KindWinningPoSt: post.Winning,
	shared.KindWindowPoSt:  post.Window,
}

// postBlueprint is the circuit of a winning or window PoSt.
type postBlueprint struct{ params post.Params }

func postBlueprintOf(r shared.CircuitRequest) (blueprint, error) {
	p, err := post.ParamsFor(postKinds[r.Kind], uint64(r.SectorSize))
	if err != nil {
		return nil, err
	}
	return postBlueprint{p}, nil
}

func (b postBlueprint) set() params.Set {
	return params.Set{
		ID:         b.params.ParameterSet(),
		Kind:       b.params.Kind.String(),
		SectorSize: shared.SectorSize(b.params.SectorSize).String(),
	}
}

func (b postBlueprint) compile() compiled { return postCircuit{post.NewCircuit(b.params)} }

type postCircuit struct{ *post.Circuit }

func (c postCircuit) system() *constraint.System { return c.System }

// postStatement is a decoded winning or window PoSt.
type postStatement struct{ *post.Statement }

func decodePoSt(ctx context.Context, r *shared.Request) (statement, error) {
	s, err := post.Decode(ctx, &post.Request{
		Kind:         postKinds[r.Kind],
		SectorSize:   uint64(r.SectorSize),
		Randomness:   r.Randomness,
		APIVersion:   r.Version(),
		SectorNumber: r.SectorNumber,
		Partition:    r.Partition,
		Vanilla:      r.Vanilla,
	})
	if err != nil {
		return nil, err
	}
	return postStatement{s}, nil
}

func (s postStatement) blueprint() blueprint            { return postBlueprint{s.Params} }
func (s postStatement) partitions() int                 { return len(s.Partitions) }
func (s postStatement) check(ctx context.Context) error { return s.Check(ctx) }

func (s postStatement) witness(ctx context.Context, c compiled, k int) (*witness.Witness, error) {
	circuit, ok := c.(postCircuit)
	if !ok {
		return nil, fmt.Errorf("a %s statement with a circuit %T", s.Params.Kind, c)
	}
	return circuit.Witness(ctx, s.Partitions[k].Sectors)
}

func (s postStatement) publicInputs(k int) []fr.Element { return s.Partitions[k].PublicInputs() }
