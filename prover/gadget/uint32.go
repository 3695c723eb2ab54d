package gadget

import (
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/witness"
)

// words is the arithmetic on 32-bit words that SHA-256 is made of. There are two
// implementations: one makes a circuit, one writes its witness. An algorithm
// written against the interface gives both halves of a gadget at once.
type words[W any] interface {
	constant(v uint32) W
	rotr(x W, n int) W
	shr(x W, n int) W
	xor(x, y W) W
	choose(x, y, z W) W   // y where x, else z
	majority(x, y, z W) W // what at least two of them are
	sum(x ...W) W         // modulo 2^32
}

// uint32Bits is a word in a circuit, lowest bit first.
type uint32Bits [32]Boolean

// circuitWords makes a circuit. Several sums share a constraint, as in
// bellpepper's MultiEq: each is shifted past those before it, as many as fit in
// the field. flush must follow the last sum.
type circuitWords struct {
	b          *constraint.Builder
	left       constraint.LC // of operands
	right      constraint.LC // of results
	bitsUsed   int
	powerOfTwo fr.Element // 2^bitsUsed
}

func (c *circuitWords) constant(v uint32) uint32Bits {
	var w uint32Bits
	for i := range w {
		w[i] = False
		if v>>i&1 == 1 {
			w[i] = True
		}
	}
	return w
}

func (c *circuitWords) rotr(x uint32Bits, n int) (r uint32Bits) {
	for i := range r {
		r[i] = x[(i+n)%32]
	}
	return r
}

func (c *circuitWords) shr(x uint32Bits, n int) uint32Bits {
	r := c.constant(0)
	copy(r[:], x[n:])
	return r
}

func (c *circuitWords) xor(x, y uint32Bits) (r uint32Bits) {
	for i := range r {
		r[i] = xor(c.b, x[i], y[i])
	}
	return r
}

func (c *circuitWords) choose(x, y, z uint32Bits) (r uint32Bits) {
	for i := range r {
		r[i] = choose(c.b, x[i], y[i], z[i])
	}
	return r
}

func (c *circuitWords) majority(x, y, z uint32Bits) (r uint32Bits) {
	for i := range r {
		r[i] = majority(c.b, x[i], y[i], z[i])
	}
	return r
}

// sum makes the bits of the sum with its carries (UInt32::addmany). A sum of
// constants is a constant.
func (c *circuitWords) sum(x ...uint32Bits) uint32Bits {
	if v, ok := constantSum(x); ok {
		return c.constant(v)
	}
	digits := make([]constraint.Var, sumBits(len(x)))
	for i := range digits {
		digits[i] = Bit(c.b)
	}
	if c.bitsUsed+len(digits) >= packCapacity {
		c.flush()
	}
	if c.bitsUsed == 0 {
		c.powerOfTwo = one
	}
	for _, w := range x {
		k := c.powerOfTwo
		for _, bit := range w {
			c.left = bit.plus(c.left, k)
			k.Double(&k)
		}
	}
	c.bitsUsed += len(digits)
	for _, v := range digits {
		c.right = append(c.right, constraint.Term{Var: v, Coeff: c.powerOfTwo})
		c.powerOfTwo.Double(&c.powerOfTwo)
	}
	var result uint32Bits
	for i := range result {
		result[i] = Is(digits[i])
	}
	return result
}

// flush makes the constraint of the sums since the last one.
func (c *circuitWords) flush() {
	if c.bitsUsed > 0 {
		c.b.Enforce(c.left, constraint.Lin(constraint.One), c.right)
		c.left, c.right, c.bitsUsed = nil, nil, 0
	}
}

// sumBits is the number of binary digits of the largest sum of n words.
func sumBits(n int) int { return bits.Len64(uint64(n) * (1<<32 - 1)) }

func constantSum(x []uint32Bits) (sum uint32, ok bool) {
	for _, w := range x {
		for i, bit := range w {
			switch bit {
			case True:
				sum += 1 << i
			case False:
			default:
				return 0, false
			}
		}
	}
	return sum, true
}

