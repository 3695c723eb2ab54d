package groth16_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/params"
	"github.com/interlock-prover/interlock/prover/post"
	"github.com/interlock-prover/interlock/prover/witness"
)

// labelled is the fixed field element with that label: SHA-256, the two top
// bits cleared, little endian.
func labelled(t testing.TB, label string) fr.Element {
	t.Helper()
	b := sha256.Sum256([]byte(label))
	b[31] &= 0x3f
	x, err := fr.LittleEndian.Element(&b)
	require.NoError(t, err)
	return x
}

// postKey is the compiled circuit of a kind of proof of spacetime at 2 KiB with
// development parameters for it.
type postKey struct {
	post    *post.Circuit
	circuit *groth16.Circuit
	params  *params.File
}

// postKeys are made once for all tests.
var postKeys struct {
	sync.Mutex
	made map[post.Kind]*postKey
	dir  string
}

func TestMain(m *testing.M) {
	code := func() int {
		dir, err := os.MkdirTemp("", "params")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		postKeys.dir, postKeys.made = dir, map[post.Kind]*postKey{}
		return m.Run()
	}()
	os.Exit(code)
}

func keyFor(t testing.TB, kind post.Kind) *postKey {
	t.Helper()
	postKeys.Lock()
	defer postKeys.Unlock()
	if k := postKeys.made[kind]; k != nil {
		return k
	}
	p, err := post.ParamsFor(kind, 2<<10)
	require.NoError(t, err)
	k := &postKey{post: post.NewCircuit(p)}
	k.circuit, err = groth16.NewCircuit(k.post.System)
	require.NoError(t, err)
	set := params.Set{ID: p.ParameterSet()}
	_, err = set.SetupInsecure(context.WithoutCancel(t.Context()), k.circuit, postKeys.dir, nil, nil)
	require.NoError(t, err)
	k.params, err = set.Open(postKeys.dir)
	require.NoError(t, err)
	postKeys.made[kind] = k
	return k
}

// witnesses decodes the case's vanilla proofs and assigns its partitions.
func (k *postKey) witnesses(t testing.TB, name string) []*witness.Witness {
	t.Helper()
	dir := filepath.Join("..", "post", "testdata", "cases", name)
	var c struct {
		APIVersion string `json:"api_version"`
		Randomness string `json:"randomness"`
		Sectors    []struct {
			VanillaProof string `json:"vanilla_proof"`
		} `json:"sectors"`
	}
	readJSON(t, filepath.Join(dir, "case.json"), &c)
	randomness, err := hex.DecodeString(c.Randomness)
	require.NoError(t, err)
	req := &post.Request{Kind: k.post.Params.Kind, SectorSize: 2 << 10, Randomness: randomness, APIVersion: c.APIVersion}
	for _, s := range c.Sectors {
		b, err := os.ReadFile(filepath.Join(dir, s.VanillaProof))
		require.NoError(t, err)
		req.Vanilla = append(req.Vanilla, b)
	}
	statement, err := post.Decode(t.Context(), req)
	require.NoError(t, err)
	var out []*witness.Witness
	for _, p := range statement.Partitions {
		w, err := k.post.Witness(t.Context(), p.Sectors)
		require.NoError(t, err)
		out = append(out, w)
	}
	return out
}

func (k *postKey) prove(t testing.TB, d groth16.Device, w *witness.Witness, b groth16.Blinding) *groth16.Proof {
	t.Helper()
	work, err := d.Prepare(t.Context(), k.params, k.circuit, w)
	require.NoError(t, err)
	defer work.Release()
	require.NoError(t, work.Execute(t.Context()))
	proof, err := work.Finish(t.Context(), b)
	require.NoError(t, err)
	return proof
}

// With the blinding that filecoin-proofs was given, proofs from the same vanilla
// proofs are equal byte for byte: a Groth16 proof has only one right value then.
func TestProofsEqualReference(t *testing.T) {
	kinds := map[string]post.Kind{"winning-2KiB": post.Winning, "window-2KiB": post.Window, "window-v1.0-2KiB": post.Window}
	device := groth16.NewCPU("cpu", 0)
	for _, c := range referenceCases {
		t.Run(c.name, func(t *testing.T) {
			key := keyFor(t, kinds[c.name])
			_, _, want := c.load(t)
			var got []byte
			for k, w := range key.witnesses(t, c.name) {
				blinding := groth16.FixedBlinding(labelled(t, fmt.Sprint("blinding r ", k)), labelled(t, fmt.Sprint("blinding s ", k)))
				b := key.prove(t, device, w, blinding).Bytes()
				got = append(got, b[:]...)
			}
			require.Equal(t, want, got)
		})
	}
}

// Winning 2 KiB, from the witness on: bellperson takes 7.4 to 8.2 s on two
// cores, vanilla proof to proof.
func BenchmarkProve(b *testing.B) {
	key := keyFor(b, post.Winning)
	w := key.witnesses(b, "winning-2KiB")[0]
	device := groth16.NewCPU("cpu", 0)
	require.NoError(b, device.Preload(b.Context(), key.params, key.circuit))
	for b.Loop() {
		blinding, err := groth16.NewBlinding()
		require.NoError(b, err)
		key.prove(b, device, w, blinding)
	}
}

// Winning 2 KiB: reading the key of 47 MB that is in the page cache.
func BenchmarkPreload(b *testing.B) {
	key := keyFor(b, post.Winning)
	device := groth16.NewCPU("cpu", 0)
	b.SetBytes(key.params.SizeBytes())
	for b.Loop() {
		require.NoError(b, device.Preload(b.Context(), key.params, key.circuit))
		device.Evict(key.params)
	}
}
