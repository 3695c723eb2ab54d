package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// Config says what a pipeline works with.
type Config struct {
	Devices []DeviceConfig // at least one

	// Fallback proves what no device can: none of them is in use and has room, or a partition failed on them twice for
	// their fault. Nil is none. FallbackAllows tells for which requests it may.
	Fallback       *DeviceConfig
	FallbackAllows func(shared.Priority) bool
	// OnLost is called when a device is lost, on the goroutine of one of its workers. If it returns true the process is
	// about to end for that: requests then wait instead of being answered that no device is left. Nil returns false.
	OnLost func(device string, why error) (ending bool)

	// WitnessWorkers is how many witnesses are computed at once; 0 is one. A witness may use all cores by itself.
	WitnessWorkers int
	// WitnessesAhead is how many witnesses may be in work or ready before a device's worker picks them up; 0 is one for
	// each witness worker and one for each device but the fallback.
	WitnessesAhead int
	// HostMemory is the budget that Job.HostMemory counts against; nil is boundless.
	HostMemory *interlock.Budget

	// MaxRequests is how many requests may be under way; 0 is DefaultMaxRequests.
	MaxRequests int
	// KeepResults is how many answered requests can still be awaited; 0 is DefaultKeepResults.
	KeepResults int

	Timeline *timeline.Recorder // nil records nothing
	Log      hclog.Logger       // nil logs nothing
}

// Defaults of Config.
const (
	DefaultWorkers     = 2
	DefaultMaxRequests = 1024
	DefaultKeepResults = 256
)

// DeviceConfig is a device and how it is used.
type DeviceConfig struct {
	Device Device
	// Workers share the device by its interlock; 0 is DefaultWorkers.
	Workers int
	// Memory is the budget that Device.Memory counts against; nil is boundless.
	Memory *interlock.Budget
	// Lost is why the device cannot be used from the start on; nil if it can. Of a lost device only the name is asked.
	Lost error
}

// Pipeline proves requests. Its methods may be called by any number of goroutines.
type Pipeline struct {
	log      hclog.Logger
	timeline *timeline.Recorder

	devices        []*device // with the fallback, which comes last
	fallback       *device   // nil: none
	fallbackAllows func(shared.Priority) bool
	onLost         func(string, error) bool
	losing         sync.Mutex  // of the one who calls onLost
	ending         atomic.Bool // by onLost
	memory         *interlock.Budget

	pending   *queue          // partitions whose witness is not begun
	admission *interlock.Lock // of the witness worker that takes the next of them
	ahead     *places         // for witnesses ahead of the devices
	ready     *queue          // partitions whose witness waits for a device

	ctx        context.Context // of the workers; ends when no request is left after Close
	stop       context.CancelFunc
	workers    sync.WaitGroup
	releasers  sync.WaitGroup
	conductors sync.WaitGroup // one for each request

	maxRequests, keepResults int

	mu       sync.Mutex
	closing  bool
	requests uint64              // accepted ever
	active   map[string]*request // by id, not answered
	answered map[string]*request // by id, the latest of that id
	order    []*request          // answered, oldest first
	counts   Counts
}

// New starts the workers. Close ends them.
func New(c Config) (*Pipeline, error) {
	if len(c.Devices) == 0 {
		return nil, errors.New("a pipeline needs at least one device")
	}
	all := c.Devices
	if c.Fallback != nil {
		all = append(slices.Clone(all), *c.Fallback)
	}
	names := map[string]bool{}
	for _, dc := range all {
		if name := dc.Device.Name(); names[name] {
			return nil, fmt.Errorf("two devices are named %q", name)
		} else {
			names[name] = true
		}
	}
	p := &Pipeline{
		log: c.Log, timeline: c.Timeline, memory: c.HostMemory,
		fallbackAllows: c.FallbackAllows, onLost: c.OnLost,
		pending: newQueue(), ready: newQueue(), admission: interlock.NewLock(),
		maxRequests: orDefault(c.MaxRequests, DefaultMaxRequests),
		keepResults: orDefault(c.KeepResults, DefaultKeepResults),
		active:      map[string]*request{}, answered: map[string]*request{},
	}
	if p.log == nil {
		p.log = hclog.NewNullLogger()
	}
	witnessWorkers := orDefault(c.WitnessWorkers, 1)
	p.ahead = newPlaces(orDefault(c.WitnessesAhead, witnessWorkers+len(c.Devices)))
	p.ctx, p.stop = context.WithCancel(context.Background())
	for _, dc := range all {
		d := &device{
			Device: dc.Device, name: dc.Device.Name(), memory: dc.Memory, lost: dc.Lost,
			lock: interlock.NewLock(), releaser: newReleaser(),
			workers: make([]workerState, orDefault(dc.Workers, DefaultWorkers)),
		}
		d.ctx, d.stop = context.WithCancel(p.ctx)
		if dc.Lost != nil {
			d.stop()
		}
		p.devices = append(p.devices, d)
	}
	if c.Fallback != nil {
		p.fallback = p.devices[len(p.devices)-1]
		p.fallback.fallback = true
	}
	for w := range witnessWorkers {
		p.workers.Go(func() { p.witnessWorker(w) })
	}
	for _, d := range p.devices {
		p.releasers.Go(d.releaser.run)
		for w := range d.workers {
			p.workers.Go(func() { p.deviceWorker(d, w) })
		}
	}
	return p, nil
}

