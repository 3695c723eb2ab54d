package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/interlock-prover/interlock/shared"
)

// job is a request from its acceptance on.
type job struct {
	id        string // the gateway's, and the prover's name for the request
	requestID string // the client's; may be empty
	kind      shared.Kind
	size      shared.SectorSize
	accepted  time.Time
	due       time.Time // its deadline; zero: none. With a reading of the monotonic clock: the wall clock may jump

	handedOver chan struct{} // closed when the prover has the request, or will never get it
	over       chan struct{} // closed when nothing is done about it any more
	done       chan struct{} // closed when it is answered
	result     shared.Result // from here: written before that
	err        error
	margin     time.Duration // how long before due the answer was there; below 0: after it. 0 without a deadline

	proverID  shared.JobID // under the book's mu, as is the next; empty until the prover has the request
	cancelled bool         // before the prover had it
}

// answered tells whether the job has its answer.
func (j *job) answered() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// late tells whether an answered job missed its deadline: its proof came after it, or it was given up or refused for the
// deadline's sake. (A plugin that cannot be reached may be so because it took too long to start.)
func (j *job) late() bool {
	switch {
	case j.due.IsZero():
		return false
	case j.err == nil:
		return j.margin < 0
	default:
		return errors.Is(j.err, context.DeadlineExceeded) && !errors.Is(j.err, shared.ErrUnreachable)
	}
}

// errDraining is why a gateway takes no more requests.
var errDraining = errors.New("the gateway is shutting down")

// book knows all jobs. Equal requests are one job, whether it is under way or has its proof; after a failure they are a
// new one, of the same id.
type book struct {
	prover      shared.Prover
	log         hclog.Logger
	keepAnswers int
	onAnswer    func(*job)

	ctx  context.Context // of the calls to the prover
	end  context.CancelCauseFunc
	jobs sync.WaitGroup // goroutines, one for each job under way

	mu       sync.Mutex
	draining bool
	byID     map[string]*job
	latest   map[string]*job // by the client's request id
	order    []*job          // answered, oldest first
	counts   counts
}

// counts is how many jobs were answered how.
type counts struct{ completed, failed, cancelled uint64 }

func newBook(prover shared.Prover, log hclog.Logger, keepAnswers int, onAnswer func(*job)) *book {
	b := &book{
		prover: prover, log: log, keepAnswers: keepAnswers, onAnswer: onAnswer,
		byID: map[string]*job{}, latest: map[string]*job{},
	}
	b.ctx, b.end = context.WithCancelCause(context.Background())
	return b
}

// submit gives the job of a request: the one that it joins, or a new one. A request that is known to be faulty gets a job
// that has failed already. release is called once, when the request's payload is not needed any more.
func (b *book) submit(requestID string, c content, r shared.Request, fault error, release func()) (*job, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := jobID(requestID, c)
	before := b.byID[id]
	if before != nil && (!before.answered() || before.err == nil) {
		release()
		return before, nil
	}
	if b.draining {
		release()
		return nil, errDraining
	}
	j := &job{
		id: id, requestID: requestID, kind: r.Kind, size: r.SectorSize, accepted: time.Now(), due: shared.AsOfNow(r.Deadline),
		handedOver: make(chan struct{}), done: make(chan struct{}), over: make(chan struct{}),
	}
	b.byID[j.id] = j
	if requestID != "" {
		b.latest[requestID] = j
	}
	r.ID = j.id
	b.jobs.Go(func() {
		defer close(j.over)
		if before != nil {
			<-before.over // it may still have to be cancelled, by the name that both have
		}
		b.prove(j, r, fault, release)
	})
	return j, nil
}

// prove takes a job to its answer.
func (b *book) prove(j *job, r shared.Request, err error, release func()) {
	size := 0
	for _, v := range r.Vanilla {
		size += len(v)
	}
	defer func() { collect(size) }() // the prover may have kept it until now
	var id shared.JobID
	if err == nil {
		id, err = b.prover.Submit(b.ctx, r)
	}
	r.Vanilla = nil
	release()
	if err != nil {
		b.answer(j, shared.Result{}, err)
		close(j.handedOver)
		return
	}
	b.mu.Lock()
	j.proverID = id
	cancelled := j.cancelled
	b.mu.Unlock()
	close(j.handedOver)
	if cancelled {
		if _, err := b.prover.Cancel(b.ctx, id); err != nil {
			b.log.Warn("cancelling a job", "job", j.id, "error", err)
		}
		return
	}
	b.await(j)
}

// await waits for the answer of a job that the prover has.
func (b *book) await(j *job) {
	result, err := b.prover.Await(b.ctx, j.proverID)
	if err != nil && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	b.answer(j, result, err)
}

