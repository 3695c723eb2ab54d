package interlock

import "context"

// Lock is held by one at a time and handed over first come first served: who gives it back while another waits comes
// after all who wait, so two workers of a GPU take turns.
type Lock struct {
	gate gate
}

// NewLock makes a lock that nobody holds.
func NewLock() *Lock {
	return &Lock{gate: gate{units: 1}}
}

// Do runs fn while holding the lock, and gives it back on every path out of fn; a panic of fn becomes a [*PanicError].
// It waits for the lock until ctx ends; then fn is not called and the cause of ctx's end is returned. fn must not call
// Do of the same lock.
func (l *Lock) Do(ctx context.Context, fn func() error) error {
	if err := l.gate.acquire(ctx, 1); err != nil {
		return err
	}
	defer l.gate.release(1)
	return Protect(fn)
}

// Waiting tells how many wait for the lock.
func (l *Lock) Waiting() int {
	_, waiting := l.gate.state()
	return waiting
}
