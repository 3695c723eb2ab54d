package groth16

import (
	"fmt"
	"math/bits"
	"sync"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/witness"
)

// Circuit is what a device needs of a circuit: the constraint system and the
// numbers that follow from it. It is immutable and shared by all proofs.
type Circuit struct {
	System *constraint.System
	// Domain is the size of the evaluation domain: the power of two that has
	// room for all constraints and one more for each input.
	Domain int
	// Density says which variables have points in the queries A and B.
	Density *constraint.Density

	transforms func() *domain // of Domain, made on first use
}

// maxDomain is the largest domain that bellperson accepts; the scalar field has
// roots of unity for one twice as large.
const maxDomain = 1 << 31

// NewCircuit derives the Circuit of a constraint system.
func NewCircuit(s *constraint.System) (*Circuit, error) {
	// Setup and prover add input_i·0 = 0 for each input, which makes the
	// inputs' polynomials in A independent (bellperson's generator.rs and
	// prover.rs).
	size, err := DomainSize(s.NumConstraints() + s.NumInputs())
	if err != nil {
		return nil, err
	}
	return &Circuit{
		System: s, Domain: size, Density: s.Density(),
		transforms: sync.OnceValue(func() *domain { return newDomain(size) }),
	}, nil
}

// DomainSize is the smallest power of two that is at least n.
func DomainSize(n int) (int, error) {
	if n < 1 || n > maxDomain {
		return 0, fmt.Errorf("%d constraints: a domain has between 1 and %d", n, uint64(maxDomain))
	}
	return 1 << bits.Len(uint(n-1)), nil
}

// QueryLen is how many points query q of the circuit's proving key has.
func (c *Circuit) QueryLen(q Query) int {
	switch q {
	case QueryH:
		return c.Domain - 1
	case QueryL:
		return c.System.NumAux()
	case QueryA:
		return c.System.NumInputs() + popcount(c.Density.AAux)
	case QueryBG1, QueryBG2:
		return popcount(c.Density.BInputs) + popcount(c.Density.BAux)
	}
	return 0
}

// CheckKey returns an *IncompatibleError if the key is not one of the circuit.
func (c *Circuit) CheckKey(key Source) error {
	vk := key.VerifyingKey()
	if len(vk.IC) != c.System.NumInputs() {
		return &IncompatibleError{fmt.Sprintf("%s has %d inputs, the circuit %d", key.Name(), len(vk.IC), c.System.NumInputs())}
	}
	for q := range Query(NumQueries) {
		if got, want := key.Len(q), c.QueryLen(q); got != want {
			return &IncompatibleError{fmt.Sprintf("query %s of %s has %d points, the circuit needs %d", q, key.Name(), got, want)}
		}
	}
	// A key with delta at infinity would leak the witness (bellperson's
	// check against subversion).
	if vk.DeltaG1.IsInfinity() || vk.DeltaG2.IsInfinity() {
		return &IncompatibleError{fmt.Sprintf("delta of %s is at infinity", key.Name())}
	}
	return nil
}

// CheckWitness returns an *IncompatibleError if w is not a witness of c.
func (c *Circuit) CheckWitness(w *witness.Witness) error {
	l, want := w.Layout, c.System.Layout()
	if l != want && (l.NumAux() != want.NumAux() || l.NumFull() != want.NumFull()) ||
		len(w.Inputs) != want.NumInputs() || len(w.Full) != want.NumFull() || len(w.Bits) != witness.Words(want.NumAux()) {
		return &IncompatibleError{fmt.Sprintf("witness of %d inputs and %d auxiliary variables (%d full), circuit of %d and %d (%d full)",
			len(w.Inputs), l.NumAux(), len(w.Full), want.NumInputs(), want.NumAux(), want.NumFull())}
	}
	return nil
}

func popcount(bitmap []uint64) int {
	n := 0
	for _, w := range bitmap {
		n += bits.OnesCount64(w)
	}
	return n
}
