package host_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/shared"
)

func TestPluginGetsItsConfiguration(t *testing.T) {
	o := fakeOptions(t)
	o.Config = "log {}"
	o.ParamsDir = t.TempDir()
	h := hosttest.Start(t, o)
	require.NoError(t, h.Health(t.Context()))
	status, err := h.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, h.PID(), status.PID)
	require.NotEqual(t, os.Getpid(), status.PID)
	config, params, _ := strings.Cut(status.Version, "|")
	require.Equal(t, o.ParamsDir, params)
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	require.Equal(t, o.Config, string(text))
}

// Payloads larger than a 64 GiB window partition pass through mutual TLS and two processes unchanged.
func TestLargePayloadPasses(t *testing.T) {
	h := hosttest.Start(t, fakeOptions(t))
	r := request("digest")
	r.Vanilla[0] = bytes.Repeat([]byte("0123456789abcde"), 50_000_000/15)
	want := sha256.Sum256(r.Vanilla[0])
	start := time.Now()
	result, err := h.Prove(t.Context(), r, nil)
	require.NoError(t, err)
	require.Equal(t, want[:], result.Proof)
	t.Logf("%d bytes in %v", len(r.Vanilla[0]), time.Since(start))
}

func TestTypedErrorsReachTheHost(t *testing.T) {
	h := hosttest.Start(t, fakeOptions(t))
	var busy *shared.BusyError
	_, err := h.Prove(t.Context(), request("anything"), nil)
	require.ErrorAs(t, err, &busy)
	require.Equal(t, &shared.BusyError{Resource: "the queue", RetryAfter: time.Second}, busy)
	var invalid *shared.InvalidRequestError
	_, err = h.Prove(t.Context(), shared.Request{}, nil)
	require.ErrorAs(t, err, &invalid)
	_, err = h.Toolbox().CheckParams(t.Context(), "p", nil)
	require.EqualError(t, err, "the mock has no script for CheckParams")
}

// The end of a caller's context reaches the plugin within 100 ms.
func TestCancellationPasses(t *testing.T) {
	log := &logRecorder{}
	o := fakeOptions(t)
	o.Logger = log.logger(hclog.Info)
	h := hosttest.Start(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	begun := make(chan struct{})
	go func() {
		_, err := h.Prove(ctx, request("block"), func(shared.Progress) { close(begun) })
		failed <- err
	}()
	<-begun
	cancelled := time.Now()
	cancel()
	require.ErrorIs(t, <-failed, shared.ErrCancelled)
	require.Eventually(t, func() bool { return log.find("the request ended") != nil }, time.Second, time.Millisecond)
	var at int64
	_, err := fmt.Sscan(fmt.Sprint(log.find("the request ended")["at"]), &at)
	require.NoError(t, err)
	require.Less(t, time.Unix(0, at).Sub(cancelled), 100*time.Millisecond)
	require.NoError(t, h.Health(t.Context()))
}

// However the plugin dies, callers in flight learn how, within a second; later ones at once; and the host lives.
func TestPluginDiesInMidCall(t *testing.T) {
	for _, c := range []struct {
		name   string
		id     string // of the request that ends it, besides the one that waits
		kill   syscall.Signal
		status string
		stderr string
	}{
		{"killed", "", syscall.SIGKILL, "signal: killed", ""},
		{"terminated", "", syscall.SIGTERM, "exit status 0", "told to terminate"},
		{"exits", "exit", 0, "exit status 3", "[ERROR] the card is gone gpu=3"},
		{"panics", "panic", 0, "exit status 2", "panic: a fault of the prover"},
		{"leaves a process that holds its pipes", "orphan", 0, "exit status 4", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := hosttest.Start(t, fakeOptions(t))
			var began, failed sync.WaitGroup
			const callers = 5
			errs := make([]error, callers)
			for i := range callers {
				began.Add(1)
				failed.Go(func() {
					_, errs[i] = h.Prove(t.Context(), request("block"), func(shared.Progress) { began.Done() })
				})
			}
			began.Wait()
			var err error
			dead := time.Now()
			if c.id != "" {
				_, err = h.Prove(t.Context(), request(c.id), nil)
			} else {
				require.NoError(t, syscall.Kill(h.PID(), c.kill))
			}
			failed.Wait()
			require.Less(t, time.Since(dead), time.Second)
			if c.id != "" {
				errs = append(errs, err)
			}
			for _, err := range errs {
				var died *shared.PluginDiedError
				require.ErrorAs(t, err, &died)
				require.Equal(t, h.PID(), died.PID)
				require.Equal(t, c.status, died.Status)
				require.Contains(t, strings.Join(died.Stderr, "\n"), c.stderr)
			}

			<-h.Done()
			var died *shared.PluginDiedError
			require.ErrorAs(t, h.Err(), &died)
			later := time.Now()
			_, err = h.Status(t.Context())
			require.ErrorAs(t, err, &died)
			require.ErrorAs(t, h.Health(t.Context()), &died)
			require.Less(t, time.Since(later), 100*time.Millisecond)
		})
	}
}

