package groth16

import (
	"errors"
	"fmt"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

var errNoBlinding = errors.New("blinding was not drawn: use NewBlinding")

// Blinding is the pair r, s that makes a proof zero-knowledge, [Groth16,
// section 3.2]. Whoever knows it can learn about the witness. Its zero value
// is refused by Work.Finish.
type Blinding struct {
	r, s fr.Element
	set  bool
}

// NewBlinding draws r and s from the system's random source. One pair is for
// one proof.
func NewBlinding() (Blinding, error) {
	b := Blinding{set: true}
	if _, err := b.r.SetRandom(); err != nil {
		return Blinding{}, fmt.Errorf("drawing r: %w", err)
	}
	if _, err := b.s.SetRandom(); err != nil {
		return Blinding{}, fmt.Errorf("drawing s: %w", err)
	}
	return b, nil
}

// FixedBlinding is for tests that compare a proof byte for byte with a
// reference. It panics outside of test binaries.
func FixedBlinding(r, s fr.Element) Blinding {
	if !testing.Testing() {
		panic("groth16: fixed blinding outside of a test")
	}
	return Blinding{r: r, s: s, set: true}
}