func orDefault(n, otherwise int) int {
	if n <= 0 {
		return otherwise
	}
	return n
}

// Submit accepts a request and returns at once. It fails with a [*DuplicateError], a *shared.BusyError, [ErrClosed], or
// a [*NoDeviceError] if all devices are out of use.
func (p *Pipeline) Submit(r Request) error {
	_, err := p.submit(r, nil)
	return err
}

// reportsWaiting is how many reports wait for a slow progress function before it misses some.
const reportsWaiting = 64

// Prove submits a request and waits for its answer. The end of ctx cancels it. progress, which may be nil, is called on
// the caller's goroutine.
func (p *Pipeline) Prove(ctx context.Context, request Request, progress func(shared.Progress)) (shared.Result, error) {
	if ctx.Err() != nil {
		request.Payload.Release()
		return shared.Result{}, whyEnded(ctx)
	}
	var reports chan shared.Progress
	if progress != nil {
		reports = make(chan shared.Progress, reportsWaiting)
	}
	r, err := p.submit(request, reports)
	if err != nil {
		return shared.Result{}, err
	}
	defer p.end(r, shared.ErrCancelled) // if progress panics
	ended := ctx.Done()
	for {
		select {
		case report := <-reports:
			progress(report)
		case <-ended:
			p.end(r, whyEnded(ctx))
			ended = nil
		case <-r.done:
			for len(reports) > 0 && ctx.Err() == nil {
				progress(<-reports)
			}
			return r.result, r.err
		}
	}
}

// whyEnded is the cause that a caller's ended context is to a request.
func whyEnded(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	return shared.ErrCancelled
}

// Await waits for the answer to a request. The end of ctx ends the waiting alone. It fails with shared.ErrUnknownJob if
// there is no request of that id, or its answer is not kept any more.
func (p *Pipeline) Await(ctx context.Context, id string) (shared.Result, error) {
	p.mu.Lock()
	r := p.find(id)
	p.mu.Unlock()
	if r == nil {
		return shared.Result{}, shared.ErrUnknownJob
	}
	select {
	case <-r.done:
		return r.result, r.err
	default:
	}
	select {
	case <-r.done:
		return r.result, r.err
	case <-ctx.Done():
		return shared.Result{}, context.Cause(ctx)
	}
}

// Cancel ends a request, and tells whether it was still under way; if so its answer is shared.ErrCancelled.
func (p *Pipeline) Cancel(id string) (wasRunning bool, err error) {
	p.mu.Lock()
	r := p.find(id)
	p.mu.Unlock()
	if r == nil {
		return false, shared.ErrUnknownJob
	}
	return p.end(r, shared.ErrCancelled), nil
}

// find looks for a request, under mu.
func (p *Pipeline) find(id string) *request {
	if r := p.active[id]; r != nil {
		return r
	}
	return p.answered[id]
}

// end cancels r for a cause, and tells whether that is what ended it.
func (p *Pipeline) end(r *request, cause error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active[r.ID] != r || r.ctx.Err() != nil {
		return false
	}
	r.cancel(cause)
	return true
}

