//go:build soak || conformance

package host_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/shared"
)

// The wall clocks of a host and its real plugin jump by a day, forth and by two days back, while they work. Deadlines,
// watchdogs and the keeping of answers go by the monotonic clock: no plugin is given up, no request is late, no answer is
// forgotten, also if the plugin is killed then and its requests go to the next.
func TestConformanceClockJumps(t *testing.T) {
	w, tool, clock := newJumpyWorld(t)
	requests := w.sendAll(tool.request, time.Now().Add(20*time.Minute), 12)
	w.awaitAnswers(2)
	plugin := w.plugin(w.host)
	clock.jump(25 * time.Hour)
	jumped := time.Now()
	w.awaitAnswers(5)
	require.Equal(t, plugin, w.plugin(w.host), "the plugin was not given up")
	w.hit("plugin killed", plugin, syscall.SIGKILL)
	w.awaitAnswers(7)
	plugin = w.plugin(w.host)
	clock.jump(-25 * time.Hour)
	w.clients.Wait()
	require.Equal(t, plugin, w.plugin(w.host), "the second plugin was not given up")
	time.Sleep(time.Until(jumped.Add(forgetting)))
	w.checkAll(tool, requests)
	require.Equal(t, 1, w.hosts)
	w.plugins[plugin] = true
	w.stop()
}

// A detached plugin that waits for its next host does not take a jump of the clock for the end of its patience.
func TestConformanceClockJumpsWithoutAHost(t *testing.T) {
	t.Setenv(chaosDetachEnv, "1")
	w, tool, clock := newJumpyWorld(t)
	requests := w.sendAll(tool.request, time.Time{}, 8)
	w.awaitAnswers(2)
	plugin := w.plugin(w.host)
	h := w.host
	w.hit("host killed", h.cmd.Process.Pid, syscall.SIGKILL)
	<-h.ended
	clock.jump(25 * time.Hour)
	time.Sleep(chaosDetachIdle / 4) // it looks ten times in its patience
	require.True(t, hosttest.Running(plugin))
	w.startHost()
	require.Equal(t, plugin, w.plugin(w.host))
	w.awaitAnswers(4)
	clock.jump(-25 * time.Hour)
	w.clients.Wait()
	require.Equal(t, plugin, w.plugin(w.host))
	w.checkAll(tool, requests)
	w.stop()
}

// forgetting is how long a host takes at most to forget what is too old.
const forgetting = 6 * time.Second

// jumpyClock is the wall clock of the programs that have it in their environment.
type jumpyClock struct {
	t    *testing.T
	path string
}

// jumpyClockEnv names a file with the seconds that a program's wall clock is ahead.
const jumpyClockEnv = "INTERLOCK_TEST_CLOCK"

// jump makes the wall clock differ from the true one by d.
func (c jumpyClock) jump(d time.Duration) {
	f, err := os.OpenFile(c.path, os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(c.t, err)
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(d/time.Second)), 0)
	require.NoError(c.t, err)
	require.NoError(c.t, f.Close())
}

// jumpyTime is added to Go's package time: what a program's wall clock is ahead, in memory that it shares with the file.
const jumpyTime = `package time

import (
	"syscall"
	"unsafe"
)

var jump = func() *int64 {
	path, _ := syscall.Getenv("` + jumpyClockEnv + `")
	if path == "" {
		return new(int64)
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic(err)
	}
	data, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	_ = syscall.Close(fd)
	return (*int64)(unsafe.Pointer(unsafe.SliceData(data)))
}()
`

// jumpyFiles make the wall clock of a program jump.
func jumpyFiles(t *testing.T) map[string]string {
	source := filepath.Join(goTool(t, "env", "GOROOT"), "src", "time")
	now := "\nfunc Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	return map[string]string{
		filepath.Join(source, "time.go"): edited(t, filepath.Join(source, "time.go"), now, now+"\tsec += *jump\n"),
		filepath.Join(source, "jump.go"): jumpyTime,
	}
}

// jumpyWorld is a chaos world whose hosts and plugins have a jumpyClock.
type jumpyWorld struct {
	*chaosWorld
	clients sync.WaitGroup
}

// trueTool verifies, by the true clock, proofs of one request.
type trueTool struct {
	*host.Host
	request shared.Request
}

func newJumpyWorld(t *testing.T) (*jumpyWorld, trueTool, jumpyClock) {
	dir := t.TempDir()
	plugin, self := buildChanged(t)
	clock := jumpyClock{t, filepath.Join(dir, "clock")}
	clock.jump(0)
	params := filepath.Join(dir, "params")
	tool := hosttest.Start(t, hosttest.Options{Options: host.Options{PluginPath: plugin, ParamsDir: params}})
	request := postRequest(t, tool, "winning-2KiB", params)
	w := newChaosWorldWith(t, self, func(int) []string {
		return []string{chaosPluginEnv + "=" + plugin, chaosParamsEnv + "=" + params, jumpyClockEnv + "=" + clock.path}
	})
	w.endDetached()
	return &jumpyWorld{chaosWorld: w}, trueTool{tool, request}, clock
}

// sendAll sends n copies of a request.
func (w *jumpyWorld) sendAll(r shared.Request, deadline time.Time, n int) (requests []shared.Request) {
	for i := range n {
		r := r
		r.ID, r.Deadline = fmt.Sprint("r", i), deadline
		requests = append(requests, r)
		w.clients.Go(func() { w.client(r) })
	}
	return requests
}

// checkAll asks for all answers again, and verifies them.
func (w *jumpyWorld) checkAll(tool trueTool, requests []shared.Request) {
	for _, r := range requests {
		reply, ok := w.host.call(chaosCall{ID: r.ID})
		require.True(w.t, ok)
		require.Empty(w.t, reply.Error, r.ID)
		require.Equal(w.t, w.answered[r.ID], reply.Proof, r.ID)
		proof, err := hex.DecodeString(reply.Proof)
		require.NoError(w.t, err)
		valid, err := tool.Toolbox().Verify(w.t.Context(), r, proof)
		require.NoError(w.t, err, r.ID)
		require.True(w.t, valid, r.ID)
	}
}
