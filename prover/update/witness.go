package update

import (
	"context"
	"fmt"
	"runtime"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/gadget"
	"github.com/interlock-prover/interlock/prover/merkle"
	"github.com/interlock-prover/interlock/prover/poseidon"
	"github.com/interlock-prover/interlock/prover/witness"
)

// Witness assigns all variables of one partition, which has been checked. It works on all
// cores: challenge by challenge, and hash by hash of the apex tree.
func (c *Circuit) Witness(ctx context.Context, p *Partition) (*witness.Witness, error) {
	if p.Params != c.Params {
		return nil, fmt.Errorf("a partition of %+v for a circuit of %+v", p.Params, c.Params)
	}
	w := witness.New(c.System.Layout())
	apex, phi := apexTree(p.Proof.ApexLeaves), p.phi()
	wr := witness.NewWriter(w, witness.Start)
	writeCommitments(wr, p)
	wr.Close()
	wr = witness.NewWriter(w, c.partition)
	writePartition(wr, p, apex[len(apex)-1])
	wr.Close()

	n := len(c.challenges)
	err := constraint.Parallel(ctx, n+len(c.apex), 1, runtime.GOMAXPROCS(0), func(i, _ int) error {
		if i < n {
			wr := witness.NewWriter(w, c.challenges[i])
			writeChallenge(wr, p, phi, i)
			wr.Close()
			return nil
		}
		i -= n
		wr := witness.NewWriter(w, c.apex[i])
		gadget.WriteSHA256Pair(wr, &apex[2*i], &apex[2*i+1])
		wr.Close()
		return nil
	})
	if err != nil {
		w.Free()
		return nil, err
	}
	return w, nil
}

// writeCommitments writes the values of the variables that commitments makes.
func writeCommitments(w *witness.Writer, p *Partition) {
	selector := fr.NewElement(p.selector())
	w.Full(&selector)
	w.Input(&selector)
	w.Word(p.selector(), p.Params.partitionBits()+len(p.Params.highBits()))
	partition := fr.NewElement(uint64(p.Index))
	w.Full(&partition)
	for _, x := range []*fr.Element{&p.ROld, &p.DNew, &p.RNew} {
		w.Full(x)
		w.Input(x)
	}
	gadget.WritePoseidonOf(w, poseidon.Randomness(), []fr.Element{p.DNew, p.ROld})

	first := &p.Proof.Challenges[0]
	w.Full(&p.Proof.CommC)
	w.Full(&first.ROld.Root)
	w.Full(&first.RNew.Root)
	copy(w.Fulls(p.Params.ApexLeaves), p.Proof.ApexLeaves)
	writeSiblings(w, first.DNew.Path[p.Params.apexRoot():])
	gadget.WritePoseidon(w, []fr.Element{p.Proof.CommC, first.ROld.Root})
	gadget.WritePoseidon(w, []fr.Element{p.Proof.CommC, first.RNew.Root})
}

// writePartition writes the values of the variables that drawChallenges makes.
func writePartition(w *witness.Writer, p *Partition, apexRoot fr.Element) {
	writeDataPath(w, apexRoot, p.Proof.Challenges[0].DNew.Path[p.Params.apexRoot():])
	for j := range p.Params.digests() {
		number := fr.NewElement(p.Params.digestNumber(p.Index, j))
		w.Full(&number)
		digest := gadget.WritePoseidonOf(w, poseidon.Randomness(), []fr.Element{p.RNew, number})
		gadget.WriteUnpack(w, &digest) // 255 digits
	}
}

// writeChallenge writes the values of the variables that challengeCircuit makes for
// challenge i.
func writeChallenge(w *witness.Writer, p *Partition, phi fr.Element, i int) {
	c := &p.Proof.Challenges[i]
	leaf := c.DNew.Position()
	var high, zero fr.Element
	for k, h := range p.Params.highBits() {
		candidate := fr.NewElement(leaf >> (p.Params.leafBits() - h))
		w.Full(&candidate)
		if k == p.Params.highIndex() {
			high = candidate
			w.Full(&candidate)
		} else {
			w.Full(&zero)
		}
	}
	w.Full(&high)
	rho := gadget.WritePoseidonOf(w, poseidon.Randomness(), []fr.Element{phi, high})

	w.Full(&c.ROld.Leaf)
	w.Full(&c.DNew.Leaf)
	rho.Mul(&rho, &c.DNew.Leaf)
	w.Full(&rho)
	w.Full(&c.RNew.Leaf)
	writeReplicaPath(w, &c.ROld)
	writeReplicaPath(w, &c.RNew)

	height := p.Params.apexHeight()
	apexLeaf := int(leaf>>height) & (p.Params.ApexLeaves - 1)
	gadget.WriteSelect(w, p.Proof.ApexLeaves, apexLeaf)
	writeSiblings(w, c.DNew.Path[:height])
	writeDataPath(w, c.DNew.Leaf, c.DNew.Path[:height])
}

// writeReplicaPath writes the values of the variables that replicaPath makes.
func writeReplicaPath(w *witness.Writer, p *merkle.Proof) {
	writeSiblings(w, p.Path)
	node := p.Leaf
	for i := range p.Path {
		step := &p.Path[i]
		node = gadget.WriteMerkleParent(w, &node, step.Index, step.Siblings)
	}
}

// writeDataPath writes the values of the variables that dataPath makes.
func writeDataPath(w *witness.Writer, node fr.Element, path []merkle.Step) {
	for i := range path {
		step := &path[i]
		node = gadget.WriteSHA256MerkleParent(w, &node, step.Index, &step.Siblings[0])
	}
}

func writeSiblings(w *witness.Writer, path []merkle.Step) {
	for i := range path {
		copy(w.Fulls(len(path[i].Siblings)), path[i].Siblings)
	}
}
