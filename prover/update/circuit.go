package update

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/gadget"
	"github.com/interlock-prover/interlock/prover/poseidon"
	"github.com/interlock-prover/interlock/prover/witness"
)

// Template names; witnesses are written by instance of these.
const (
	apexTemplate      = "update-apex-hash"
	partitionTemplate = "update-partition"
	challengeTemplate = "update-challenge"
)

// Circuit is the constraint system of one partition: the empty sector update circuit of
// storage-proofs-update (circuit.rs and gadgets.rs).
type Circuit struct {
	Params Params
	System *constraint.System

	// Where variables begin: those of each hash of the apex tree, level by level, of the
	// partition, and of each challenge. Before the first of them are the circuit's own.
	apex       []witness.Position
	partition  witness.Position
	challenges []witness.Position
}

// NewCircuit compiles the circuit of p.
func NewCircuit(p Params) *Circuit {
	c := circuitBuilder{b: constraint.NewBuilder(), p: p}
	c.commitments()
	apexRoot := c.apexTree()
	challenges := c.drawChallenges(apexRoot)

	ports := []constraint.Var{c.phi, c.rootROld, c.rootRNew}
	ports = append(ports, c.highSelect...)
	ports = append(ports, c.apexLeaves...)
	for _, leaf := range challenges {
		c.b.Call(challengeTemplate, append(ports[:len(ports):len(ports)], leaf...),
			func(b *constraint.Builder, ports []constraint.Var) ([]constraint.Var, any) {
				h, a := 3+len(c.highSelect), 3+len(c.highSelect)+p.ApexLeaves
				inner := challengeCircuit{
					b: b, p: p, phi: ports[0], rootROld: ports[1], rootRNew: ports[2],
					highSelect: ports[3:h], apexLeaves: ports[h:a], leaf: ports[a:],
				}
				inner.synthesize()
				return nil, nil
			})
	}
	s := c.b.Finish()
	return &Circuit{
		Params: p, System: s,
		apex:       s.Positions(apexTemplate),
		partition:  s.Positions(partitionTemplate)[0],
		challenges: s.Positions(challengeTemplate),
	}
}

// circuitBuilder makes what is there once in a partition's circuit.
type circuitBuilder struct {
	b *constraint.Builder
	p Params

	partitionBits      []constraint.Var // of the partition's number
	partition          constraint.Var   // that number
	highSelect         []constraint.Var // one of these bits is 1, that of the choice among highBits
	commDNew, commRNew constraint.Var
	phi                constraint.Var // what the factors of the encoding are derived from
	rootROld, rootRNew constraint.Var
	apexLeaves         []constraint.Var
	apexPath           []constraint.Var // siblings from the apex tree's root to the tree's
}

// commitments makes the public inputs, phi, and the relation of comm_r to the roots of the
// trees, old and new.
func (c *circuitBuilder) commitments() {
	b := c.b
	selector := b.Alloc()
	gadget.Inputize(b, selector)
	bits := digits(b, selector, c.p.partitionBits()+len(c.p.highBits()))
	c.partitionBits, c.highSelect = bits[:c.p.partitionBits()], bits[c.p.partitionBits():]
	c.partition = gadget.Pack(b, c.partitionBits)

	public := func() constraint.Var {
		x := b.Alloc()
		gadget.Inputize(b, x)
		return x
	}
	commROld := public()
	c.commDNew = public()
	c.commRNew = public()
	c.phi = gadget.PoseidonOf(b, poseidon.Randomness(), []constraint.Var{c.commDNew, commROld})

	commC := b.Alloc()
	c.rootROld = b.Alloc()
	c.rootRNew = b.Alloc()
	c.apexLeaves = alloc(b, c.p.ApexLeaves)
	c.apexPath = alloc(b, c.p.partitionBits())
	gadget.Equal(b, gadget.Poseidon(b, []constraint.Var{commC, c.rootROld}), commROld)
	gadget.Equal(b, gadget.Poseidon(b, []constraint.Var{commC, c.rootRNew}), c.commRNew)
}

// apexTree adds the tree over the apex leaves and returns its root (apex_por).
func (c *circuitBuilder) apexTree() constraint.Var {
	level := c.apexLeaves
	for len(level) > 1 {
		parents := make([]constraint.Var, len(level)/2)
		for i := range parents {
			outs, _ := c.b.Call(apexTemplate, level[2*i:2*i+2],
				func(b *constraint.Builder, ports []constraint.Var) ([]constraint.Var, any) {
					return []constraint.Var{gadget.SHA256Pair(b, ports[0], ports[1])}, nil
				})
			parents[i] = outs[0]
		}
		level = parents
	}
	return level[0]
}

