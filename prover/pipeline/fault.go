package pipeline

import (
	"errors"
	"time"

	"github.com/interlock-prover/interlock/prover/interlock"
)

// A device that reports a fault is out of use until a self-test succeeds. The first is made at once; if it fails, or if
// the device failed before without a proof since, the next comes after firstProbeWait, then after twice that, and so on.
const (
	firstProbeWait = time.Second
	maxProbeWait   = time.Minute
)

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
	p.redirectAll()
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
		err := interlock.Protect(func() error { return d.Probe(d.ctx) })
		switch {
		case err == nil:
			d.mu.Lock()
			d.fault = nil
			d.mu.Unlock()
			p.log.Info("a device computes right again and is back in use", "device", d.name)
			p.redirectAll()
			p.ready.look()
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
		p.redirectAll()
	}
}

// takeOut takes a lost device out of use for good. Requests that no other device can take fail, unless the process is
// about to end for that: then they are left to the next one.
func (p *Pipeline) takeOut(d *device, why error) {
	d.mu.Lock()
	d.faults++
	first := d.lost == nil
	if first {
		d.lost = why
	}
	d.mu.Unlock()
	if !first {
		return
	}
	p.log.Error("a device is lost and was taken out of use", "device", d.name, "error", why)
	if p.onLost != nil && p.onLost(d.name, why) {
		p.ending.Store(true)
	}
	d.stop()
	p.ready.look() // what the device had been preferred for may now go elsewhere
	for _, r := range p.sizedRequests() {
		if err := p.anyFor(r); err != nil {
			p.end(r, err)
		}
	}
	p.redirectAll()
}

// sizedRequests lists the requests whose partitions may be on their way.
func (p *Pipeline) sizedRequests() []*request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*request
	for _, r := range p.active {
		if r.sized.Load() { // the others will look for themselves
			out = append(out, r)
		}
	}
	return out
}

// mayFallBack tells whether the fallback may prove partitions of r.
func (p *Pipeline) mayFallBack(r *request) bool {
	return p.fallback != nil && p.fallbackAllows(r.Priority) && p.memory.Check(r.fallbackMemory) == nil
}

// fallsBack tells whether partitions of r are for the fallback now: it may have them, and no other device can be
// expected to take them.
func (p *Pipeline) fallsBack(r *request) bool {
	if !p.mayFallBack(r) {
		return false
	}
	for _, d := range p.devices {
		if !d.fallback && d.standing() && p.usable(d, r) == nil {
			return false
		}
	}
	return true
}

// errRedirected is the outcome of a task that waited for devices which cannot take it any more, or for the fallback
// while a device came back.
var errRedirected = errors.New("the partition goes elsewhere")

// redirect takes tasks of r that wait for the wrong sort of device out of the queues, so that their request sends them
// anew. It is called after a task was queued and after a device's state has changed: one of the two sees the other.
func (p *Pipeline) redirect(r *request) {
	if p.fallback == nil {
		return
	}
	fallsBack := p.fallsBack(r)
	wrong := func(t *task) bool { return t.request == r && !t.forced && t.fallback != fallsBack }
	for _, t := range p.pending.take(wrong) {
		t.outcomes <- outcome{k: t.k, device: t.avoid, err: errRedirected}
		p.leave(t)
	}
	for _, t := range p.ready.take(wrong) {
		p.ahead.Signal()
		r.land(false)
		t.outcomes <- outcome{k: t.k, device: t.avoid, err: errRedirected}
		p.leave(t)
	}
}

func (p *Pipeline) redirectAll() {
	if p.fallback == nil {
		return
	}
	for _, r := range p.sizedRequests() {
		p.redirect(r)
	}
}

// enqueue puts a task into one of the queues, unless its request has ended.
func (p *Pipeline) enqueue(q *queue, t *task) bool {
	queued := q.push(t)
	if queued {
		p.redirect(t.request)
	}
	return queued
}

// again says where a partition that failed goes, having been tried so often. Once more to another device, or to the same
// one where it was the device's fault and there is no other; after that, for a device's fault, to the fallback.
func (a *assembly) again(o outcome, tries int) (fallback, ok bool) {
	if o.device == nil || o.device.fallback {
		return false, false
	}
	fault := isFault(o.err)
	if tries == 1 && (a.p.anotherThan(o.device, a.r) || fault && a.p.anyFor(a.r) == nil) {
		return false, true
	}
	return true, fault && a.p.mayFallBack(a.r)
}
