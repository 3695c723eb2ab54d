package groth16

import (
	"context"
	"errors"

	"github.com/interlock-prover/interlock/prover/witness"
)

// Device computes proofs. The work on one proof is split into calls so that a
// caller holds the device's lock (the interlock) during one of them alone:
//
//	Prepare   off the lock: checks, buffers, gathering scalars
//	Execute   on the lock:  the device phase
//	Finish    off the lock: assembling A, B, C
//	Release   off the lock: giving buffers back
//
// Device methods may be called from several goroutines at once.
type Device interface {
	// Name identifies the device in logs and timelines.
	Name() string

	// Footprint says how much memory a proof of the circuit takes on the
	// device, so that the caller can admit no more work than fits.
	Footprint(key Source, c *Circuit) Footprint

	// Preload reads what the device keeps of the key, as the first Prepare
	// would. Keys stay loaded until Evict.
	Preload(ctx context.Context, key Source, c *Circuit) error

	// Evict drops what the device keeps of the key. Work already prepared is
	// not disturbed; the memory is free once that is released.
	Evict(key Source)

	// Prepare starts the work on one proof. It refuses, with an
	// *IncompatibleError, a key or a witness that is not the circuit's. The
	// witness belongs to the Work until its Release.
	Prepare(ctx context.Context, key Source, c *Circuit, w *witness.Witness) (Work, error)
}

// Work is one proof being computed. Its methods are called by one goroutine at
// a time, in the order Execute, Finish, Release; Release may come at any point
// instead of what is left.
type Work interface {
	// Execute is the device phase. When ctx is done it returns within 100 ms of
	// the end of the kernel then running.
	Execute(ctx context.Context) error

	// Finish assembles the proof. The blinding is the caller's: NewBlinding
	// draws it. Finish does not verify the proof.
	Finish(ctx context.Context, b Blinding) (*Proof, error)

	// Release gives all memory back. It may be called twice.
	Release()
}

// Footprint is the memory that a device needs for proofs of one circuit.
type Footprint struct {
	// KeyBytes is kept as long as the key is loaded, once for all proofs.
	KeyBytes int64
	// WorkBytes is kept from Prepare to Release, for each proof.
	WorkBytes int64
	// ExecuteBytes is taken by Execute alone: once for all proofs, since their
	// device phases take turns.
	ExecuteBytes int64
}

// IncompatibleError says that key, circuit and witness do not belong together.
type IncompatibleError struct {
	Reason string
}

// Error implements error.
func (e *IncompatibleError) Error() string {
	return "key, circuit and witness do not belong together: " + e.Reason
}

// Errors of a Work whose methods are called out of order.
var (
	ErrNotExecuted = errors.New("finishing a proof whose device phase has not succeeded")
	ErrReleased    = errors.New("proof was released")
)
