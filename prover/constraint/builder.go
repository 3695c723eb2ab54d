package constraint

import (
	"fmt"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// Var names a variable within one frame: the constant one, a port, an auxiliary
// variable or a public input of the frame. Auxiliary variables and inputs of the
// frames called within it are numbered with its own.
type Var uint32

// One is the constant one, the same in every frame.
const One Var = 0

const (
	auxFlag   Var = 1 << 31
	inputFlag Var = 1 << 30
	indexMask Var = 1<<30 - 1
)

// Term is Coeff times Var.
type Term struct {
	Var   Var
	Coeff fr.Element
}

// LC is a linear combination: the sum of its terms. Variables may repeat.
type LC []Term

// Lin is the linear combination of v alone.
func Lin(v Var) LC { return LC{{v, fr.One()}} }

// Const is the constant c.
func Const(c fr.Element) LC { return LC{{One, c}} }

// Plus is l + c·v. It does not change l.
func (l LC) Plus(v Var, c fr.Element) LC {
	return append(slices.Clip(l), Term{v, c})
}

// Sum is l + m.
func (l LC) Sum(m LC) LC { return append(slices.Clip(l), m...) }

// Scale is c·l.
func (l LC) Scale(c fr.Element) LC {
	out := make(LC, len(l))
	for i, t := range l {
		out[i].Var = t.Var
		out[i].Coeff.Mul(&t.Coeff, &c)
	}
	return out
}

// simplify sorts by variable, merges repeated variables and drops zero
// coefficients, as the originals' linear combinations do.
func (l LC) simplify() LC {
	out := slices.Clone(l)
	slices.SortStableFunc(out, func(a, b Term) int { return int(int64(a.Var) - int64(b.Var)) })
	n := 0
	for i := 0; i < len(out); {
		t := out[i]
		for i++; i < len(out) && out[i].Var == t.Var; i++ {
			t.Coeff.Add(&t.Coeff, &out[i].Coeff)
		}
		if !t.Coeff.IsZero() {
			out[n] = t
			n++
		}
	}
	return out[:n]
}

// Builder makes one frame of a circuit: its variables, constraints and calls of
// templates. It is not safe for concurrent use.
type Builder struct {
	lib *library
	t   *template
}

// library is what all frames of one circuit share.
type library struct {
	entries map[string]*entry
	coeffs  []fr.Element
	coeffNo map[fr.Element]uint32
}

// entry is a recorded template with what its definition returned.
type entry struct {
	t    *template // nil while being defined
	outs []Var
	note any
}

func (l *library) coeff(c fr.Element) uint32 {
	no, ok := l.coeffNo[c]
	if !ok {
		no = uint32(len(l.coeffs))
		l.coeffs = append(l.coeffs, c)
		l.coeffNo[c] = no
	}
	return no
}

// NewBuilder starts a circuit. The constant one is its input 0.
func NewBuilder() *Builder {
	lib := &library{entries: map[string]*entry{}, coeffNo: map[fr.Element]uint32{}}
	one := fr.One()
	minusOne := fr.Element{}
	minusOne.Neg(&one)
	lib.coeff(one)
	lib.coeff(minusOne)
	return &Builder{lib: lib, t: &template{name: "circuit"}}
}

// Alloc makes an auxiliary variable that can hold any field element.
func (b *Builder) Alloc() Var { return b.alloc(false) }

// AllocBit makes an auxiliary variable that is 0 or 1. The caller constrains it
// to be so; here it only decides how witnesses store it.
func (b *Builder) AllocBit() Var { return b.alloc(true) }

func (b *Builder) alloc(isBit bool) Var {
	v := auxFlag | Var(b.t.aux)
	b.t.isBit.push(isBit)
	b.t.aux++
	return v
}

// AllocInput makes a public input.
func (b *Builder) AllocInput() Var {
	v := inputFlag | Var(b.t.inputs)
	b.t.inputs++
	return v
}

// Enforce adds the constraint x · y = z.
func (b *Builder) Enforce(x, y, z LC) {
	t := b.t
	for _, lc := range [3]LC{x, y, z} {
		for _, term := range lc.simplify() {
			t.terms = append(t.terms, packedTerm{term.Var, b.lib.coeff(term.Coeff)})
		}
		t.ends = append(t.ends, uint32(len(t.terms)))
	}
	if n := len(t.items); n > 0 && t.items[n-1].child == nil {
		t.items[n-1].rows++
	} else {
		t.items = append(t.items, item{start: uint32(t.constraints), rows: 1, firstRow: uint32(len(t.ends)/3 - 1)})
	}
	t.constraints++
}

// Call adds an instance of the template named key, connected to the given
// ports. The first call of a key runs define in a frame of its own, with the
// ports' names in that frame, to record the template. Whatever define does may
// depend on nothing but key. It returns variables of its frame, which Call
// translates into this one's, and a note that is handed to every caller.
func (b *Builder) Call(key string, ports []Var, define func(b *Builder, ports []Var) (outs []Var, note any)) ([]Var, any) {
	e := b.lib.entries[key]
	if e == nil {
		e = &entry{}
		b.lib.entries[key] = e
		child := &Builder{lib: b.lib, t: &template{name: key, ports: len(ports)}}
		inner := make([]Var, len(ports))
		for i := range inner {
			inner[i] = Var(i + 1)
		}
		e.outs, e.note = define(child, inner)
		e.t = child.t
		e.t.finish()
	}
	if e.t == nil {
		panic(fmt.Sprintf("constraint: template %q calls itself", key))
	}
	if e.t.ports != len(ports) {
		panic(fmt.Sprintf("constraint: template %q has %d ports, called with %d", key, e.t.ports, len(ports)))
	}
	t := b.t
	auxBase, inputBase := Var(t.aux), Var(t.inputs)
	t.items = append(t.items, item{
		start: uint32(t.constraints), child: e.t, ports: slices.Clone(ports),
		auxBase: uint32(auxBase), inputBase: uint32(inputBase),
	})
	t.isBit.append(&e.t.isBit)
	t.aux += e.t.aux
	t.inputs += e.t.inputs
	t.constraints += e.t.constraints
	outs := make([]Var, len(e.outs))
	for i, v := range e.outs {
		switch {
		case v&auxFlag != 0:
			outs[i] = v + auxBase
		case v&inputFlag != 0:
			outs[i] = v + inputBase
		case v == One:
			outs[i] = One
		default:
			outs[i] = ports[v-1]
		}
	}
	return outs, e.note
}

// NumAux counts the auxiliary variables made so far in this frame.
func (b *Builder) NumAux() int { return b.t.aux }

// Finish ends the circuit. The Builder must not be used afterwards.
func (b *Builder) Finish() *System {
	b.t.finish()
	return newSystem(b.t, b.lib.coeffs)
}

// bitList is a growing bitmap.
type bitList struct {
	words []uint64
	n     int
}

func (l *bitList) push(bit bool) {
	if l.n%64 == 0 {
		l.words = append(l.words, 0)
	}
	if bit {
		l.words[l.n/64] |= 1 << (l.n % 64)
	}
	l.n++
}

func (l *bitList) append(m *bitList) {
	shift := l.n % 64
	for i, w := range m.words {
		rest := min(64, m.n-64*i) // bits of w in use
		if shift == 0 {
			l.words = append(l.words, w)
		} else {
			l.words[len(l.words)-1] |= w << shift
			if shift+rest > 64 {
				l.words = append(l.words, w>>(64-shift))
			}
		}
	}
	l.n += m.n
}
