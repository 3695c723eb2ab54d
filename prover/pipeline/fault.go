package pipeline

import (
	"errors"
	"fmt"
	"time"

	"github.com/interlock-prover/interlock/prover/interlock"
)

// A device that reports a fault is out of use until a self-test succeeds. The first is made at once; if it fails, or if
// the device failed before without a proof since, the next comes after firstProbeWait, then after twice that, and so on.
const (
	firstProbeWait = time.Second
	maxProbeWait   = time.Minute
)

// ProbeLimit is how long a self-test may take, which is some milliseconds on a card that works. One that hangs does not
// heed its context, and only a new process gets its card back: it counts as lost.
const ProbeLimit = time.Minute

// faultTries is how often a partition is tried on devices that fail, where nothing may stand in for them. The waits for
// self-tests between them make a minute, in which another program may give back what it has of a card's memory.
const faultTries = 8

// probeWait is how long after a device's n-th fault or failed self-test in a row, counted from 1, its next self-test comes.
func probeWait(n int) time.Duration {
	if n <= 1 {
		return 0
	}
	return min(firstProbeWait<<min(n-2, 10), maxProbeWait)
}

// standing tells whether a device is worth waiting for: it is in use, or its fault may turn out to be momentary at the
// self-test that is under way.
func (d *device) standing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost == nil && (d.fault == nil || d.inARow <= 1)
}

// inUse tells whether the device takes partitions.
func (d *device) inUse() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lost == nil && d.fault == nil
}

// succeeded notes that the device made a proof.
func (d *device) succeeded() {
	d.mu.Lock()
	if d.fault == nil {
		d.inARow = 0
	}
	d.mu.Unlock()
}

// heed looks at how a partition's passage through d ended, and takes d out of use if that was its fault.
func (p *Pipeline) heed(d *device, err error) {
	var lost *DeviceLostError
	var fault *DeviceFaultError
	switch {
	case err == nil:
		d.succeeded()
		if d.fallback {
			p.count(func(c *Counts) { c.Fallbacks++ })
		}
	case errors.As(err, &lost):
		p.takeOut(d, err)
	case errors.As(err, &fault):
		p.suspend(d, err)
	}
}

// isFault tells whether a partition failed for its device's sake.
func isFault(err error) bool {
	return errors.As(err, new(*DeviceLostError)) || errors.As(err, new(*DeviceFaultError))
}

// suspend takes a device out of use until a self-test succeeds, which a goroutine of the workers' group sees to.
func (p *Pipeline) suspend(d *device, why error) {
	d.mu.Lock()
	d.faults++
	first := d.lost == nil && d.fault == nil
	if first {
		d.fault = why
		d.inARow++
	}
	d.mu.Unlock()
	if !first {
		return // its self-test is under way
	}
	p.log.Error("a device failed and is out of use until a self-test succeeds", "device", d.name, "error", why)
	p.stateChanged()
	p.workers.Go(func() { p.revive(d) })
}

// revive tests a device until it computes right, is lost, or the pipeline closes.
func (p *Pipeline) revive(d *device) {
	for {
		d.mu.Lock()
		wait := time.NewTimer(probeWait(d.inARow))
		d.mu.Unlock()
		select {
		case <-wait.C:
		case <-d.ctx.Done():
			wait.Stop()
			return
		}
		err := p.probe(d)
		switch {
		case err == nil:
			d.mu.Lock()
			d.fault = nil
			d.mu.Unlock()
			p.log.Info("a device computes right again and is back in use", "device", d.name)
			p.stateChanged()
			return
		case d.ctx.Err() != nil:
			return
		case errors.As(err, new(*DeviceLostError)):
			p.takeOut(d, err)
			return
		}
		d.mu.Lock()
		d.fault = err
		d.inARow++
		d.mu.Unlock()
		p.log.Error("a device failed its self-test", "device", d.name, "error", err)
		p.stateChanged()
	}
}

// probe is a device's self-test within ProbeLimit.
func (p *Pipeline) probe(d *device) error {
	err := interlock.Within(ProbeLimit, func() error { return d.Probe(d.ctx) })
	if errors.Is(err, interlock.ErrHangs) {
		return &DeviceLostError{Device: d.name, Err: fmt.Errorf("its self-test has not ended within %s", ProbeLimit)}
	}
	return err
}

// Observe tells the pipeline how a use of a device ended that it did not make itself, such as loading parameters: the
// fault of a device takes it out of use as it does in proving. It tells whether it was that.
func (p *Pipeline) Observe(device string, err error) (itsFault bool) {
	if !isFault(err) {
		return false
	}
	p.mu.Lock()
	closing := p.closing
	if !closing {
		p.conductors.Add(1) // the workers stay until this is seen to
	}
	p.mu.Unlock()
	if closing {
		return true
	}
	defer p.conductors.Done()
	for _, d := range p.devices {
		if d.name == device {
			p.heed(d, err)
		}
	}
	return true
}

