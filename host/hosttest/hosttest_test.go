package hosttest_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/shared"
)

// A plugin is built from its package, gets its configuration, proves, and is gone after the test.
func TestStart(t *testing.T) {
	program := hosttest.Build(t, "./testplugin")
	var pid int
	t.Run("a pair", func(t *testing.T) {
		h := hosttest.Start(t, hosttest.Options{Options: host.Options{PluginPath: program}, Config: "cpu {}"})
		pid = h.PID()
		require.True(t, hosttest.Running(pid))
		status, err := h.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, "cpu {}", status.Version)
		result, err := h.Prove(t.Context(), shared.Request{
			Kind: shared.KindPoRep, SectorSize: shared.SectorSize2KiB, Vanilla: [][]byte{{1}},
		}, nil)
		require.NoError(t, err)
		require.Len(t, result.Proof, 192)
	})
	require.False(t, hosttest.Running(pid))

	t.Run("a plugin that does not end fails the test", func(t *testing.T) {
		tb := &judge{TB: t}
		h := hosttest.Start(tb, hosttest.Options{
			Options: host.Options{PluginPath: program, StopTimeout: 100 * time.Millisecond}, Config: "# hang",
		})
		pid = h.PID()
		tb.end()
		require.Len(t, tb.errors, 1)
		require.Contains(t, tb.errors[0], "was killed")
		require.False(t, hosttest.Running(pid))
	})
}

// judge is a test that is judged itself.
type judge struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (j *judge) Cleanup(f func()) { j.cleanups = append(j.cleanups, f) }

func (j *judge) Errorf(format string, args ...any) {
	j.errors = append(j.errors, fmt.Sprintf(format, args...))
}

func (j *judge) end() {
	for _, f := range slices.Backward(j.cleanups) {
		f()
	}
}

func TestRunning(t *testing.T) {
	require.True(t, hosttest.Running(os.Getpid()))
	cmd := exec.Command("/bin/true")
	require.NoError(t, cmd.Start())
	// Nobody has asked after it yet, so it ends as a zombie.
	require.Eventually(t, func() bool { return !hosttest.Running(cmd.Process.Pid) }, 5*time.Second, time.Millisecond)
	require.NoError(t, cmd.Wait())
	require.False(t, hosttest.Running(cmd.Process.Pid))
}
