package poseidon

import (
	"fmt"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// MaxArity is the largest number of inputs of a hash here.
const MaxArity = 11

const maxWidth = MaxArity + 1

// fullRounds is R_F of every instance of standard strength with the security margin.
const fullRounds = 8

// Constants are those of one arity's instance, in the optimised form of the paper's
// appendix B: round keys are pushed back through the linear layers, so that a partial
// round adds one, and the partial rounds' linear layers are sparse. Callers must not
// change them.
//
// A state is a row vector of Width elements: the domain tag, then the inputs. Linear
// layers multiply it from the left: new[j] = sum over i of old[i] * M[i][j]. Before the
// first round the first Width compressed constants are added. A full round applies x^5
// to all elements and adds the next Width constants (none in the last round); a partial
// round applies x^5 to element 0 and adds the next constant to it. The linear layers
// are MDS, except PreSparse in the last full round before the partial rounds, and
// Sparse[r] in partial round r. The hash is element 1 at the end.
type Constants struct {
	Arity         int
	Width         int        // Arity + 1
	FullRounds    int        // half of them before the partial rounds, half after
	PartialRounds int        //
	DomainTag     fr.Element // 2^Arity - 1 for nodes of trees

	CompressedRoundConstants []fr.Element // FullRounds*Width + PartialRounds
	MDS                      [][]fr.Element
	PreSparse                [][]fr.Element
	Sparse                   []SparseMatrix // PartialRounds

	tag   fr.Element // element 0 after the first round's S-box and constant
	mixer mixer
}

var instances = map[int]func() *Constants{
	2:  sync.OnceValue(func() *Constants { return newConstants(2, 55, treeTag(2)) }),
	4:  sync.OnceValue(func() *Constants { return newConstants(4, 56, treeTag(4)) }),
	8:  sync.OnceValue(func() *Constants { return newConstants(8, 57, treeTag(8)) }),
	11: sync.OnceValue(func() *Constants { return newConstants(11, 57, treeTag(11)) }),
}

var randomness = sync.OnceValue(func() *Constants { return newConstants(2, 55, 1<<40) })

// treeTag is the domain tag of a tree's node with all its children (neptune's
// HashType::MerkleTree).
func treeTag(arity int) uint64 { return 1<<arity - 1 }

// For returns the constants of an arity: 2, 4, 8 or 11. They are made at the first
// call, in a few milliseconds. Another arity is a bug, and panics.
func For(arity int) *Constants {
	instance, ok := instances[arity]
	if !ok {
		panic(fmt.Sprintf("poseidon: no instance of arity %d", arity))
	}
	return instance()
}

// Randomness returns the constants of the hash of two elements that sector updates derive
// challenges and encodings from. It differs from For(2) in its domain tag, neptune's custom
// tag 1 (POSEIDON_CONSTANTS_GEN_RANDOMNESS in storage-proofs-update, constants.rs).
func Randomness() *Constants { return randomness() }

func newConstants(arity, partialRounds int, tag uint64) *Constants {
	t := arity + 1
	mds := cauchy(t)
	c := &Constants{
		Arity:                    arity,
		Width:                    t,
		FullRounds:               fullRounds,
		PartialRounds:            partialRounds,
		CompressedRoundConstants: compress(mds, roundKeys(t, fullRounds, partialRounds), partialRounds),
		MDS:                      mds,
		mixer:                    newMixer(t, partialRounds),
	}
	c.DomainTag.SetUint64(tag)
	c.PreSparse, c.Sparse = sparseLayers(mds, partialRounds)

	var l4 fr.Element
	c.tag.Add(&c.DomainTag, &c.CompressedRoundConstants[0])
	l4.Square(&c.tag)
	l4.Square(&l4)
	c.tag.Mul(&c.tag, &l4)
	c.tag.Add(&c.tag, &c.CompressedRoundConstants[t])
	return c
}

// compress pushes the round keys back through the linear layers: a key added before a
// round's S-boxes is the key times MDS^-1 added before the previous linear layer.
// Through partial rounds all but element 0 passes on to the round before.
func compress(mds matrix, keys [][]fr.Element, partialRounds int) []fr.Element {
	inv := mds.inverse()
	half := (len(keys) - partialRounds) / 2

	partial := make([]fr.Element, partialRounds)
	acc := keys[half+partialRounds]
	for r := partialRounds - 1; r >= 0; r-- {
		back := inv.apply(acc)
		partial[r] = back[0]
		back[0].SetZero()
		for i := range back {
			back[i].Add(&back[i], &keys[half+r][i])
		}
		acc = back
	}

	var out []fr.Element
	out = append(out, keys[0]...)
	for r := 1; r < half; r++ {
		out = append(out, inv.apply(keys[r])...)
	}
	out = append(out, inv.apply(acc)...)
	out = append(out, partial...)
	for r := half + partialRounds + 1; r < len(keys); r++ {
		out = append(out, inv.apply(keys[r])...)
	}
	return out
}
