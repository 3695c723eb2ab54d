package gadget

import (
	"crypto/sha256"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/witness"
)

// Numbers are hashed by SHA-256 as their 32 little-endian bytes, and a hash is
// the number of its little-endian bytes without the two top bits, which makes it
// smaller than the modulus.

// Unpack makes the 255 binary digits of x, lowest first: 0 · 0 = sum - x
// (bellpepper's AllocatedNum::to_bits_le, which lets a small number also have
// the digits of itself plus the modulus).
func Unpack(b *constraint.Builder, x constraint.Var) []Boolean {
	digits := make([]constraint.Var, fr.Bits)
	out := make([]Boolean, fr.Bits)
	for i := range digits {
		digits[i] = Bit(b)
		out[i] = Is(digits[i])
	}
	b.Enforce(nil, nil, Packed(digits).Plus(x, minusOne))
	return out
}

// WriteUnpack writes the values of the variables that Unpack makes.
func WriteUnpack(w *witness.Writer, x *fr.Element) {
	limbs := x.Bits()
	for _, limb := range limbs[:3] {
		w.Word(limb, 64)
	}
	w.Word(limbs[3], fr.Bits-3*64)
}

// Bytes puts binary digits, lowest first, into the order in which SHA256 takes
// them: byte after byte, the highest digit of each first, filled up with zeros to
// a whole byte (storage-proofs-core's reverse_bit_numbering).
func Bytes(digits []Boolean) []Boolean {
	out := make([]Boolean, (len(digits)+7)/8*8)
	for i := range out {
		out[i] = False
		if k := i ^ 7; k < len(digits) {
			out[i] = digits[k]
		}
	}
	return out
}

// ElementWords is the value of Bytes(Unpack(x)).
func ElementWords(x *fr.Element) (words [8]Word) {
	limbs := x.Bits()
	for i := range words {
		words[i] = Word{
			Value:    bits.ReverseBytes32(uint32(limbs[i/2] >> (32 * (i % 2)))),
			Variable: allBits,
		}
	}
	words[7].Variable &^= 1 << 7 // the 256th digit
	return words
}

// PackHash makes the number of a hash: sum · 1 = a (bellpepper's pack_bits over
// the first 254 digits).
func PackHash(b *constraint.Builder, hash []Boolean) constraint.Var {
	a := b.Alloc()
	var sum constraint.LC
	coeff := one
	for _, bit := range Bytes(hash)[:packCapacity] { // Bytes is its own inverse
		sum = bit.plus(sum, coeff)
		coeff.Double(&coeff)
	}
	b.Enforce(sum, constraint.Lin(constraint.One), constraint.Lin(a))
	return a
}

// WritePackHash writes the number that PackHash makes and returns it.
func WritePackHash(w *witness.Writer, hash [32]byte) fr.Element {
	a := HashElement(hash)
	w.Full(&a)
	return a
}

// HashElement is the number of a SHA-256 hash.
func HashElement(hash [32]byte) fr.Element {
	hash[31] &= 0x3f
	x, err := fr.LittleEndian.Element(&hash)
	if err != nil {
		panic(err) // 254 bits are below the modulus
	}
	return x
}

// SHA256Pair makes the hash of two numbers, a node of a binary tree of SHA-256 hashes
// (hash2_circuit in filecoin-hashers, sha256.rs).
func SHA256Pair(b *constraint.Builder, left, right constraint.Var) constraint.Var {
	outs, _ := b.Call("sha256-pair", []constraint.Var{left, right},
		func(b *constraint.Builder, ports []constraint.Var) ([]constraint.Var, any) {
			var message []Boolean
			for _, child := range ports {
				message = append(message, Bytes(Unpack(b, child))...)
			}
			return []constraint.Var{PackHash(b, SHA256(b, message))}, nil
		})
	return outs[0]
}

// WriteSHA256Pair writes the values of the variables that SHA256Pair makes and returns
// the hash.
func WriteSHA256Pair(w *witness.Writer, left, right *fr.Element) fr.Element {
	var message [16]Word
	for i, child := range []*fr.Element{left, right} {
		WriteUnpack(w, child)
		words := ElementWords(child)
		copy(message[8*i:], words[:])
	}
	return WritePackHash(w, WriteSHA256(w, message[:]))
}

// HashPair is the hash that SHA256Pair makes of two numbers: what a tree of SHA-256
// hashes is made with.
func HashPair(children []fr.Element) fr.Element {
	var message [2 * fr.Bytes]byte
	fr.LittleEndian.PutElement((*[fr.Bytes]byte)(message[:]), children[0])
	fr.LittleEndian.PutElement((*[fr.Bytes]byte)(message[fr.Bytes:]), children[1])
	return HashElement(sha256.Sum256(message[:]))
}

// SHA256MerkleParent is MerkleParent in a binary tree of SHA-256 hashes.
func SHA256MerkleParent(b *constraint.Builder, node, index, sibling constraint.Var) constraint.Var {
	children := Insert(b, node, []constraint.Var{index}, []constraint.Var{sibling})
	return SHA256Pair(b, children[0], children[1])
}

// WriteSHA256MerkleParent writes the values of the variables that SHA256MerkleParent
// makes and returns the hash.
func WriteSHA256MerkleParent(w *witness.Writer, node *fr.Element, index int, sibling *fr.Element) fr.Element {
	writeInsert(w, node, index, []fr.Element{*sibling})
	left, right := node, sibling
	if index == 1 {
		left, right = sibling, node
	}
	return WriteSHA256Pair(w, left, right)
}

// SHA256MerkleStep goes one level up in a binary tree of SHA-256 hashes, as
// MerkleStep does in one of Poseidon hashes.
func SHA256MerkleStep(b *constraint.Builder, node constraint.Var) (parent, index constraint.Var) {
	outs, _ := b.Call("sha256-merkle-step", []constraint.Var{node},
		func(b *constraint.Builder, ports []constraint.Var) ([]constraint.Var, any) {
			index := Bit(b)
			sibling := b.Alloc()
			return []constraint.Var{SHA256MerkleParent(b, ports[0], index, sibling), index}, nil
		})
	return outs[0], outs[1]
}

// WriteSHA256MerkleStep writes the values of the variables that SHA256MerkleStep
// makes and returns the hash.
func WriteSHA256MerkleStep(w *witness.Writer, node *fr.Element, index int, sibling *fr.Element) fr.Element {
	w.Bit(index == 1)
	w.Full(sibling)
	return WriteSHA256MerkleParent(w, node, index, sibling)
}