// takeOut takes a lost device out of use for good. Requests that no other device can take fail, unless the process is
// about to end for that: then they are left to the next one.
func (p *Pipeline) takeOut(d *device, why error) {
	if !p.lose(d, why) {
		return
	}
	p.log.Error("a device is lost and was taken out of use", "device", d.name, "error", why)
	d.stop()
	p.forSized(func(r *request) {
		if err := p.anyFor(r); err != nil {
			p.end(r, err)
		}
	})
	p.stateChanged()
}

// lose notes that a device is lost, and tells whether that is news. Whoever sees it lost sees too whether the process is
// about to end for it.
func (p *Pipeline) lose(d *device, why error) (first bool) {
	p.losing.Lock()
	defer p.losing.Unlock()
	first = d.whyLost() == nil
	if first && p.onLost != nil && p.onLost(d.name, why) {
		p.ending.Store(true)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.faults++
	if first {
		d.lost = why
	}
	return first
}

// forSized calls do for the requests whose partitions may be on their way, which are not closed meanwhile.
func (p *Pipeline) forSized(do func(r *request)) {
	var sized []*request
	p.mu.Lock()
	for _, r := range p.active {
		if r.sized.Load() { // the others will look for themselves
			r.tasks.Add(1)
			sized = append(sized, r)
		}
	}
	p.mu.Unlock()
	for _, r := range sized {
		do(r)
		r.tasks.Done()
	}
}

// mayFallBack tells whether the fallback may prove partitions of r.
func (p *Pipeline) mayFallBack(r *request) bool {
	return p.fallback != nil && p.fallbackAllows(r.Priority) && p.usable(p.fallback, r) == nil &&
		p.memory.Check(r.fallbackMemory) == nil
}

// served tells whether a device other than the fallback can be expected to take partitions of r.
func (p *Pipeline) served(r *request) bool {
	for _, d := range p.devices {
		if !d.fallback && d.standing() && p.usable(d, r) == nil {
			return true
		}
	}
	return false
}

// fallsBack tells whether partitions of r are for the fallback now.
func (p *Pipeline) fallsBack(r *request) bool { return p.mayFallBack(r) && !p.served(r) }

// errRedirected is the outcome of a task that waited for a device which cannot be expected to take it any more, or for
// the fallback while a device came back.
var errRedirected = errors.New("the partition goes elsewhere")

// redirect takes tasks of r that wait for the wrong sort of device out of the queues, so that their request sends them
// anew; and those whose witness waits for a device that is out of use, so that it holds no place and no memory. It is
// called after a task was queued and after a device's state has changed: one of the two sees the other.
func (p *Pipeline) redirect(r *request) {
	served, mayFallBack := p.served(r), p.mayFallBack(r)
	wrong := func(t *task) bool {
		if t.forced {
			return !mayFallBack
		}
		return t.fallback != (mayFallBack && !served)
	}
	for _, t := range p.pending.take(func(t *task) bool { return t.request == r && wrong(t) }) {
		p.sendBack(t)
	}
	stranded := func(t *task) bool { return !t.fallback && !served }
	for _, t := range p.ready.take(func(t *task) bool { return t.request == r && (wrong(t) || stranded(t)) }) {
		p.leavePlace(t)
		r.land(false)
		p.sendBack(t)
	}
}

func (p *Pipeline) sendBack(t *task) {
	t.outcomes <- outcome{k: t.k, device: t.avoid, err: errRedirected}
	p.leave(t)
}

// stateChanged has all tasks that wait go where they should, now that a device failed, was tested or is lost.
func (p *Pipeline) stateChanged() {
	p.forSized(p.redirect)
	p.pending.look()
	p.ready.look()
}

// enqueue puts a task into one of the queues, unless its request has ended.
func (p *Pipeline) enqueue(q *queue, t *task) bool {
	r := t.request
	r.tasks.Add(1) // whoever takes t may bring r to its end
	defer r.tasks.Done()
	queued := q.push(t)
	if queued {
		p.redirect(r)
	}
	return queued
}

// again says where a partition that failed goes, having been tried so often. Once more to another device, or to the same
// one where it was the device's fault and there is no other; after that, for a device's fault, to the fallback or, where
// there is none for it, to devices up to faultTries. Where the process is about to end for a lost device, it waits for
// that.
func (a *assembly) again(o outcome, tries int) (fallback, ok bool) {
	if o.device == nil || o.device.fallback {
		return false, false
	}
	fault := isFault(o.err)
	if fault && a.p.ending.Load() {
		return false, true
	}
	if tries == 1 && (a.p.anotherThan(o.device, a.r) || fault && a.p.anyFor(a.r) == nil) {
		return false, true
	}
	if fault && a.p.mayFallBack(a.r) {
		return true, true
	}
	return false, fault && tries < faultTries && a.p.anyFor(a.r) == nil
}
