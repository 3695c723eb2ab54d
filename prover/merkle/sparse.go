package merkle

import "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

// Sparse is a tree whose leaves are the same but for a few, so that one of any size takes
// little memory: for tests and benchmarks with sectors that nobody sealed.
type Sparse struct {
	arities []int
	levels  []map[uint64]fr.Element // from the leaves upwards: nodes that are not the usual
	usual   []fr.Element            // node of each level over usual leaves alone
}

// NewSparse makes a tree with the given leaves, by position, and the usual leaf everywhere
// else.
func NewSparse(shape Shape, usual fr.Element, leaves map[uint64]fr.Element, hash Hash) *Sparse {
	t := &Sparse{shape.Arities(), []map[uint64]fr.Element{leaves}, []fr.Element{usual}}
	for level, arity := range t.arities {
		children := make([]fr.Element, arity)
		parents := map[uint64]fr.Element{}
		parent := func(at uint64) fr.Element {
			for i := range children {
				children[i] = t.node(level, at*uint64(arity)+uint64(i))
			}
			return hash(children)
		}
		for at := range t.levels[level] {
			at /= uint64(arity)
			if _, ok := parents[at]; !ok {
				parents[at] = parent(at)
			}
		}
		for i := range children {
			children[i] = t.usual[level]
		}
		t.usual = append(t.usual, hash(children))
		t.levels = append(t.levels, parents)
	}
	return t
}

func (t *Sparse) node(level int, at uint64) fr.Element {
	if x, ok := t.levels[level][at]; ok {
		return x
	}
	return t.usual[level]
}

// Leaf is the leaf at a position.
func (t *Sparse) Leaf(at uint64) fr.Element { return t.node(0, at) }

// Root is the tree's root.
func (t *Sparse) Root() fr.Element { return t.node(len(t.arities), 0) }

// Prove is the proof of the leaf at a position.
func (t *Sparse) Prove(at uint64) Proof {
	p := Proof{Leaf: t.Leaf(at), Root: t.Root()}
	for level, arity := range t.arities {
		n := uint64(arity)
		step := Step{Index: int(at % n)}
		for i := range n {
			if i != at%n {
				step.Siblings = append(step.Siblings, t.node(level, at/n*n+i))
			}
		}
		p.Path = append(p.Path, step)
		at /= n
	}
	return p
}
