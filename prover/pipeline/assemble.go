package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// conduct takes a request from its acceptance to its answer, and cleans up after it. Where the request ends early, it
// is answered at once, whatever conduct is then waiting for.
func (p *Pipeline) conduct(r *request) {
	var early sync.WaitGroup
	early.Add(1)
	stopEarly := context.AfterFunc(r.ctx, func() {
		defer early.Done()
		p.answer(r, shared.Result{}, context.Cause(r.ctx))
	})
	var result shared.Result
	err := interlock.Protect(func() (err error) {
		result, err = p.prove(r)
		return err
	})
	if stopEarly() {
		early.Done()
	}
	p.answer(r, result, err)
	early.Wait()
	r.tasks.Wait()
	p.closeJob(r)
}

// prove makes and checks the proof.
func (p *Pipeline) prove(r *request) (shared.Result, error) {
	if err := p.open(r); err != nil {
		return shared.Result{}, err
	}
	a := newAssembly(p, r)
	if err := a.proveAndCheck(); err != nil {
		return shared.Result{}, err
	}
	result := shared.Result{
		RequestID: r.ID, Proof: bytes.Join(a.proofs, nil), Partitions: len(a.proofs),
		Timings: r.takeTimings(), InsecureParams: r.job.Insecure(),
	}
	if !r.Deadline.IsZero() {
		result.Margin = time.Until(r.Deadline)
	}
	return result, nil
}

// open decodes the request and gets ready what all its partitions need.
func (p *Pipeline) open(r *request) error {
	err := r.stageOf(shared.StageDecode, func() (err error) {
		r.job, err = r.Open(r.ctx)
		return err
	})
	if err != nil {
		return err
	}
	err = r.stageOf(shared.StageParams, func() error {
		defer r.spend(onParams, time.Now())
		p.recordRequest(timeline.ParamsStart, r)
		defer p.recordRequest(timeline.ParamsEnd, r)
		return r.job.Load(r.ctx)
	})
	if err != nil {
		return err
	}
	return r.stageOf(shared.StageQueued, func() error { return p.size(r) })
}

// stageOf runs a stage of the whole request. Errors are returned as they are, since they are about the request or its
// parameters and say so; panics say where they happened.
func (r *request) stageOf(stage shared.Stage, run func() error) error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	r.report(stage, -1, "")
	err := interlock.Protect(run)
	if panicked := (*interlock.PanicError)(nil); errors.As(err, &panicked) {
		return &StageError{RequestID: r.ID, Stage: stage, Partition: -1, Err: err}
	}
	return err
}

// size asks how much memory partitions of r take, and refuses what can never fit.
func (p *Pipeline) size(r *request) error {
	if n := r.job.Partitions(); n < 1 {
		return fmt.Errorf("request %s has %d partitions", r.ID, n)
	}
	r.hostMemory = r.job.HostMemory(false)
	if err := p.memory.Check(r.hostMemory); err != nil {
		return fmt.Errorf("a partition of request %s: %w", r.ID, err)
	}
	if p.fallback != nil {
		r.fallbackMemory = r.job.HostMemory(true)
	}
	r.needs = map[*device]need{}
	for _, d := range p.devices {
		if d.whyLost() == nil {
			var n need
			n.memory, n.err = d.Memory(r.job)
			r.needs[d] = n
		}
	}
	r.sized.Store(true)
	return p.anyFor(r)
}

func (p *Pipeline) closeJob(r *request) {
	if r.job != nil {
		p.cleanUp(r, "closing a request", r.job.Close)
	}
	r.job, r.Open, r.needs = nil, nil, nil // what is kept of an answered request is its answer
	r.hostMemory, r.fallbackMemory = interlock.Claim{}, interlock.Claim{}
	r.Payload.Release()
}

// assembly puts the proofs of a request's partitions together.
type assembly struct {
	p       *Pipeline
	r       *request
	proofs  [][]byte
	makers  []*device // of the proofs; nil if there is none yet
	history []string  // what went wrong, for the report
}

func newAssembly(p *Pipeline, r *request) *assembly {
	n := r.job.Partitions()
	return &assembly{p: p, r: r, proofs: make([][]byte, n), makers: make([]*device, n)}
}

// attempts is how often a proof is made before the one that does not verify is reported.
const attempts = 2

// proveAndCheck proves all partitions and checks the whole. If it does not verify, what is or may be wrong is made
// again, on other devices where there are some. A proof that was not seen to verify is never handed out.
func (a *assembly) proveAndCheck() error {
	todo := make([]int, len(a.proofs))
	for k := range todo {
		todo[k] = k
	}
	a.r.enqueued(len(todo))
	for attempt := 1; ; attempt++ {
		if err := a.provePartitions(todo, attempt > 1); err != nil {
			return err
		}
		err := a.check()
		invalid := (*shared.ProofInvalidError)(nil)
		if !errors.As(err, &invalid) {
			return err
		}
		a.p.count(func(c *Counts) { c.Withheld++ })
		a.note(fmt.Sprintf("attempt %d, partitions made on %s: %s", attempt, a.makerNames(), invalid.Detail))
		bad := a.suspects(invalid)
		a.doubt(bad, invalid)
		if attempt == attempts {
			return &shared.ProofInvalidError{RequestID: a.r.ID, Partitions: invalid.Partitions, Detail: strings.Join(a.history, "; ")}
		}
		todo = bad
		a.r.again(len(todo))
		a.p.count(func(c *Counts) { c.Retries += uint64(len(todo)) })
		a.r.report(shared.StageQueued, -1, "the proof does not verify and is made again")
	}
}

