package host_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/shared"
)

// detachedOptions are scripted options of a plugin that outlives its host, but not the test.
func detachedOptions(t *testing.T) (o host.SupervisorOptions, state string) {
	o, state = scriptedOptions(t)
	dir, err := os.MkdirTemp("", "detach") // short enough for a socket's path
	require.NoError(t, err)
	o.Journal.Dir, o.Detach, o.DetachIdle = dir, true, time.Minute
	o.Logger = hosttest.Logger(t)
	t.Cleanup(func() {
		if pid := detachedPID(dir); pid > 0 && hosttest.Running(pid) {
			_ = syscall.Kill(pid, syscall.SIGTERM)
			waitFor(t, func() bool { return !hosttest.Running(pid) })
		}
		_ = os.RemoveAll(dir)
	})
	return o, state
}

// detachedPID is the plugin that was written down.
func detachedPID(dir string) int {
	var who struct{ PID int }
	text, err := os.ReadFile(filepath.Join(dir, "plugin", "plugin.json"))
	if err != nil || json.Unmarshal(text, &who) != nil {
		return 0
	}
	return who.PID
}

func supervise(t *testing.T, o host.SupervisorOptions) *host.Supervisor {
	s, err := host.Supervise(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s
}

// attempts counts attempts at a request, by whatever name the plugin knows it.
func attempts(t *testing.T, state, id string) int {
	files, err := filepath.Glob(filepath.Join(state, id+".*attempts"))
	require.NoError(t, err)
	n := 0
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		n += int(info.Size())
	}
	return n
}

// A host that ends leaves the plugin at its work. The next one finds it, and collects what was finished meanwhile and
// what is under way; nothing is proven twice, and what nobody could ask for is ended.
func TestDetachedPluginOutlivesItsHost(t *testing.T) {
	o, state := detachedOptions(t)
	s := supervise(t, o)
	pid := s.State().PID
	prove(t, s, hosttest.Script{}.Request("done"))
	for i := range 4 {
		_, err := s.Submit(t.Context(), hosttest.Script{Work: 400 * time.Millisecond}.Request(fmt.Sprintf("under-way-%d", i)))
		require.NoError(t, err)
	}
	nameless := hosttest.Script{Fault: hosttest.FaultStall, Stage: shared.StageDecode}.Request("")
	failed := make(chan error, 1)
	go func() {
		_, err := s.Prove(context.Background(), nameless, nil)
		failed <- err
	}()
	waitFor(t, func() bool {
		st, err := s.Status(t.Context())
		return err == nil && st.PID == pid && len(st.Jobs) == 5 && attempts(t, state, "under-way-3") == 1
	})
	require.NoError(t, s.Stop(t.Context()))
	require.ErrorIs(t, <-failed, host.ErrStopped)
	require.True(t, hosttest.Running(pid))
	time.Sleep(500 * time.Millisecond) // it finishes some

	s = supervise(t, o)
	require.Equal(t, pid, s.State().PID)
	for i := range 4 {
		prove(t, s, hosttest.Script{Work: 400 * time.Millisecond}.Request(fmt.Sprintf("under-way-%d", i)))
		require.Equal(t, 1, attempts(t, state, fmt.Sprintf("under-way-%d", i)))
	}
	st, err := s.Status(t.Context())
	require.NoError(t, err)
	require.Empty(t, st.Jobs)
	prove(t, s, hosttest.Script{}.Request("new"))

	// Sent again after a failure, a request is tried again.
	refused := hosttest.Script{Fault: hosttest.FaultError, Stage: shared.StageDecode, Times: 1}.Request("refused")
	for range 2 {
		_, err = s.Prove(t.Context(), refused, nil)
		require.Error(t, err)
	}
	require.Equal(t, 2, attempts(t, state, "refused"))
}

// The same if the host is killed.
func TestDetachedPluginOutlivesAKilledHost(t *testing.T) {
	t.Setenv(chaosDetachEnv, "1")
	w := newChaosWorld(t)
	pid := detachedPID(w.journal)
	t.Cleanup(func() {
		if pid := detachedPID(w.journal); pid > 0 {
			_ = syscall.Kill(pid, syscall.SIGTERM)
			waitFor(t, func() bool { return !hosttest.Running(pid) })
		}
	})
	r := hosttest.Script{Work: 1500 * time.Millisecond}.Request("r")
	reply, ok := w.host.call(chaosCall{ID: "r", Request: &r})
	require.True(t, ok && reply.Accepted, reply.Error)
	waitFor(t, func() bool { return attempts(t, w.state, "r") == 1 })
	require.NoError(t, w.host.cmd.Process.Kill())
	<-w.host.ended
	require.True(t, hosttest.Running(pid))
	w.startHost()
	require.Equal(t, pid, detachedPID(w.journal))
	reply, ok = w.host.call(chaosCall{ID: "r"})
	require.True(t, ok)
	require.Equal(t, fmt.Sprintf("%x", hosttest.ScriptedProof(r)), reply.Proof)
	require.Equal(t, 1, attempts(t, w.state, "r"))
	require.NoError(t, w.host.in.Close())
	<-w.host.ended
}

