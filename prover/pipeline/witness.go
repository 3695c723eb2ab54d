package pipeline

import (
	"context"
	"time"

	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// witnessWorker computes witnesses until the pipeline closes. The next partition is chosen only when a worker is free
// and there is a place and memory for its witness, so that one of higher priority that comes meanwhile is chosen
// instead.
func (p *Pipeline) witnessWorker(worker int) {
	for {
		var t *task
		err := p.admission.Do(p.ctx, func() (err error) {
			t, err = p.admit(worker)
			return err
		})
		switch {
		case err == nil:
			p.synthesize(worker, t)
		case p.ctx.Err() != nil:
			return
		default:
			p.log.Error("admitting a partition failed; going on", "error", err)
		}
	}
}

// mayBegin tells whether a device can be expected to take t. Until then it holds no place and no memory: others may be
// served meanwhile.
func (p *Pipeline) mayBegin(t *task) bool { return t.fallback || p.served(t.request) }

// admit waits for the partition that goes first, for a place for it ahead of the devices, then for memory. One worker at a
// time does.
func (p *Pipeline) admit(worker int) (*task, error) {
	for {
		t, err := p.pending.pop(p.ctx, func(t *task) bool { return p.mayBegin(t) && p.ahead.take(t) })
		if err != nil {
			return nil, err
		}
		if t.memory, err = p.reserveHost(worker, t); err == nil {
			t.request.takeOff()
			return t, nil
		}
		// One of higher priority came, or the request ended; then the queue does not take it back.
		p.leavePlace(t)
		if !p.enqueue(p.pending, t) {
			p.leave(t)
		}
	}
}

// reserveHost waits for t's memory, what it shares with others included; in vain if the request ends or a task arrives that goes first.
func (p *Pipeline) reserveHost(worker int, t *task) (*interlock.Reservation, error) {
	claim := t.request.hostMemory
	if t.fallback {
		claim = t.request.fallbackMemory
	}
	if memory, ok := p.memory.TryReserve(claim); ok {
		return memory, nil
	}
	ctx, interrupt := context.WithCancel(t.request.ctx)
	defer interrupt()
	p.pending.watch(t, p.mayBegin, interrupt)
	defer p.pending.watch(nil, nil, nil)
	p.record(timeline.MemoryWaitStart, t, "", worker)
	defer p.record(timeline.MemoryWaitEnd, t, "", worker)
	return p.memory.Reserve(ctx, claim)
}

// synthesize computes the witness of t and queues it for the devices.
func (p *Pipeline) synthesize(worker int, t *task) {
	r := t.request
	r.report(shared.StageWitness, t.k, "")
	began := time.Now()
	p.record(timeline.SynthStart, t, "", worker)
	err := interlock.Protect(func() error {
		w, err := r.job.Witness(r.ctx, t.k)
		if err == nil {
			t.witness = w
		}
		return err
	})
	p.record(timeline.SynthEnd, t, "", worker)
	r.spend(onWitness, began)
	if err != nil {
		p.leavePlace(t)
		r.land(false)
		t.outcomes <- outcome{k: t.k, err: &StageError{RequestID: r.ID, Stage: shared.StageWitness, Partition: t.k, Err: err}}
		p.leave(t)
		return
	}
	p.record(timeline.GPUQueue, t, "", timeline.None)
	if !p.enqueue(p.ready, t) {
		p.leavePlace(t)
		p.leave(t)
	}
}