// drawChallenges adds the path from the apex tree's root to comm_d_new, and draws the
// challenges. It returns the digits of each challenged leaf's number.
func (c *circuitBuilder) drawChallenges(apexRoot constraint.Var) [][]constraint.Var {
	ports := []constraint.Var{apexRoot, c.commDNew, c.commRNew, c.partition}
	ports = append(ports, c.partitionBits...)
	ports = append(ports, c.apexPath...)
	random, _ := c.b.Call(partitionTemplate, ports,
		func(b *constraint.Builder, ports []constraint.Var) ([]constraint.Var, any) {
			index, siblings := ports[4:][:len(c.partitionBits)], ports[4+len(c.partitionBits):]
			dataPath(b, ports[0], ports[1], index, siblings)
			return randomDigits(b, c.p, ports[2], ports[3]), nil
		})
	challenges := make([][]constraint.Var, c.p.Challenges)
	for i := range challenges {
		n := c.p.randomBits()
		challenges[i] = append(random[:n:n], c.partitionBits...)
		random = random[n:]
	}
	return challenges
}

// randomDigits draws the random digits of all challenges, one challenge after the other,
// from digests numbered through all partitions (gen_challenge_bits).
func randomDigits(b *constraint.Builder, p Params, commRNew, partition constraint.Var) []constraint.Var {
	var out []constraint.Var
	for j := range p.digests() {
		index := b.Alloc()
		number := constraint.LC{{Var: partition, Coeff: fr.NewElement(uint64(p.digests()))}}.
			Plus(constraint.One, fr.NewElement(uint64(j)))
		b.Enforce(number, constraint.Lin(constraint.One), constraint.Lin(index))
		digest := gadget.PoseidonOf(b, poseidon.Randomness(), []constraint.Var{commRNew, index})
		out = append(out, digits(b, digest, fr.Bits)[:p.perDigest()*p.randomBits()]...)
	}
	return out[:p.Challenges*p.randomBits()]
}

// challengeCircuit makes the part of the circuit for one challenge.
type challengeCircuit struct {
	b                       *constraint.Builder
	p                       Params
	phi, rootROld, rootRNew constraint.Var
	highSelect, apexLeaves  []constraint.Var
	leaf                    []constraint.Var // digits of the leaf's number
}

func (c *challengeCircuit) synthesize() {
	b := c.b
	rho := gadget.PoseidonOf(b, poseidon.Randomness(), []constraint.Var{c.phi, c.high()})

	// The new replica's leaf is the old one's plus rho times the data's (label_r_new).
	rOld := b.Alloc()
	dNew := b.Alloc()
	product := gadget.Multiply(b, dNew, rho)
	rNew := b.Alloc()
	b.Enforce(constraint.Lin(rOld).Sum(constraint.Lin(product)), constraint.Lin(constraint.One), constraint.Lin(rNew))

	c.replicaPath(rOld, c.rootROld)
	c.replicaPath(rNew, c.rootRNew)

	height := c.p.apexHeight()
	apexLeaf := gadget.Select(b, c.apexLeaves, c.leaf[height:c.p.apexRoot()])
	dataPath(b, dNew, apexLeaf, c.leaf[:height], alloc(b, height))
}

// high makes the number of the leaf's highest digits, as many as highSelect chooses
// (get_challenge_high_bits).
func (c *challengeCircuit) high() constraint.Var {
	var sum constraint.LC
	for i, h := range c.p.highBits() {
		candidate := gadget.Pack(c.b, c.leaf[len(c.leaf)-h:])
		sum = sum.Sum(constraint.Lin(gadget.Multiply(c.b, candidate, c.highSelect[i])))
	}
	high := c.b.Alloc()
	c.b.Enforce(sum, constraint.Lin(constraint.One), constraint.Lin(high))
	return high
}

// replicaPath adds the path from a leaf of tree R last to its root.
func (c *challengeCircuit) replicaPath(leaf, root constraint.Var) {
	ports := append([]constraint.Var{leaf, root}, c.leaf...)
	c.b.Call("update-replica-path", ports,
		func(b *constraint.Builder, ports []constraint.Var) ([]constraint.Var, any) {
			node, root, index := ports[0], ports[1], ports[2:]
			arities := c.p.Tree.Arities()
			siblings := make([][]constraint.Var, len(arities))
			for i, arity := range arities {
				siblings[i] = alloc(b, arity-1)
			}
			for i, arity := range arities {
				n := log2(uint64(arity))
				node = gadget.MerkleParent(b, node, index[:n], siblings[i])
				index = index[n:]
			}
			gadget.Equal(b, node, root)
			return nil, nil
		})
}

// dataPath adds the path from a node of tree D to one above it, whose siblings are there
// already. index has one digit for each level.
func dataPath(b *constraint.Builder, node, above constraint.Var, index, siblings []constraint.Var) {
	for i := range index {
		node = gadget.SHA256MerkleParent(b, node, index[i], siblings[i])
	}
	gadget.Equal(b, node, above)
}

// digits makes the n binary digits of x, lowest first: sum · 1 = x
// (allocated_num_to_allocated_bits).
func digits(b *constraint.Builder, x constraint.Var, n int) []constraint.Var {
	bits := make([]constraint.Var, n)
	for i := range bits {
		bits[i] = gadget.Bit(b)
	}
	b.Enforce(gadget.Packed(bits), constraint.Lin(constraint.One), constraint.Lin(x))
	return bits
}

func alloc(b *constraint.Builder, n int) []constraint.Var {
	vars := make([]constraint.Var, n)
	for i := range vars {
		vars[i] = b.Alloc()
	}
	return vars
}