// A detached plugin that dies or hangs is replaced, as any.
func TestDetachedPluginFaults(t *testing.T) {
	o, _ := detachedOptions(t)
	o.ProbeTimeout = 500 * time.Millisecond
	s := supervise(t, o)
	for _, fault := range []hosttest.Fault{hosttest.FaultKill, hosttest.FaultExit, hosttest.FaultPanic, hosttest.FaultStop} {
		prove(t, s, hosttest.Script{Fault: fault, Stage: shared.StageDevice, Times: 1}.Request(string(fault)))
	}
	_, err := s.Prove(t.Context(), hosttest.Script{Fault: hosttest.FaultExit, Stage: shared.StageDevice}.Request("poison"), nil)
	var aside *shared.SetAsideError
	require.ErrorAs(t, err, &aside)
	require.Contains(t, aside.Last, "exit status 3")
}

// The log of a detached plugin is bounded: a long one becomes the older one. What a plugin last wrote is found in the new
// one, to which the next plugin appends.
func TestDetachedPluginsLogIsBounded(t *testing.T) {
	o, _ := detachedOptions(t)
	o.Attempts = 1
	s := supervise(t, o)
	pid := s.State().PID
	log, older := shared.DetachedLog(filepath.Join(o.Journal.Dir, "plugin"))
	handles := func() int {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		require.NoError(t, err)
		return len(entries)
	}
	before := handles()
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Write(make([]byte, shared.DetachedLogBytes+1))
	require.NoError(t, err)
	waitFor(t, func() bool { _, err := os.Stat(older); return err == nil })
	waitFor(t, func() bool { info, err := os.Stat(log); return err == nil && info.Size() < shared.DetachedLogBytes })
	waitFor(t, func() bool { return handles() <= before })

	_, err = s.Prove(t.Context(), hosttest.Script{Fault: hosttest.FaultExit, Stage: shared.StageDevice}.Request("r"), nil)
	require.ErrorContains(t, err, "a scripted end")
	prove(t, s, hosttest.Script{Fault: hosttest.FaultKill, Stage: shared.StageDevice, Times: 1}.Request("next"))
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Contains(t, string(text), "a scripted end\n")
	waitFor(t, func() bool { return s.State().PID != 0 && s.State().PID != pid })
	require.NoError(t, s.Stop(t.Context()))
	after, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, string(text), string(after[:len(text)]))
}

// What was started otherwise, or does not answer, is ended and replaced.
func TestDetachedPluginIsReplaced(t *testing.T) {
	o, _ := detachedOptions(t)
	o.StartTimeout, o.StopTimeout = 5*time.Second, time.Second
	pids := map[int]bool{}
	next := func() {
		s := supervise(t, o)
		pid := s.State().PID
		require.False(t, pids[pid])
		for old := range pids {
			require.False(t, hosttest.Running(old))
		}
		pids[pid] = true
		require.NoError(t, s.Stop(t.Context()))
	}
	next()
	o.ParamsDir = t.TempDir()
	next()
	require.NoError(t, syscall.Kill(detachedPID(o.Journal.Dir), syscall.SIGSTOP))
	next()
	require.NoError(t, syscall.Kill(detachedPID(o.Journal.Dir), syscall.SIGKILL))
	next()
}

// A process that only has the number of the plugin is let alone.
func TestStrangersAreLetAlone(t *testing.T) {
	o, _ := detachedOptions(t)
	stranger := exec.Command("sleep", "60")
	require.NoError(t, stranger.Start())
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	s := supervise(t, o)
	pid := s.State().PID
	require.NoError(t, s.Stop(t.Context()))
	path := filepath.Join(o.Journal.Dir, "plugin", "plugin.json")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var who map[string]any
	require.NoError(t, json.Unmarshal(text, &who))
	who["PID"] = stranger.Process.Pid
	text, err = json.Marshal(who)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
	waitFor(t, func() bool { return !hosttest.Running(pid) })

	s = supervise(t, o)
	require.NotEqual(t, stranger.Process.Pid, s.State().PID)
	prove(t, s, hosttest.Script{}.Request("r"))
	require.True(t, hosttest.Running(stranger.Process.Pid))
}

// Nobody speaks to the plugin who has not the key, and nobody but the owner can read it.
func TestDetachedPluginKeepsOthersOut(t *testing.T) {
	o, _ := detachedOptions(t)
	s := supervise(t, o)
	dir := filepath.Join(o.Journal.Dir, "plugin")
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		if info.Mode()&fs.ModeSocket == 0 { // which its directory guards
			require.Zero(t, info.Mode()&0o077, path)
		}
		return nil
	}))
	_, _, socket := shared.DetachedFiles(dir)
	conn, err := tls.Dial("unix", socket, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err == nil { // TLS 1.3 tells a client only afterwards
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	require.ErrorContains(t, err, "certificate required")
	prove(t, s, hosttest.Script{}.Request("r"))
}

// Without a host, it ends after a while.
func TestDetachedPluginWithoutAHostEnds(t *testing.T) {
	o, _ := detachedOptions(t)
	o.DetachIdle = 2 * time.Second
	s := supervise(t, o)
	pid := s.State().PID
	time.Sleep(3 * time.Second)
	require.Equal(t, pid, s.State().PID, "a host is there")
	require.NoError(t, s.Stop(t.Context()))
	waitFor(t, func() bool { return !hosttest.Running(pid) })
}

func TestDetachNeedsAJournal(t *testing.T) {
	o, _ := scriptedOptions(t)
	o.Detach = true
	_, err := host.Supervise(t.Context(), o)
	require.ErrorContains(t, err, "only with a journal")
}
