package merkle

import (
	"encoding/binary"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/bincode"
)

// Hash hashes the children of a node, as many as the level's arity. poseidon.Hash is one.
type Hash func(children []fr.Element) fr.Element

// Proof is a leaf of a tree, its root, and the path from one to the other.
type Proof struct {
	Leaf, Root fr.Element
	Path       []Step // from the leaf upwards
}

// Step is one level of a path.
type Step struct {
	Siblings []fr.Element // all children of the parent but the path's: arity-1
	Index    int          // of the path's node among the children: below the arity
}

// Position is the index of the leaf among the tree's leaves. Its bits are those of the
// steps' indices, the first step's lowest.
func (p *Proof) Position() uint64 {
	position, shift := uint64(0), 0
	for i := range p.Path {
		step := &p.Path[i]
		position |= uint64(step.Index) << shift
		shift += log2(uint64(len(step.Siblings) + 1))
	}
	return position
}

// ComputeRoot hashes the path from the leaf upwards. The proof holds if the result is the
// tree's root, which is for the caller to compare: with Root, and Root with what he knows.
func (p *Proof) ComputeRoot(hash Hash) fr.Element {
	node := p.Leaf
	var children []fr.Element
	for i := range p.Path {
		step := &p.Path[i]
		children = append(children[:0], step.Siblings[:step.Index]...)
		children = append(children, node)
		children = append(children, step.Siblings[step.Index:]...)
		node = hash(children)
	}
	return node
}

// Variants of the serialised form. Source: storage-proofs-core, merkle/proof.rs, ProofData.
const (
	variantSingle = iota // root, leaf, path
	variantSub           // base path, sub path, root, leaf
	variantTop           // base path, sub path, top path, root, leaf
)

// Read reads a proof for a tree of the given shape from its bincode form. The variant and
// all lengths must be those of the shape, and every index below its level's arity. A fault
// is left in the reader, with its field's name inside the proof.
func Read(r *bincode.Reader, shape Shape) Proof {
	arities := shape.Arities()
	siblings := 0
	for _, arity := range arities {
		siblings += arity - 1
	}
	backing := make([]fr.Element, siblings)
	p := Proof{Path: make([]Step, len(arities))}

	next := 0 // level
	path := func(field string, height int) {
		r.Count(field, height)
		for i := 0; i < height && r.Err() == nil; i++ {
			step, arity := &p.Path[next], arities[next]
			next++
			step.Siblings, backing = backing[:arity-1:arity-1], backing[arity-1:]
			r.Elements("hashes", step.Siblings)
			index := r.Uint64("index")
			if index >= uint64(arity) {
				r.Fail("index", "is %d at a level of arity %d", index, arity)
			}
			step.Index = int(index)
			if r.Err() != nil {
				r.In(fmt.Sprintf("%s[%d]", field, i))
			}
		}
	}
	switch {
	case shape.Top > 0:
		r.Variant("data", variantTop)
		path("base_proof", shape.BaseHeight)
		path("sub_proof", 1)
		path("top_proof", 1)
		p.Root = r.Element("root")
		p.Leaf = r.Element("leaf")
	case shape.Sub > 0:
		r.Variant("data", variantSub)
		path("base_proof", shape.BaseHeight)
		path("sub_proof", 1)
		p.Root = r.Element("root")
		p.Leaf = r.Element("leaf")
	default:
		r.Variant("data", variantSingle)
		p.Root = r.Element("root")
		p.Leaf = r.Element("leaf")
		path("path", shape.BaseHeight)
	}
	return p
}

// Append appends the form that Read reads.
func (p *Proof) Append(to []byte, shape Shape) []byte {
	element := func(e *fr.Element) {
		var b [fr.Bytes]byte
		fr.LittleEndian.PutElement(&b, *e)
		to = append(to, b[:]...)
	}
	number := func(n int) { to = binary.LittleEndian.AppendUint64(to, uint64(n)) }
	next := 0
	path := func(height int) {
		number(height)
		for range height {
			step := &p.Path[next]
			next++
			number(len(step.Siblings))
			for i := range step.Siblings {
				element(&step.Siblings[i])
			}
			number(step.Index)
		}
	}
	variant := variantSingle
	switch {
	case shape.Top > 0:
		variant = variantTop
	case shape.Sub > 0:
		variant = variantSub
	}
	to = binary.LittleEndian.AppendUint32(to, uint32(variant))
	if variant == variantSingle {
		element(&p.Root)
		element(&p.Leaf)
		path(shape.BaseHeight)
		return to
	}
	path(shape.BaseHeight)
	path(1)
	if variant == variantTop {
		path(1)
	}
	element(&p.Root)
	element(&p.Leaf)
	return to
}
