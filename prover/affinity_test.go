package prover

import (
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/interlock-prover/interlock/shared/config"
)

// cpusOf lists the CPUs that a thread may run on.
func cpusOf(t *testing.T, thread int) (cpus config.CPUSet) {
	t.Helper()
	var mask unix.CPUSet
	err := unix.SchedGetaffinity(thread, &mask)
	if err == unix.ESRCH { // it ended
		return nil
	}
	require.NoError(t, err)
	for cpu := range 8 * 8 * len(mask) {
		if mask.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// Every thread keeps to the CPUs, those that others start meanwhile too.
func TestRestrictCPUs(t *testing.T) {
	all, procs := cpusOf(t, 0), runtime.GOMAXPROCS(0)
	if len(all) < 2 {
		t.Skip("needs two CPUs")
	}
	defer runtime.GOMAXPROCS(procs)
	defer func() { require.NoError(t, restrictCPUs(all)) }()

	stop := make(chan struct{})
	var starting sync.WaitGroup
	defer starting.Wait()
	defer close(stop)
	for range 2 {
		starting.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				var ended sync.WaitGroup
				for range 4 {
					ended.Go(runtime.LockOSThread) // the thread ends with its goroutine
				}
				ended.Wait()
			}
		})
	}
	for range 20 {
		require.NoError(t, restrictCPUs(all))
		require.NoError(t, restrictCPUs(all[:1]))
		require.Equal(t, 1, runtime.GOMAXPROCS(0))
		threads, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			require.NoError(t, err)
			if cpus := cpusOf(t, id); cpus != nil {
				require.Equal(t, all[:1], cpus)
			}
		}
	}
	require.ErrorContains(t, restrictCPUs(config.CPUSet{1 << 14}), "running on CPUs 16384")
}