// Word is the value of a word of a witness. Bits that are set in Variable are
// variables of the circuit, the others constants.
type Word struct {
	Value, Variable uint32
	negated         uint32 // variable bits whose variable is their negation
}

// witnessWords writes the values of the variables that circuitWords makes. Which
// bits are constants decides where it makes any.
type witnessWords struct{ w *witness.Writer }

const allBits = ^uint32(0)

// bits writes the bits of v that are set in mask.
func (m witnessWords) bits(v, mask uint32) {
	if mask == allBits {
		m.w.Word(uint64(v), 32)
		return
	}
	for ; mask != 0; mask &= mask - 1 {
		m.w.Bit(v>>bits.TrailingZeros32(mask)&1 == 1)
	}
}

func (m witnessWords) constant(v uint32) Word { return Word{Value: v} }

func (m witnessWords) rotr(x Word, n int) Word {
	return Word{
		bits.RotateLeft32(x.Value, -n), bits.RotateLeft32(x.Variable, -n), bits.RotateLeft32(x.negated, -n),
	}
}

func (m witnessWords) shr(x Word, n int) Word {
	return Word{x.Value >> n, x.Variable >> n, x.negated >> n}
}

func (m witnessWords) xor(x, y Word) Word {
	m.bits(x.Value^x.negated^y.Value^y.negated, x.Variable&y.Variable)
	r := Word{Value: x.Value ^ y.Value, Variable: x.Variable | y.Variable}
	// A constant operand that is true negates the other.
	r.negated = (x.negated ^ y.negated ^ x.Value&^x.Variable ^ y.Value&^y.Variable) & r.Variable
	return r
}

// choose and majority leave negated out: SHA-256 only adds their results.

func (m witnessWords) choose(x, y, z Word) Word {
	a, b, c := x.Variable, y.Variable, z.Variable
	r := Word{Value: x.Value&y.Value | ^x.Value&z.Value}
	r.Variable = a&(b|c|(y.Value^z.Value)) | ^a&(x.Value&b|^x.Value&c)
	// Where one of y and z is constant, the variable is a conjunction, of x or
	// ¬x with the other or its negation.
	andY, andZ := a&b&^c, a&c&^b
	made := andY | andZ | b&c&(a|x.Value)
	m.bits(andY&x.Value&(y.Value^z.Value)|andZ&^x.Value&(y.Value^z.Value)|^(andY|andZ)&r.Value, made)
	return r
}

func (m witnessWords) majority(x, y, z Word) Word {
	a, b, c := x.Variable, y.Variable, z.Variable
	r := Word{Value: x.Value&y.Value | x.Value&z.Value | y.Value&z.Value}
	r.Variable = a&b | a&c | b&c | a&(y.Value^z.Value) | b&(x.Value^z.Value) | c&(x.Value^y.Value)
	yz := y.Value & z.Value
	if a&b&c == allBits {
		m.w.Word(interleave(r.Value, yz), 64)
		return r
	}
	// With one constant, the variable is the conjunction of the two others or,
	// if the constant is true, of their negations: r or ¬r.
	flip := x.Value&^a | y.Value&^b | z.Value&^c
	for i := range 32 {
		switch a>>i&1 + b>>i&1 + c>>i&1 {
		case 3:
			m.w.Bit(r.Value>>i&1 == 1)
			m.w.Bit(yz>>i&1 == 1)
		case 2:
			m.w.Bit((r.Value^flip)>>i&1 == 1)
		}
	}
	return r
}

func (m witnessWords) sum(x ...Word) Word {
	var total uint64
	var variable uint32
	for i := range x {
		total += uint64(x[i].Value)
		variable |= x[i].Variable
	}
	if variable == 0 {
		return Word{Value: uint32(total)}
	}
	m.w.Word(total, sumBits(len(x)))
	return Word{Value: uint32(total), Variable: allBits}
}

// interleave puts the bits of even and odd at even and odd positions.
func interleave(even, odd uint32) uint64 { return spread(even) | spread(odd)<<1 }

func spread(v uint32) uint64 {
	x := uint64(v)
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
	x = (x | x<<2) & 0x3333333333333333
	x = (x | x<<1) & 0x5555555555555555
	return x
}
