package groth16_test

import (
	"bytes"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/groth16"
)

func generatorProof() groth16.Proof {
	_, _, g1, g2 := bls12381.Generators()
	return groth16.Proof{A: g1, B: g2, C: g1}
}

// Decoding accepts canonical encodings of finite points of the right subgroup
// only: everything else that decodes to the same or to no point is malleable or
// worse.
func TestParseProofIsStrict(t *testing.T) {
	p := generatorProof()
	good := p.Bytes()
	parsed, err := groth16.ParseProof(good[:])
	require.NoError(t, err)
	require.Equal(t, p, *parsed)

	notInG1 := bls12381.GeneratePointNotInG1(fp.NewElement(5))
	var outsideG1 bls12381.G1Affine
	outsideG1.FromJacobian(&notInG1)
	require.True(t, outsideG1.IsOnCurve())
	outsideBytes := outsideG1.Bytes()
	notInG2 := bls12381.GeneratePointNotInG2(bls12381.E2{A0: fp.NewElement(5), A1: fp.NewElement(7)})
	var outsideG2 bls12381.G2Affine
	outsideG2.FromJacobian(&notInG2)
	require.True(t, outsideG2.IsOnCurve())
	outsideG2Bytes := outsideG2.Bytes()
	uncompressed := p.A.RawBytes()
	// X + p still fits in 381 bits for small X.
	modulus := fp.Modulus().Bytes()

	for _, c := range []struct {
		name string
		at   int
		with []byte
	}{
		{"A at infinity", 0, append([]byte{0xc0}, make([]byte, 47)...)},
		{"B at infinity", 48, append([]byte{0xc0}, make([]byte, 95)...)},
		{"C at infinity", 144, append([]byte{0xc0}, make([]byte, 47)...)},
		{"A at infinity with a sign", 0, append([]byte{0xe0}, make([]byte, 47)...)},
		{"A not compressed", 0, uncompressed[:48]},
		{"C not compressed", 144, uncompressed[:48]},
		{"A off the curve", 0, append([]byte{0x80}, make([]byte, 46+1)...)},
		{"A outside the subgroup", 0, outsideBytes[:]},
		{"B outside the subgroup", 48, outsideG2Bytes[:]},
		{"C outside the subgroup", 144, outsideBytes[:]},
		{"A not canonical", 0, append([]byte{modulus[0] | 0x80}, modulus[1:]...)},
		{"B not canonical", 48, append([]byte{modulus[0] | 0x80}, modulus[1:]...)},
		{"B not canonical in its real part", 96, modulus},
	} {
		b := bytes.Clone(good[:])
		copy(b[c.at:], c.with)
		_, err := groth16.ParseProof(b)
		require.ErrorIs(t, err, groth16.ErrMalformedProof, c.name)
	}
	for _, n := range []int{0, 1, 191, 193, 384} {
		_, err := groth16.ParseProof(make([]byte, n))
		require.ErrorIs(t, err, groth16.ErrMalformedProof, "%d bytes", n)
	}
	_, err = groth16.ParseProofs(nil)
	require.ErrorIs(t, err, groth16.ErrMalformedProof)
	two := append(bytes.Clone(good[:]), good[:]...)
	two[192] ^= 0x80
	_, err = groth16.ParseProofs(two)
	require.ErrorContains(t, err, "partition 1")
}

func FuzzParseProof(f *testing.F) {
	p := generatorProof()
	good := p.Bytes()
	f.Add(good[:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := groth16.ParseProof(b)
		if err != nil {
			require.ErrorIs(t, err, groth16.ErrMalformedProof)
			return
		}
		again := p.Bytes()
		require.Equal(t, b, again[:])
	})
}
