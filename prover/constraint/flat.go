package constraint

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/interlock-prover/interlock/prover/witness"
)

// Flat is a System as devices read it: every template that has rows of its own,
// with the list of its instances, in a few plain tables. The structs in them
// have the layout of their namesakes in cuda/api/interlock_cuda.h.
//
// The value of a linear combination is the sum of its terms, each a coefficient
// times a variable. Numbers of variables in terms count from where those of the
// instance begin; the constant one is port 0 of every instance. It holds no
// other constraints than the System: none of those that setup and prover add
// for the inputs.
type Flat struct {
	Constraints, Inputs, Aux, Full int // as in the System; Inputs with the constant one

	Templates []FlatTemplate
	Instances []FlatInstance // of the first template, of the second, and so on
	Ports     []uint32       // of the first instance, of the second, and so on: references with absolute numbers

	// RowPlaces has for each row its constraint, counted from its instance's
	// first, and RowEnds where its terms in A, in B and in C end in Terms. Each
	// linear combination begins where the one before it ends.
	RowPlaces []uint32
	RowEnds   []uint32
	Terms     []FlatTerm

	Coefficients []fr.Element // the first is 1, the second -1

	// Bitmaps: which auxiliary variables are bits, which occur in A and in B, and
	// which inputs occur in B.
	IsBit, DenseA, DenseB, DenseBInputs []uint64
}

// FlatTerm is a coefficient times a variable.
type FlatTerm struct {
	Variable    uint32 // a reference; but for ports, its number counts from the instance's first
	Coefficient uint32 // its number
}

// FlatTemplate is a number of rows that are repeated for each of its instances.
type FlatTemplate struct {
	Rows, FirstRow           uint32 // rows [FirstRow, FirstRow+Rows) of the tables
	Instances, FirstInstance uint32
	Ports                    uint32 // of each instance; port 0 is the constant one
	FirstPort                uint32 // of its first instance
}

// FlatInstance says where the constraints and the variables of an instance
// begin.
type FlatInstance struct {
	Constraint       uint32
	Aux, Full, Input uint32
}

// A reference to a variable has its kind in the two bits on top and its number
// in the others.
const (
	FlatInput = 0 // public input; number 0 of the circuit is the constant one
	FlatBit   = 1 // auxiliary variable that is a bit, by its number among all auxiliary variables
	FlatFull  = 2 // other auxiliary variable, by its number among those alone
	FlatPort  = 3 // in terms only: a port of the instance

	flatKindShift = 30
	// FlatNumber masks a reference's number.
	FlatNumber = 1<<flatKindShift - 1
)

// FlatKind is the kind of a reference.
func FlatKind(reference uint32) int { return int(reference >> flatKindShift) }

// Flat returns the flat form, which is made by the first call: of the system of
// a 32 GiB PoRep partition some tens of megabytes. It must not be changed.
func (s *System) Flat() *Flat {
	s.flatOnce.Do(func() { s.flat = s.flatten() })
	return s.flat
}

// flatPart is a template on the way into a Flat.
type flatPart struct {
	t         *template
	instances []FlatInstance
	ports     []uint32
}

func (s *System) flatten() *Flat {
	density := s.Density()
	f := &Flat{
		Constraints: s.NumConstraints(), Inputs: s.NumInputs(), Aux: s.NumAux(), Full: s.layout.NumFull(),
		Coefficients: s.coeffs,
		IsBit:        s.layout.BitMap(), DenseA: density.AAux, DenseB: density.BAux, DenseBInputs: density.BInputs,
	}
	var parts []*flatPart // in the order of their first instances
	byTemplate := map[*template]*flatPart{}
	root := s.rootFrame()
	root.instances(portStack(), func(fm *frame) bool {
		if len(fm.t.ends) == 0 {
			return true
		}
		p := byTemplate[fm.t]
		if p == nil {
			p = &flatPart{t: fm.t}
			byTemplate[fm.t] = p
			parts = append(parts, p)
		}
		p.instances = append(p.instances, FlatInstance{
			Constraint: uint32(fm.start),
			Aux:        fm.auxBase, Full: uint32(s.layout.FullBefore(int(fm.auxBase))), Input: fm.inputBase,
		})
		for _, v := range fm.ports {
			p.ports = append(p.ports, flatReference(s.layout, v&AuxFlag != 0, v&^AuxFlag))
		}
		return true
	})
	for _, p := range parts {
		f.append(p)
	}
	return f
}

// append adds a template with its rows and instances.
func (f *Flat) append(p *flatPart) {
	rows := uint32(len(p.t.ends) / 3)
	f.Templates = append(f.Templates, FlatTemplate{
		Rows: rows, FirstRow: uint32(len(f.RowPlaces)),
		Instances: uint32(len(p.instances)), FirstInstance: uint32(len(f.Instances)),
		Ports: uint32(p.t.ports + 1), FirstPort: uint32(len(f.Ports)),
	})
	f.Instances = append(f.Instances, p.instances...)
	f.Ports = append(f.Ports, p.ports...)
	for i := range p.t.items {
		if it := &p.t.items[i]; it.child == nil { // own rows are listed in order
			for k := range it.rows {
				f.RowPlaces = append(f.RowPlaces, it.start+k)
			}
		}
	}
	firstTerm := uint32(len(f.Terms))
	for _, end := range p.t.ends {
		f.RowEnds = append(f.RowEnds, firstTerm+end)
	}
	layout := witness.NewLayout(p.t.inputs, p.t.aux, p.t.isBit.words)
	for _, term := range p.t.terms {
		var reference uint32
		switch v := term.v; {
		case v&auxFlag != 0:
			reference = flatReference(layout, true, uint32(v&^auxFlag))
		case v&inputFlag != 0:
			reference = flatReference(layout, false, uint32(v&indexMask))
		default:
			reference = FlatPort<<flatKindShift | uint32(v)
		}
		f.Terms = append(f.Terms, FlatTerm{reference, term.coeff})
	}
}

// flatReference refers to auxiliary variable or input i of a layout.
func flatReference(l *witness.Layout, aux bool, i uint32) uint32 {
	switch {
	case !aux:
		return FlatInput<<flatKindShift | i
	case l.IsBit(int(i)):
		return FlatBit<<flatKindShift | i
	default:
		return FlatFull<<flatKindShift | uint32(l.FullBefore(int(i)))
	}
}
