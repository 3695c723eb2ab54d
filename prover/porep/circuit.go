package porep

import (
	"fmt"
	"slices"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/gadget"
	"github.com/interlock-prover/interlock/prover/merkle"
	"github.com/interlock-prover/interlock/prover/witness"
)

// challengeTemplate is the template of one challenge; witnesses are written by instance of
// it.
const challengeTemplate = "porep-challenge"

// Circuit is the constraint system of one partition: the stacked circuit of
// storage-proofs-porep (circuit/proof.rs and params.rs).
type Circuit struct {
	Params Params
	System *constraint.System

	challenges []witness.Position // where each challenge's variables begin
}

// NewCircuit compiles the circuit of p.
func NewCircuit(p Params) *Circuit {
	b := constraint.NewBuilder()
	replicaID := b.Alloc()
	gadget.Inputize(b, replicaID)
	replicaIDBits := gadget.Unpack(b, replicaID)
	commD := b.Alloc()
	gadget.Inputize(b, commD)
	commR := b.Alloc()
	gadget.Inputize(b, commR)
	commRLast := b.Alloc()
	commC := b.Alloc()
	gadget.Equal(b, commR, gadget.Poseidon(b, []constraint.Var{commC, commRLast}))

	ports := append([]constraint.Var{commD, commC, commRLast}, variables(replicaIDBits)...)
	for range p.Challenges {
		b.Call(challengeTemplate, ports, func(b *constraint.Builder, ports []constraint.Var) ([]constraint.Var, any) {
			challenge(b, p, ports[0], ports[1], ports[2], booleans(ports[3:]))
			return nil, nil
		})
	}
	s := b.Finish()
	return &Circuit{Params: p, System: s, challenges: s.Positions(challengeTemplate)}
}

// challenge adds the opening of one challenged node (Proof::synthesize). replicaID is the
// replica id's digits.
func challenge(b *constraint.Builder, p Params, commD, commC, commRLast constraint.Var, replicaID []gadget.Boolean) {
	data := b.Alloc()
	dataInclusion(b, p, data, commD)

	// Columns of the parents, which tree C holds: rows by layer.
	var parents [degree][]constraint.Var
	for i := range parents {
		parents[i] = column(b, p, commC)
	}

	node := make([]constraint.Var, 64)
	for i := range node {
		node[i] = gadget.Bit(b)
	}
	gadget.PackInput(b, node)

	labels := make([]constraint.Var, p.Layers)
	for layer := range labels {
		var values []constraint.Var
		for _, column := range parents[:baseDegree] {
			values = append(values, column[layer])
		}
		if layer > 0 {
			for _, column := range parents[baseDegree:] {
				values = append(values, column[layer-1])
			}
		}
		labels[layer] = label(b, replicaID, layer, node, values)
	}

	// The replica's node is the data's, encoded with the last label as the key.
	replica := b.Alloc()
	b.Enforce(constraint.Lin(labels[p.Layers-1]).Sum(constraint.Lin(data)), constraint.Lin(constraint.One), constraint.Lin(replica))
	inclusion(b, p, replica, commRLast)
	inclusion(b, p, gadget.Poseidon(b, labels), commC)
}

// dataInclusion adds the path from a leaf of tree D to its root.
func dataInclusion(b *constraint.Builder, p Params, leaf, root constraint.Var) {
	node := leaf
	position := make([]constraint.Var, p.dataTree().BaseHeight)
	for i := range position {
		node, position[i] = gadget.SHA256MerkleStep(b, node)
	}
	gadget.PackInput(b, position)
	gadget.Equal(b, node, root)
}

// inclusion adds the path from a leaf of tree C or R last to its root. The leaf's position,
// packed from the path's index bits, is a public input (PoRCircuit::synthesize in
// storage-proofs-core, with a private root).
func inclusion(b *constraint.Builder, p Params, leaf, root constraint.Var) {
	b.Call("porep-inclusion", []constraint.Var{leaf, root},
		func(b *constraint.Builder, ports []constraint.Var) ([]constraint.Var, any) {
			node := ports[0]
			var position []constraint.Var
			for _, arity := range p.Tree.Arities() {
				var index []constraint.Var
				node, index = gadget.MerkleStep(b, arity, node)
				position = append(position, index...)
			}
			gadget.PackInput(b, position)
			gadget.Equal(b, node, ports[1])
			return nil, nil
		})
}

// column adds a column of labels, whose hash is a leaf of tree C, and returns its rows
// (ColumnProof).
func column(b *constraint.Builder, p Params, commC constraint.Var) []constraint.Var {
	rows, _ := b.Call("porep-column", []constraint.Var{commC},
		func(b *constraint.Builder, ports []constraint.Var) ([]constraint.Var, any) {
			rows := make([]constraint.Var, p.Layers)
			for i := range rows {
				rows[i] = b.Alloc()
			}
			inclusion(b, p, gadget.Poseidon(b, rows), ports[0])
			return rows, nil
		})
	return rows
}

// label adds the label of the node with the given 64 bits, lowest first, in a layer, which
// counts from 0: SHA-256 of the replica id, the layer's number from 1, the node, and the
// labels of its parents (create_label_circuit).
func label(b *constraint.Builder, replicaID []gadget.Boolean, layer int, node, parents []constraint.Var) constraint.Var {
	ports := slices.Concat(variables(replicaID), node, parents)
	outs, _ := b.Call(fmt.Sprintf("porep-label-%d", layer), ports,
		func(b *constraint.Builder, ports []constraint.Var) ([]constraint.Var, any) {
			replicaID, ports := booleans(ports[:len(replicaID)]), ports[len(replicaID):]
			node, parents := booleans(ports[:len(node)]), ports[len(node):]

			message := gadget.Bytes(replicaID)
			for i := 31; i >= 0; i-- {
				bit := gadget.False
				if (layer+1)>>i&1 == 1 {
					bit = gadget.True
				}
				message = append(message, bit)
			}
			for i := range node {
				message = append(message, node[len(node)-1-i])
			}
			for len(message) < 2*8*merkle.NodeBytes {
				message = append(message, gadget.False)
			}
			labels := make([][]gadget.Boolean, len(parents))
			for i, parent := range parents {
				labels[i] = gadget.Bytes(gadget.Unpack(b, parent))
			}
			for i := range labelParents {
				message = append(message, labels[i%len(labels)]...)
			}
			return []constraint.Var{gadget.PackHash(b, gadget.SHA256(b, message))}, nil
		})
	return outs[0]
}

// variables are the variables of Booleans that are neither constant nor negated.
func variables(bits []gadget.Boolean) []constraint.Var {
	vars := make([]constraint.Var, len(bits))
	for i, bit := range bits {
		vars[i] = bit.Var
	}
	return vars
}

func booleans(vars []constraint.Var) []gadget.Boolean {
	bits := make([]gadget.Boolean, len(vars))
	for i, v := range vars {
		bits[i] = gadget.Is(v)
	}
	return bits
}
