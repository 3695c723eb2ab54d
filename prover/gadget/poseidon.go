package gadget

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/poseidon"
	"github.com/interlock-prover/interlock/prover/witness"
)

// Poseidon makes the hash of a tree's node of 2, 4, 8 or 11 children, as neptune's
// legacy circuit does (circuit.rs: poseidon_hash), which Filecoin's parameters were
// made for: the input of every S-box is a variable of its own.
func Poseidon(b *constraint.Builder, inputs []constraint.Var) constraint.Var {
	return PoseidonOf(b, poseidon.For(len(inputs)), inputs)
}

// PoseidonOf is Poseidon with the given constants.
func PoseidonOf(b *constraint.Builder, c *poseidon.Constants, inputs []constraint.Var) constraint.Var {
	outs, _ := b.Call(fmt.Sprintf("poseidon-%d tag %s", c.Arity, c.DomainTag.Text(16)), inputs,
		func(b *constraint.Builder, inputs []constraint.Var) ([]constraint.Var, any) {
			p := permutation{b: b, c: c}
			return []constraint.Var{p.hash(inputs)}, nil
		})
	return outs[0]
}

// WritePoseidon writes the values of the variables that Poseidon makes and
// returns the hash.
func WritePoseidon(w *witness.Writer, inputs []fr.Element) fr.Element {
	return WritePoseidonOf(w, poseidon.For(len(inputs)), inputs)
}

// WritePoseidonOf writes the values of the variables that PoseidonOf makes and
// returns the hash.
func WritePoseidonOf(w *witness.Writer, c *poseidon.Constants, inputs []fr.Element) fr.Element {
	return c.Trace(inputs, w.Fulls(c.TraceLen()))
}

// permutation is the state of one Poseidon permutation in the circuit.
type permutation struct {
	b     *constraint.Builder
	c     *poseidon.Constants
	keys  []fr.Element    // compressed round constants not used yet
	state []constraint.LC // one linear combination for each element
}

func (p *permutation) hash(inputs []constraint.Var) constraint.Var {
	half := p.c.FullRounds / 2
	p.keys = p.c.CompressedRoundConstants
	p.firstRound(inputs)
	for r := 1; r < half; r++ {
		p.fullRound(p.nextKeys(p.c.Width))
		if r < half-1 {
			p.mix(p.c.MDS)
		} else {
			p.mix(p.c.PreSparse)
		}
	}
	for r := range p.c.PartialRounds {
		p.state[0] = constraint.Lin(p.sBox(p.variable(0), nil, &p.nextKeys(1)[0]))
		p.mixSparse(&p.c.Sparse[r])
	}
	for range half - 1 {
		p.fullRound(p.nextKeys(p.c.Width))
		p.mix(p.c.MDS)
	}
	p.fullRound(nil)
	p.mix(p.c.MDS)
	return p.variable(1)
}

func (p *permutation) nextKeys(n int) []fr.Element {
	keys := p.keys[:n]
	p.keys = p.keys[n:]
	return keys
}

// firstRound adds the first keys to the inputs, before their S-boxes. Element 0,
// the domain tag, is constant, and so is its S-box.
func (p *permutation) firstRound(inputs []constraint.Var) {
	pre := p.nextKeys(p.c.Width)
	post := p.nextKeys(p.c.Width)
	var tag, x fr.Element
	tag.Add(&p.c.DomainTag, &pre[0])
	x.Square(&tag)
	x.Square(&x)
	tag.Mul(&tag, &x)
	tag.Add(&tag, &post[0])
	p.state = []constraint.LC{constraint.Const(tag)}
	for i, in := range inputs {
		p.state = append(p.state, constraint.Lin(p.sBox(in, &pre[i+1], &post[i+1])))
	}
	p.mix(p.c.MDS)
}

// fullRound applies the S-box to every element and adds keys after it, if any.
func (p *permutation) fullRound(keys []fr.Element) {
	for i := range p.state {
		var key *fr.Element
		if keys != nil {
			key = &keys[i]
		}
		p.state[i] = constraint.Lin(p.sBox(p.variable(i), nil, key))
	}
}

// variable makes a variable equal to element i.
func (p *permutation) variable(i int) constraint.Var {
	v := p.b.Alloc()
	p.b.Enforce(p.state[i], constraint.Lin(constraint.One), constraint.Lin(v))
	return v
}

// sBox makes (l + pre)^5 + post; pre and post may be nil. Its variables are
// (l + pre)^2, (l + pre)^4 and the result.
func (p *permutation) sBox(l constraint.Var, pre, post *fr.Element) constraint.Var {
	x := constraint.Lin(l)
	if pre != nil {
		x = x.Plus(constraint.One, *pre)
	}
	x2 := p.b.Alloc()
	p.b.Enforce(x, x, constraint.Lin(x2))
	x4 := p.b.Alloc()
	p.b.Enforce(constraint.Lin(x2), constraint.Lin(x2), constraint.Lin(x4))
	x5 := p.b.Alloc()
	result := constraint.Lin(x5)
	if post != nil {
		var neg fr.Element
		result = result.Plus(constraint.One, *neg.Neg(post))
	}
	p.b.Enforce(x, constraint.Lin(x4), result)
	return x5
}

// mix multiplies the state, a row vector, by m.
func (p *permutation) mix(m [][]fr.Element) {
	next := make([]constraint.LC, len(p.state))
	for j := range next {
		for i, lc := range p.state {
			next[j] = next[j].Sum(lc.Scale(m[i][j]))
		}
	}
	p.state = next
}

// mixSparse multiplies the state by a sparse matrix: its first column is WHat,
// its first row goes on with VRest, and the rest is the identity.
func (p *permutation) mixSparse(m *poseidon.SparseMatrix) {
	var first constraint.LC
	for i, lc := range p.state {
		first = first.Sum(lc.Scale(m.WHat[i]))
	}
	for j := 1; j < len(p.state); j++ {
		p.state[j] = p.state[j].Sum(p.state[0].Scale(m.VRest[j-1]))
	}
	p.state[0] = first
}