// answer ends a job. Only the first answer counts.
func (b *book) answer(j *job, result shared.Result, err error) {
	b.mu.Lock()
	if j.answered() {
		b.mu.Unlock()
		return
	}
	j.result, j.err = result, err
	if !j.due.IsZero() {
		j.margin = time.Until(j.due)
	}
	switch {
	case err == nil:
		b.counts.completed++
	case errors.Is(err, shared.ErrCancelled):
		b.counts.cancelled++
	default:
		b.counts.failed++
	}
	b.order = append(b.order, j)
	for len(b.order) > b.keepAnswers {
		b.forget(b.order[0])
		b.order = b.order[1:]
	}
	close(j.done)
	b.mu.Unlock()

	switch log := b.log.With("job", j.id, "kind", j.kind, "took", time.Since(j.accepted)); {
	case err == nil && j.late():
		log.Warn("proof done after its deadline", "late_by", -j.margin)
	case err == nil && !j.due.IsZero():
		log.Info("proof done", "before_deadline", j.margin)
	case err == nil:
		log.Info("proof done")
	case errors.Is(err, shared.ErrCancelled):
		log.Info("proof cancelled")
	default:
		log.Error("proof failed", "error", err)
	}
	b.onAnswer(j)
}

// forget drops an answered job, under mu.
func (b *book) forget(j *job) {
	if b.byID[j.id] == j {
		delete(b.byID, j.id)
	}
	if b.latest[j.requestID] == j {
		delete(b.latest, j.requestID)
	}
}

// find looks for a job by its id or, where no job has it, by the client's id of its latest request. A job that the book
// does not know may be one that an earlier gateway took and the prover has kept.
func (b *book) find(ctx context.Context, id string) *job {
	b.mu.Lock()
	defer b.mu.Unlock()
	if j := b.byID[id]; j != nil {
		return j
	}
	if j := b.latest[id]; j != nil {
		return j
	}
	b.mu.Unlock()
	j := b.fromBefore(ctx, id)
	b.mu.Lock()
	if j == nil || b.draining {
		return nil
	}
	if other := b.byID[id]; other != nil {
		return other
	}
	b.byID[id] = j
	b.jobs.Go(func() {
		defer close(j.over)
		b.await(j)
	})
	return j
}

// fromBefore is the job of that id which the prover has although the book has not; nil if there is none.
func (b *book) fromBefore(ctx context.Context, id string) *job {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	asking, stop := context.WithTimeout(ctx, 100*time.Millisecond) // a job that is under way has no answer yet
	defer stop()
	if _, err := b.prover.Await(asking, shared.JobID(id)); errors.Is(err, shared.ErrUnknownJob) {
		return nil
	}
	j := &job{
		id: id, proverID: shared.JobID(id), accepted: time.Now(),
		handedOver: make(chan struct{}), done: make(chan struct{}), over: make(chan struct{}),
	}
	close(j.handedOver)
	st, err := b.prover.Status(ctx)
	if err != nil {
		return nil
	}
	for _, known := range st.Jobs {
		if string(known.ID) == id {
			j.kind, j.size, j.accepted, j.due = known.Kind, known.SectorSize, time.Now().Add(-known.Elapsed), known.Deadline
		}
	}
	return j
}

// cancel ends a job, and tells whether it was still under way.
func (b *book) cancel(ctx context.Context, j *job) (wasRunning bool, err error) {
	b.mu.Lock()
	id, answered := j.proverID, j.answered()
	j.cancelled = id == "" // then prove sees to it that the prover does not go on
	b.mu.Unlock()
	switch {
	case answered:
		return false, nil
	case id == "":
		b.answer(j, shared.Result{}, shared.ErrCancelled)
		return true, nil
	}
	wasRunning, err = b.prover.Cancel(ctx, id)
	if errors.Is(err, shared.ErrUnknownJob) {
		return false, nil
	}
	return wasRunning, err
}

// onTheirWay counts, by kind, the jobs that the prover does not have yet.
func (b *book) onTheirWay() map[shared.Kind]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := map[shared.Kind]int{}
	for _, j := range b.byID {
		if j.proverID == "" && !j.answered() {
			n[j.kind]++
		}
	}
	return n
}

func (b *book) answers() counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts
}

func (b *book) isDraining() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.draining
}

// drain takes no more requests and waits until those under way are answered, or ctx ends.
func (b *book) drain(ctx context.Context) error {
	b.mu.Lock()
	b.draining = true
	b.mu.Unlock()
	drained := make(chan struct{})
	go func() {
		b.jobs.Wait()
		close(drained)
	}()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		b.end(errDraining)
		<-drained
		return context.Cause(ctx)
	}
}
