//go:build soak || conformance || gpu

package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/examples/inputs"
	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/shared"
)

const windowPartitionsEnv = "INTERLOCK_WINDOW_PARTITIONS"

// latencyRun is how many proofs at each end of a run are compared. Shorter runs than ten times that say nothing of time.
const latencyRun = 100

// Window partitions, one after the other, by one plugin: memory, threads and files of the plugin, goroutines and files of
// the host stay what they are, and so does the time that a proof takes.
func TestConformanceWindowSoak(t *testing.T) {
	windowSoak(t, envInt(t, windowPartitionsEnv, 50), host.Options{
		PluginPath: hosttest.Build(t, "github.com/interlock-prover/interlock/plugin"), ParamsDir: t.TempDir(),
	})
}

func windowSoak(t *testing.T, n int, o host.Options) {
	s := hosttest.Supervise(t, host.SupervisorOptions{Options: o, Journal: host.Journal{Dir: filepath.Join(t.TempDir(), "journal")}})
	request, err := inputs.PoSt("window-2KiB")
	require.NoError(t, err)
	request.Vanilla = request.Vanilla[:1]
	circuit := shared.CircuitRequest{Kind: request.Kind, SectorSize: request.SectorSize}
	_, err = s.Toolbox().SetupParams(t.Context(), shared.SetupRequest{CircuitRequest: circuit, Dir: o.ParamsDir}, nil)
	require.NoError(t, err)

	var took []time.Duration
	var used []usage
	pid := 0
	warmUp := max(10, n/20)
	for i := range warmUp + n {
		request.ID = "window-" + strconv.Itoa(i)
		start := time.Now()
		result, err := s.Prove(t.Context(), request, nil)
		require.NoError(t, err, request.ID)
		require.Len(t, result.Proof, 192)
		if i < warmUp {
			pid = s.State().PID
			continue
		}
		took = append(took, time.Since(start))
		used = append(used, usageOf(t, pid))
		if len(took)%latencyRun == 0 {
			t.Logf("%d: median %v, %+v", len(took), middle(took[len(took)-latencyRun:]), used[len(used)-1])
		}
	}
	require.Equal(t, pid, s.State().PID, "one plugin proved all")

	part := max(1, n/10)
	first, last := usual(used[:part]), usual(used[n-part:])
	t.Logf("%d partitions; a tenth at the beginning: %+v, at the end: %+v", n, first, last)
	require.LessOrEqual(t, last.ResidentBytes, first.ResidentBytes+first.ResidentBytes/10+32<<20)
	require.LessOrEqual(t, last.Threads, first.Threads+4)
	require.LessOrEqual(t, last.Files, first.Files)
	require.LessOrEqual(t, last.HostFiles, first.HostFiles)
	require.LessOrEqual(t, last.HostGoroutines, first.HostGoroutines)

	if n >= 10*latencyRun {
		before, after := middle(took[:latencyRun]), middle(took[n-latencyRun:])
		t.Logf("median of the first %d: %v, of the last: %v, %.3f times", latencyRun, before, after, float64(after)/float64(before))
		require.LessOrEqual(t, float64(after), 1.05*float64(before), "the machine has to be quiet for this")
	}
}

// usage is what a plugin, or its host, has at a moment between two requests.
type usage struct {
	ResidentBytes, Threads, Files int // the plugin's
	HostGoroutines, HostFiles     int
}

func usageOf(t *testing.T, pid int) usage {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	field := func(name string) (n int) {
		_, rest, _ := strings.Cut(string(status), name+":")
		_, err := fmt.Sscan(rest, &n)
		require.NoError(t, err, name)
		return n
	}
	files := func(process string) int {
		list, err := os.ReadDir("/proc/" + process + "/fd")
		require.NoError(t, err)
		return len(list)
	}
	return usage{
		ResidentBytes: field("VmRSS") << 10, Threads: field("Threads"), Files: files(strconv.Itoa(pid)),
		HostGoroutines: runtime.NumGoroutine(), HostFiles: files("self"),
	}
}

// usual is the median of each figure.
func usual(all []usage) usage {
	of := func(figure func(usage) int) int {
		figures := make([]int, 0, len(all))
		for _, u := range all {
			figures = append(figures, figure(u))
		}
		slices.Sort(figures)
		return figures[len(figures)/2]
	}
	return usage{
		ResidentBytes:  of(func(u usage) int { return u.ResidentBytes }),
		Threads:        of(func(u usage) int { return u.Threads }),
		Files:          of(func(u usage) int { return u.Files }),
		HostGoroutines: of(func(u usage) int { return u.HostGoroutines }),
		HostFiles:      of(func(u usage) int { return u.HostFiles }),
	}
}

func middle(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}
