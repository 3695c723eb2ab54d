package prover

import (
	"context"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/params"
	"github.com/interlock-prover/interlock/prover/witness"
	"github.com/interlock-prover/interlock/shared"
)

// blueprint says which circuit is meant, before it is compiled. Blueprints are
// comparable: equal ones mean the same circuit.
type blueprint interface {
	// set names the circuit's parameters.
	set() params.Set
	// compile makes the constraint system and whatever the kind's witnesses need
	// beside it.
	compile() compiled
}

// compiled is a kind's own form of its circuit.
type compiled interface {
	system() *constraint.System
}

// statement is a request that has been decoded and whose form is right.
type statement interface {
	blueprint() blueprint
	partitions() int
	// check compares all hashes with the commitments.
	check(ctx context.Context) error
	// witness assigns the variables of partition k in the circuit of blueprint.
	witness(ctx context.Context, c compiled, k int) (*witness.Witness, error)
	// publicInputs are those of partition k, without the constant one.
	publicInputs(k int) []fr.Element
}

// decode reads a request of any kind.
func decode(ctx context.Context, r *shared.Request) (statement, error) {
	switch r.Kind {
	case shared.KindWinningPoSt, shared.KindWindowPoSt:
		return decodePoSt(ctx, r)
	case shared.KindPoRep:
		return decodePoRep(ctx, r)
	case shared.KindUpdate:
		return decodeUpdate(ctx, r)
	default:
		return nil, unsupported(r.Kind)
	}
}

// blueprintOf is the circuit of a kind and size.
func blueprintOf(r shared.CircuitRequest) (blueprint, error) {
	switch r.Kind {
	case shared.KindWinningPoSt, shared.KindWindowPoSt:
		return postBlueprintOf(r)
	case shared.KindPoRep:
		return porepBlueprintOf(r)
	case shared.KindUpdate:
		return updateBlueprintOf(r)
	default:
		return nil, unsupported(r.Kind)
	}
}

func unsupported(k shared.Kind) error {
	return &shared.InvalidRequestError{Field: "kind", Reason: fmt.Sprintf("this prover does not prove %s", k)}
}
