//go:build soak || conformance

package host_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/examples/inputs"
	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// A host with the real plugin is killed while 20 requests run, some of them answered. The next answers the rest with
// proofs that verify, and its plugin touches none that was answered.
func TestConformanceHostKilled(t *testing.T) { killHost(t, false) }

// The same with a plugin that outlives its host: it goes on alone, the next host collects, and nothing is begun twice.
func TestConformanceDetachedHostKilled(t *testing.T) {
	t.Setenv(chaosDetachEnv, "1")
	killHost(t, true)
}

func killHost(t *testing.T, isDetached bool) {
	n, seed := 20, envInt(t, chaosSeedEnv, int(time.Now().UnixNano()&0xffffff))
	random := rand.New(rand.NewPCG(uint64(seed), 2))
	killAt := 3 + random.IntN(10) // answers
	t.Logf("%s=%d: the host is killed after %d answers of %d", chaosSeedEnv, seed, killAt, n)

	dir := t.TempDir()
	program, params := hosttest.Build(t, "github.com/interlock-prover/interlock/plugin"), filepath.Join(dir, "params")
	tool := hosttest.Start(t, hosttest.Options{Options: host.Options{PluginPath: program, ParamsDir: params}})
	kinds := []shared.Request{postRequest(t, tool, "window-2KiB", params), postRequest(t, tool, "winning-2KiB", params)}
	requests := make([]shared.Request, n)
	for i := range requests {
		requests[i] = kinds[random.IntN(len(kinds))]
		requests[i].ID = "r" + strconv.Itoa(i)
	}

	// A plugin that ends in order writes its timeline. Plugins that are not detached have a file each.
	timelineOf := func(host int) string { return filepath.Join(dir, fmt.Sprintf("timeline-%d.txt", host)) }
	self, err := os.Executable()
	require.NoError(t, err)
	w := newChaosWorldWith(t, self, func(host int) []string {
		if isDetached {
			host = 1
		}
		config := filepath.Join(dir, fmt.Sprintf("config-%d.hcl", host))
		text := fmt.Sprintf("timeline { file = %q }\n", timelineOf(host))
		require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
		return []string{chaosPluginEnv + "=" + program, chaosParamsEnv + "=" + params, chaosConfigEnv + "=" + config}
	})
	w.endDetached()
	began := time.Now()
	var clients sync.WaitGroup
	for _, r := range requests {
		clients.Go(func() { w.client(r) })
	}
	w.awaitAnswers(killAt)
	h, plugin := w.host, w.plugin(w.host)
	require.Positive(t, plugin)
	w.plugins[plugin] = true
	w.hit("host killed", h.cmd.Process.Pid, syscall.SIGKILL)
	<-h.ended
	before := w.answers()
	died := time.Now()
	w.startHost()
	if isDetached {
		require.Equal(t, plugin, detachedPID(w.journal), "the plugin that went on")
	}
	restarted := time.Now()
	clients.Wait()
	t.Logf("%d answers before the kill, after %v; the next host was ready in %v and the last answer there after another %v",
		len(before), died.Sub(began).Round(time.Millisecond), restarted.Sub(died).Round(time.Millisecond), time.Since(restarted).Round(time.Millisecond))
	w.stop()
	require.Less(t, len(before), n, "the host was killed too late")

	last := timelineOf(2)
	if isDetached {
		last = timelineOf(1)
	}
	begun := witnesses(t, last)
	for _, r := range requests {
		proof, err := hex.DecodeString(w.answered[r.ID])
		require.NoError(t, err)
		valid, err := tool.Toolbox().Verify(t.Context(), r, proof)
		require.NoError(t, err, r.ID)
		require.True(t, valid, r.ID)
		switch {
		case isDetached:
			require.Equal(t, 1, begun[r.ID], "witnesses of %s, by the one plugin", r.ID)
		case before[r.ID]:
			require.Zero(t, begun[r.ID], "witnesses of %s by the second plugin, after its answer", r.ID)
		}
	}
	t.Logf("%d of %d requests were begun by the plugin that ended last", len(begun), n)
}

// postRequest gives a request of one partition with one sector, and makes development parameters for it.
func postRequest(t *testing.T, tool *host.Host, name, params string) shared.Request {
	r, err := inputs.PoSt(name)
	require.NoError(t, err)
	r.Vanilla = r.Vanilla[:1]
	circuit := shared.CircuitRequest{Kind: r.Kind, SectorSize: r.SectorSize}
	_, err = tool.Toolbox().SetupParams(t.Context(), shared.SetupRequest{CircuitRequest: circuit, Dir: params}, nil)
	require.NoError(t, err)
	return r
}

// endDetached kills a detached plugin when the test ends, if the test could not end it.
func (w *chaosWorld) endDetached() {
	w.t.Cleanup(func() {
		if pid := detachedPID(w.journal); pid > 0 && hosttest.Running(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
}

// answers gives the ids of the requests that are answered.
func (w *chaosWorld) answers() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := map[string]bool{}
	for id := range w.answered {
		ids[id] = true
	}
	return ids
}

func (w *chaosWorld) awaitAnswers(n int) {
	require.Eventually(w.t, func() bool { return w.t.Failed() || len(w.answers()) >= n }, 10*time.Minute, 5*time.Millisecond)
}

// witnesses counts in a timeline's file how many witnesses were begun for each request, by the name that its caller gave.
func witnesses(t *testing.T, path string) map[string]int {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	recording, err := timeline.Parse(f)
	require.NoError(t, err)
	require.Zero(t, recording.Lost)
	begun := map[string]int{}
	for _, e := range recording.Events {
		if e.Kind == timeline.SynthStart {
			id, _, _ := strings.Cut(e.Request, ".") // a detached plugin's name for it has more
			begun[id]++
		}
	}
	return begun
}
