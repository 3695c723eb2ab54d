package groth16_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/params"
)

// referenceCase is a proof that filecoin-proofs made, with the public inputs
// that each of its partitions must have.
type referenceCase struct {
	name string
	key  string // which verifying key of package params' test data
}

var referenceCases = []referenceCase{
	{"winning-2KiB", "winning-2KiB"},
	{"window-2KiB", "window-2KiB"},
	{"window-v1.0-2KiB", "window-2KiB"},
}

func (c referenceCase) load(t testing.TB) (*groth16.PreparedVerifyingKey, [][]fr.Element, []byte) {
	t.Helper()
	paramsData := filepath.Join("..", "params", "testdata")
	var set struct {
		ID string `json:"parameter_set"`
	}
	readJSON(t, filepath.Join(paramsData, c.key+".json"), &set)
	vk, err := params.Set{ID: set.ID}.ReadVK(t.Context(), paramsData)
	require.NoError(t, err)
	pvk, err := vk.Prepare()
	require.NoError(t, err)

	var inputs struct {
		PublicInputs [][]string `json:"public_inputs"`
	}
	readJSON(t, filepath.Join("testdata", c.name, "case.json"), &inputs)
	public := make([][]fr.Element, len(inputs.PublicInputs))
	for k, partition := range inputs.PublicInputs {
		for _, s := range partition {
			raw, err := hex.DecodeString(s)
			require.NoError(t, err)
			x, err := fr.LittleEndian.Element((*[fr.Bytes]byte)(raw))
			require.NoError(t, err)
			public[k] = append(public[k], x)
		}
	}
	proof, err := os.ReadFile(filepath.Join("testdata", c.name, "proof.bin"))
	require.NoError(t, err)
	return pvk, public, proof
}

func readJSON(t testing.TB, path string, to any) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, to))
}

// Proofs that filecoin-proofs made verify, singly and together, and are encoded
// again to the same bytes.
func TestReferenceProofsVerify(t *testing.T) {
	for _, c := range referenceCases {
		t.Run(c.name, func(t *testing.T) {
			pvk, public, raw := c.load(t)
			proofs, err := groth16.ParseProofs(raw)
			require.NoError(t, err)
			require.Len(t, proofs, len(public))
			var again []byte
			for k := range proofs {
				ok, err := pvk.Verify(public[k], &proofs[k])
				require.NoError(t, err)
				require.True(t, ok, "partition %d", k)
				b := proofs[k].Bytes()
				again = append(again, b[:]...)
			}
			require.Equal(t, raw, again)
			ok, err := pvk.VerifyBatch(public, proofs)
			require.NoError(t, err)
			require.True(t, ok, "batch")
		})
	}
}

// A valid proof is valid for its inputs alone and in its own order.
func TestReferenceProofsBindTheirInputs(t *testing.T) {
	pvk, public, raw := referenceCases[1].load(t)
	proofs, err := groth16.ParseProofs(raw)
	require.NoError(t, err)

	one := fr.One()
	for i := range public[0] {
		changed := append([]fr.Element(nil), public[0]...)
		changed[i].Add(&changed[i], &one)
		ok, err := pvk.Verify(changed, &proofs[0])
		require.NoError(t, err)
		require.False(t, ok, "input %d changed", i)
		ok, err = pvk.VerifyBatch([][]fr.Element{changed, public[1]}, proofs)
		require.NoError(t, err)
		require.False(t, ok, "input %d changed, batch", i)
	}
	ok, err := pvk.VerifyBatch([][]fr.Element{public[1], public[0]}, proofs)
	require.NoError(t, err)
	require.False(t, ok, "inputs exchanged")

	// The two halves of a batch must not cancel out: C moved from one proof to
	// the other leaves the unweighted sum of the equations unchanged.
	moved := append([]groth16.Proof(nil), proofs...)
	moved[0].C.Add(&moved[0].C, &moved[1].A)
	moved[1].C.Sub(&moved[1].C, &moved[1].A)
	ok, err = pvk.VerifyBatch(public, moved)
	require.NoError(t, err)
	require.False(t, ok, "C moved between proofs")
}

// A proof that is changed in any part is either refused as malformed or invalid.
func TestMutatedProofs(t *testing.T) {
	pvk, public, raw := referenceCases[0].load(t)
	proof, err := groth16.ParseProof(raw)
	require.NoError(t, err)

	t.Run("bytes", func(t *testing.T) {
		for i := range raw {
			b := append([]byte(nil), raw...)
			b[i] ^= 1 << (i % 8)
			p, err := groth16.ParseProof(b)
			if err != nil {
				require.ErrorIs(t, err, groth16.ErrMalformedProof)
				continue
			}
			ok, err := pvk.Verify(public[0], p)
			require.NoError(t, err)
			require.False(t, ok, "byte %d flipped", i)
		}
	})
	t.Run("points", func(t *testing.T) {
		for name, change := range map[string]func(p *groth16.Proof){
			"A negated":        func(p *groth16.Proof) { p.A.Neg(&p.A) },
			"B negated":        func(p *groth16.Proof) { p.B.Neg(&p.B) },
			"C negated":        func(p *groth16.Proof) { p.C.Neg(&p.C) },
			"A doubled":        func(p *groth16.Proof) { p.A.Double(&p.A) },
			"B doubled":        func(p *groth16.Proof) { p.B.Double(&p.B) },
			"C doubled":        func(p *groth16.Proof) { p.C.Double(&p.C) },
			"A and C exchange": func(p *groth16.Proof) { p.A, p.C = p.C, p.A },
		} {
			p := *proof
			change(&p)
			ok, err := pvk.Verify(public[0], &p)
			require.NoError(t, err)
			require.False(t, ok, name)
		}
		// What Groth16 allows: the same statement, another proof.
		p := *proof
		p.A.Neg(&p.A)
		p.B.Neg(&p.B)
		ok, err := pvk.Verify(public[0], &p)
		require.NoError(t, err)
		require.True(t, ok, "A and B negated")
	})
}

// Wrong use is an error, not an invalid proof.
func TestVerifyRefusesWrongNumbers(t *testing.T) {
	pvk, public, raw := referenceCases[0].load(t)
	proof, err := groth16.ParseProof(raw)
	require.NoError(t, err)
	_, err = pvk.Verify(public[0][1:], proof)
	require.ErrorContains(t, err, "131 public inputs, the key has 132")
	_, err = pvk.VerifyBatch(nil, nil)
	require.Error(t, err)
	_, err = pvk.VerifyBatch(public, nil)
	require.Error(t, err)
	_, err = pvk.VerifyBatch([][]fr.Element{public[0], public[0][1:]}, []groth16.Proof{*proof, *proof})
	require.ErrorContains(t, err, "proof 1")
}

func BenchmarkVerify(b *testing.B) {
	pvk, public, raw := referenceCases[0].load(b)
	proof, err := groth16.ParseProof(raw)
	require.NoError(b, err)
	for b.Loop() {
		ok, err := pvk.Verify(public[0], proof)
		if err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}

func BenchmarkVerifyBatch10(b *testing.B) {
	pvk, public, raw := referenceCases[0].load(b)
	proof, err := groth16.ParseProof(raw)
	require.NoError(b, err)
	var publics [][]fr.Element
	var proofs []groth16.Proof
	for range 10 {
		publics = append(publics, public[0])
		proofs = append(proofs, *proof)
	}
	for b.Loop() {
		ok, err := pvk.VerifyBatch(publics, proofs)
		if err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}
