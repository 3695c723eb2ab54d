package constraint

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/interlock-prover/interlock/prover/interlock"
)

// Parallel runs work over 0..n in pieces of at most grain, on the given number
// of goroutines, and waits for them. It stops early when ctx is done or a piece
// fails, and returns the first error. A piece that panics has failed with an
// *interlock.PanicError.
func Parallel(ctx context.Context, n, grain, threads int, work func(from, to int) error) error {
	var next atomic.Int64
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for range max(1, min(threads, (n+grain-1)/grain)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				from := int(next.Add(int64(grain))) - grain
				if from >= n {
					return
				}
				err := interlock.Protect(func() error { return work(from, min(n, from+grain)) })
				if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// Lowest runs check for 0..n-1 on all cores. Once one fails it starts no more, and
// returns the error of the lowest that failed: always the same for the same input.
func Lowest(ctx context.Context, n int, check func(i int) error) error {
	var mu sync.Mutex
	var found error
	at := n
	err := Parallel(ctx, n, 1, runtime.GOMAXPROCS(0), func(i, _ int) error {
		err := check(i)
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			if i < at {
				at, found = i, err
			}
		}
		return err
	})
	if found != nil {
		return found
	}
	return err
}
