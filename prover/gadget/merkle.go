package gadget

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/witness"
)

// MerkleParent makes the hash of a node inserted among its siblings in a tree of
// Poseidon hashes of arity 2, 4 or 8 (one level of por_no_challenge_input in
// storage-proofs-core's gadgets/por.rs). index has the bits of the node's index,
// lowest first.
func MerkleParent(b *constraint.Builder, node constraint.Var, index, siblings []constraint.Var) constraint.Var {
	return Poseidon(b, Insert(b, node, index, siblings))
}

// WriteMerkleParent writes the values of the variables that MerkleParent makes and
// returns the hash.
func WriteMerkleParent(w *witness.Writer, node *fr.Element, index int, siblings []fr.Element) fr.Element {
	writeInsert(w, node, index, siblings)
	var children [maxInsert]fr.Element
	copy(children[:index], siblings)
	children[index] = *node
	copy(children[index+1:], siblings[index:])
	return WritePoseidon(w, children[:len(siblings)+1])
}

// MerkleStep goes one level up in a tree of Poseidon hashes of the given arity
// (2, 4 or 8): it makes the bits of the node's index among its siblings, lowest
// first, the siblings, and the hash of the node inserted at that index. It
// returns the hash and the index bits (one round of SubPath::synthesize in
// storage-proofs-core's gadgets/por.rs).
func MerkleStep(b *constraint.Builder, arity int, node constraint.Var) (parent constraint.Var, index []constraint.Var) {
	outs, _ := b.Call(fmt.Sprintf("merkle-step-%d", arity), []constraint.Var{node},
		func(b *constraint.Builder, ports []constraint.Var) ([]constraint.Var, any) {
			index := make([]constraint.Var, indexBits(arity))
			for i := range index {
				index[i] = Bit(b)
			}
			siblings := make([]constraint.Var, arity-1)
			for i := range siblings {
				siblings[i] = b.Alloc()
			}
			return append(index, MerkleParent(b, ports[0], index, siblings)), nil
		})
	last := len(outs) - 1
	return outs[last], outs[:last]
}

// WriteMerkleStep writes the values of the variables that MerkleStep makes and
// returns the hash.
func WriteMerkleStep(w *witness.Writer, node *fr.Element, index int, siblings []fr.Element) fr.Element {
	w.Word(uint64(index), indexBits(len(siblings)+1))
	copy(w.Fulls(len(siblings)), siblings)
	return WriteMerkleParent(w, node, index, siblings)
}

func indexBits(arity int) int {
	switch arity {
	case 2:
		return 1
	case 4:
		return 2
	case 8:
		return 3
	}
	panic(fmt.Sprintf("gadget: no Merkle tree of arity %d", arity))
}
