package porep

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/merkle"
)

// ChallengeProof opens one challenged node of a sector: what the vanilla proof of the
// challenge says.
type ChallengeProof struct {
	Data    merkle.Proof   // the node's data, in tree D
	Replica merkle.Proof   // its data encoded, in tree R last
	Column  Column         // its labels
	Parents [degree]Column // its parents' labels, in the graph's order
}

// Column is the labels of one node in all layers, and the proof that their hash is in tree
// C.
type Column struct {
	Rows      []fr.Element // by layer
	Inclusion merkle.Proof
}

// Node is the number of the challenged node.
func (c *ChallengeProof) Node() uint64 { return c.Column.Inclusion.Position() }

// labelParent returns the label that is hashed in place i for the label in a layer, which
// counts from 0: parents' labels in turn, those of the first six nodes in the same layer,
// those of the other eight in the layer before, which the first layer does not have.
func (c *ChallengeProof) labelParent(layer, i int) *fr.Element {
	if layer == 0 {
		return &c.Parents[i%baseDegree].Rows[0]
	}
	if i %= degree; i < baseDegree {
		return &c.Parents[i].Rows[layer]
	}
	return &c.Parents[i].Rows[layer-1]
}

// phase1 is a phase-1 output as its JSON has it.
type phase1 struct {
	note                    string
	registeredProof         string
	commD, commR            fr.Element
	replicaID               fr.Element
	seed, ticket            [32]byte
	sectorSize              uint64 // of the vanilla proofs' key
	layers                  int
	partitions              [][]*ChallengeProof
	wrapped                 bool
	sectorNumber, sizeGiven uint64 // of the wrapped form
}

// readPhase1 reads a phase-1 output in either form: as the proofs API serialises it, or
// wrapped as sealing software passes it around, with the sector's number and size beside
// base64 of the former. It checks all of the form, and that the parts of one challenge's
// proof agree; it computes no hashes.
func readPhase1(src io.Reader) (*phase1, error) {
	out := new(phase1)
	r := newJSONReader(src)
	plain, wrapper := out.plainFields(r), out.wrapperFields(r)
	seen := r.fields(slices.Concat(plain, wrapper, out.noteField(r)))
	seenPlain, seenWrapper := seen[:len(plain)], seen[len(plain):len(plain)+len(wrapper)]
	out.wrapped = slices.Contains(seenWrapper, true)
	switch {
	case !out.wrapped:
		r.require(plain, seenPlain)
	case slices.Contains(seenPlain, true):
		r.fail("has fields of a phase-1 output beside those of its wrapped form")
	default:
		r.require(wrapper, seenWrapper)
	}
	r.finish()
	if r.err != nil {
		return nil, r.err
	}
	return out, nil
}

func (out *phase1) wrapperFields(r *jsonReader) []field {
	return []field{
		{"SectorNum", func() { out.sectorNumber = r.number(1<<63 - 1) }},
		{"SectorSize", func() { out.sizeGiven = r.number(1<<63 - 1) }},
		{"Phase1Out", func() {
			inner := newJSONReader(base64.NewDecoder(base64.StdEncoding.Strict(), r.text()))
			plain := out.plainFields(inner)
			inner.require(plain, inner.fields(slices.Concat(plain, out.noteField(inner))))
			inner.finish()
			var corrupt base64.CorruptInputError
			switch {
			case r.err != nil: // in the string itself
			case errors.As(inner.err, &corrupt), errors.Is(inner.err, io.ErrUnexpectedEOF):
				r.fail("is not base64: %v", inner.err)
			default:
				r.err = inner.err
			}
		}},
	}
}

// noteField is a field that a phase-1 output may have beside those of the API, which does
// not read it: who made it and why.
func (out *phase1) noteField(r *jsonReader) []field {
	return []field{{"_note", func() { out.note = r.name() }}}
}

func (out *phase1) plainFields(r *jsonReader) []field {
	return []field{
		{"registered_proof", func() { out.registeredProof = r.name() }},
		{"comm_d", func() { out.commD = r.element() }},
		{"comm_r", func() { out.commR = r.element() }},
		{"replica_id", func() { out.replicaID = r.element() }},
		{"seed", func() { out.seed = r.bytes32() }},
		{"ticket", func() { out.ticket = r.bytes32() }},
		{"vanilla_proofs", func() {
			var shapes []field
			for _, s := range sectorSizes {
				shapes = append(shapes, field{shapeName(s.name), func() { out.readPartitions(r, s.bytes) }})
			}
			given := 0
			for _, seen := range r.fields(shapes) {
				if seen {
					given++
				}
			}
			if given != 1 {
				r.fail("has proofs of %d sector sizes, not of one", given)
			}
		}},
	}
}

// The most that any form has.
const (
	maxPartitions = 126
	maxChallenges = 18
	maxLayers     = mainnetLayers
)

// readPartitions reads the vanilla proofs of all partitions.
func (out *phase1) readPartitions(r *jsonReader, sectorSize uint64) {
	p, err := ParamsFor(sectorSize, 0)
	if err != nil {
		r.fail("%v", err)
		return
	}
	c := challengeReader{r: r, tree: p.Tree, dataTree: p.dataTree()}
	out.sectorSize = sectorSize
	r.list(maxPartitions, func(int) {
		var proofs []*ChallengeProof
		r.list(maxChallenges, func(int) { proofs = append(proofs, c.challenge()) })
		out.partitions = append(out.partitions, proofs)
	})
	out.layers = c.layers
}

// challengeReader reads proofs of challenges.
type challengeReader struct {
	r              *jsonReader
	tree, dataTree merkle.Shape
	layers         int // as many as the first column has rows

	labels   [maxLayers]labelProof
	encoding labelProof
}