// A panic's first lines are kept, not the last of its many.
func TestCrashReportBeginsAtItsBeginning(t *testing.T) {
	h := hosttest.Start(t, fakeOptions(t))
	_, err := h.Prove(t.Context(), request("panic"), nil)
	var died *shared.PluginDiedError
	require.ErrorAs(t, err, &died)
	require.Equal(t, "panic: a fault of the prover", died.Stderr[0])
}

func TestStop(t *testing.T) {
	log := &logRecorder{}
	o := fakeOptions(t)
	o.Logger = log.logger(hclog.Info)
	h := hosttest.Start(t, o)
	begun, failed := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := h.Prove(context.Background(), request("block"), func(shared.Progress) { close(begun) })
		failed <- err
	}()
	<-begun
	require.NoError(t, h.Err())
	require.NoError(t, h.Stop(t.Context()))
	require.ErrorIs(t, <-failed, host.ErrStopped)
	require.False(t, hosttest.Running(h.PID()))
	require.NotNil(t, log.find("the request ended"), "the call returned in the plugin")
	require.NotNil(t, log.find("closed"), "the plugin was closed in order")

	_, err := h.Status(t.Context())
	require.ErrorIs(t, err, host.ErrStopped)
	require.ErrorIs(t, h.Err(), host.ErrStopped)
	require.NoError(t, h.Stop(t.Context()), "a second time")
}

// A plugin that does not end is killed when the time for it is up, and the caller hears of that. Until then it has the
// whole time, which is longer than the two seconds that go-plugin gives.
func TestStopKillsAPluginThatHangs(t *testing.T) {
	self := fakeOptions(t)
	for _, c := range []struct {
		name   string
		config string
		hang   func(*host.Host)
		stop   func(*host.Host) error
		least  time.Duration
		most   time.Duration
	}{
		{"a call that ignores its context, until StopTimeout", "", func(h *host.Host) {
			go func() { _, _ = h.Prove(context.Background(), request("ignore"), nil) }()
		}, func(h *host.Host) error { return h.Stop(context.Background()) }, 3 * time.Second, 5 * time.Second},
		{"a slow end, until the context ends", "slow end", func(*host.Host) {}, func(h *host.Host) error {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			defer cancel()
			return h.Stop(ctx)
		}, 100 * time.Millisecond, 2 * time.Second}, // less than StopTimeout
		{"a suspended process", "", func(h *host.Host) { suspend(t, h.PID()) },
			func(h *host.Host) error { return h.Stop(context.Background()) }, 3 * time.Second, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := self.Options
			o.StopTimeout = 3 * time.Second
			if c.config != "" {
				o.ConfigPath = writeConfig(t, c.config)
			}
			h, err := host.Start(t.Context(), o)
			require.NoError(t, err)
			c.hang(h)
			time.Sleep(50 * time.Millisecond) // let the call arrive
			start := time.Now()
			require.ErrorContains(t, c.stop(h), "was killed")
			took := time.Since(start)
			require.GreaterOrEqual(t, took, c.least)
			require.Less(t, took, c.most)
			require.False(t, hosttest.Running(h.PID()))
		})
	}
}

// A hung plugin is told apart from a healthy one.
func TestHealthOfAHungPlugin(t *testing.T) {
	h := hosttest.Start(t, fakeOptions(t))
	suspend(t, h.PID())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, h.Health(ctx), context.DeadlineExceeded)
	require.NoError(t, syscall.Kill(h.PID(), syscall.SIGCONT))
	require.NoError(t, h.Health(t.Context()))
}

