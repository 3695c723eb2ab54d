package groth16

import (
	"context"
	"fmt"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
)

// VerifyingKey is what a verifier needs of the parameters, and the few points
// that a prover needs beside the five queries. None is at infinity.
type VerifyingKey struct {
	AlphaG1 bls12381.G1Affine
	BetaG1  bls12381.G1Affine
	BetaG2  bls12381.G2Affine
	GammaG2 bls12381.G2Affine
	DeltaG1 bls12381.G1Affine
	DeltaG2 bls12381.G2Affine
	// IC[i] is ((beta·u_i + alpha·v_i + w_i)(tau) / gamma)·G1 for input i;
	// IC[0] belongs to the constant one.
	IC []bls12381.G1Affine
}

// NumPublicInputs is the number of public inputs, without the constant one.
func (vk *VerifyingKey) NumPublicInputs() int { return len(vk.IC) - 1 }

// Query names one of the five lists of points of a proving key, in the order
// in which parameter files hold them.
type Query uint8

// The queries. H is multiplied with the coefficients of the quotient
// polynomial, L with the auxiliary variables, A and B with those variables
// that occur in matrices A and B (inputs first, then auxiliary).
const (
	QueryH Query = iota
	QueryL
	QueryA
	QueryBG1
	QueryBG2
	NumQueries = iota
)

// String returns the name used in error messages.
func (q Query) String() string {
	switch q {
	case QueryH:
		return "H"
	case QueryL:
		return "L"
	case QueryA:
		return "A"
	case QueryBG1:
		return "B in G1"
	case QueryBG2:
		return "B in G2"
	}
	return fmt.Sprintf("Query(%d)", uint8(q))
}

// PointBytes is the uncompressed size of one point of the query.
func (q Query) PointBytes() int {
	if q == QueryBG2 {
		return bls12381.SizeOfG2AffineUncompressed
	}
	return bls12381.SizeOfG1AffineUncompressed
}

// Source is a proving key as a device reads it: by ranges, so that a key of
// tens of gigabytes streams through a small buffer. A parameter file is one
// (params.File), a key in memory another (ProvingKey).
//
// Methods may be called from several goroutines at once. Points are checked as
// far as their encoding goes (canonical, not at infinity), not for being on
// the curve.
type Source interface {
	// Name identifies the key in logs and errors.
	Name() string
	// VerifyingKey returns the key's verifying part; callers must not change it.
	VerifyingKey() *VerifyingKey
	// Len is the number of points of the query.
	Len(q Query) int
	// ReadG1 decodes points [from, from+len(dst)) of a query in G1.
	ReadG1(ctx context.Context, q Query, from int, dst []bls12381.G1Affine) error
	// ReadG2 decodes points [from, from+len(dst)) of QueryBG2.
	ReadG2(ctx context.Context, from int, dst []bls12381.G2Affine) error
	// ReadEncoded copies the encodings of points [from, from+len(dst)/PointBytes)
	// as files hold them: uncompressed, big endian, X before Y, in G2 the
	// imaginary coefficient before the real one.
	ReadEncoded(ctx context.Context, q Query, from int, dst []byte) error
}

// ProvingKey is a proving key in memory. It implements Source.
type ProvingKey struct {
	VK  *VerifyingKey
	H   []bls12381.G1Affine
	L   []bls12381.G1Affine
	A   []bls12381.G1Affine
	BG1 []bls12381.G1Affine
	BG2 []bls12381.G2Affine
}

var _ Source = (*ProvingKey)(nil)

// Name implements Source.
func (pk *ProvingKey) Name() string { return "key in memory" }

// VerifyingKey implements Source.
func (pk *ProvingKey) VerifyingKey() *VerifyingKey { return pk.VK }

// Len implements Source.
func (pk *ProvingKey) Len(q Query) int {
	if q == QueryBG2 {
		return len(pk.BG2)
	}
	return len(pk.g1(q))
}

func (pk *ProvingKey) g1(q Query) []bls12381.G1Affine {
	switch q {
	case QueryH:
		return pk.H
	case QueryL:
		return pk.L
	case QueryA:
		return pk.A
	case QueryBG1:
		return pk.BG1
	}
	return nil
}

// ReadG1 implements Source.
func (pk *ProvingKey) ReadG1(_ context.Context, q Query, from int, dst []bls12381.G1Affine) error {
	points := pk.g1(q)
	if err := CheckRange(q, len(points), from, len(dst)); err != nil {
		return err
	}
	copy(dst, points[from:])
	return nil
}

// ReadG2 implements Source.
func (pk *ProvingKey) ReadG2(_ context.Context, from int, dst []bls12381.G2Affine) error {
	if err := CheckRange(QueryBG2, len(pk.BG2), from, len(dst)); err != nil {
		return err
	}
	copy(dst, pk.BG2[from:])
	return nil
}

// ReadEncoded implements Source.
func (pk *ProvingKey) ReadEncoded(_ context.Context, q Query, from int, dst []byte) error {
	size := q.PointBytes()
	if len(dst)%size != 0 {
		return fmt.Errorf("buffer of %d bytes for points of %d", len(dst), size)
	}
	n := len(dst) / size
	if err := CheckRange(q, pk.Len(q), from, n); err != nil {
		return err
	}
	for i := range n {
		out := dst[i*size : (i+1)*size]
		if q == QueryBG2 {
			b := pk.BG2[from+i].RawBytes()
			copy(out, b[:])
		} else {
			b := pk.g1(q)[from+i].RawBytes()
			copy(out, b[:])
		}
	}
	return nil
}

// CheckRange returns an error if points [from, from+n) are not all among the
// length points of query q. Sources use it.
func CheckRange(q Query, length, from, n int) error {
	if from < 0 || n < 0 || from > length || n > length-from {
		return fmt.Errorf("points %d to %d of query %s, which has %d", from, from+n, q, length)
	}
	return nil
}
