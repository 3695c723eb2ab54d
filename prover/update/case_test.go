package update

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

// caseNames are updates that the originals made: one partition, and two in trees of two and
// three forms.
var caseNames = []string{"update-2KiB", "update-16KiB", "update-32KiB"}

// reference is what the originals say of a case (the reference data's case.json).
type reference struct {
	SectorSize    uint64   `json:"sector_size"`
	CommROld      string   `json:"comm_r_old"`
	CommRNew      string   `json:"comm_r_new"`
	CommDNew      string   `json:"comm_d_new"`
	VanillaProofs []string `json:"vanilla_proofs"`
	Partitions    int
	PublicInputs  [][]string `json:"public_inputs"`
}

func load(t testing.TB, name string) (reference, *Request) {
	t.Helper()
	dir := filepath.Join("testdata", "cases", name)
	data, err := os.ReadFile(filepath.Join(dir, "case.json"))
	require.NoError(t, err)
	var ref reference
	require.NoError(t, json.Unmarshal(data, &ref))
	req := &Request{SectorSize: ref.SectorSize}
	for _, c := range []struct {
		to   *[]byte
		text string
	}{{&req.CommROld, ref.CommROld}, {&req.CommRNew, ref.CommRNew}, {&req.CommDNew, ref.CommDNew}} {
		*c.to, err = hex.DecodeString(c.text)
		require.NoError(t, err)
	}
	for _, file := range ref.VanillaProofs {
		vanilla, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		req.Vanilla = append(req.Vanilla, vanilla)
	}
	return ref, req
}

// decodeAndCheck is all that happens before proving.
func decodeAndCheck(req *Request) (*Statement, error) {
	s, err := Decode(context.Background(), req)
	if err != nil {
		return nil, err
	}
	return s, s.Check(context.Background())
}

func hexElements(elements []fr.Element) (out []string) {
	for _, x := range elements {
		out = append(out, hex.EncodeToString(littleEndian(x)))
	}
	return out
}

// Every case of the originals is accepted, with their public inputs.
func TestReferenceCases(t *testing.T) {
	for _, name := range caseNames {
		t.Run(name, func(t *testing.T) {
			ref, req := load(t, name)
			s, err := decodeAndCheck(req)
			require.NoError(t, err)
			require.Len(t, s.Partitions, ref.Partitions)
			for k := range s.Partitions {
				require.Equal(t, k, s.Partitions[k].Index)
				require.Equal(t, ref.PublicInputs[k], hexElements(s.Partitions[k].PublicInputs()))
				require.Equal(t, req.Vanilla[k], encode(s.Params, s.Partitions[k].Proof))
			}
		})
	}
}
