package post

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"
)

// shape is a constraint system as the originals' circuits make it (the reference
// data's shapes).
type shape struct {
	Inputs, Aux, Constraints, Chunk int
	Chunks                          []string
	Digest                          string
	SectorSize                      uint64 `json:"sector_size"`
	Terms                           struct{ A, B, C uint64 }
}

func requireShape(t *testing.T, name string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "shapes", name+".json"))
	require.NoError(t, err)
	var want shape
	require.NoError(t, json.Unmarshal(data, &want))
	kind := Window
	if strings.HasPrefix(name, "winning") {
		kind = Winning
	}
	p, err := ParamsFor(kind, want.SectorSize)
	require.NoError(t, err)
	got, err := NewCircuit(p).System.Digest(context.Background(), want.Chunk, nil)
	require.NoError(t, err)
	require.Equal(t, want.Inputs, got.Inputs)
	require.Equal(t, want.Aux, got.Aux)
	require.Equal(t, want.Constraints, got.Constraints)
	require.Equal(t, [3]uint64{want.Terms.A, want.Terms.B, want.Terms.C}, [3]uint64{got.TermsA, got.TermsB, got.TermsC})
	require.Equal(t, want.Chunks, got.Chunks)
	require.Equal(t, want.Digest, got.Total)
}

// The circuits are the originals', constraint for constraint, so that parameters
// made for those fit. The two mainnet window circuits are in the conformance run.
func TestCircuitIsTheOriginals(t *testing.T) {
	for _, name := range []string{
		"winning-2KiB", "winning-4KiB", "winning-16KiB", "winning-32KiB",
		"winning-8MiB", "winning-512MiB", "winning-32GiB", "winning-64GiB",
		"window-2KiB", "window-4KiB", "window-16KiB", "window-32KiB", "window-8MiB", "window-512MiB",
	} {
		t.Run(name, func(t *testing.T) { requireShape(t, name) })
	}
}

// Every partition of every case of the originals satisfies its circuit, with the
// originals' public inputs.
func TestWitnessSatisfies(t *testing.T) {
	for _, name := range caseNames {
		t.Run(name, func(t *testing.T) {
			c, req := load(t, name)
			s, err := decodeAndCheck(req)
			require.NoError(t, err)
			circuit := NewCircuit(s.Params)
			for k := range s.Partitions {
				w, err := circuit.Witness(context.Background(), s.Partitions[k].Sectors)
				require.NoError(t, err)
				require.NoError(t, circuit.System.Check(context.Background(), w))
				var got []string
				for _, x := range w.Inputs[1:] {
					got = append(got, element(x))
				}
				require.Equal(t, c.PublicInputs[k], got)
			}
		})
	}
}

// Property: a witness of sectors whose proofs do not hold breaks the circuit,
// whichever part is wrong. (Decode and Check refuse such input before; this is
// what makes the circuit worth proving.)
func TestWrongWitnessIsNotSatisfied(t *testing.T) {
	_, req := load(t, "window-2KiB")
	s, err := decodeAndCheck(req)
	require.NoError(t, err)
	circuit := NewCircuit(s.Params)
	sectors := s.Partitions[0].Sectors
	unsatisfied := func(what string) {
		t.Helper()
		w, err := circuit.Witness(context.Background(), sectors)
		require.NoError(t, err)
		require.Error(t, circuit.System.Check(context.Background(), w), what)
	}
	one := sectors[1]
	swap := func(what string, change func(s *SectorProof)) {
		t.Helper()
		broken := *one
		broken.Inclusions = append([]Inclusion{}, one.Inclusions...)
		change(&broken)
		sectors[1] = &broken
		unsatisfied(what)
		sectors[1] = one
	}
	swap("comm_r", func(s *SectorProof) { s.CommR.SetUint64(7) })
	swap("comm_c", func(s *SectorProof) { s.CommC.SetUint64(7) })
	swap("comm_r_last", func(s *SectorProof) { s.CommRLast.SetUint64(7) })
	swap("leaf", func(s *SectorProof) { s.Inclusions[9].Leaf.SetUint64(7) })
	swap("path of another leaf", func(s *SectorProof) { s.Inclusions[0].Path = s.Inclusions[1].Path })
}

// Property: the wrong number of sectors is refused, not indexed out of range.
func TestWitnessOfWrongSectorCount(t *testing.T) {
	_, req := load(t, "window-2KiB")
	s, err := decodeAndCheck(req)
	require.NoError(t, err)
	_, err = NewCircuit(s.Params).Witness(context.Background(), s.Partitions[0].Sectors[:1])
	require.EqualError(t, err, "1 sectors for a partition of 2")
}

func BenchmarkWitnessWinning2KiB(b *testing.B) {
	_, req := load(b, "winning-2KiB")
	s, err := decodeAndCheck(req)
	require.NoError(b, err)
	circuit := NewCircuit(s.Params)
	for b.Loop() {
		if _, err := circuit.Witness(context.Background(), s.Partitions[0].Sectors); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEvaluateWinning2KiB(b *testing.B) {
	p, err := ParamsFor(Winning, 2<<10)
	require.NoError(b, err)
	_, req := load(b, "winning-2KiB")
	s, err := decodeAndCheck(req)
	require.NoError(b, err)
	circuit := NewCircuit(p)
	w, err := circuit.Witness(context.Background(), s.Partitions[0].Sectors)
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
