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
	mask := maskOf(cpus)
	// All threads, then those that one which was not restricted yet has started
	// meanwhile, until there are none.
	for first, found := true, true; found; first = false {
		found = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("listing this process's threads: %w", err)
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				return fmt.Errorf("thread %q: %w", t.Name(), err)
			}
			var now unix.CPUSet
			if err := unix.SchedGetaffinity(id, &now); err == nil && !first && within(&now, &mask) {
				continue
			}
			found = true
			if err := unix.SchedSetaffinity(id, &mask); err != nil && err != unix.ESRCH {
				return fmt.Errorf("running on CPUs %s: %w", cpus, err)
			}
		}
	}
	runtime.GOMAXPROCS(len(cpus))
	return nil
}

// onCPUs runs fn on the given CPUs; an empty set is all of this process's. A
// thread that cannot be given back its own CPUs ends with its goroutine.
func onCPUs(cpus config.CPUSet, fn func() error) error {
	if len(cpus) == 0 {
		return fn()
	}
	runtime.LockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("asking on which CPUs a thread runs: %w", err)
	}
	defer func() {
		if unix.SchedSetaffinity(0, &before) == nil {
			runtime.UnlockOSThread()
		}
	}()
	mask := maskOf(cpus)
	if err := unix.SchedSetaffinity(0, &mask); err != nil {
		return fmt.Errorf("running on CPUs %s: %w", cpus, err)
	}
	return fn()
}

func maskOf(cpus config.CPUSet) (mask unix.CPUSet) {
	for _, cpu := range cpus {
		mask.Set(cpu)
	}
	return mask
}

// within tells whether all CPUs of one set are in the other.
func within(one, other *unix.CPUSet) bool {
	for i := range one {
		if one[i]&^other[i] != 0 {
			return false
		}
	}
	return true
}