func (p *Pipeline) submit(request Request, reports chan shared.Progress) (*request, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.refusal(request); err != nil {
		request.Payload.Release()
		return nil, err
	}
	p.requests++
	r := newRequest(request, p.requests, reports)
	p.active[r.ID] = r
	p.recordRequest(timeline.RequestStart, r)
	p.conductors.Go(func() { p.conduct(r) })
	return r, nil
}

// refusal says why a request cannot be accepted, under mu.
func (p *Pipeline) refusal(r Request) error {
	if r.ID == "" || r.Open == nil {
		return errors.New("a request needs an id and a way to open it")
	}
	if p.closing {
		return ErrClosed
	}
	if p.active[r.ID] != nil {
		return &DuplicateError{RequestID: r.ID}
	}
	if len(p.active) >= p.maxRequests {
		return &shared.BusyError{Resource: fmt.Sprintf("the queue of %d requests", p.maxRequests)}
	}
	var lost error
	for _, d := range p.devices {
		if d.fallback && !p.fallbackAllows(r.Priority.OrNormal()) {
			continue
		}
		if lost = d.whyLost(); lost == nil {
			return nil
		}
	}
	if p.ending.Load() { // which is known before a device is seen lost
		return nil // it waits for the next process
	}
	return &NoDeviceError{Err: lost}
}

// Close accepts no more requests, and waits for those under way until ctx ends; then it cancels the rest, whose answer
// is [ErrClosed]. It returns when every goroutine has ended, which the device phases then running may delay. The error
// says how many requests were cancelled. Answers can still be awaited.
func (p *Pipeline) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()

	drained := make(chan struct{})
	go func() {
		p.conductors.Wait()
		close(drained)
	}()
	aborted := 0
	select {
	case <-drained:
	case <-ctx.Done():
		p.mu.Lock()
		for _, r := range p.active {
			if r.ctx.Err() == nil {
				r.cancel(ErrClosed)
				aborted++
			}
		}
		p.mu.Unlock()
		<-drained
	}
	p.stop()
	p.workers.Wait()
	for _, d := range p.devices {
		d.releaser.close()
	}
	p.releasers.Wait()
	if aborted > 0 {
		return fmt.Errorf("%d requests were given up: %w", aborted, context.Cause(ctx))
	}
	return nil
}

// answer ends a request: with the cause of its context's end if that came first, else with what it is given. Only the
// first answer counts.
func (p *Pipeline) answer(r *request, result shared.Result, err error) {
	p.mu.Lock()
	if p.active[r.ID] != r {
		p.mu.Unlock()
		return
	}
	if r.ctx.Err() != nil {
		result, err = shared.Result{}, context.Cause(r.ctx)
	}
	r.cancel(context.Canceled) // whatever is still at work on it
	delete(p.active, r.ID)
	p.keep(r)
	p.counts.add(err)
	p.mu.Unlock()

	r.result, r.err = result, err
	p.recordRequest(timeline.RequestEnd, r)
	if err == nil {
		r.report(shared.StageDone, -1, "")
	}
	close(r.done)

	ofR := func(t *task) bool { return t.request == r }
	for _, t := range p.pending.take(ofR) {
		p.leave(t)
	}
	for _, t := range p.ready.take(ofR) {
		p.leavePlace(t)
		p.leave(t)
	}
}

// count changes the counts.
func (p *Pipeline) count(change func(c *Counts)) {
	p.mu.Lock()
	change(&p.counts)
	p.mu.Unlock()
}

// keep remembers an answered request in place of the oldest, under mu.
func (p *Pipeline) keep(r *request) {
	p.answered[r.ID] = r
	p.order = append(p.order, r)
	for len(p.order) > p.keepResults {
		oldest := p.order[0]
		p.order = p.order[1:]
		if p.answered[oldest.ID] == oldest {
			delete(p.answered, oldest.ID)
		}
	}
}

func (p *Pipeline) event(kind timeline.Kind, t *task, gpu string, worker int) timeline.Event {
	return timeline.Event{Kind: kind, Request: t.request.ID, Partition: int32(t.k), GPU: gpu, Worker: int32(worker)}
}

func (p *Pipeline) record(kind timeline.Kind, t *task, gpu string, worker int) {
	p.timeline.Record(p.event(kind, t, gpu, worker))
}

func (p *Pipeline) recordRequest(kind timeline.Kind, r *request) {
	p.timeline.Record(timeline.Event{Kind: kind, Request: r.ID, Partition: timeline.None, Worker: timeline.None})
}
