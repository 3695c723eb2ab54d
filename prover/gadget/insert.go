package gadget

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/witness"
)

const maxInsert = 8

// A plan says how Insert reaches its result by a sequence of picks. It is the
// single description that both halves follow.
type plan struct {
	withPairs bool   // the bits "neither b0 nor b1" and "b0 and b1" are made first
	picks     []pick // in order of allocation
	results   []int  // the picks that are positions 0, 1, … of the result
}

// pick is Pick(condition, x, y).
type pick struct{ condition, x, y int }

// Operands of picks: numbers below fromPick are the element (0) and its siblings
// (1, 2, …); fromPick+i is the result of pick i.
const fromPick = maxInsert

// Conditions of picks: index bits, and the two made of b0 and b1.
const (
	b0 = iota
	b1
	b2
	norBits
	andBits
)

// Insertion plans of storage-proofs-core's gadgets/insertion.rs (insert_2,
// insert_4, insert_8): with e at position n of the siblings s1, s2, …, each
// position is one of few candidates, so that few picks decide it.
var plans = map[int]plan{
	2: {
		picks:   []pick{{b0, 1, 0}, {b0, 0, 1}},
		results: []int{0, 1},
	},
	4: {
		picks: []pick{
			{b0, 1, 0}, {b1, 1, fromPick}, // position 0
			{b0, 0, 1}, {b1, 2, fromPick + 2}, // 1
			{b0, 3, 0}, {b1, fromPick + 4, 2}, // 2
			{b0, 0, 3}, {b1, fromPick + 6, 3}, // 3
		},
		results: []int{1, 3, 5, 7},
	},
	8: {
		withPairs: true,
		picks: []pick{
			{norBits, 0, 1}, {b2, 1, fromPick}, // position 0
			{b0, 0, 1}, {b1, 2, fromPick + 2}, {b2, 2, fromPick + 3}, // 1
			{b0, 3, 0}, {b1, fromPick + 5, 2}, {b2, 3, fromPick + 6}, // 2
			{andBits, 0, 3}, {b2, 4, fromPick + 8}, // 3
			{norBits, 0, 5}, {b2, fromPick + 10, 4}, // 4
			{b0, 0, 5}, {b1, 6, fromPick + 12}, {b2, fromPick + 13, 5}, // 5
			{b0, 7, 0}, {b1, fromPick + 15, 6}, {b2, fromPick + 16, 6}, // 6
			{andBits, 0, 7}, {b2, fromPick + 18, 7}, // 7
		},
		results: []int{1, 4, 7, 9, 11, 14, 17, 19},
	},
}

// Insert makes the sequence of siblings with element inserted at the position
// whose binary digits, lowest first, are index. There are 1, 3 or 7 siblings.
func Insert(b *constraint.Builder, element constraint.Var, index, siblings []constraint.Var) []constraint.Var {
	p := plans[len(siblings)+1]
	conditions := [andBits + 1]constraint.Var{}
	copy(conditions[:], index)
	if p.withPairs {
		conditions[norBits] = Nor(b, index[0], index[1])
		conditions[andBits] = And(b, index[0], index[1])
	}
	operands := make([]constraint.Var, fromPick, fromPick+len(p.picks))
	operands[0] = element
	copy(operands[1:], siblings)
	for _, k := range p.picks {
		operands = append(operands, Pick(b, conditions[k.condition], operands[k.x], operands[k.y]))
	}
	out := make([]constraint.Var, len(p.results))
	for i, r := range p.results {
		out[i] = operands[fromPick+r]
	}
	return out
}

// writeInsert writes the values of the variables that Insert makes.
func writeInsert(w *witness.Writer, element *fr.Element, index int, siblings []fr.Element) {
	p := plans[len(siblings)+1]
	conditions := [andBits + 1]bool{}
	for i := range indexBits(len(siblings) + 1) {
		conditions[i] = index>>i&1 == 1
	}
	if p.withPairs {
		conditions[norBits] = !conditions[b0] && !conditions[b1]
		conditions[andBits] = conditions[b0] && conditions[b1]
		w.Bit(conditions[norBits])
		w.Bit(conditions[andBits])
	}
	var operands [fromPick + 20]*fr.Element
	operands[0] = element
	for i := range siblings {
		operands[i+1] = &siblings[i]
	}
	for i, k := range p.picks {
		operands[fromPick+i] = WritePick(w, conditions[k.condition], operands[k.x], operands[k.y])
	}
}
