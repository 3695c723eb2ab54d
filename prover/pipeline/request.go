package pipeline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/shared"
)

// Request is something to prove.
type Request struct {
	ID         string // no other under way may have it
	Kind       shared.Kind
	SectorSize shared.SectorSize
	Priority   shared.Priority
	Deadline   time.Time // zero: none
	// Payload is the host memory of what is opened and what that becomes. The pipeline gives it back when the request is
	// closed or refused. Nil is none.
	Payload *interlock.Reservation

	// Open decodes the request and checks it completely. It is called once, on a goroutine of the request's own.
	Open func(ctx context.Context) (Job, error)
}

// request is a Request from its acceptance on.
type request struct {
	Request
	number   uint64 // counts up in the order of acceptance
	accepted time.Time

	ctx    context.Context   // ends when it is cancelled, too late or answered; the cause says which
	cancel func(cause error) // called under the pipeline's mu, so that an answer is either before it or heeds it
	tasks  sync.WaitGroup    // partitions in queues and workers

	job            Job              // from here: set before the first partition is queued
	hostMemory     interlock.Claim  // of one partition
	fallbackMemory interlock.Claim  // the same on the fallback
	needs          map[*device]need // of one partition
	sized          atomic.Bool      // the above are set

	done   chan struct{} // closed when it is answered
	result shared.Result // from here: written before that
	err    error

	mu         sync.Mutex
	stage      shared.Stage
	partitions int
	proven     int // partitions whose proof is there
	flying     int // partitions admitted to a witness worker and not proven yet
	timings    shared.Timings
	queued     time.Time // when the first partition was queued; zero again when its wait was over
	reports    chan shared.Progress
}

// need is what a partition takes of a device, or why the device can never take it.
type need struct {
	memory interlock.Claim
	err    error
}

func newRequest(r Request, number uint64, reports chan shared.Progress) *request {
	r.Priority = r.Priority.OrNormal()
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := context.CancelFunc(func() {})
	if !r.Deadline.IsZero() {
		ctx, stop = context.WithDeadlineCause(ctx, r.Deadline, shared.ErrLate)
	}
	return &request{
		Request: r, number: number, accepted: time.Now(), stage: shared.StageQueued,
		ctx: ctx, cancel: func(cause error) { cancel(cause); stop() },
		done: make(chan struct{}), reports: reports,
	}
}

// report notes that the request, or one of its partitions, came to a stage, and tells whoever wants to know. It never
// blocks: who listens too slowly misses the oldest reports.
func (r *request) report(stage shared.Stage, partition int, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stage = stage
	if r.reports == nil {
		return
	}
	p := shared.Progress{
		RequestID: r.ID, Stage: stage, Partition: partition, PartitionsDone: r.proven, Partitions: r.partitions,
		Elapsed: time.Since(r.accepted), Message: message,
	}
	for {
		select {
		case r.reports <- p:
			return
		default:
		}
		select {
		case <-r.reports:
		default:
		}
	}
}

// spend adds what has passed since from to one of the timings.
func (r *request) spend(on func(t *shared.Timings) *time.Duration, from time.Time) {
	r.mu.Lock()
	*on(&r.timings) += time.Since(from)
	r.mu.Unlock()
}

func onParams(t *shared.Timings) *time.Duration  { return &t.Params }
func onWitness(t *shared.Timings) *time.Duration { return &t.Witness }
func onPrepare(t *shared.Timings) *time.Duration { return &t.Prepare }
func onDevice(t *shared.Timings) *time.Duration  { return &t.Device }
func onFinish(t *shared.Timings) *time.Duration  { return &t.Finish }
func onVerify(t *shared.Timings) *time.Duration  { return &t.Verify }

// enqueued notes that the partitions are about to be queued.
func (r *request) enqueued(partitions int) {
	r.mu.Lock()
	r.partitions, r.queued = partitions, time.Now()
	r.mu.Unlock()
}

// takeOff counts a partition that was admitted. The first one ends the request's time in the queue.
func (r *request) takeOff() {
	r.mu.Lock()
	r.flying++
	if !r.queued.IsZero() {
		r.timings.Queue, r.queued = time.Since(r.queued), time.Time{}
	}
	r.mu.Unlock()
}

// land counts a partition that is through, proven or failed.
func (r *request) land(proven bool) {
	r.mu.Lock()
	r.flying--
	if proven {
		r.proven++
	}
	r.mu.Unlock()
}

// again uncounts partitions whose proofs have to be made again.
func (r *request) again(partitions int) {
	r.mu.Lock()
	r.proven -= partitions
	r.mu.Unlock()
}

func (r *request) takeTimings() shared.Timings {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.timings
	t.Total = time.Since(r.accepted)
	return t
}