func TestStartFailures(t *testing.T) {
	sockets := t.TempDir()
	t.Setenv("TMPDIR", sockets)
	fake := fakeOptions(t).Options
	for _, c := range []struct {
		name    string
		options func(*host.Options)
		timeout time.Duration
		says    []string
	}{
		{"no such program", func(o *host.Options) { o.PluginPath = filepath.Join(sockets, "none") }, 0, []string{"none", "does not exist", "install interlock-prover there"}},
		{"no program", func(o *host.Options) { o.PluginPath = writeConfig(t, "x") }, 0, []string{"cannot be executed"}},
		{"a program that is no plugin", func(o *host.Options) { o.PluginPath = "/bin/true" }, 0, []string{"/bin/true", "exit status 0"}},
		{"a program that talks otherwise", func(o *host.Options) {
			o.PluginPath, o.Args = "/bin/sh", []string{"-c", "echo trouble >&2; echo hello; exec sleep 60"}
		}, 0, []string{"hello", "trouble"}},
		{"a fault in the configuration", func(o *host.Options) { o.ConfigPath = writeConfig(t, "fault") }, 0,
			[]string{"exit status 1", "config.hcl:1: the fault in it"}},
		{"never ready, until the context ends", func(o *host.Options) { o.ConfigPath = writeConfig(t, "slow") }, 300 * time.Millisecond,
			[]string{"deadline exceeded"}},
		{"never ready, until StartTimeout", func(o *host.Options) {
			o.ConfigPath, o.StartTimeout = writeConfig(t, "slow"), 300*time.Millisecond
		}, 0, []string{"timeout while waiting for plugin"}},
		{"context ended before", func(*host.Options) {}, time.Nanosecond, []string{"deadline exceeded"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := t.Context()
			if c.timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.timeout)
				defer cancel()
			}
			o := fake
			c.options(&o)
			start := time.Now()
			_, err := host.Start(ctx, o)
			require.Less(t, time.Since(start), 10*time.Second)
			require.Error(t, err)
			for _, text := range c.says {
				require.ErrorContains(t, err, text)
			}
			require.Empty(t, childPIDs(t))
		})
	}
	left, err := filepath.Glob(filepath.Join(sockets, "interlock-*", "*"))
	require.NoError(t, err)
	require.Empty(t, left, "directories of sockets")
}

// A directory for sockets that others could enter, or somebody else has made, is not used.
func TestSocketDir(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	root := filepath.Join(os.TempDir(), fmt.Sprintf("interlock-%d", os.Getuid()))
	require.NoError(t, os.Mkdir(root, 0o700))
	require.NoError(t, os.Chmod(root, 0o750))
	_, err := host.Start(t.Context(), fakeOptions(t).Options)
	require.ErrorContains(t, err, root)
	require.NoError(t, os.Remove(root))
	require.NoError(t, os.Symlink(t.TempDir(), root))
	_, err = host.Start(t.Context(), fakeOptions(t).Options)
	require.ErrorContains(t, err, root)
	require.NoError(t, os.Remove(root))

	h := hosttest.Start(t, fakeOptions(t))
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if d.IsDir() {
			info, err := d.Info()
			require.NoError(t, err)
			require.Zero(t, info.Mode()&0o077, path)
		}
		return nil
	}))
	require.NoError(t, h.Stop(t.Context()))
	left, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, left)
}

// Only the program that was asked for is started, even one that is put in its place after it was looked at.
func TestChecksumOfTheProgram(t *testing.T) {
	o := fakeOptions(t)
	program, err := os.ReadFile(o.PluginPath)
	require.NoError(t, err)
	o.PluginPath = filepath.Join(t.TempDir(), "plugin")
	require.NoError(t, os.WriteFile(o.PluginPath, program, 0o700))
	o.PluginSHA256 = fmt.Sprintf("%X", sha256.Sum256(program))
	h := hosttest.Start(t, o)
	require.NoError(t, h.Health(t.Context()))
	_, err = h.Prove(t.Context(), request("exit"), nil)
	var died *shared.PluginDiedError
	require.ErrorAs(t, err, &died)
	require.Equal(t, o.PluginPath, died.Path)

	require.NoError(t, os.Remove(o.PluginPath))
	program[len(program)-1] ^= 1
	require.NoError(t, os.WriteFile(o.PluginPath, program, 0o700))
	_, err = host.Start(t.Context(), o.Options)
	var wrong *host.ChecksumError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, fmt.Sprintf("%x", sha256.Sum256(program)), wrong.Got)
	for _, sum := range []string{"ab", "xy", strings.Repeat("0", 65)} {
		o.PluginSHA256 = sum
		_, err = host.Start(t.Context(), o.Options)
		require.ErrorContains(t, err, "no SHA-256")
	}
}

