package interlock

import (
	"container/list"
	"context"
	"sync"
)

// gate lets through what its units suffice for, in the order of arrival. Lock and Semaphore are gates of one unit and of
// counted signals.
type gate struct {
	mu      sync.Mutex
	units   int64     // free
	waiters list.List // of *waiter, first come first; while there is one, the first wants more than is free
}

type waiter struct {
	want    int64
	granted chan struct{} // closed when the units were taken for this waiter
}

// acquire takes n units, waiting behind all who came before. Where ctx ends first, nothing is taken and the cause of
// its end is returned, also if it ended before the call.
func (g *gate) acquire(ctx context.Context, n int64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	g.mu.Lock()
	if g.take(n) {
		g.mu.Unlock()
		return nil
	}
	w := &waiter{want: n, granted: make(chan struct{})}
	place := g.waiters.PushBack(w)
	g.mu.Unlock()

	select {
	case <-w.granted:
	case <-ctx.Done():
	}
	if ctx.Err() == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.granted: // both at once: pass on what was handed over
		g.units += w.want
	default:
		g.waiters.Remove(place)
	}
	g.serve() // those behind may want less
	return context.Cause(ctx)
}

func (g *gate) take(n int64) bool {
	if g.waiters.Len() > 0 || g.units < n {
		return false
	}
	g.units -= n
	return true
}

// release gives n units to those who wait, or keeps them for who comes.
func (g *gate) release(n int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.units += n
	g.serve()
}

// serve hands units to the first waiters. It stops at the first whose wish is not met, so that one who wants much is
// not passed by many who want little.
func (g *gate) serve() {
	for first := g.waiters.Front(); first != nil; first = g.waiters.Front() {
		w := first.Value.(*waiter)
		if g.units < w.want {
			return
		}
		g.units -= w.want
		g.waiters.Remove(first)
		close(w.granted)
	}
}

// state tells how many units are free and how many wait.
func (g *gate) state() (units int64, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.units, g.waiters.Len()
}
