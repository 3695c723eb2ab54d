//go:build soak

package host_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/examples/inputs"
	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/shared"
)

// The real plugin is hit at random while it proves, mostly window PoSt: every request is answered once, with a proof that
// verifies.
func TestChaosSoak(t *testing.T) {
	n, seed := envInt(t, chaosRequestsEnv, 200), envInt(t, chaosSeedEnv, int(time.Now().UnixNano()&0xffffff))
	t.Logf("%s=%d %s=%d", chaosRequestsEnv, n, chaosSeedEnv, seed)
	random := rand.New(rand.NewPCG(uint64(seed), 1))

	dir := t.TempDir()
	params := filepath.Join(dir, "params")
	o := host.SupervisorOptions{
		Options:     host.Options{PluginPath: hosttest.Build(t, "github.com/interlock-prover/interlock/plugin"), ParamsDir: params},
		Supervision: host.Supervision{ProbeInterval: time.Second, ProbeTimeout: 5 * time.Second, Backoff: time.Millisecond, Attempts: 10},
		Journal:     host.Journal{Dir: filepath.Join(dir, "journal")},
	}
	kinds := make([]shared.Request, 0, 2)
	for _, name := range []string{"window-2KiB", "winning-2KiB"} {
		r, err := inputs.PoSt(name)
		require.NoError(t, err)
		kinds = append(kinds, r)
	}
	tool := hosttest.Start(t, hosttest.Options{Options: o.Options})
	for _, r := range kinds {
		circuit := shared.CircuitRequest{Kind: r.Kind, SectorSize: r.SectorSize}
		_, err := tool.Toolbox().SetupParams(t.Context(), shared.SetupRequest{CircuitRequest: circuit, Dir: params}, nil)
		require.NoError(t, err)
	}

	s := hosttest.Supervise(t, o)
	goroutines := runtime.NumGoroutine()
	var clients sync.WaitGroup
	var answers, hits atomic.Int64
	places := make(chan struct{}, 8)
	calm, monkey := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(monkey)
		signals := []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP, syscall.SIGTERM, syscall.SIGABRT}
		for before := int64(-1); ; {
			select {
			case <-calm:
				return
			case <-time.After(time.Duration(100+random.IntN(3000)) * time.Millisecond):
			}
			if pid := s.State().PID; pid > 0 && answers.Load() != before {
				before = answers.Load()
				if syscall.Kill(pid, signals[random.IntN(len(signals))]) == nil {
					hits.Add(1)
				}
			}
		}
	}()
	proofs := make([][]byte, n)
	requests := make([]shared.Request, n)
	for i := range n {
		requests[i] = kinds[0]
		if i%5 == 4 {
			requests[i] = kinds[1]
		}
		requests[i].ID = "soak-" + strconv.Itoa(i)
		requests[i].Vanilla = append([][]byte(nil), requests[i].Vanilla...)
		places <- struct{}{}
		clients.Go(func() {
			defer func() { <-places }()
			result, err := s.Prove(context.Background(), requests[i], nil)
			if err != nil {
				t.Errorf("%s: %v", requests[i].ID, err)
			}
			proofs[i] = result.Proof
			answers.Add(1)
		})
	}
	clients.Wait()
	close(calm)
	<-monkey
	for i, r := range requests {
		valid, err := tool.Toolbox().Verify(t.Context(), r, proofs[i])
		require.NoError(t, err, r.ID)
		require.True(t, valid, r.ID)
	}
	t.Logf("%d hits, %d restarts, %d answers", hits.Load(), s.State().Restarts, answers.Load())
	waitFor(t, func() bool { return s.State().PID > 0 && runtime.NumGoroutine() <= goroutines+5 })
	st, err := s.Status(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, n, st.Completed)
	require.Empty(t, st.Jobs)
}