// note keeps, and logs, what went wrong.
func (a *assembly) note(what string) {
	a.history = append(a.history, what)
	a.p.log.Warn("proving had to be repeated or failed", "request", a.r.ID, "kind", a.r.Kind, "size", a.r.SectorSize, "what", what)
}

// suspects lists the partitions to make again: those that are known to be wrong, else all.
func (a *assembly) suspects(invalid *shared.ProofInvalidError) []int {
	var all, known []int
	for k := range a.proofs {
		all = append(all, k)
		if slices.Contains(invalid.Partitions, k) {
			known = append(known, k)
		}
	}
	if len(known) > 0 {
		return known
	}
	return all
}

// doubt has the devices that made partitions tested, once each, before they make others: one of them may compute wrong.
func (a *assembly) doubt(partitions []int, why error) {
	doubted := map[*device]bool{}
	for _, k := range partitions {
		d := a.makers[k]
		if !doubted[d] && !d.fallback && d.inUse() {
			a.p.suspend(d, &DeviceFaultError{Device: d.name, Err: why})
		}
		doubted[d] = true
	}
}

func (a *assembly) makerNames() string {
	names := make([]string, len(a.makers))
	for k, d := range a.makers {
		names[k] = d.name
	}
	if distinct := slices.Compact(slices.Clone(names)); len(distinct) == 1 {
		return names[0]
	}
	return strings.Join(names, ",")
}

// check verifies the whole proof.
func (a *assembly) check() error {
	r := a.r
	return r.stageOf(shared.StageVerify, func() error {
		defer r.spend(onVerify, time.Now())
		a.p.recordRequest(timeline.VerifyStart, r)
		defer a.p.recordRequest(timeline.VerifyEnd, r)
		return r.job.Verify(r.ctx, slices.Clone(a.proofs))
	})
}

// provePartitions sends partitions on their way and waits until all their proofs are there. Those that fail on a device
// are tried again where again says. Those that were made before go to another device or, where there is none, to the
// fallback.
func (a *assembly) provePartitions(todo []int, madeBefore bool) error {
	outcomes := make(chan outcome, len(todo))
	failures := map[int]error{} // of partitions that are tried again
	tries := map[int]int{}
	forced := map[int]bool{}
	for _, k := range todo {
		forced[k] = madeBefore && a.p.mayFallBack(a.r) && !a.p.anotherThan(a.makers[k], a.r)
		a.send(k, a.makers[k], forced[k], outcomes)
	}
	for left := len(todo); left > 0; {
		var o outcome
		select {
		case o = <-outcomes:
		case <-a.r.ctx.Done():
			return context.Cause(a.r.ctx)
		}
		if o.err == nil {
			a.proofs[o.k], a.makers[o.k] = o.proof, o.device
			left--
			continue
		}
		if errors.Is(o.err, errRedirected) {
			forced[o.k] = forced[o.k] && a.p.mayFallBack(a.r)
			a.send(o.k, o.device, forced[o.k], outcomes)
			continue
		}
		tries[o.k]++
		fallback, ok := a.again(o, tries[o.k])
		if before := failures[o.k]; before != nil {
			o.err = fmt.Errorf("%w; before that %w", o.err, before)
		}
		if !ok {
			if none := a.p.anyFor(a.r); none != nil && isFault(o.err) {
				return fmt.Errorf("%w; before that %w", none, o.err)
			}
			return o.err
		}
		failures[o.k] = o.err
		forced[o.k] = fallback
		a.note(o.err.Error())
		a.p.count(func(c *Counts) { c.Retries++ })
		a.r.report(shared.StageQueued, o.k, "failed on "+o.device.name+" and is tried again")
		a.send(o.k, o.device, fallback, outcomes)
	}
	return nil
}

// send queues a partition: for the fallback if that is forced or no other device can be expected to take it.
func (a *assembly) send(k int, avoid *device, forced bool, outcomes chan outcome) {
	t := &task{
		request: a.r, k: k, avoid: avoid, outcomes: outcomes,
		fallback: forced || a.p.fallsBack(a.r), forced: forced,
	}
	if t.fallback {
		a.p.log.Warn("a partition goes to the fallback: no other device can prove it", "request", a.r.ID, "partition", k, "device", a.p.fallback.name)
	}
	a.r.tasks.Add(1)
	if !a.p.enqueue(a.p.pending, t) {
		a.p.leave(t)
	}
}
