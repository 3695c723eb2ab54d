package porep

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"
)

// caseNames are sectors that the originals sealed: every variant, and every form of a tree.
var caseNames = []string{
	"porep-2KiB", "porep-32KiB", "porep-11layers-2KiB", "porep10-2KiB",
	"porep-1.0-2KiB", "porep-synthetic-2KiB", "porep-ni-2KiB",
}

// reference is what the originals say of a case (the reference data's case.json).
type reference struct {
	SectorSize   uint64     `json:"sector_size"`
	MinerID      uint64     `json:"miner_id"`
	SectorNumber uint64     `json:"sector_number"`
	ProverID     string     `json:"prover_id"`
	PublicInputs [][]string `json:"public_inputs"`
}

func load(t testing.TB, name string) (reference, *Request) {
	t.Helper()
	dir := filepath.Join("testdata", "cases", name)
	data, err := os.ReadFile(filepath.Join(dir, "case.json"))
	require.NoError(t, err)
	var ref reference
	require.NoError(t, json.Unmarshal(data, &ref))
	req := &Request{SectorSize: ref.SectorSize, MinerID: &ref.MinerID, SectorNumber: &ref.SectorNumber}
	req.Phase1, err = os.ReadFile(filepath.Join(dir, "c1.json"))
	require.NoError(t, err)
	return ref, req
}

func decode(t testing.TB, name string) (reference, *Statement) {
	t.Helper()
	ref, req := load(t, name)
	s, err := Decode(context.Background(), req)
	require.NoError(t, err)
	return ref, s
}

func hexInputs(inputs []fr.Element) []string {
	var out []string
	for _, x := range inputs {
		raw := littleEndian(&x)
		out = append(out, hex.EncodeToString(raw[:]))
	}
	return out
}

// Every case of the originals is accepted, with their public inputs.
func TestDecodeAndCheck(t *testing.T) {
	for _, name := range caseNames {
		t.Run(name, func(t *testing.T) {
			ref, s := decode(t, name)
			require.NoError(t, s.Check(context.Background()))
			require.Len(t, s.Partitions, len(ref.PublicInputs))
			for k, want := range ref.PublicInputs {
				require.Equal(t, want, hexInputs(s.PublicInputs(k)))
			}
		})
	}
}
