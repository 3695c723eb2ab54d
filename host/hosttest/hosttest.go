// Package hosttest starts real pairs of a host and a plugin process for tests, and makes sure that nothing of them is
// left afterwards. It serves the tests of this project and those of sealing software.
//
//	h := hosttest.Start(t, hosttest.Options{
//		Package: "github.com/interlock-prover/interlock/plugin",
//		Config:  `parameters { dir = "testdata" }`,
//	})
//	result, err := h.Prove(ctx, request, nil)
//
// [Supervise] does the same with a supervisor. For tests of what happens when something goes wrong, the program in
// testplugin has faults as scripted, see [Script].
//
// The package knows nothing of what a plugin does.
package hosttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/interlock-prover/interlock/host"
)

// Options say which plugin to start and how.
type Options struct {
	// Options of the host. Without a Logger, the plugin's log goes to the test's.
	host.Options

	// Package is the Go package of the plugin's program, which is built for the test; empty if PluginPath names a program.
	Package string
	// Config is the text of a configuration file; empty if ConfigPath names one or none is needed.
	Config string
}

// Start starts a host and its plugin, which end with the test. The test fails if they do not start, do not end in order,
// or leave the process behind.
func Start(t testing.TB, o Options) *host.Host {
	t.Helper()
	if o.Logger == nil {
		o.Logger = Logger(t)
	}
	if o.Package != "" {
		o.PluginPath = Build(t, o.Package)
	}
	if o.Config != "" {
		o.ConfigPath = filepath.Join(t.TempDir(), "config.hcl")
		if err := os.WriteFile(o.ConfigPath, []byte(o.Config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	h, err := host.Start(ctx, o.Options)
	if err != nil {
		t.Fatalf("starting a host: %v", err)
	}
	t.Cleanup(func() {
		if err := h.Stop(context.Background()); err != nil {
			t.Errorf("stopping the host: %v", err)
		}
		if Running(h.PID()) {
			t.Errorf("the plugin process %d outlived its host", h.PID())
		}
	})
	return h
}

const startTimeout = time.Minute

// Supervise starts a supervisor and its plugin, which end with the test, as [Start] does.
func Supervise(t testing.TB, o host.SupervisorOptions) *host.Supervisor {
	t.Helper()
	if o.Logger == nil {
		o.Logger = Logger(t)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s, err := host.Supervise(ctx, o)
	if err != nil {
		t.Fatalf("starting a supervisor: %v", err)
	}
	t.Cleanup(func() {
		pid := s.State().PID
		if err := s.Stop(context.Background()); err != nil {
			t.Errorf("stopping the supervisor: %v", err)
		}
		if pid != 0 && Running(pid) {
			t.Errorf("the plugin process %d outlived its supervisor", pid)
		}
	})
	return s
}

// Build builds a program for the test and gives its path. A test that starts several hosts builds once and gives the
// path as PluginPath.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), host.PluginProgram)
	if out, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, out)
	}
	return path
}

// Running tells whether a process runs. A zombie, which only waits for its parent to ask after it, does not.
func Running(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	// The state follows the program's name, which is in parentheses and may itself have some.
	_, state, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	return !strings.HasPrefix(state, "Z")
}

// Logger writes to the test's log, until the test ends.
func Logger(t testing.TB) hclog.Logger {
	w := &testWriter{t: t}
	t.Cleanup(w.close)
	return hclog.New(&hclog.LoggerOptions{Output: w, Level: hclog.Debug, DisableTime: true})
}

// testWriter keeps what comes late from a test that has ended, which would panic.
type testWriter struct {
	mu sync.Mutex
	t  testing.TB
}

func (w *testWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.t != nil {
		w.t.Log(strings.TrimSuffix(string(p), "\n"))
	}
	return len(p), nil
}

func (w *testWriter) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.t = nil
}
