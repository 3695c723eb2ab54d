package groth16

import (
	"errors"
	"fmt"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
)

// ProofSizeBytes is the length of an encoded proof: A (48), B (96), C (48).
const ProofSizeBytes = 2*bls12381.SizeOfG1AffineCompressed + bls12381.SizeOfG2AffineCompressed

// ErrMalformedProof is wrapped by every error of ParseProof and ParseProofs.
var ErrMalformedProof = errors.New("malformed proof")

// Proof is a Groth16 proof, [Groth16, section 3.2].
type Proof struct {
	A bls12381.G1Affine
	B bls12381.G2Affine
	C bls12381.G1Affine
}

// Bytes encodes the proof as A, B, C, each compressed as Zcash does (big
// endian, three flag bits on top), which is bellperson's Proof::write.
func (p *Proof) Bytes() [ProofSizeBytes]byte {
	var out [ProofSizeBytes]byte
	a, b, c := p.A.Bytes(), p.B.Bytes(), p.C.Bytes()
	n := copy(out[:], a[:])
	n += copy(out[n:], b[:])
	copy(out[n:], c[:])
	return out
}

// ParseProof decodes one proof. It accepts nothing but what Bytes returns for
// points of the right subgroups: coordinates below the modulus, points on the
// curve, in the subgroup of prime order, and none at infinity.
func ParseProof(b []byte) (*Proof, error) {
	if len(b) != ProofSizeBytes {
		return nil, fmt.Errorf("%w: %d bytes instead of %d", ErrMalformedProof, len(b), ProofSizeBytes)
	}
	const (
		endA = bls12381.SizeOfG1AffineCompressed
		endB = endA + bls12381.SizeOfG2AffineCompressed
	)
	var p Proof
	// A slice of the compressed length makes SetBytes refuse uncompressed
	// points; it checks the flags, the curve and the subgroup.
	if _, err := p.A.SetBytes(b[:endA]); err != nil {
		return nil, fmt.Errorf("%w: A: %w", ErrMalformedProof, err)
	}
	if _, err := p.B.SetBytes(b[endA:endB]); err != nil {
		return nil, fmt.Errorf("%w: B: %w", ErrMalformedProof, err)
	}
	if _, err := p.C.SetBytes(b[endB:]); err != nil {
		return nil, fmt.Errorf("%w: C: %w", ErrMalformedProof, err)
	}
	for _, part := range []struct {
		name     string
		infinity bool
	}{{"A", p.A.IsInfinity()}, {"B", p.B.IsInfinity()}, {"C", p.C.IsInfinity()}} {
		if part.infinity {
			return nil, fmt.Errorf("%w: %s: point at infinity", ErrMalformedProof, part.name)
		}
	}
	return &p, nil
}

// ParseProofs decodes proofs written one after the other, as a request with
// several partitions has them.
func ParseProofs(b []byte) ([]Proof, error) {
	if len(b) == 0 || len(b)%ProofSizeBytes != 0 {
		return nil, fmt.Errorf("%w: %d bytes are no multiple of %d", ErrMalformedProof, len(b), ProofSizeBytes)
	}
	proofs := make([]Proof, 0, len(b)/ProofSizeBytes)
	for k := 0; len(b) > 0; k++ {
		p, err := ParseProof(b[:ProofSizeBytes])
		if err != nil {
			return nil, fmt.Errorf("partition %d: %w", k, err)
		}
		proofs = append(proofs, *p)
		b = b[ProofSizeBytes:]
	}
	return proofs, nil
}
