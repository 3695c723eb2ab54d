package prover

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
)

// withBudget opens an engine that may reserve so many bytes for partitions and parameters, and a fifteenth of that for
// requests.
func withBudget(t *testing.T, dir string, partitionBytes int64) *Engine {
	t.Helper()
	c := config.Default()
	c.Memory.Budget = config.MemoryShare{Bytes: config.ByteSize(partitionBytes*requestsShare/(requestsShare-1) + requestsShare)}
	c.Memory.Margin = config.MemoryShare{Bytes: 1}
	e, err := open(context.Background(), c, dir, hclog.NewNullLogger(), hardware{cpu: groth16.NewCPU("cpu", 0)}, randomBlinding)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// needs is what a partition of a kind takes for itself, and its parameters with a device phase.
func needs(t *testing.T, dir string, kind shared.Kind) (own, parameters int64) {
	t.Helper()
	e := newEngine(t, dir, randomBlinding)
	b, err := e.blueprint(shared.CircuitRequest{Kind: kind, SectorSize: shared.SectorSize2KiB})
	require.NoError(t, err)
	c, err := e.circuit(t.Context(), b)
	require.NoError(t, err)
	k, err := e.hold(t.Context(), c)
	require.NoError(t, err)
	defer e.release(k)
	footprint := e.cpu.Footprint(k.file, c.groth)
	own = (&job{engine: e, circuit: c, key: k}).HostMemory(false).Bytes
	return own, footprint.KeyBytes + footprint.ExecuteBytes
}

// Where the parameters of two kinds do not fit side by side, requests of both are all proven, whatever order they come
// in: one's parameters make room for the other's.
func TestKindsThatExcludeEachOther(t *testing.T) {
	dir, err := paramsDir()
	require.NoError(t, err)
	winningOwn, winningKey := needs(t, dir, shared.KindWinningPoSt)
	windowOwn, windowKey := needs(t, dir, shared.KindWindowPoSt)
	budget := max(winningOwn+winningKey, windowOwn+windowKey) + min(winningKey, windowKey)/2
	e := withBudget(t, dir, budget)
	var wg sync.WaitGroup
	for i := range 2 {
		request, _ := loadCase(t, []string{"winning-2KiB", "window-2KiB"}[i])
		request.ID, request.Priority = fmt.Sprint(i), shared.PriorityNormal
		wg.Go(func() {
			_, err := e.Prove(context.Background(), request, nil)
			if err != nil {
				t.Errorf("request %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	s, err := e.Status(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, s.Completed)
	require.LessOrEqual(t, s.MemoryUsedBytes, s.MemoryBudgetBytes)
	var where []string
	for _, p := range s.Params {
		where = append(where, p.Where)
	}
	require.ElementsMatch(t, []string{"memory", "disk"}, where, "both are open, the points of one are in memory")
}

// What can never fit is refused with the arithmetic, before a witness is computed, and so is loading ahead what does
// not fit.
func TestRequestThatCanNeverFit(t *testing.T) {
	dir, err := paramsDir()
	require.NoError(t, err)
	own, parameters := needs(t, dir, shared.KindWinningPoSt)
	e := withBudget(t, dir, own+parameters-1000)
	request, _ := loadCase(t, "winning-2KiB")
	_, err = e.Prove(t.Context(), request, nil)
	var tooLarge *shared.TooLargeError
	require.ErrorAs(t, err, &tooLarge)
	require.EqualValues(t, own+parameters, tooLarge.WantBytes)
	require.EqualValues(t, e.memory.Capacity(), tooLarge.BudgetBytes)
	require.ErrorContains(t, err, fmt.Sprintf("which are %d bytes", own))
	require.ErrorContains(t, err, fmt.Sprintf("and %d bytes", parameters))
	require.ErrorContains(t, err, "; raise memory { budget }")
	require.Zero(t, e.requests.Used())

	small := withBudget(t, dir, parameters-1000)
	_, err = small.Preload(t.Context(), shared.CircuitRequest{Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB})
	require.ErrorAs(t, err, &tooLarge)
}

// Requests are refused for good where they are too large, and for now where others wait.
func TestRequestsCount(t *testing.T) {
	request, _ := loadCase(t, "window-2KiB")
	var bytes int64
	for _, v := range request.Vanilla {
		bytes += bytesPerVanilla * int64(len(v))
	}
	e := withBudget(t, t.TempDir(), 1<<30)
	e.requests = interlock.NewBudget("host memory for requests", bytes-1)
	_, err := e.Submit(t.Context(), request)
	require.ErrorAs(t, err, new(*shared.TooLargeError))

	e.requests = interlock.NewBudget("host memory for requests", 2*bytes-1)
	other, ok := e.requests.TryReserve(interlock.Claim{Bytes: bytes})
	require.True(t, ok)
	_, err = e.Submit(t.Context(), request)
	var busy *shared.BusyError
	require.ErrorAs(t, err, &busy)
	require.Positive(t, busy.RetryAfter)
	other.Release()

	id, err := e.Submit(t.Context(), request) // has no parameters
	require.NoError(t, err)
	_, err = e.Await(t.Context(), id)
	require.ErrorAs(t, err, new(*shared.ParamsError))
	require.NoError(t, e.pipeline.Close(t.Context()))
	require.Zero(t, e.requests.Used())
}
