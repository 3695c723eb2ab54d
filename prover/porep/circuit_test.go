package porep

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"
)

// shape is a constraint system as the originals' circuit makes it (the reference data's
// shapes).
type shape struct {
	Inputs, Aux, Constraints, Chunk int
	Chunks                          []string
	Digest                          string
	SectorSize                      uint64 `json:"sector_size"`
	Partitions                      int
	ParameterSet                    string `json:"parameter_set"`
	Terms                           struct{ A, B, C uint64 }
}

func loadShape(t testing.TB, name string) (shape, Params) {
	data, err := os.ReadFile(filepath.Join("testdata", "shapes", name+".json"))
	require.NoError(t, err)
	var s shape
	require.NoError(t, json.Unmarshal(data, &s))
	p, err := ParamsFor(s.SectorSize, s.Partitions)
	require.NoError(t, err)
	if strings.Contains(name, "11layers") {
		p.Layers = 11
	}
	return s, p
}

func requireShape(t *testing.T, name string) {
	t.Helper()
	want, p := loadShape(t, name)
	require.Equal(t, want.ParameterSet, p.ParameterSet())
	got, err := NewCircuit(p).System.Digest(context.Background(), want.Chunk, nil)
	require.NoError(t, err)
	require.Equal(t, want.Inputs, got.Inputs)
	require.Equal(t, want.Aux, got.Aux)
	require.Equal(t, want.Constraints, got.Constraints)
	require.Equal(t, want.Chunks, got.Chunks)
	require.Equal(t, [3]uint64{want.Terms.A, want.Terms.B, want.Terms.C}, [3]uint64{got.TermsA, got.TermsB, got.TermsC})
	require.Equal(t, want.Digest, got.Total)
}

// The circuits are the originals', constraint for constraint, so that parameters made for
// those fit. The larger ones are in the conformance run.
func TestCircuitIsTheOriginals(t *testing.T) {
	for _, name := range []string{"porep-2KiB", "porep-4KiB", "porep-16KiB", "porep-32KiB", "porep10-2KiB"} {
		t.Run(name, func(t *testing.T) { requireShape(t, name) })
	}
}

// Parameter files of every size have the originals' names.
func TestParameterSet(t *testing.T) {
	files, err := filepath.Glob("testdata/shapes/*.json")
	require.NoError(t, err)
	require.Len(t, files, 10)
	for _, file := range files {
		want, p := loadShape(t, strings.TrimSuffix(filepath.Base(file), ".json"))
		require.Equal(t, want.ParameterSet, p.ParameterSet(), file)
	}
}

// requireSatisfied checks every constraint for a partition of a case.
func requireSatisfied(t *testing.T, c *Circuit, s *Statement, partition int, inputs []string) {
	t.Helper()
	w, err := c.Witness(context.Background(), s, partition)
	require.NoError(t, err)
	require.Equal(t, inputs, hexInputs(w.Inputs[1:]))
	require.NoError(t, c.System.Check(context.Background(), w))
}

// Every case of the originals satisfies its circuit, with the originals' public inputs:
// first and last partition here, all of them in the conformance run.
func TestWitnessSatisfies(t *testing.T) {
	for _, name := range caseNames {
		t.Run(name, func(t *testing.T) {
			ref, s := decode(t, name)
			c := NewCircuit(s.Params)
			last := len(ref.PublicInputs) - 1
			requireSatisfied(t, c, s, 0, ref.PublicInputs[0])
			if last > 0 {
				requireSatisfied(t, c, s, last, ref.PublicInputs[last])
			}
		})
	}
}

// Property: a witness of a sector whose proof does not hold breaks the circuit, whichever
// part is wrong. (Decode and Check refuse such input before; this is what makes the circuit
// worth proving.)
func TestWrongWitnessIsNotSatisfied(t *testing.T) {
	_, s := decode(t, "porep10-2KiB")
	c := NewCircuit(s.Params)
	good := *s.Partitions[0].Challenges[0]
	change := func(what string, change func(*Statement, *ChallengeProof)) {
		t.Helper()
		broken, challenge := *s, good
		change(&broken, &challenge)
		broken.Partitions = []Partition{{0, []*ChallengeProof{&challenge}}}
		w, err := c.Witness(context.Background(), &broken, 0)
		require.NoError(t, err)
		require.Error(t, c.System.Check(context.Background(), w), what)
	}
	seven := fr.NewElement(7)
	change("replica id", func(s *Statement, _ *ChallengeProof) { s.ReplicaID = seven })
	change("comm_d", func(s *Statement, _ *ChallengeProof) { s.CommD = seven })
	change("comm_r", func(s *Statement, _ *ChallengeProof) { s.CommR = seven })
	change("comm_c", func(s *Statement, _ *ChallengeProof) { s.CommC = seven })
	change("comm_r_last", func(s *Statement, _ *ChallengeProof) { s.CommRLast = seven })
	change("data", func(_ *Statement, c *ChallengeProof) { c.Data.Leaf = seven })
	change("path of the data", func(_ *Statement, c *ChallengeProof) {
		c.Data.Path = slices.Clone(c.Data.Path)
		c.Data.Path[2].Index ^= 1
	})
	change("path of the replica", func(_ *Statement, c *ChallengeProof) { c.Replica.Path = c.Parents[1].Inclusion.Path })
	change("path of a column", func(_ *Statement, c *ChallengeProof) { c.Column.Inclusion.Path = c.Parents[1].Inclusion.Path })
	change("label of a base parent", func(_ *Statement, c *ChallengeProof) { c.Parents[3].Rows = []fr.Element{seven, c.Parents[3].Rows[1]} })
	change("label of an expansion parent", func(_ *Statement, c *ChallengeProof) { c.Parents[9].Rows = []fr.Element{c.Parents[9].Rows[0], seven} })
	change("order of parents", func(_ *Statement, c *ChallengeProof) { c.Parents[7], c.Parents[8] = c.Parents[8], c.Parents[7] })
}

// Property: a statement is not assigned to a circuit of other parameters.
func TestWitnessOfAnotherCircuit(t *testing.T) {
	_, s := decode(t, "porep10-2KiB")
	p, err := ParamsFor(2<<10, 1)
	require.NoError(t, err)
	_, err = NewCircuit(p).Witness(context.Background(), s, 0)
	require.ErrorContains(t, err, "for a circuit of")
}

func BenchmarkCompile32GiB(b *testing.B) {
	p, err := ParamsFor(32<<30, 0)
	require.NoError(b, err)
	var c *Circuit
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		c = NewCircuit(p)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
	runtime.KeepAlive(c)
}

func BenchmarkEvaluate2KiB(b *testing.B) {
	_, s := decode(b, "porep-2KiB")
	c := NewCircuit(s.Params)
	w, err := c.Witness(context.Background(), s, 0)
	require.NoError(b, err)
	n := c.System.NumConstraints()
	var m [3][]fr.Element
	for i := range m {
		m[i] = make([]fr.Element, n)
	}
	for b.Loop() {
		if err := c.System.Evaluate(context.Background(), w, m[0], m[1], m[2], 2); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mconstraints/s")
}
