package interlock

import (
	"container/list"
	"context"
	"fmt"
	"sync"
)

// Budget admits work by the bytes it needs: what does not fit beside the work already admitted waits, first come first
// served, and what can never fit is refused at once. What several pieces of work share, and what stays for the next, is
// a [Resident] of the budget. A nil *Budget admits everything.
//
// A claim takes all it needs at one time or nothing, and nothing more later: who holds a reservation waits for no
// other, so that no order of claims ends in a deadlock.
type Budget struct {
	name     string
	capacity int64

	mu      sync.Mutex
	free    int64
	waiters list.List // of *waiting, first come first
	idle    list.List // of *Resident, least recently used first
}

// waiting is a claim that is not met yet. Only the first of them is looked at.
type waiting struct {
	look chan struct{} // has room for one: there may be enough now
}

// NewBudget makes a budget of so many bytes. The name says in errors what it is a budget of, such as "host memory".
func NewBudget(name string, bytes int64) *Budget {
	return &Budget{name: name, capacity: bytes, free: bytes}
}

// Claim is what a piece of work needs of a budget.
type Claim struct {
	Bytes int64 // for itself alone
	// With is what it uses together with others, nil if nothing. It must belong to the same budget.
	With *Resident
}

// Reservation is a part of a budget. A nil *Reservation is one of nothing.
type Reservation struct {
	budget *Budget
	claim  Claim
	once   sync.Once
}

// Reserve takes what is claimed, waiting until those who came before have theirs and enough is free. Where residents
// that nobody uses stand in the way, they are evicted. It fails with a [*TooLargeError] at once if the claim exceeds
// the whole budget, and with the cause of ctx's end, having taken nothing. It panics if bytes are negative.
func (b *Budget) Reserve(ctx context.Context, c Claim) (*Reservation, error) {
	if err := b.Check(c); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if b == nil {
		return nil, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	me := &waiting{look: make(chan struct{}, 1)}
	place := b.waiters.PushBack(me)
	defer func() {
		b.waiters.Remove(place)
		b.wake()
	}()
	for ctx.Err() == nil {
		if b.waiters.Front() == place {
			if b.take(c) {
				return &Reservation{budget: b, claim: c}, nil
			}
			if r := b.inTheWay(c); r != nil {
				b.remove(r)
				continue
			}
		}
		b.mu.Unlock()
		select {
		case <-me.look:
		case <-ctx.Done():
		}
		b.mu.Lock()
	}
	return nil, context.Cause(ctx)
}

// TryReserve takes what is claimed if that needs neither waiting nor evicting.
func (b *Budget) TryReserve(c Claim) (*Reservation, bool) {
	if b == nil {
		return nil, true
	}
	if b.Check(c) != nil {
		return nil, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiters.Len() > 0 || !b.take(c) {
		return nil, false
	}
	return &Reservation{budget: b, claim: c}, true
}

// take meets a claim from what is free, under mu.
func (b *Budget) take(c Claim) bool {
	r := c.With
	if r != nil && r.leaving || b.need(c) > b.free {
		return false
	}
	b.free -= b.need(c)
	if r != nil {
		r.use()
	}
	return true
}

// need is how many bytes a claim takes of what is free, under mu.
func (b *Budget) need(c Claim) int64 {
	if c.With == nil || c.With.counted {
		return c.Bytes
	}
	return c.Bytes + c.With.bytes
}

// Check returns a [*TooLargeError] if a claim could never be met. It panics if bytes are negative.
func (b *Budget) Check(c Claim) error {
	if c.Bytes < 0 {
		panic(fmt.Sprintf("interlock: reserving %d bytes", c.Bytes))
	}
	if b == nil {
		return nil
	}
	e := &TooLargeError{Budget: b.name, WantBytes: c.Bytes, BudgetBytes: b.capacity}
	if c.With != nil {
		e.WantBytes += c.With.bytes
		e.Shared, e.SharedBytes = c.With.name, c.With.bytes
	}
	if e.WantBytes <= b.capacity {
		return nil
	}
	return e
}

// Release gives everything back: bytes to whoever waits, the resident to the others that use it or, after the last of
// them, to stay until its bytes are needed. Calls after the first do nothing.
func (r *Reservation) Release() {
	if r == nil {
		return
	}
	r.once.Do(func() {
		b := r.budget
		b.mu.Lock()
		defer b.mu.Unlock()
		b.free += r.claim.Bytes
		if r.claim.With != nil {
			r.claim.With.leave()
		}
		b.wake()
	})
}

// wake has the first who waits look again, under mu.
func (b *Budget) wake() {
	if first := b.waiters.Front(); first != nil {
		select {
		case first.Value.(*waiting).look <- struct{}{}:
		default: // it will look anyway
		}
	}
}

// Capacity is the size of the whole budget in bytes; 0 for a nil *Budget.
func (b *Budget) Capacity() int64 {
	if b == nil {
		return 0
	}
	return b.capacity
}

// Used is how many bytes are reserved, those of idle residents included; 0 for a nil *Budget.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.capacity - b.free
}

// TooLargeError says that something needs more than a whole budget.
type TooLargeError struct {
	Budget      string // its name
	WantBytes   int64  // altogether
	BudgetBytes int64
	Shared      string // name of the resident that it needs; empty if none
	SharedBytes int64  // of WantBytes
}

func (e *TooLargeError) Error() string {
	parts := ""
	if e.Shared != "" {
		own := e.WantBytes - e.SharedBytes
		parts = fmt.Sprintf(", which are %d bytes (%s) and %d bytes (%s) for %s", own, size(own), e.SharedBytes, size(e.SharedBytes), e.Shared)
	}
	return fmt.Sprintf("%s: %d bytes (%s) are needed%s, %d bytes (%s) are all there is: %d bytes (%s) too few",
		e.Budget, e.WantBytes, size(e.WantBytes), parts, e.BudgetBytes, size(e.BudgetBytes),
		e.WantBytes-e.BudgetBytes, size(e.WantBytes-e.BudgetBytes))
}

// size writes bytes for people, such as "1.50 GiB".
func size(bytes int64) string {
	value, unit := float64(bytes), "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, larger
	}
	return fmt.Sprintf("%.2f %s", value, unit)
}
