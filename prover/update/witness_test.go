package update

import (
	"context"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"
)

// Every partition of every case of the originals satisfies its circuit, with the originals'
// public inputs.
func TestWitnessSatisfies(t *testing.T) {
	for _, name := range caseNames {
		t.Run(name, func(t *testing.T) {
			ref, req := load(t, name)
			s, err := Decode(context.Background(), req)
			require.NoError(t, err)
			circuit := NewCircuit(s.Params)
			for k := range s.Partitions {
				w, err := circuit.Witness(context.Background(), &s.Partitions[k])
				require.NoError(t, err)
				require.NoError(t, circuit.System.Check(context.Background(), w))
				require.Equal(t, ref.PublicInputs[k], hexElements(w.Inputs[1:]))
			}
		})
	}
}

// A sector of 8 MiB has what mainnet's have and the smaller ones do not: four partitions or
// more, choices of high digits that differ, and an apex tree above a path.
func TestSectorOf8MiB(t *testing.T) { requireSectorProvable(t, 8<<20) }

// Property: a witness of a partition whose proof does not hold breaks the circuit, whichever
// part is wrong. (Decode and Check refuse such input before; this is what makes the circuit
// worth proving.)
func TestWrongWitnessIsNotSatisfied(t *testing.T) {
	seven := fr.NewElement(7)
	for _, test := range []struct {
		what, name string
		change     func(*Partition)
	}{
		{"comm_r_old", "update-2KiB", func(p *Partition) { p.ROld = seven }},
		{"comm_d_new", "update-2KiB", func(p *Partition) { p.DNew = seven }},
		{"comm_r_new", "update-2KiB", func(p *Partition) { p.RNew = seven }},
		{"comm_c", "update-2KiB", func(p *Partition) { p.Proof.CommC = seven }},
		{"apex leaf", "update-2KiB", func(p *Partition) { p.Proof.ApexLeaves[5] = seven }},
		{"old leaf", "update-2KiB", func(p *Partition) { p.Proof.Challenges[9].ROld.Leaf = seven }},
		{"data leaf", "update-2KiB", func(p *Partition) { p.Proof.Challenges[9].DNew.Leaf = seven }},
		{"new leaf", "update-2KiB", func(p *Partition) { p.Proof.Challenges[9].RNew.Leaf = seven }},
		{"another challenge", "update-2KiB", func(p *Partition) { p.Proof.Challenges[1] = p.Proof.Challenges[2] }},
		{"another partition", "update-16KiB", func(p *Partition) { p.Index = 1 }},
	} {
		_, req := load(t, test.name)
		s, err := Decode(context.Background(), req)
		require.NoError(t, err)
		test.change(&s.Partitions[0])
		circuit := NewCircuit(s.Params)
		w, err := circuit.Witness(context.Background(), &s.Partitions[0])
		require.NoError(t, err)
		require.Error(t, circuit.System.Check(context.Background(), w), test.what)
	}
}

func TestWitnessOfAnotherSize(t *testing.T) {
	_, req := load(t, "update-2KiB")
	s, err := Decode(context.Background(), req)
	require.NoError(t, err)
	p, err := ParamsFor(4 << 10)
	require.NoError(t, err)
	_, err = NewCircuit(p).Witness(context.Background(), &s.Partitions[0])
	require.ErrorContains(t, err, "for a circuit of")
}

// benchmarkWitness measures one partition of a sector of the given size.
func benchmarkWitness(b *testing.B, size uint64) {
	p, err := ParamsFor(size)
	require.NoError(b, err)
	c, proofs := new(Sparse).sector(p, 0)
	part := &Partition{Params: p, Commitments: c, Proof: proofs[0]}
	circuit := NewCircuit(p)
	b.SetBytes(circuit.System.Layout().Bytes())
	for b.Loop() {
		if _, err := circuit.Witness(context.Background(), part); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(circuit.System.NumAux())*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mvariables/s")
}

func BenchmarkWitness2KiB(b *testing.B)  { benchmarkWitness(b, 2<<10) }
func BenchmarkWitness32GiB(b *testing.B) { benchmarkWitness(b, 32<<30) }

func BenchmarkEvaluate2KiB(b *testing.B) {
	_, req := load(b, "update-2KiB")
	s, err := Decode(context.Background(), req)
	require.NoError(b, err)
	circuit := NewCircuit(s.Params)
	w, err := circuit.Witness(context.Background(), &s.Partitions[0])
	require.NoError(b, err)
	n := circuit.System.NumConstraints()
	var m [3][]fr.Element
	for i := range m {
		m[i] = make([]fr.Element, n)
	}
	for b.Loop() {
		if err := circuit.System.Evaluate(context.Background(), w, m[0], m[1], m[2], 2); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mconstraints/s")
}