// A temporary directory whose path no socket's would fit into is passed over.
func TestLongTemporaryDirectory(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 100))
	require.NoError(t, os.Mkdir(long, 0o700))
	t.Setenv("TMPDIR", long)
	require.NoError(t, hosttest.Start(t, fakeOptions(t)).Health(t.Context()))
}

// Killing a host leaves no plugin, whatever that is doing.
func TestKilledHostLeavesNoPlugin(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleEnv+"=host")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var pid int
	_, err = fmt.Fscan(out, &pid)
	require.NoError(t, err)
	require.True(t, hosttest.Running(pid))
	time.Sleep(100 * time.Millisecond) // let its calls arrive

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Eventually(t, func() bool { return !hosttest.Running(pid) }, 10*time.Second, 10*time.Millisecond)
}

// Started by a person, a plugin says what it is, in one line, and exits 1.
func TestPluginStartedByHand(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleEnv+"=plugin")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode())
	require.Empty(t, stdout.String())
	require.Equal(t, 1, strings.Count(stderr.String(), "\n"))
	require.Contains(t, stderr.String(), "is a plugin that a sealing host starts")
}

// Log lines come home with their level, module and fields, printed ones too.
func TestLogForwarding(t *testing.T) {
	log := &logRecorder{}
	o := fakeOptions(t)
	o.Logger = log.logger(hclog.Info)
	h := hosttest.Start(t, o)
	_, err := h.Prove(t.Context(), request("log"), nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return log.find("at error") != nil && log.find("printed") != nil }, 5*time.Second, 5*time.Millisecond)
	require.Equal(t, "info", log.find("at info")["@level"])
	require.EqualValues(t, 7, log.find("at info")["partition"])
	require.Equal(t, "warn", log.find("at warn")["@level"])
	require.Contains(t, log.find("at warn")["@module"], "pipeline")
	require.Equal(t, "error", log.find("at error")["@level"])
	require.Equal(t, "warn", log.find("printed")["@level"])
	require.Nil(t, log.find("at debug"))
}

// Many hosts start and stop side by side; the goroutine check of TestMain sees what they leave.
func TestManyHosts(t *testing.T) {
	o := fakeOptions(t).Options
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 3 {
				h, err := host.Start(t.Context(), o)
				if err != nil {
					t.Error(err)
					return
				}
				if err := h.Health(t.Context()); err != nil {
					t.Error(err)
				}
				if err := h.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func writeConfig(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "config.hcl")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// suspend stops a process, and waits until each of its threads stands still.
func suspend(t *testing.T, pid int) {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Error(err)
	}
	for {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil || len(threads) == 0 {
			t.Errorf("no threads of process %d: %v", pid, err)
			return
		}
		standing := 0
		for _, thread := range threads {
			// The state follows the program's name, which is in parentheses.
			if stat, err := os.ReadFile(thread); err == nil && strings.Contains(string(stat), ") T ") {
				standing++
			}
		}
		if standing == len(threads) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// childPIDs lists the processes that this one has started and that still run.
func childPIDs(t *testing.T) (pids []string) {
	lists, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has gone
		}
		pids = append(pids, strings.Fields(string(text))...)
	}
	return pids
}

// logRecorder is a logger that remembers.
type logRecorder struct {
	mu    sync.Mutex
	lines []map[string]any
}

func (r *logRecorder) logger(level hclog.Level) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Output: r, Level: level, JSONFormat: true})
}

func (r *logRecorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	scanner := bufio.NewScanner(bytes.NewReader(p))
	for scanner.Scan() {
		var line map[string]any
		if err := json.Unmarshal(scanner.Bytes(), &line); err == nil {
			r.lines = append(r.lines, line)
		}
	}
	return len(p), nil
}

// find gives the line whose message has the text.
func (r *logRecorder) find(text string) map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.lines {
		if strings.Contains(fmt.Sprint(line["@message"]), text) {
			return line
		}
	}
	return nil
}
