package porep

import (
	"context"
	"fmt"
	"runtime"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/gadget"
	"github.com/interlock-prover/interlock/prover/merkle"
	"github.com/interlock-prover/interlock/prover/witness"
)

// Witness assigns all variables of one partition of a statement that has been checked. It
// works on all cores, challenge by challenge.
func (c *Circuit) Witness(ctx context.Context, s *Statement, partition int) (*witness.Witness, error) {
	if s.Params != c.Params {
		return nil, fmt.Errorf("a statement of %+v for a circuit of %+v", s.Params, c.Params)
	}
	w := witness.New(c.System.Layout())
	wr := witness.NewWriter(w, witness.Start)
	wr.Full(&s.ReplicaID)
	wr.Input(&s.ReplicaID)
	gadget.WriteUnpack(wr, &s.ReplicaID)
	wr.Full(&s.CommD)
	wr.Input(&s.CommD)
	wr.Full(&s.CommR)
	wr.Input(&s.CommR)
	wr.Full(&s.CommRLast)
	wr.Full(&s.CommC)
	gadget.WritePoseidon(wr, []fr.Element{s.CommC, s.CommRLast})
	wr.Close()

	challenges := s.Partitions[partition].Challenges
	replicaID := gadget.ElementWords(&s.ReplicaID)
	err := constraint.Parallel(ctx, len(challenges), 1, runtime.GOMAXPROCS(0), func(i, _ int) error {
		wr := witness.NewWriter(w, c.challenges[i])
		writeChallenge(wr, &replicaID, challenges[i])
		wr.Close()
		return nil
	})
	if err != nil {
		w.Free()
		return nil, err
	}
	return w, nil
}

// writeChallenge writes the values of the variables that challenge makes.
func writeChallenge(w *witness.Writer, replicaID *[8]gadget.Word, c *ChallengeProof) {
	w.Full(&c.Data.Leaf)
	node := c.Data.Leaf
	for i := range c.Data.Path {
		step := &c.Data.Path[i]
		node = gadget.WriteSHA256MerkleStep(w, &node, step.Index, &step.Siblings[0])
	}
	writePosition(w, &c.Data)

	for i := range c.Parents {
		column := &c.Parents[i]
		copy(w.Fulls(len(column.Rows)), column.Rows)
		leaf := gadget.WritePoseidon(w, column.Rows)
		writeInclusion(w, &leaf, &column.Inclusion)
	}

	w.Word(c.Node(), 64)
	challenge := fr.NewElement(c.Node())
	w.Input(&challenge)

	labels := make([]fr.Element, len(c.Column.Rows))
	for layer := range labels {
		labels[layer] = writeLabel(w, replicaID, c, layer)
	}

	var replica fr.Element
	replica.Add(&labels[len(labels)-1], &c.Data.Leaf)
	w.Full(&replica)
	writeInclusion(w, &replica, &c.Replica)
	leaf := gadget.WritePoseidon(w, labels)
	writeInclusion(w, &leaf, &c.Column.Inclusion)
}

// writeInclusion writes the values of the variables that inclusion makes, from the leaf
// given.
func writeInclusion(w *witness.Writer, leaf *fr.Element, p *merkle.Proof) {
	node := *leaf
	for i := range p.Path {
		step := &p.Path[i]
		node = gadget.WriteMerkleStep(w, &node, step.Index, step.Siblings)
	}
	writePosition(w, p)
}

func writePosition(w *witness.Writer, p *merkle.Proof) {
	position := fr.NewElement(p.Position())
	w.Input(&position)
}

// writeLabel writes the values of the variables that label makes for the challenged node in
// a layer, which counts from 0, and returns the label.
func writeLabel(w *witness.Writer, replicaID *[8]gadget.Word, c *ChallengeProof, layer int) fr.Element {
	const variable = ^uint32(0)
	var message [8 * (2 + labelParents)]gadget.Word
	copy(message[:], replicaID[:])
	node := c.Node()
	message[8] = gadget.Word{Value: uint32(layer + 1)}
	message[9] = gadget.Word{Value: uint32(node >> 32), Variable: variable}
	message[10] = gadget.Word{Value: uint32(node), Variable: variable}
	distinct := degree
	if layer == 0 {
		distinct = baseDegree
	}
	parents := message[16:]
	for i := range labelParents {
		if i >= distinct {
			copy(parents[8*i:8*i+8], parents[8*(i-distinct):])
			continue
		}
		label := c.labelParent(layer, i)
		gadget.WriteUnpack(w, label)
		words := gadget.ElementWords(label)
		copy(parents[8*i:], words[:])
	}
	return gadget.WritePackHash(w, gadget.WriteSHA256(w, message[:]))
}
