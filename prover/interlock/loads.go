package interlock

import (
	"context"
	"errors"
	"sync"
)

// ErrLoadsClosed is what Get fails with after Close.
var ErrLoadsClosed = errors.New("closed")

// Loads are values by key, each loaded at most once however many ask for it at the same time, and freed by the last of
// its users once it is evicted.
type Loads[K comparable, V any] struct {
	free  func(V)
	stays func(V) bool

	mu     sync.Mutex
	closed bool
	loads  map[K]*Load[K, V]
}

// Load is a value with those who load it, wait for it or use it. A nil *Load is none.
type Load[K comparable, V any] struct {
	Value V // once Get has returned it

	key       K
	done      chan struct{} // closed when Value and err are set
	err       error
	cancelled bool // err is that the loading caller gave up

	// Under the Loads' mu:
	users   int
	evicted bool // freed by the last of them
}

// NewLoads makes an empty set. free gives back what a value holds; it is called once for each value, those included whose
// loading failed, and must not call the Loads. stays tells whether a value is kept while nobody uses it; nil: all are.
func NewLoads[K comparable, V any](free func(V), stays func(V) bool) *Loads[K, V] {
	return &Loads[K, V]{free: free, stays: stays, loads: map[K]*Load[K, V]{}}
}

// Get returns the key's value, which stays at least until Leave. The first who asks loads it with read, whose panic is a
// [*PanicError]; the others wait until it is there or their ctx ends. If the one who loads gives up because its ctx ended,
// the next loads; any other error of read is that of all who wait.
func (l *Loads[K, V]) Get(ctx context.Context, key K, read func() (V, error)) (*Load[K, V], error) {
	for {
		e, first, err := l.enter(key)
		if err != nil {
			return nil, err
		}
		if first {
			e.err = Protect(func() (err error) { e.Value, err = read(); return err })
			if e.err != nil {
				e.cancelled = ctx.Err() != nil
				l.mu.Lock()
				l.drop(e)
				l.mu.Unlock()
			}
			close(e.done)
		} else {
			select {
			case <-e.done:
			case <-ctx.Done():
				l.Leave(e)
				return nil, context.Cause(ctx)
			}
		}
		if e.err == nil {
			return e, nil
		}
		l.Leave(e)
		if first || !e.cancelled {
			return nil, e.err
		}
	}
}

// enter counts a user of the key's value, and tells whether that is the one who loads it.
func (l *Loads[K, V]) enter(key K) (e *Load[K, V], first bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, false, ErrLoadsClosed
	}
	e, found := l.loads[key]
	if !found {
		e = &Load[K, V]{key: key, done: make(chan struct{})}
		l.loads[key] = e
	}
	e.users++
	return e, !found, nil
}

// Leave undoes a Get.
func (l *Loads[K, V]) Leave(e *Load[K, V]) {
	if e == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.users--; e.users > 0 {
		return
	}
	if !e.evicted && l.stays != nil && !l.stays(e.Value) {
		l.drop(e)
	}
	if e.evicted {
		l.free(e.Value)
	}
}

// Evict has the next Get load the key's value anew. It is freed now or, if it is in use, by the last who leaves it.
func (l *Loads[K, V]) Evict(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, found := l.loads[key]
	if !found {
		return
	}
	l.drop(e)
	if e.users == 0 {
		l.free(e.Value)
	}
}

// drop forgets a value, under mu.
func (l *Loads[K, V]) drop(e *Load[K, V]) {
	e.evicted = true
	if l.loads[e.key] == e {
		delete(l.loads, e.key)
	}
}

// Close frees all values, unless some are in use: then it does nothing but tell how many users there are.
func (l *Loads[K, V]) Close() (users int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.loads {
		users += e.users
	}
	if users > 0 {
		return users
	}
	l.closed = true
	for _, e := range l.loads {
		l.drop(e)
		l.free(e.Value)
	}
	return 0
}
