package fp8

import (
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"golang.org/x/sys/cpu"
)

// Supported tells whether the processor has the instructions that all functions
// of the package use.
var Supported = cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512IFMA && cpu.X86.HasAVX512VBMI2

// Vec is eight elements of the base field in Montgomery form: bits 52i..52i+51
// of element j are [i][j].
type Vec [8][8]uint64

// Load sets element j to elements[index[j]].
//
//go:noescape
func Load(z *Vec, elements *fp.Element, index *[8]uint32)

// Store sets elements[index[j]] to element j, which must be below p, for all j
// in order.
//
//go:noescape
func Store(elements *fp.Element, index *[8]uint32, x *Vec)

// Mul sets z to x y / 2^384, at most p + x y / 2^384. Operands must be below
// 2^384.
//
//go:noescape
func Mul(z, x, y *Vec)

// Add sets z to x + y, which must be below 2^384.
//
//go:noescape
func Add(z, x, y *Vec)

// Sub sets z to x - y + 2p, where y must be at most 2p and the result below
// 2^384.
//
//go:noescape
func Sub(z, x, y *Vec)

// SubReduce sets z to x - y, fully reduced. The difference must be between
// -2.9 p and 4 p.
//
//go:noescape
func SubReduce(z, x, y *Vec)

// SubBothReduce sets z to x - y1 - y2, fully reduced. The difference must be
// between -2.9 p and 4 p.
//
//go:noescape
func SubBothReduce(z, x, y1, y2 *Vec)

// Reduce sets z to x, which must be below 4p, fully reduced.
func Reduce(z, x *Vec) { SubReduce(z, x, &zero) }

var zero Vec

// Set sets all elements to e.
func Set(z *Vec, e *fp.Element) { Load(z, e, &[8]uint32{}) }

// Inverse sets z to 1/x, fully reduced, with a single inversion. Elements of x
// must be below 4p and not 0.
func Inverse(z, x *Vec) {
	Reduce(z, x)
	var factors, inverses [8]fp.Element
	Store(&factors[0], &inOrder, z)
	product := factors[0]
	for j := 1; j < 8; j++ {
		inverses[j] = product
		product.Mul(&product, &factors[j])
	}
	product.Inverse(&product)
	for j := 7; j > 0; j-- {
		inverses[j].Mul(&inverses[j], &product)
		product.Mul(&product, &factors[j])
	}
	inverses[0] = product
	Load(z, &inverses[0], &inOrder)
}

var inOrder = [8]uint32{0, 1, 2, 3, 4, 5, 6, 7}

const limbBits = 52

// Constants of vec_amd64.s.
var (
	mask    uint64 = 1<<limbBits - 1
	modulus        = limbs(fp.Modulus())
	twice          = limbs(new(big.Int).Lsh(fp.Modulus(), 1))

	inverse = func() uint64 { // -1/p mod 2^52
		r := new(big.Int).Lsh(big.NewInt(1), limbBits)
		return r.Sub(r, new(big.Int).ModInverse(fp.Modulus(), r)).Uint64()
	}()

	// multiples[i][k] is limb i of (3-k) p, which is to be added to a number
	// whose top limb plus offset is k times that of p plus 1.
	multiples = func() (m [8][8]int64) {
		for k := range int64(8) {
			sign, amount := int64(1), 3-k
			if amount < 0 {
				sign, amount = -1, -amount
			}
			for i, l := range limbs(new(big.Int).Mul(fp.Modulus(), big.NewInt(amount))) {
				m[i][k] = sign * int64(l)
			}
		}
		return
	}()
	offset     = 3*(modulus[7]+1) - 4
	reciprocal = (1<<limbBits)/(modulus[7]+1) + 1 // times 2^52, rounded up
)

// limbs cuts a number below 2^416 into eight.
func limbs(v *big.Int) (l [8]uint64) {
	rest := new(big.Int).Set(v)
	low := new(big.Int).SetUint64(1<<limbBits - 1) // mask may not be set yet
	for i := range l {
		l[i] = new(big.Int).And(rest, low).Uint64()
		rest.Rsh(rest, limbBits)
	}
	return
}
