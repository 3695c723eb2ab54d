package constraint

import (
	"slices"
	"sort"
)

// template is one recorded frame. Its own constraints and its instances of
// other templates are listed as items in the order of synthesis.
type template struct {
	name                     string
	ports                    int
	inputs, aux, constraints int // with those of the instances within

	items []item
	terms []packedTerm // of its own constraints, row after row, A, B, C
	ends  []uint32     // end of each linear combination in terms: three a row
	isBit bitList      // which auxiliary variables are bits

	inA, inB []Var // distinct variables of its own rows' A and B
}

// item is either a run of own constraints or one instance of a template.
type item struct {
	start    uint32 // first constraint, relative to the template's
	firstRow uint32 // own rows: index of the first
	rows     uint32 // own rows: how many

	child              *template
	ports              []Var // the child's ports, as variables of this frame
	auxBase, inputBase uint32
}

// packedTerm is a variable of the frame and the number of its coefficient.
type packedTerm struct {
	v     Var
	coeff uint32
}

func (t *template) finish() {
	t.inA, t.inB = t.distinct(0), t.distinct(1)
}

// distinct lists the variables of the matrix-th linear combination (0: A, 1: B)
// of all own rows.
func (t *template) distinct(matrix int) []Var {
	var out []Var
	for row := 0; row < len(t.ends)/3; row++ {
		for _, term := range t.lc(3*row + matrix) {
			out = append(out, term.v)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (t *template) lc(i int) []packedTerm {
	from := uint32(0)
	if i > 0 {
		from = t.ends[i-1]
	}
	return t.terms[from:t.ends[i]]
}

// frame is one instance of a template within the whole circuit. Its ports are
// the circuit's variables; port 0 is the constant one.
type frame struct {
	t                  *template
	ports              []uint32
	auxBase, inputBase uint32
	start              int // number of its first constraint
}

// global is the circuit's number of variable v of the frame: an input's index,
// or an auxiliary variable's with bit 31 set.
func (f *frame) global(v Var) uint32 {
	switch {
	case v&auxFlag != 0:
		return uint32(v) + f.auxBase
	case v&inputFlag != 0:
		return uint32(v&indexMask) + f.inputBase
	default:
		return f.ports[v]
	}
}

// child is the frame of an instance within f; ports is where its ports go.
func (f *frame) child(it *item, ports []uint32) frame {
	ports = append(ports, 0)
	for _, v := range it.ports {
		ports = append(ports, f.global(v))
	}
	return frame{
		t: it.child, ports: ports,
		auxBase: f.auxBase + it.auxBase, inputBase: f.inputBase + it.inputBase,
		start: f.start + int(it.start),
	}
}

// walk calls rows for each run of own constraints that overlaps from..to of the
// circuit, in order: rows first..last of template f.t, the first being
// constraint number number. stack is scratch space for ports. It stops when
// rows returns false.
func (f *frame) walk(from, to int, stack []uint32, rows func(f *frame, first, last, number int) bool) bool {
	items := f.t.items
	if from > f.start {
		items = items[sort.Search(len(items), func(i int) bool { return f.start+int(items[i].start) > from })-1:]
	}
	for i := range items {
		it := &items[i]
		start := f.start + int(it.start)
		if start >= to {
			break
		}
		if it.child != nil {
			if it.child.constraints == 0 {
				continue
			}
			c := f.child(it, stack)
			if !c.walk(from, to, c.ports[len(c.ports):], rows) {
				return false
			}
			continue
		}
		lo, hi := max(from, start), min(to, start+int(it.rows))
		if lo < hi && !rows(f, int(it.firstRow)+lo-start, int(it.firstRow)+hi-start, lo) {
			return false
		}
	}
	return true
}

// instances calls visit for f and every instance within it, in order. It does
// not descend into an instance for which visit returns false.
func (f *frame) instances(stack []uint32, visit func(f *frame) bool) {
	if !visit(f) {
		return
	}
	for i := range f.t.items {
		if it := &f.t.items[i]; it.child != nil {
			c := f.child(it, stack)
			c.instances(c.ports[len(c.ports):], visit)
		}
	}
}
