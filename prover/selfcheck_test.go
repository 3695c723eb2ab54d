package prover

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/witness"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
)

// faultyDevice corrupts the first proofs that it makes.
type faultyDevice struct {
	groth16.Device
	left    atomic.Int32 // proofs to corrupt
	corrupt func(*groth16.Proof)
}

func (d *faultyDevice) Prepare(ctx context.Context, key groth16.Source, c *groth16.Circuit, w *witness.Witness) (groth16.Work, error) {
	work, err := d.Device.Prepare(ctx, key, c, w)
	return &faultyWork{work, d}, err
}

type faultyWork struct {
	groth16.Work
	device *faultyDevice
}

func (w *faultyWork) Finish(ctx context.Context, b groth16.Blinding) (*groth16.Proof, error) {
	p, err := w.Work.Finish(ctx, b)
	if err == nil && w.device.left.Add(-1) >= 0 {
		w.device.corrupt(p)
	}
	return p, err
}

// A proof that is corrupted between the device and the answer, into another point or into none, is never answered: it
// is made once more, then reported with what is needed to reproduce it, logged and counted.
func TestCorruptedProofsAreWithheld(t *testing.T) {
	dir, err := paramsDir()
	require.NoError(t, err)
	_, _, g1, g2 := bls12381.Generators()
	for name, c := range map[string]struct {
		corrupt func(*groth16.Proof)
		times   int32
	}{
		"another point, once":      {func(p *groth16.Proof) { p.C = g1 }, 1},
		"another point, twice":     {func(p *groth16.Proof) { p.B = g2 }, 2},
		"not on the curve, once":   {func(p *groth16.Proof) { p.A.X.SetOne() }, 1},
		"not on the curve, always": {func(p *groth16.Proof) { p.A.X.SetOne() }, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			d := &faultyDevice{Device: groth16.NewCPU("cpu", 0), corrupt: c.corrupt}
			d.left.Store(c.times)
			logger := hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Warn})
			e, err := open(t.Context(), config.Default(), dir, logger, hardware{cpu: d}, randomBlinding)
			require.NoError(t, err)
			request, _ := loadCase(t, "window-2KiB")
			request.ID, request.Vanilla = "r", request.Vanilla[:1] // one partition
			request.Deadline = time.Now().Add(time.Hour)
			result, err := e.Prove(t.Context(), request, nil)
			s, statusErr := e.Status(t.Context())
			require.NoError(t, statusErr)
			require.NoError(t, e.Close())
			require.EqualValues(t, min(c.times, 2), s.Withheld)
			require.Contains(t, log.String(), "attempt 1, partitions made on cpu")
			if c.times == 1 {
				require.NoError(t, err)
				require.EqualValues(t, 1, s.Completed)
				valid, err := e.Verify(t.Context(), request, result.Proof)
				require.NoError(t, err)
				require.True(t, valid)
				require.Greater(t, result.Margin, 50*time.Minute)
				require.Less(t, result.Margin, time.Hour)
				return
			}
			require.Zero(t, result)
			require.EqualValues(t, 1, s.Failed)
			var invalid *shared.ProofInvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, "r", invalid.RequestID)
			require.Equal(t, []int{0}, invalid.Partitions)
			require.Equal(t, 2, strings.Count(invalid.Detail, "attempt "))
			for _, part := range []string{"parameters " + dir, "partition 0: proof ", "public inputs with SHA-256 "} {
				require.Contains(t, invalid.Detail, part)
			}
		})
	}
}

// Property: parameters with which a proof came out wrong are not trusted any
// further. The record of an earlier check goes, and the next request opens and
// checks the file anew, which names what is damaged in it.
func TestDamagedParametersAreCheckedAnew(t *testing.T) {
	from, err := paramsDir()
	require.NoError(t, err)
	dir := t.TempDir()
	b, err := blueprintOf(shared.CircuitRequest{Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB})
	require.NoError(t, err)
	path := b.set().ParamsPath(dir)
	for _, f := range [][2]string{{path, b.set().ParamsPath(from)}, {b.set().VKPath(dir), b.set().VKPath(from)}} {
		data, err := os.ReadFile(f[1])
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(f[0], data, 0o600))
	}
	c := config.Default()
	c.Parameters.Verify = config.CheckFull
	prove := func() error {
		t.Helper()
		e, err := Open(t.Context(), c, dir, hclog.NewNullLogger())
		require.NoError(t, err)
		request, _ := loadCase(t, "winning-2KiB")
		_, err = e.Prove(t.Context(), request, nil)
		require.NoError(t, e.Close())
		return err
	}
	require.NoError(t, prove())
	require.FileExists(t, path+".verified")

	// Damage that leaves size and time as they were, as that of a disk does.
	info, err := os.Stat(path)
	require.NoError(t, err)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte{0xff}, info.Size()/3)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, os.Chtimes(path, info.ModTime(), info.ModTime()))

	var invalid *shared.ProofInvalidError
	require.ErrorAs(t, prove(), &invalid)
	require.NoFileExists(t, path+".verified")
	var wrong *shared.ParamsError
	require.ErrorAs(t, prove(), &wrong)
	require.Contains(t, wrong.Path, path)
}

// A request that is too late already is given up before it is decoded, and gives back what it took.
func TestTooLateAlready(t *testing.T) {
	e := newEngine(t, t.TempDir(), randomBlinding)
	r, _ := loadCase(t, "winning-2KiB")
	r.Deadline = time.Now().Add(-time.Second)
	_, err := e.Prove(t.Context(), r, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, e.pipeline.Close(t.Context()))
	require.Zero(t, e.requests.Used())
}
