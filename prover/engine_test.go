package prover

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
)

// labelled is the fixed field element of a text in the reference data: SHA-256
// with the two top bits of the last byte cleared, little endian.
func labelled(text string) fr.Element {
	b := sha256.Sum256([]byte(text))
	b[31] &= 0x3f
	slices.Reverse(b[:])
	var x fr.Element
	x.SetBytes(b[:])
	return x
}

// referenceBlinding is the blinding of partition k in the reference proofs.
func referenceBlinding(k int) (groth16.Blinding, error) {
	return groth16.FixedBlinding(labelled(fmt.Sprintf("blinding r %d", k)), labelled(fmt.Sprintf("blinding s %d", k))), nil
}

// paramsDir has the development parameters of both kinds at 2 KiB, made once.
var paramsDir = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "interlock-params-")
	if err != nil {
		return "", err
	}
	for _, kind := range []shared.Kind{shared.KindWinningPoSt, shared.KindWindowPoSt} {
		b, err := blueprintOf(shared.CircuitRequest{Kind: kind, SectorSize: shared.SectorSize2KiB})
		if err != nil {
			return "", err
		}
		c, err := compile(b)
		if err != nil {
			return "", err
		}
		if _, err := b.set().SetupInsecure(context.Background(), c.groth, dir, nil, nil); err != nil {
			return "", err
		}
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := paramsDir(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

func newEngine(t testing.TB, dir string, blind blinder) *Engine {
	t.Helper()
	e, err := open(context.Background(), config.Default(), dir, hclog.NewNullLogger(), hardware{cpu: groth16.NewCPU("cpu", 0)}, blind)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// loadCase reads a winning or window case of the reference data.
func loadCase(t testing.TB, name string) (r shared.Request, proof []byte) {
	t.Helper()
	dir := filepath.Join("testdata", name)
	raw, err := os.ReadFile(filepath.Join(dir, "case.json"))
	require.NoError(t, err)
	var c struct {
		Kind       string
		SectorSize shared.SectorSize `json:"sector_size"`
		MinerID    uint64            `json:"miner_id"`
		APIVersion string            `json:"api_version"`
		Randomness string
		Sectors    []struct {
			VanillaProof string `json:"vanilla_proof"`
		}
	}
	require.NoError(t, json.Unmarshal(raw, &c))
	r = shared.Request{
		Kind:       map[string]shared.Kind{"winning": shared.KindWinningPoSt, "window": shared.KindWindowPoSt}[c.Kind],
		SectorSize: c.SectorSize, MinerID: c.MinerID, APIVersion: c.APIVersion,
	}
	r.Randomness, err = hex.DecodeString(c.Randomness)
	require.NoError(t, err)
	for _, s := range c.Sectors {
		v, err := os.ReadFile(filepath.Join(dir, s.VanillaProof))
		require.NoError(t, err)
		r.Vanilla = append(r.Vanilla, v)
	}
	proof, err = os.ReadFile(filepath.Join(dir, "proof.bin"))
	require.NoError(t, err)
	return r, proof
}

var caseNames = []string{"winning-2KiB", "window-2KiB", "window-v1.0-2KiB"}

// With the blinding of the reference data a proof has only one right value:
// whole requests give the originals' bytes, partition for partition.
func TestProofsAreTheOriginals(t *testing.T) {
	dir, err := paramsDir()
	require.NoError(t, err)
	e := newEngine(t, dir, referenceBlinding)
	for _, name := range caseNames {
		t.Run(name, func(t *testing.T) {
			request, want := loadCase(t, name)
			got, err := e.Prove(context.Background(), request, nil)
			require.NoError(t, err)
			require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(got.Proof))
			require.Equal(t, len(want)/groth16.ProofSizeBytes, got.Partitions)
			require.True(t, got.InsecureParams)
		})
	}
}

// Property: production blinding is drawn anew for every proof, and each such
// proof verifies; a proof with any byte changed, cut, or of another request does
// not, and none of them is an error.
func TestProveAndVerify(t *testing.T) {
	dir, err := paramsDir()
	require.NoError(t, err)
	e := newEngine(t, dir, randomBlinding)
	request, reference := loadCase(t, "window-2KiB")
	var progress []shared.Stage
	one, err := e.Prove(context.Background(), request, func(p shared.Progress) { progress = append(progress, p.Stage) })
	require.NoError(t, err)
	two, err := e.Prove(context.Background(), request, nil)
	require.NoError(t, err)
	require.NotEqual(t, one.Proof, two.Proof)
	require.Equal(t, shared.StageDone, progress[len(progress)-1])
	for _, stage := range []shared.Stage{shared.StageWitness, shared.StagePrepare, shared.StageDevice, shared.StageFinish, shared.StageVerify} {
		require.Contains(t, progress, stage)
	}

	verify := func(r shared.Request, proof []byte) bool {
		t.Helper()
		ok, err := e.Verify(context.Background(), r, proof)
		require.NoError(t, err)
		return ok
	}
	for _, proof := range [][]byte{one.Proof, two.Proof, reference} {
		require.True(t, verify(request, proof))
	}
	for i := 0; i < len(one.Proof); i += 13 {
		broken := slices.Clone(one.Proof)
		broken[i] ^= 0x10
		require.False(t, verify(request, broken), "byte %d", i)
	}
	require.False(t, verify(request, one.Proof[:192]))
	require.False(t, verify(request, append(slices.Clone(one.Proof[192:]), one.Proof[:192]...)), "partitions exchanged")
	other, _ := loadCase(t, "window-v1.0-2KiB")
	require.False(t, verify(other, one.Proof))
}

// Property: a request that is wrong is refused by the field's name, before any
// proving, and the next one proves.
func TestWrongRequestsAreRefusedByName(t *testing.T) {
	dir, err := paramsDir()
	require.NoError(t, err)
	e := newEngine(t, dir, randomBlinding)
	good, _ := loadCase(t, "winning-2KiB")
	flipped := func(v []byte, at int) [][]byte {
		v = slices.Clone(v)
		v[at] ^= 1
		return [][]byte{v}
	}
	vanilla := good.Vanilla[0]
	for name, c := range map[string]struct {
		change func(r *shared.Request)
		field  string
	}{
		"other randomness": {func(r *shared.Request) { r.Randomness = make([]byte, 32) }, "vanilla[0].inclusion_proofs[0]"},
		"short randomness": {func(r *shared.Request) { r.Randomness = make([]byte, 31) }, "randomness"},
		"other size":       {func(r *shared.Request) { r.SectorSize = shared.SectorSize4KiB }, ""},
		"other kind":       {func(r *shared.Request) { r.Kind = shared.KindWindowPoSt; r.APIVersion = "" }, ""},
		"unknown kind":     {func(r *shared.Request) { r.Kind = 77 }, "kind"},
		"no vanilla proof": {func(r *shared.Request) { r.Vanilla = nil }, "vanilla"},
		"truncated":        {func(r *shared.Request) { r.Vanilla = [][]byte{vanilla[:len(vanilla)-1]} }, ""},
		"leaf changed":     {func(r *shared.Request) { r.Vanilla = flipped(vanilla, 200) }, ""},
		"path changed":     {func(r *shared.Request) { r.Vanilla = flipped(vanilla, len(vanilla)/2) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			c.change(&r)
			_, err := e.Prove(context.Background(), r, nil)
			var invalid *shared.InvalidRequestError
			require.ErrorAs(t, err, &invalid)
			require.NotEmpty(t, invalid.Field)
			if c.field != "" {
				require.Contains(t, invalid.Field, c.field)
			}
		})
	}
	_, err = e.Prove(context.Background(), good, nil)
	require.NoError(t, err)
}

// Property: missing, truncated and exchanged parameter files are named, with what
// to do, and are found before any proving.
func TestBadParametersAreNamed(t *testing.T) {
	dir, err := paramsDir()
	require.NoError(t, err)
	request, _ := loadCase(t, "winning-2KiB")
	winning, err := blueprintOf(shared.CircuitRequest{Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB})
	require.NoError(t, err)
	window, err := blueprintOf(shared.CircuitRequest{Kind: shared.KindWindowPoSt, SectorSize: shared.SectorSize2KiB})
	require.NoError(t, err)
	copyFile := func(t *testing.T, to, from string, cut int64) {
		t.Helper()
		data, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(to, data[:int64(len(data))-cut], 0o600))
	}
	for name, c := range map[string]struct {
		prepare func(t *testing.T, to string)
		reason  string
	}{
		"no files": {func(*testing.T, string) {}, ""},
		"no key": {func(t *testing.T, to string) {
			copyFile(t, winning.set().ParamsPath(to), winning.set().ParamsPath(dir), 0)
		}, ""},
		"truncated": {func(t *testing.T, to string) {
			copyFile(t, winning.set().ParamsPath(to), winning.set().ParamsPath(dir), 1)
			copyFile(t, winning.set().VKPath(to), winning.set().VKPath(dir), 0)
		}, "truncated"},
		"another circuit's": {func(t *testing.T, to string) {
			copyFile(t, winning.set().ParamsPath(to), window.set().ParamsPath(dir), 0)
			copyFile(t, winning.set().VKPath(to), window.set().VKPath(dir), 0)
		}, "another circuit"},
		"another circuit's key": {func(t *testing.T, to string) {
			copyFile(t, winning.set().ParamsPath(to), winning.set().ParamsPath(dir), 0)
			copyFile(t, winning.set().VKPath(to), window.set().VKPath(dir), 0)
		}, "different sets"},
	} {
		t.Run(name, func(t *testing.T) {
			to := t.TempDir()
			c.prepare(t, to)
			e := newEngine(t, to, randomBlinding)
			_, err := e.Prove(context.Background(), request, nil)
			var wrong *shared.ParamsError
			require.ErrorAs(t, err, &wrong)
			require.Contains(t, wrong.Path, to)
			require.NotEmpty(t, wrong.Remedy)
			require.Contains(t, wrong.Reason, c.reason)
		})
	}
}

// Property: a request can be submitted, awaited by several, asked about and
// cancelled; a cancelled one ends at once, and its context is not the job's.
func TestSubmitAwaitCancel(t *testing.T) {
	dir, err := paramsDir()
	require.NoError(t, err)
	e := newEngine(t, dir, randomBlinding)
	ctx := context.Background()
	request, _ := loadCase(t, "window-2KiB")
	request.ID = "first"
	id, err := e.Submit(ctx, request)
	require.NoError(t, err)

	_, err = e.Submit(ctx, request)
	var invalid *shared.InvalidRequestError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "id", invalid.Field)

	status, err := e.Status(ctx)
	require.NoError(t, err)
	require.Len(t, status.Jobs, 1)
	require.Equal(t, "cpu", status.Devices[0].Name)

	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_, err = e.Await(short, id)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			r, err := e.Await(ctx, id)
			assert.NoError(t, err)
			assert.Len(t, r.Proof, 2*groth16.ProofSizeBytes)
		})
	}
	wg.Wait()

	request.ID = "second"
	id, err = e.Submit(ctx, request)
	require.NoError(t, err)
	running, err := e.Cancel(ctx, id)
	require.NoError(t, err)
	require.True(t, running)
	_, err = e.Await(ctx, id)
	require.ErrorIs(t, err, shared.ErrCancelled)
	_, err = e.Await(ctx, "never submitted")
	require.ErrorIs(t, err, shared.ErrUnknownJob)
}

