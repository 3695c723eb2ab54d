package prover

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/interlock-prover/interlock/shared/config"
)

// restrictCPUs lets this process run on the given CPUs alone; an empty set
// changes nothing. Threads made later inherit it from those that exist.
func restrictCPUs(cpus config.CPUSet) error {
	if len(cpus) == 0 {
		return nil
	}
	var mask unix.CPUSet
	for _, cpu := range cpus {
		mask.Set(cpu)
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("listing this process's threads: %w", err)
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			return fmt.Errorf("thread %q: %w", t.Name(), err)
		}
		if err := unix.SchedSetaffinity(id, &mask); err != nil && err != unix.ESRCH {
			return fmt.Errorf("running on CPUs %s: %w", cpus, err)
		}
	}
	runtime.GOMAXPROCS(len(cpus))
	return nil
}
