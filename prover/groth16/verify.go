package groth16

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"slices"

	"github.com/consensys/gnark-crypto/ecc"
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// lines are the line functions of a Miller loop whose point in G2 is fixed.
type lines = [2][len(bls12381.LoopCounter) - 1]bls12381.LineEvaluationAff

// PreparedVerifyingKey is a verifying key with the pairing work that does not
// depend on the proof done once. It is immutable and may be shared.
type PreparedVerifyingKey struct {
	vk        *VerifyingKey
	alphaBeta bls12381.GT // e(alpha, beta)
	// Lines of -gamma and -delta: the order of the points given with them.
	gammaDeltaNeg []lines
}

// Prepare does the work shared by all verifications with the key. The key must
// not be changed afterwards.
func (vk *VerifyingKey) Prepare() (*PreparedVerifyingKey, error) {
	if len(vk.IC) == 0 {
		return nil, fmt.Errorf("verifying key without IC points")
	}
	for _, inf := range []bool{
		vk.AlphaG1.IsInfinity(), vk.BetaG1.IsInfinity(), vk.BetaG2.IsInfinity(),
		vk.GammaG2.IsInfinity(), vk.DeltaG1.IsInfinity(), vk.DeltaG2.IsInfinity(),
	} {
		if inf {
			return nil, fmt.Errorf("verifying key with a point at infinity")
		}
	}
	ab, err := bls12381.Pair([]bls12381.G1Affine{vk.AlphaG1}, []bls12381.G2Affine{vk.BetaG2})
	if err != nil {
		return nil, fmt.Errorf("pairing alpha and beta: %w", err)
	}
	var gammaNeg, deltaNeg bls12381.G2Affine
	gammaNeg.Neg(&vk.GammaG2)
	deltaNeg.Neg(&vk.DeltaG2)
	return &PreparedVerifyingKey{
		vk:            vk,
		alphaBeta:     ab,
		gammaDeltaNeg: []lines{bls12381.PrecomputeLines(gammaNeg), bls12381.PrecomputeLines(deltaNeg)},
	}, nil
}

// VerifyingKey returns the key that was prepared.
func (p *PreparedVerifyingKey) VerifyingKey() *VerifyingKey { return p.vk }

// Verify says whether the proof holds for the public inputs (without the
// leading one): e(A, B) = e(alpha, beta)·e(Σ x_i·IC_i, gamma)·e(C, delta),
// [Groth16, section 3.2]. The proof's points must be of the right subgroups,
// as ParseProof ensures. The error tells of wrong use, such as a wrong number
// of inputs.
func (p *PreparedVerifyingKey) Verify(public []fr.Element, proof *Proof) (bool, error) {
	if len(public) != p.vk.NumPublicInputs() {
		return false, fmt.Errorf("verifying: %d public inputs, the key has %d", len(public), p.vk.NumPublicInputs())
	}
	acc, err := p.foldInputs(public, nil)
	if err != nil {
		return false, err
	}
	ab, err := bls12381.MillerLoop([]bls12381.G1Affine{proof.A}, []bls12381.G2Affine{proof.B})
	if err != nil {
		return false, fmt.Errorf("verifying: %w", err)
	}
	got, err := p.finish(&ab, acc, &proof.C)
	if err != nil {
		return false, err
	}
	return got.Equal(&p.alphaBeta), nil
}

// finish returns e(A, B)·e(inputs, -gamma)·e(c, -delta), given the Miller loop
// ab of the first factor.
func (p *PreparedVerifyingKey) finish(ab *bls12381.GT, inputs, c *bls12381.G1Affine) (bls12381.GT, error) {
	// MillerLoopFixedQ scales the lines it is given in place.
	own := slices.Clone(p.gammaDeltaNeg)
	rest, err := bls12381.MillerLoopFixedQ([]bls12381.G1Affine{*inputs, *c}, own)
	if err != nil {
		return bls12381.GT{}, fmt.Errorf("verifying: %w", err)
	}
	return bls12381.FinalExponentiation(ab, &rest), nil
}

// foldInputs returns one·IC_0 + Σ public_i·IC_(i+1); nil stands for one = 1.
func (p *PreparedVerifyingKey) foldInputs(public []fr.Element, one *fr.Element) (*bls12381.G1Affine, error) {
	scalars := make([]fr.Element, 1, len(public)+1)
	if one == nil {
		scalars[0].SetOne()
	} else {
		scalars[0] = *one
	}
	scalars = append(scalars, public...)
	acc, err := new(bls12381.G1Affine).MultiExp(p.vk.IC, scalars, ecc.MultiExpConfig{})
	if err != nil {
		return nil, fmt.Errorf("verifying: summing the inputs: %w", err)
	}
	return acc, nil
}

// VerifyBatch says whether all proofs hold, each for its public inputs, at
// less than the price of single verifications: the equations of Verify are
// added up with random 128-bit weights (Zcash protocol specification, appendix
// B.2), so a batch with a wrong proof passes with probability 2^-128. Which of
// the proofs is wrong only Verify tells.
func (p *PreparedVerifyingKey) VerifyBatch(public [][]fr.Element, proofs []Proof) (bool, error) {
	if len(public) != len(proofs) || len(proofs) == 0 {
		return false, fmt.Errorf("verifying: %d proofs with inputs for %d", len(proofs), len(public))
	}
	if len(proofs) == 1 {
		return p.Verify(public[0], &proofs[0])
	}
	var (
		sum     fr.Element // Σ z_k
		inputs  = make([]fr.Element, p.vk.NumPublicInputs())
		weights = make([]fr.Element, len(proofs))
		as      = make([]bls12381.G1Affine, len(proofs))
		bs      = make([]bls12381.G2Affine, len(proofs))
		cs      = make([]bls12381.G1Affine, len(proofs))
		weight  [16]byte
		z       big.Int
	)
	for k := range proofs {
		if len(public[k]) != len(inputs) {
			return false, fmt.Errorf("verifying: proof %d: %d public inputs, the key has %d", k, len(public[k]), len(inputs))
		}
		if _, err := rand.Read(weight[:]); err != nil {
			return false, fmt.Errorf("verifying: drawing weights: %w", err)
		}
		z.SetBytes(weight[:])
		weights[k].SetBigInt(&z)
		sum.Add(&sum, &weights[k])
		for i := range inputs {
			var t fr.Element
			t.Mul(&weights[k], &public[k][i])
			inputs[i].Add(&inputs[i], &t)
		}
		as[k].ScalarMultiplication(&proofs[k].A, &z)
		bs[k] = proofs[k].B
		cs[k] = proofs[k].C
	}
	acc, err := p.foldInputs(inputs, &sum)
	if err != nil {
		return false, err
	}
	c, err := new(bls12381.G1Affine).MultiExp(cs, weights, ecc.MultiExpConfig{})
	if err != nil {
		return false, fmt.Errorf("verifying: summing C: %w", err)
	}
	ab, err := bls12381.MillerLoop(as, bs)
	if err != nil {
		return false, fmt.Errorf("verifying: %w", err)
	}
	got, err := p.finish(&ab, acc, c)
	if err != nil {
		return false, err
	}
	var want bls12381.GT
	want.Exp(p.alphaBeta, sum.BigInt(&z))
	return got.Equal(&want), nil
}
