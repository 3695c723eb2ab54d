package porep

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/merkle"
)

// WritePhase1 writes the statement as the phase-1 output that it is decoded from, in the
// plain form.
func (s *Statement) WritePhase1(to io.Writer) error {
	w := phase1Writer{bufio.NewWriterSize(to, 64<<10)}
	shape := shapeOf(s.Params.SectorSize)
	w.text(`{`)
	if s.Note != "" {
		w.text(`"_note":%q,`, s.Note)
	}
	w.text(`"registered_proof":%q,"comm_d":`, RegisteredProof(s.Params.SectorSize, s.Variant))
	w.element(&s.CommD)
	w.text(`,"comm_r":`)
	w.element(&s.CommR)
	w.text(`,"replica_id":`)
	w.element(&s.ReplicaID)
	w.text(`,"seed":`)
	w.bytes32(s.Seed)
	w.text(`,"ticket":`)
	w.bytes32(s.Ticket)
	w.text(`,"vanilla_proofs":{%q:`, shape)
	w.list(len(s.Partitions), func(k int) {
		challenges := s.Partitions[k].Challenges
		w.list(len(challenges), func(i int) { w.challenge(s, challenges[i]) })
	})
	w.text(`}}`)
	return w.Flush()
}

// phase1Writer writes JSON; errors stay in the writer until it is flushed.
type phase1Writer struct{ *bufio.Writer }

func (w phase1Writer) text(format string, args ...any) { fmt.Fprintf(w, format, args...) }

func (w phase1Writer) list(n int, item func(i int)) {
	w.text(`[`)
	for i := range n {
		if i > 0 {
			w.text(`,`)
		}
		item(i)
	}
	w.text(`]`)
}

func (w phase1Writer) bytes32(raw [32]byte) {
	text := make([]byte, 0, 4*len(raw)+1)
	for i, b := range raw {
		text = append(text, "[,"[min(i, 1)])
		text = strconv.AppendUint(text, uint64(b), 10)
	}
	w.text("%s]", text)
}

func (w phase1Writer) element(x *fr.Element) { w.bytes32(littleEndian(x)) }

func (w phase1Writer) challenge(s *Statement, c *ChallengeProof) {
	tree, node := s.Params.Tree, c.Node()
	w.text(`{"comm_d_proofs":`)
	w.proof(s.Params.dataTree(), &c.Data)
	w.text(`,"comm_r_last_proof":`)
	w.proof(tree, &c.Replica)
	w.text(`,"replica_column_proofs":{"c_x":`)
	w.column(tree, &c.Column)
	w.text(`,"drg_parents":`)
	w.list(baseDegree, func(i int) { w.column(tree, &c.Parents[i]) })
	w.text(`,"exp_parents":`)
	w.list(expansionDegree, func(i int) { w.column(tree, &c.Parents[baseDegree+i]) })
	w.text(`},"labeling_proofs":`)
	label := func(layer int) {
		w.text(`{"parents":`)
		w.list(labelParents, func(i int) { w.element(c.labelParent(layer, i)) })
		w.text(`,"layer_index":%d,"node":%d}`, layer+1, node)
	}
	w.list(s.Params.Layers, label)
	w.text(`,"encoding_proof":`)
	label(s.Params.Layers - 1)
	w.text(`}`)
}

func (w phase1Writer) column(tree merkle.Shape, c *Column) {
	w.text(`{"column":{"index":%d,"rows":`, c.Inclusion.Position())
	w.list(len(c.Rows), func(i int) { w.element(&c.Rows[i]) })
	w.text(`,"_h":null},"inclusion_proof":`)
	w.proof(tree, &c.Inclusion)
	w.text(`}`)
}

func (w phase1Writer) proof(tree merkle.Shape, p *merkle.Proof) {
	path := func(name string, steps []merkle.Step) {
		w.text(`%q:{"path":`, name)
		w.list(len(steps), func(i int) {
			w.text(`{"hashes":`)
			w.list(len(steps[i].Siblings), func(k int) { w.element(&steps[i].Siblings[k]) })
			w.text(`,"index":%d}`, steps[i].Index)
		})
		w.text(`},`)
	}
	base := tree.BaseHeight
	switch {
	case tree.Top > 0:
		w.text(`{"data":{"Top":{`)
		path("base_proof", p.Path[:base])
		path("sub_proof", p.Path[base:base+1])
		path("top_proof", p.Path[base+1:])
	case tree.Sub > 0:
		w.text(`{"data":{"Sub":{`)
		path("base_proof", p.Path[:base])
		path("sub_proof", p.Path[base:])
	default:
		w.text(`{"data":{"Single":{`)
		path("path", p.Path)
	}
	w.text(`"root":`)
	w.element(&p.Root)
	w.text(`,"leaf":`)
	w.element(&p.Leaf)
	w.text(`}}}`)
}
