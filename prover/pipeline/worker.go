package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// device is a Device with what its workers share.
type device struct {
	Device
	name     string
	fallback bool
	memory   *interlock.Budget
	lock     *interlock.Lock // the interlock
	releaser *releaser
	ctx      context.Context // ends when the device is taken out of use or the pipeline closes
	stop     context.CancelFunc

	mu      sync.Mutex
	workers []workerState
	lost    error  // why it was taken out of use for good
	fault   error  // why it is out of use until a self-test succeeds
	inARow  int    // faults and failed self-tests since the last proof
	faults  uint64 // since the start
}

// workerState is what a worker carries; no request if nothing.
type workerState struct {
	request *request
	k       int
	stage   shared.Stage
	since   time.Time
}

func (d *device) whyLost() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost
}

func (d *device) set(worker int, s workerState) {
	s.since = time.Now()
	d.mu.Lock()
	d.workers[worker] = s
	d.mu.Unlock()
}

// deviceWorker carries one partition at a time through the device, until that is taken out of use or the pipeline
// closes.
func (p *Pipeline) deviceWorker(d *device, worker int) {
	for {
		t, err := p.ready.pop(d.ctx, func(t *task) bool { return p.takes(d, t) })
		if err != nil {
			return
		}
		p.leavePlace(t)
		p.carry(d, worker, t)
	}
}

// takes tells whether t may go to d: not where it failed before, if another device can have it. What is for the fallback
// goes there even so.
func (p *Pipeline) takes(d *device, t *task) bool {
	if t.fallback != d.fallback || !d.inUse() || p.usable(d, t.request) != nil {
		return false
	}
	return d.fallback || t.avoid != d || !p.anotherThan(d, t.request)
}

// usable says why d can never take partitions of r, nil if it can now or later.
func (p *Pipeline) usable(d *device, r *request) error {
	if err := d.whyLost(); err != nil {
		return err
	}
	need := r.needs[d]
	if need.err != nil {
		return need.err
	}
	return d.memory.Check(need.memory)
}

// anotherThan tells whether r can go to a device other than d, now or after a self-test, the fallback left aside.
func (p *Pipeline) anotherThan(d *device, r *request) bool {
	for _, other := range p.devices {
		if other != d && !other.fallback && other.standing() && p.usable(other, r) == nil {
			return true
		}
	}
	return false
}

// anyFor returns a *NoDeviceError if no device can ever take r, and the process is not about to end for that.
func (p *Pipeline) anyFor(r *request) error {
	if p.mayFallBack(r) {
		return nil
	}
	var last error
	for _, d := range p.devices {
		if d.fallback {
			continue
		}
		err := p.usable(d, r)
		if err == nil {
			return nil
		}
		last = err
	}
	if p.ending.Load() { // which is known before a device is seen lost
		return nil
	}
	return &NoDeviceError{Err: last}
}

// passage is a task on its way through a device.
type passage struct {
	*task
	p      *Pipeline
	d      *device
	worker int
	phase  Phase                  // once prepared
	memory *interlock.Reservation // of the device
	began  time.Duration          // when the device phase did, by the timeline's clock
}

// carry takes t through d and reports what became of it. All that was allocated is left to the device's releaser.
func (p *Pipeline) carry(d *device, worker int, t *task) {
	s := &passage{task: t, p: p, d: d, worker: worker}
	s.record(timeline.GPUPickup)
	proof, err := s.run()
	s.recordMeasurements()
	d.set(worker, workerState{})
	p.heed(d, err)
	if t.request.land(err == nil); err == nil {
		t.request.report(shared.StageFinish, t.k, "partition proven")
	}
	t.outcomes <- outcome{k: t.k, proof: proof, device: d, err: err}
	d.releaser.add(s.release)
}

func (s *passage) run() ([]byte, error) {
	if err := s.at(shared.StagePrepare, s.prepare); err != nil {
		return nil, err
	}
	if err := s.at(shared.StageDevice, s.execute); err != nil {
		return nil, err
	}
	var proof []byte
	err := s.at(shared.StageFinish, func(ctx context.Context) (err error) {
		proof, err = s.finish(ctx)
		return err
	})
	return proof, err
}

// at runs one stage, unless the request has ended.
func (s *passage) at(stage shared.Stage, run func(ctx context.Context) error) error {
	r := s.request
	err := context.Cause(r.ctx)
	if err == nil {
		err = interlock.Protect(func() error { return run(r.ctx) })
	}
	if err != nil {
		return &StageError{RequestID: r.ID, Stage: stage, Partition: s.k, Device: s.d.name, Err: err}
	}
	return nil
}

// enter notes that the partition came to a stage.
func (s *passage) enter(stage shared.Stage) {
	s.d.set(s.worker, workerState{request: s.request, k: s.k, stage: stage})
	s.request.report(stage, s.k, "")
}

func (s *passage) record(kind timeline.Kind) { s.p.record(kind, s.task, s.d.name, s.worker) }

// prepare waits for the device's memory and prepares the device phase.
func (s *passage) prepare(ctx context.Context) error {
	s.enter(shared.StagePrepare)
	if err := s.reserve(ctx); err != nil {
		return err
	}
	defer s.request.spend(onPrepare, time.Now())
	s.record(timeline.PrepareStart)
	defer s.record(timeline.PrepareEnd)
	phase, err := s.d.Prepare(ctx, s.request.job, s.k, s.witness)
	if err != nil {
		return err
	}
	s.phase = phase
	return nil
}

func (s *passage) reserve(ctx context.Context) (err error) {
	claim, ok := s.request.needs[s.d].memory, false
	if s.memory, ok = s.d.memory.TryReserve(claim); ok {
		return nil
	}
	s.record(timeline.MemoryWaitStart)
	defer s.record(timeline.MemoryWaitEnd)
	s.memory, err = s.d.memory.Reserve(ctx, claim)
	return err
}

// execute is the device phase: nothing else is done under the interlock.
func (s *passage) execute(ctx context.Context) error {
	return s.d.lock.Do(ctx, func() error {
		defer s.request.spend(onDevice, time.Now())
		s.record(timeline.GPUStart)
		defer s.record(timeline.GPUEnd)
		s.began = s.p.timeline.Now()
		s.enter(shared.StageDevice)
		return s.phase.Execute(ctx)
	})
}

func (s *passage) finish(ctx context.Context) ([]byte, error) {
	s.enter(shared.StageFinish)
	defer s.request.spend(onFinish, time.Now())
	s.record(timeline.FinishStart)
	defer s.record(timeline.FinishEnd)
	return s.phase.Finish(ctx)
}

// recordMeasurements adds to the timeline what the phase measured itself.
func (s *passage) recordMeasurements() {
	measured, ok := s.phase.(Measured)
	if !ok || s.began == 0 {
		return
	}
	s.p.cleanUp(s.request, "asking a device for its measurements", func() {
		for _, m := range measured.Measurements() {
			e := s.p.event(m.Start, s.task, s.d.name, s.worker)
			e.Time = s.began + m.From
			s.p.timeline.RecordAt(e)
			e.Time, e.Kind = s.began+m.To, m.Start+1
			s.p.timeline.RecordAt(e)
		}
	})
}

// release gives back everything the partition took, on the releaser's goroutine.
func (s *passage) release() {
	if s.phase != nil {
		s.p.cleanUp(s.request, "releasing a partition's device memory", s.phase.Release)
	}
	s.memory.Release()
	s.p.leave(s.task)
}
