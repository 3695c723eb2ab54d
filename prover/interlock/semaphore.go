package interlock

import "context"

// Semaphore counts signals. One sent before anybody waits is remembered for the next who does, so that it does not
// matter which side of a hand-over comes first.
type Semaphore struct {
	gate gate
}

// NewSemaphore makes a semaphore to which signals have already been sent.
func NewSemaphore(signals int) *Semaphore {
	return &Semaphore{gate: gate{units: int64(signals)}}
}

// Signal lets one waiter go on, the one who came first, or the next to come. It never blocks.
func (s *Semaphore) Signal() { s.gate.release(1) }

// Wait takes a signal, waiting for one until ctx ends. Where it returns an error, the cause of ctx's end, it has taken
// none.
func (s *Semaphore) Wait(ctx context.Context) error { return s.gate.acquire(ctx, 1) }
