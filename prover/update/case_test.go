package update

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/merkle"
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

func littleEndian(x fr.Element) []byte {
	var raw [fr.Bytes]byte
	fr.LittleEndian.PutElement(&raw, x)
	return raw[:]
}

func hexElements(elements []fr.Element) (out []string) {
	for _, x := range elements {
		out = append(out, hex.EncodeToString(littleEndian(x)))
	}
	return out
}

// encode is the bincode form of a vanilla proof, field by field as storage-proofs-update and
// storage-proofs-core declare it.
func encode(p Params, proof *PartitionProof) (out []byte) {
	element := func(e fr.Element) { out = append(out, littleEndian(e)...) }
	u64 := func(n int) { out = binary.LittleEndian.AppendUint64(out, uint64(n)) }
	steps := func(steps []merkle.Step) {
		u64(len(steps))
		for _, step := range steps {
			u64(len(step.Siblings))
			for _, e := range step.Siblings {
				element(e)
			}
			u64(step.Index)
		}
	}
	inclusion := func(in *merkle.Proof, shape merkle.Shape) {
		h := shape.BaseHeight
		switch {
		case shape.Top > 0:
			out = append(out, 2, 0, 0, 0)
			steps(in.Path[:h])
			steps(in.Path[h : h+1])
			steps(in.Path[h+1:])
		case shape.Sub > 0:
			out = append(out, 1, 0, 0, 0)
			steps(in.Path[:h])
			steps(in.Path[h:])
		default:
			out = append(out, 0, 0, 0, 0)
			element(in.Root)
			element(in.Leaf)
			steps(in.Path)
			return
		}
		element(in.Root)
		element(in.Leaf)
	}
	element(proof.CommC)
	u64(len(proof.ApexLeaves))
	for _, leaf := range proof.ApexLeaves {
		element(leaf)
	}
	u64(len(proof.Challenges))
	for i := range proof.Challenges {
		c := &proof.Challenges[i]
		inclusion(&c.ROld, p.Tree)
		inclusion(&c.DNew, p.dataTree())
		inclusion(&c.RNew, p.Tree)
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