// labelProof is what a label is made from. It repeats what the columns say.
type labelProof struct {
	layer, node uint64
	parents     [labelParents]fr.Element
}

func (c *challengeReader) challenge() *ChallengeProof {
	r := c.r
	p := new(ChallengeProof)
	labels := 0
	r.object(
		field{"comm_d_proofs", func() { p.Data = c.proof(c.dataTree) }},
		field{"comm_r_last_proof", func() { p.Replica = c.proof(c.tree) }},
		field{"replica_column_proofs", func() {
			r.object(
				field{"c_x", func() { p.Column = c.column() }},
				field{"drg_parents", func() {
					r.items(baseDegree, func(i int) { p.Parents[i] = c.column() })
				}},
				field{"exp_parents", func() {
					r.items(expansionDegree, func(i int) { p.Parents[baseDegree+i] = c.column() })
				}},
			)
		}},
		field{"labeling_proofs", func() {
			labels = r.list(maxLayers, func(i int) { c.label(&c.labels[i]) })
		}},
		field{"encoding_proof", func() { c.label(&c.encoding) }},
	)
	if r.err == nil {
		c.agree(p, labels)
	}
	return p
}

// agree checks that all parts are about one node, and that the labels' parents are the
// parents' labels.
func (c *challengeReader) agree(p *ChallengeProof, labels int) {
	r, node := c.r, p.Node()
	if at := p.Data.Position(); at != node {
		r.failIn("comm_d_proofs", "is of leaf %d, but the challenged column is of node %d", at, node)
	}
	if at := p.Replica.Position(); at != node {
		r.failIn("comm_r_last_proof", "is of leaf %d, but the challenged column is of node %d", at, node)
	}
	if labels != c.layers {
		r.failIn("labeling_proofs", "has %d items, not one for each of %d layers", labels, c.layers)
		return
	}
	check := func(name string, l *labelProof, layer int) {
		if l.layer != uint64(layer+1) {
			r.failIn(name+".layer_index", "is %d, not %d", l.layer, layer+1)
		}
		if l.node != node {
			r.failIn(name+".node", "is %d, but the challenged column is of node %d", l.node, node)
		}
		for i := range l.parents {
			if l.parents[i] != *p.labelParent(layer, i) {
				r.failIn(fmt.Sprintf("%s.parents[%d]", name, i), "is not the label of the parent's column")
			}
		}
	}
	for layer := range labels {
		check(fmt.Sprintf("labeling_proofs[%d]", layer), &c.labels[layer], layer)
	}
	check("encoding_proof", &c.encoding, labels-1)
}

func (c *challengeReader) label(l *labelProof) {
	c.r.object(
		field{"layer_index", func() { l.layer = c.r.number(1<<32 - 1) }},
		field{"node", func() { l.node = c.r.number(1<<64 - 1) }},
		field{"parents", func() {
			c.r.items(labelParents, func(i int) { l.parents[i] = c.r.element() })
		}},
	)
}

// column reads a column and its inclusion proof. The column's index must be the leaf's.
func (c *challengeReader) column() Column {
	r := c.r
	var col Column
	index := uint64(0)
	r.object(
		field{"column", func() {
			r.object(
				field{"_h", r.null},
				field{"index", func() { index = r.number(1<<32 - 1) }},
				field{"rows", func() {
					col.Rows = make([]fr.Element, maxLayers)
					n := r.list(maxLayers, func(i int) { col.Rows[i] = r.element() })
					if c.layers == 0 {
						c.layers = n
					}
					if n == 0 || n != c.layers {
						r.fail("has %d items, but other columns have %d", n, c.layers)
					}
					col.Rows = col.Rows[:n:n]
				}},
			)
		}},
		field{"inclusion_proof", func() { col.Inclusion = c.proof(c.tree) }},
	)
	if r.err == nil && index != col.Inclusion.Position() {
		r.failIn("column.index", "is %d, but the inclusion proof is of leaf %d", index, col.Inclusion.Position())
	}
	return col
}

// proof reads an inclusion proof for a tree of the given shape (ProofData in
// storage-proofs-core, merkle/proof.rs).
func (c *challengeReader) proof(shape merkle.Shape) merkle.Proof {
	r := c.r
	p := merkle.Proof{Path: make([]merkle.Step, len(shape.Arities()))}
	path := func(name string, level, height, arity int) field {
		return field{name, func() {
			r.object(field{"path", func() {
				r.items(height, func(i int) { p.Path[level+i] = c.step(arity) })
			}})
		}}
	}
	root := field{"root", func() { p.Root = r.element() }}
	leaf := field{"leaf", func() { p.Leaf = r.element() }}
	base := shape.BaseHeight
	variant, parts := "Single", []field{root, leaf, path("path", 0, base, shape.Base)}
	if shape.Sub > 0 {
		variant, parts = "Sub", []field{root, leaf, path("base_proof", 0, base, shape.Base), path("sub_proof", base, 1, shape.Sub)}
	}
	if shape.Top > 0 {
		variant, parts = "Top", append(parts, path("top_proof", base+1, 1, shape.Top))
	}
	r.object(field{"data", func() {
		r.object(field{variant, func() { r.object(parts...) }})
	}})
	return p
}

// step reads one level of a path.
func (c *challengeReader) step(arity int) merkle.Step {
	r := c.r
	s := merkle.Step{Siblings: make([]fr.Element, arity-1)}
	r.object(
		field{"hashes", func() { r.items(arity-1, func(i int) { s.Siblings[i] = r.element() }) }},
		field{"index", func() { s.Index = int(r.number(uint64(arity - 1))) }},
	)
	return s
}
