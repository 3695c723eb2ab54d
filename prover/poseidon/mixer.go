package poseidon

import (
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// The modulus, lowest word first, and -1/modulus mod 2^64.
const (
	q0      = 0xffffffff00000001
	q1      = 0x53bda402fffe5bfe
	q2      = 0x3339d80809a1d805
	q3      = 0x73eda753299d7d48
	qInvNeg = 0xfffffffeffffffff
)

// mixer multiplies a state by the MDS matrix without field multiplications. The
// entries are 1/(i+j+t); times L = lcm(t, ..., 3t-2) they are whole numbers below 2^44,
// and depend on i+j alone. So a product with one costs four word multiplications
// instead of the 36 of a field multiplication, and a sum of t of them fits in five
// words, which one Montgomery step brings back to four. That step divides by 2^64:
// mixing gives lambda * vM, lambda = L / 2^64, and the powers of lambda are taken out
// when a value is needed: of all elements after a full round, of element 0 alone in
// partial rounds.
type mixer struct {
	entry [2*maxWidth - 1]uint64 // L/(k+t) at k = i+j
	up    []fr.Element           // lambda^r
	down  []fr.Element           // lambda^-r
}

func newMixer(t, partialRounds int) mixer {
	l := uint64(1)
	for k := uint64(t); k <= uint64(3*t-2); k++ {
		l *= k / gcd(l, k)
	}
	var m mixer
	for k := range 2*t - 1 {
		m.entry[k] = l / uint64(k+t)
	}
	var lambda, inverse, word fr.Element
	lambda.SetUint64(1 << 32)
	word.Square(&lambda)
	lambda.SetUint64(l)
	lambda.Div(&lambda, &word)
	inverse.Inverse(&lambda)

	m.up = make([]fr.Element, partialRounds+2)
	m.down = make([]fr.Element, partialRounds+2)
	m.up[0].SetOne()
	m.down[0].SetOne()
	for r := 1; r < len(m.up); r++ {
		m.up[r].Mul(&m.up[r-1], &lambda)
		m.down[r].Mul(&m.down[r-1], &inverse)
	}
	return m
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// column sets out to lambda * (vM)[j] for the state v of width t.
func (m *mixer) column(out *fr.Element, v *[maxWidth]fr.Element, t, j int) {
	var a0, a1, a2, a3, a4, c uint64
	entry := m.entry[j : j+t]
	for i := range v[:len(entry)] {
		e, x := entry[i], &v[i]
		h0, l0 := bits.Mul64(x[0], e)
		h1, l1 := bits.Mul64(x[1], e)
		h2, l2 := bits.Mul64(x[2], e)
		h3, l3 := bits.Mul64(x[3], e)
		// The top words are below 2^44, so a carry does not overflow them.
		l1, c = bits.Add64(l1, h0, 0)
		l2, c = bits.Add64(l2, h1, c)
		l3, c = bits.Add64(l3, h2, c)
		h3, _ = bits.Add64(h3, 0, c)
		a0, c = bits.Add64(a0, l0, 0)
		a1, c = bits.Add64(a1, l1, c)
		a2, c = bits.Add64(a2, l2, c)
		a3, c = bits.Add64(a3, l3, c)
		a4, _ = bits.Add64(a4, h3, c)
	}

	// One Montgomery step: add the multiple of q that clears the lowest word.
	k := a0 * qInvNeg
	h0, l0 := bits.Mul64(k, q0)
	h1, l1 := bits.Mul64(k, q1)
	h2, l2 := bits.Mul64(k, q2)
	h3, l3 := bits.Mul64(k, q3)
	l1, c = bits.Add64(l1, h0, 0)
	l2, c = bits.Add64(l2, h1, c)
	l3, c = bits.Add64(l3, h2, c)
	h3, _ = bits.Add64(h3, 0, c)
	_, c = bits.Add64(a0, l0, 0)
	a1, c = bits.Add64(a1, l1, c)
	a2, c = bits.Add64(a2, l2, c)
	a3, c = bits.Add64(a3, l3, c)
	a4, _ = bits.Add64(a4, h3, c)

	// The sum was below t * 2^44 * q, so this is below q + 2^-16 q.
	s0, b := bits.Sub64(a1, q0, 0)
	s1, b := bits.Sub64(a2, q1, b)
	s2, b := bits.Sub64(a3, q2, b)
	s3, b := bits.Sub64(a4, q3, b)
	if b == 0 {
		a1, a2, a3, a4 = s0, s1, s2, s3
	}
	out[0], out[1], out[2], out[3] = a1, a2, a3, a4
}

// mix sets out to lambda * vM.
func (m *mixer) mix(out, v *[maxWidth]fr.Element, t int) {
	for j := range out[:t] {
		m.column(&out[j], v, t, j)
	}
}
