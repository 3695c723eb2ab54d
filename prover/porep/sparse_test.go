package porep

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// sparse makes a sparse sector and its request.
func sparse(t testing.TB, sp Sparse) (*Statement, *Request) {
	t.Helper()
	s, err := sp.Statement()
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, s.WritePhase1(&out))
	return s, &Request{
		Phase1: out.Bytes(), SectorSize: sp.SectorSize, MinerID: &sp.MinerID, SectorNumber: &sp.SectorNumber,
	}
}

// Property: a phase-1 output that is decoded and written again decodes to the same.
func TestWritePhase1(t *testing.T) {
	for _, name := range caseNames {
		_, s := decode(t, name)
		s.Note = "a note"
		var out bytes.Buffer
		require.NoError(t, s.WritePhase1(&out))
		got, err := Decode(context.Background(), &Request{Phase1: out.Bytes(), SectorNumber: s.SectorNumber})
		require.NoError(t, err)
		require.Equal(t, s, got)
	}
}

// Property: sparse sectors of every size are accepted, satisfy the circuit, and say what
// they are.
func TestSparse(t *testing.T) {
	for _, size := range []uint64{2 << 10, 4 << 10, 16 << 10, 32 << 10, 8 << 20, 512 << 20} {
		for _, variant := range []Variant{V1, V1_1} {
			s, req := sparse(t, Sparse{SectorSize: size, Variant: variant, Partitions: 10, Seed: size, MinerID: 1000, SectorNumber: 7})
			got, err := decodeAndCheck(req)
			require.NoError(t, err)
			require.Equal(t, s, got)
			require.Contains(t, got.Note, "synthetic")
			if variant == V1_1 {
				requireSatisfied(t, NewCircuit(s.Params), s, 3, hexInputs(s.PublicInputs(3)))
			}
		}
	}
}

// Challenges of synthetic and non-interactive proofs depend on the replica, so there is no
// sparse sector for them.
func TestSparseOfUnsuitableVariant(t *testing.T) {
	for _, variant := range []Variant{Synthetic, NonInteractive} {
		_, err := (&Sparse{SectorSize: 2 << 10, Variant: variant}).Statement()
		require.ErrorContains(t, err, "variant: is "+variant.String())
	}
	_, err := (&Sparse{SectorSize: 2 << 20}).Statement()
	require.ErrorContains(t, err, "sector_size")
	_, err = (&Sparse{SectorSize: 2 << 10, Partitions: 3}).Statement()
	require.ErrorContains(t, err, "partitions: is 3; a proof of a sector of 2048 bytes has 1 (the usual), 13 or 10")
}

func BenchmarkDecodeAndCheck32GiB(b *testing.B) {
	_, req := sparse(b, Sparse{SectorSize: 32 << 30, Variant: V1_1})
	b.SetBytes(int64(len(req.Phase1)))
	for b.Loop() {
		if _, err := decodeAndCheck(req); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode32GiB(b *testing.B) {
	_, req := sparse(b, Sparse{SectorSize: 32 << 30, Variant: V1_1})
	b.SetBytes(int64(len(req.Phase1)))
	for b.Loop() {
		if _, err := readPhase1(bytes.NewReader(req.Phase1)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWitness32GiB(b *testing.B) {
	s, _ := sparse(b, Sparse{SectorSize: 32 << 30, Variant: V1_1})
	c := NewCircuit(s.Params)
	b.SetBytes(c.System.Layout().Bytes())
	for b.Loop() {
		if _, err := c.Witness(context.Background(), s, 0); err != nil {
			b.Fatal(err)
		}
	}
}
