package msm

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// defaultThreads is threads, or one for each processor if that is not positive.
func defaultThreads(threads int) int {
	if threads <= 0 {
		return runtime.GOMAXPROCS(0)
	}
	return threads
}

// parallel calls work for every task 0..tasks-1, in order, from at most threads
// goroutines, and waits for them. work is told which of the goroutines it runs
// in. After ctx ends no further task begins; the error then is its cause.
func parallel(ctx context.Context, threads, tasks int, work func(worker, task int)) error {
	var next atomic.Int64
	var group sync.WaitGroup
	for worker := range min(threads, tasks) {
		group.Go(func() {
			for ctx.Err() == nil {
				task := int(next.Add(1) - 1)
				if task >= tasks {
					return
				}
				work(worker, task)
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("multi-exponentiation stopped: %w", context.Cause(ctx))
	}
	return nil
}
