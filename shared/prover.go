package shared

import (
	"context"

	"github.com/interlock-prover/interlock/shared/timeline"
)

// Prover makes proofs. The engine in the plugin process implements it, and on the host's side whatever holds a plugin;
// both behave alike, errors included (see errors.go). All methods may be called from any number of goroutines, and
// return within 100 ms of their context's end unless a kernel is running.
type Prover interface {
	// Prove makes one proof and waits for it. Ending ctx cancels the request.
	//
	// progress may be nil. It is called from one goroutine at a time, in order, and not after Prove has returned; a
	// slow one delays nobody else, but misses reports.
	Prove(ctx context.Context, request Request, progress func(Progress)) (Result, error)

	// Submit accepts a request and returns at once. The job goes on whatever becomes of ctx or of the caller.
	Submit(ctx context.Context, request Request) (JobID, error)

	// Await waits for a submitted job. Ending ctx ends the waiting alone, not the job; several may await the same one.
	// It fails with [ErrUnknownJob] if there is no such job, with [ErrCancelled] if the job was cancelled.
	Await(ctx context.Context, job JobID) (Result, error)

	// Cancel ends a job, and tells whether it was still under way.
	Cancel(ctx context.Context, job JobID) (wasRunning bool, err error)

	// Status tells what the prover is doing.
	Status(ctx context.Context) (Status, error)

	// Timeline gives the latest events of all workers.
	Timeline(ctx context.Context) (timeline.Recording, error)
}
