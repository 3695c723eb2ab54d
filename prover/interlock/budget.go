package interlock

import (
	"context"
	"fmt"
	"sync"
)

// Budget admits work by the bytes it needs: what does not fit beside the work already admitted waits, first come first
// served, and what can never fit is refused at once. A nil *Budget admits everything.
type Budget struct {
	name     string
	capacity int64
	gate     gate
}

// NewBudget makes a budget of so many bytes. The name says in errors what it is a budget of, such as "host memory".
func NewBudget(name string, bytes int64) *Budget {
	return &Budget{name: name, capacity: bytes, gate: gate{units: bytes}}
}

// Reservation is a part of a budget. A nil *Reservation is one of nothing.
type Reservation struct {
	budget *Budget
	bytes  int64
	once   sync.Once
}

// Reserve takes bytes, waiting until those who came before have theirs and enough is free. It fails with a
// [*TooLargeError] at once if bytes exceeds the whole budget, and with the cause of ctx's end, having taken nothing.
// It panics if bytes is negative.
func (b *Budget) Reserve(ctx context.Context, bytes int64) (*Reservation, error) {
	if err := b.Check(bytes); err != nil {
		return nil, err
	}
	if b == nil {
		return nil, nil
	}
	if err := b.gate.acquire(ctx, bytes); err != nil {
		return nil, err
	}
	return &Reservation{budget: b, bytes: bytes}, nil
}

// TryReserve takes bytes if that needs no waiting.
func (b *Budget) TryReserve(bytes int64) (*Reservation, bool) {
	if b == nil {
		return nil, true
	}
	if b.Check(bytes) != nil || !b.gate.tryAcquire(bytes) {
		return nil, false
	}
	return &Reservation{budget: b, bytes: bytes}, true
}

// Check returns a [*TooLargeError] if bytes could never be reserved. It panics if bytes is negative.
func (b *Budget) Check(bytes int64) error {
	if bytes < 0 {
		panic(fmt.Sprintf("interlock: reserving %d bytes", bytes))
	}
	if b != nil && bytes > b.capacity {
		return &TooLargeError{Budget: b.name, WantBytes: bytes, BudgetBytes: b.capacity}
	}
	return nil
}

// Release gives the bytes back. Calls after the first do nothing.
func (r *Reservation) Release() {
	if r != nil {
		r.once.Do(func() { r.budget.gate.release(r.bytes) })
	}
}

// Capacity is the size of the whole budget in bytes; 0 for a nil *Budget.
func (b *Budget) Capacity() int64 {
	if b == nil {
		return 0
	}
	return b.capacity
}

// Used is how many bytes are reserved; 0 for a nil *Budget.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	free, _ := b.gate.state()
	return b.capacity - free
}

// TooLargeError says that something needs more than a whole budget.
type TooLargeError struct {
	Budget      string // its name
	WantBytes   int64
	BudgetBytes int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s: %d bytes (%s) are needed, %d bytes (%s) are all there is: %d bytes (%s) too few",
		e.Budget, e.WantBytes, size(e.WantBytes), e.BudgetBytes, size(e.BudgetBytes),
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
