//go:build !amd64

package msm

import bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"

const vectorsSupported = false

// Only the scalar adders exist here.

func newG1VectorAdder(maxPairs int) adder[bls12381.G1Affine] { return newG1ScalarAdder(maxPairs) }

func newG2VectorAdder(maxPairs int) adder[bls12381.G2Affine] { return newG2ScalarAdder(maxPairs) }