// The digest of a circuit is the reference data's JSON, field for field.
func TestCircuitDigestIsTheReference(t *testing.T) {
	e := newEngine(t, t.TempDir(), randomBlinding)
	got, err := e.CircuitDigest(context.Background(), shared.CircuitRequest{Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize32GiB}, nil)
	require.NoError(t, err)
	var want shared.CircuitDigest
	raw, err := os.ReadFile("post/testdata/shapes/winning-32GiB.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &want))
	require.Equal(t, want, got)
}

// Property: what preloading cannot find stops the engine from opening, with the
// parameters' name.
func TestPreload(t *testing.T) {
	dir, err := paramsDir()
	require.NoError(t, err)
	c := config.Default()
	c.Parameters.Preload = []config.Preload{{Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB}}
	e, err := Open(context.Background(), c, dir, hclog.NewNullLogger())
	require.NoError(t, err)
	status, err := e.Status(context.Background())
	require.NoError(t, err)
	require.Len(t, status.Params, 1)
	require.True(t, status.Params[0].Insecure)
	require.NoError(t, e.Close())

	_, err = Open(context.Background(), c, t.TempDir(), hclog.NewNullLogger())
	var wrong *shared.ParamsError
	require.ErrorAs(t, err, &wrong)
}

// A deadline is kept by the clock that nobody sets, so that a clock that jumps changes no margin.
func TestDeadlineIsMonotonic(t *testing.T) {
	e := newEngine(t, t.TempDir(), randomBlinding)
	r, _ := loadCase(t, "winning-2KiB")
	r.Deadline = time.Now().Add(time.Hour).Round(0)
	accepted, err := e.accept(r)
	require.NoError(t, err)
	require.Contains(t, accepted.Deadline.String(), "m=+", "it has a reading of the monotonic clock")
	require.WithinDuration(t, r.Deadline, accepted.Deadline, time.Second)
	accepted.Payload.Release()

	r.Deadline = time.Time{}
	accepted, err = e.accept(r)
	require.NoError(t, err)
	require.True(t, accepted.Deadline.IsZero())
	accepted.Payload.Release()
}

// Property: the timeline's file is that of the last engine that did something.
func TestTimelineFile(t *testing.T) {
	dir, err := paramsDir()
	require.NoError(t, err)
	c := config.Default()
	c.Timeline.File = filepath.Join(t.TempDir(), "timeline.txt")
	require.NoError(t, os.WriteFile(c.Timeline.File, []byte("of the one before"), 0o600))
	content := func() string {
		text, err := os.ReadFile(c.Timeline.File)
		require.NoError(t, err)
		return string(text)
	}

	e, err := Open(t.Context(), c, dir, hclog.NewNullLogger())
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.Equal(t, "of the one before", content())

	e, err = Open(t.Context(), c, dir, hclog.NewNullLogger())
	require.NoError(t, err)
	request, _ := loadCase(t, "winning-2KiB")
	_, err = e.Prove(t.Context(), request, nil)
	require.NoError(t, err)
	require.NoError(t, e.Close())
	require.Contains(t, content(), "TIMELINE,")
}
