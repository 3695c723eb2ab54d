package params

import (
	"errors"
	"fmt"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
)

const (
	g1Bytes    = bls12381.SizeOfG1AffineUncompressed
	g2Bytes    = bls12381.SizeOfG2AffineUncompressed
	countBytes = 4

	// flags are the three top bits of an encoding: compressed, infinity, sign.
	// A finite uncompressed point has none of them.
	flags = 0b111 << 5
	// infinity is the flag of the point at infinity.
	infinity = 0b010 << 5
)

var (
	errInfinity   = errors.New("point at infinity")
	errFlags      = errors.New("flag bits of another encoding")
	errNotOnCurve = errors.New("not on the curve")
	errNotInGroup = errors.New("not in the subgroup of prime order")
)

// checkFlags accepts finite uncompressed points only.
func checkFlags(top byte) error {
	switch top & flags {
	case 0:
		return nil
	case infinity:
		return errInfinity
	}
	return errFlags
}

// decodeG1 decodes a finite point. Coordinates must be below the modulus;
// whether the point is on the curve is not looked at.
func decodeG1(p *bls12381.G1Affine, b []byte) error {
	err := checkFlags(b[0])
	if err != nil {
		return err
	}
	if p.X, err = coordinate(b[0:]); err != nil {
		return fmt.Errorf("coordinate X: %w", err)
	}
	if p.Y, err = coordinate(b[48:]); err != nil {
		return fmt.Errorf("coordinate Y: %w", err)
	}
	if p.IsInfinity() { // gnark-crypto's infinity is (0, 0), which is no point
		return errNotOnCurve
	}
	return nil
}

// decodeG2 is decodeG1 for G2. Imaginary coefficients come first.
func decodeG2(p *bls12381.G2Affine, b []byte) error {
	err := checkFlags(b[0])
	if err != nil {
		return err
	}
	for i, c := range [...]struct {
		name string
		to   *fp.Element
	}{{"X", &p.X.A1}, {"X", &p.X.A0}, {"Y", &p.Y.A1}, {"Y", &p.Y.A0}} {
		if *c.to, err = coordinate(b[i*fp.Bytes:]); err != nil {
			return fmt.Errorf("coordinate %s: %w", c.name, err)
		}
	}
	if p.IsInfinity() {
		return errNotOnCurve
	}
	return nil
}

func coordinate(b []byte) (fp.Element, error) {
	return fp.BigEndian.Element((*[fp.Bytes]byte)(b))
}

// checkG1 is decodeG1 with the checks of a curious reader: on the curve and in
// the subgroup (the endomorphism test of M. Scott, "A note on group membership
// tests for G1, G2 and GT on BLS pairing-friendly curves", ePrint 2021/1130).
func checkG1(p *bls12381.G1Affine, b []byte) error {
	if err := decodeG1(p, b); err != nil {
		return err
	}
	if !p.IsOnCurve() {
		return errNotOnCurve
	}
	if !p.IsInSubGroup() {
		return errNotInGroup
	}
	return nil
}

// checkG2 is checkG1 for G2.
func checkG2(p *bls12381.G2Affine, b []byte) error {
	if err := decodeG2(p, b); err != nil {
		return err
	}
	if !p.IsOnCurve() {
		return errNotOnCurve
	}
	if !p.IsInSubGroup() {
		return errNotInGroup
	}
	return nil
}
