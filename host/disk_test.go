package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/host/hosttest/ownfs"
	"github.com/interlock-prover/interlock/host/journal"
	"github.com/interlock-prover/interlock/shared"
)

// A payload is in the host's memory once at most, and not at all while the plugin works on it or is not there.
func TestPayloadsDoNotStayInMemory(t *testing.T) {
	const size = 32 << 20
	o, state := scriptedOptions(t)
	o.Journal.Dir = t.TempDir()
	s := hosttest.Supervise(t, o)
	large := func(id string) shared.Request {
		r := request(id)
		r.Vanilla[0] = bytes.Repeat([]byte(id), size/len(id))
		return r
	}
	submit := func(id string) {
		_, err := s.Submit(t.Context(), large(id))
		require.NoError(t, err)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	submit("passed on")
	_, err := s.Await(t.Context(), "passed on")
	require.NoError(t, err)
	waitFor(t, func() bool { return heap() < before+size/2 })

	// Without a plugin they wait on disk.
	require.NoError(t, syscall.Kill(pidOf(t, s), syscall.SIGSTOP))
	for i := range 3 {
		submit(fmt.Sprintf("waiting %d", i))
	}
	waitFor(t, func() bool { return heap() < before+3*size }) // two on their way at most
	require.NoError(t, syscall.Kill(pidOf(t, s), syscall.SIGCONT))
	for i := range 3 {
		id := fmt.Sprintf("waiting %d", i)
		result, err := s.Await(t.Context(), shared.JobID(id))
		require.NoError(t, err)
		require.Equal(t, hosttest.ScriptedProof(large(id)), result.Proof)
		require.Equal(t, 1, hosttest.Attempts(state, id))
	}
}

func pidOf(t testing.TB, s *host.Supervisor) int {
	pid := s.State().PID
	require.Positive(t, pid)
	return pid
}

// While the disk is full, requests are refused with a typed error, those under way are answered, and their answers are
// written down as soon as there is room, without a restart. It runs in a process with a file system of its own.
func TestHostOnFullDisk(t *testing.T) {
	out := ownfs.Run(t, roleEnv+"=host on a full disk", hosttest.EnvState+"="+t.TempDir())
	require.Contains(t, out, "an answer could not be written and is kept in memory until it can")
}

func hostOnFullDisk() int {
	return ownfs.Main("1m", fullDisk)
}

func fullDisk(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx := context.Background()
	state := os.Getenv(hosttest.EnvState)
	o := host.SupervisorOptions{
		Options: host.Options{
			PluginPath: self, Env: []string{roleEnv + "=scripted", hosttest.EnvState + "=" + state},
			Logger: hclog.New(&hclog.LoggerOptions{Output: os.Stdout}),
		},
		Journal: host.Journal{Dir: filepath.Join(dir, "journal")},
	}
	s, err := host.Supervise(ctx, o)
	if err != nil {
		return err
	}
	// Long proofs, so that no page of the database has room for one.
	script := hosttest.Script{Work: 700 * time.Millisecond}
	for _, id := range []string{"a", "b"} {
		if _, err := s.Submit(ctx, script.Request(id)); err != nil {
			return err
		}
	}
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	_ = f.Close()

	var fault *journal.Error
	var busy *shared.BusyError
	if _, err := s.Submit(ctx, script.Request("refused")); !errors.As(err, &fault) || !errors.As(err, &busy) || !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("on a full disk: %w", err)
	}
	for _, id := range []string{"a", "b"} {
		result, err := s.Await(ctx, shared.JobID(id))
		if err != nil || !slices.Equal(result.Proof, hosttest.ScriptedProof(script.Request(id))) {
			return fmt.Errorf("%s, accepted before: %w", id, err)
		}
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	if _, err := s.Prove(ctx, script.Request("refused"), nil); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	if err := s.Stop(ctx); err != nil {
		return err
	}
	if s, err = host.Supervise(ctx, o); err != nil {
		return err
	}
	for _, id := range []string{"a", "b", "refused"} {
		if _, err := s.Await(ctx, shared.JobID(id)); err != nil {
			return fmt.Errorf("%s, with the next host: %w", id, err)
		}
		if n := hosttest.Proven(state)[id]; n != 1 {
			return fmt.Errorf("%s was proven %d times", id, n)
		}
	}
	return s.Stop(ctx)
}
