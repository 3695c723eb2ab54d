package cuda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/prover/witness"
)

// Device is an opened card. It implements groth16.Device; what it is asked for
// beyond that may come from several goroutines at once, too.
type Device struct {
	name   string
	info   Info
	log    hclog.Logger
	api    api
	plan   plan
	budget *interlock.Budget

	device  handle
	compute chan handle // the context of device phases: who has it, runs one
	stream  handle      // the context that streams keys meanwhile; belongs to who has compute
	uploads chan handle // contexts for keys and witnesses
	probes  chan handle // the context of self-tests, which wait for nothing else
	pinned  pinnedPool

	thermometer *thermometer // nil: none

	lost    atomic.Pointer[Error] // the fault that ended it
	closing chan struct{}

	keys *interlock.Loads[groth16.Source, *key]
	told sync.Map // names of keys whose witnesses come late, which was logged

	mu     sync.Mutex
	closed bool
}

var _ groth16.Device = (*Device)(nil)

// Open opens a card. Errors are of type *Error, but for a limit that leaves too
// little memory.
func (l *Library) Open(c Config) (*Device, error) {
	log := c.Log
	if log == nil {
		log = hclog.NewNullLogger()
	}
	info, err := l.api.describeDevice(c.Index)
	if err != nil {
		return nil, explain(err, c.Name, "opening card %d", c.Index)
	}
	free, err := l.api.freeMemory(c.Index)
	if err != nil {
		return nil, explain(err, c.Name, "opening card %d", c.Index)
	}
	limit := max(0, free-outsideBytes)
	if c.MemoryLimitBytes > limit {
		log.Warn("less of a card is free than its memory_limit: something else uses it; going on with what there is",
			"device", c.Name, "memory_limit", gib(c.MemoryLimitBytes), "free", gib(free), "limit", gib(limit))
	} else if c.MemoryLimitBytes > 0 {
		limit = c.MemoryLimitBytes
	}
	p, err := newPlan(limit)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	d, err := open(l.api, c, p)
	if err != nil {
		return nil, err
	}
	d.info, d.log = info, log
	d.thermometer = &thermometer{sensor: nvmlSensor{}, pciAddress: info.PCIAddress, log: log}
	d.thermometer.ask() // NVML takes a while to load
	log.Info("opened a card", "device", c.Name, "card", info.Name, "uuid", info.UUID, "pci", info.PCIAddress,
		"limit", gib(p.limitBytes), "keys_and_witnesses", gib(p.budgetBytes()), "largest_domain", fmt.Sprintf("2^%d", p.logDomain))
	return d, nil
}

// open opens a card whose memory is divided already.
func open(a api, c Config, p plan) (_ *Device, err error) {
	d := &Device{
		name: c.Name, log: hclog.NewNullLogger(), api: a, plan: p,
		budget:  interlock.NewBudget("the memory of "+c.Name, p.budgetBytes()),
		compute: make(chan handle, 1), uploads: make(chan handle, max(1, c.Workers)+1), probes: make(chan handle, 1),
		closing: make(chan struct{}),
	}
	d.keys = interlock.NewLoads[groth16.Source](d.free, func(k *key) bool { return k.placement.resident })
	if d.device, err = a.openDevice(c.Index, p.limitBytes, p.scratchBytes); err != nil {
		return nil, explain(err, c.Name, "opening card %d", c.Index)
	}
	var contexts []handle
	for range 3 + cap(d.uploads) {
		h, err := a.createContext(d.device)
		if err != nil {
			for _, h := range contexts {
				a.destroyContext(h)
			}
			a.closeDevice(d.device)
			return nil, explain(err, c.Name, "opening card %d", c.Index)
		}
		contexts = append(contexts, h)
	}
	d.compute <- contexts[0]
	d.stream = contexts[1]
	d.probes <- contexts[2]
	for _, h := range contexts[3:] {
		d.uploads <- h
	}
	return d, nil
}

// gib writes a number of bytes for people.
func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

// Name implements groth16.Device.
func (d *Device) Name() string { return d.name }

// Info describes the card as it was when it was opened.
func (d *Device) Info() Info { return d.info }

// Memory is the budget of the card for keys and witnesses, of which callers
// reserve what Footprint says. What device phases need is set aside.
func (d *Device) Memory() *interlock.Budget { return d.budget }

// MemoryUsed is what the card's pool holds now, and the most it held since the
// card was opened. Both are 0 once the card is closed or lost.
func (d *Device) MemoryUsed() (used, peak int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return 0, 0
	}
	used, peak, err := d.api.deviceMemory(d.device)
	if err != nil {
		d.log.Debug("asking a card for its memory", "device", d.name, "error", d.explain(err, "asking for its memory"))
		return 0, 0
	}
	return used, peak
}

// MemoryLimit is how much of the card's memory may be used.
func (d *Device) MemoryLimit() int64 { return d.plan.limitBytes }

// Footprint implements groth16.Device. KeyBytes is 0 if the key does not fit the
// card beside a witness: then it is streamed, in every device phase anew. A witness
// that does not fit either is no part of WorkBytes: Execute copies it.
func (d *Device) Footprint(_ groth16.Source, c *groth16.Circuit) groth16.Footprint {
	p, _ := d.plan.place(sizesOf(c))
	return groth16.Footprint{KeyBytes: p.keyBytes, WorkBytes: p.workBytes}
}

// CopiedBytes is what is copied to the card for each proof: the witness, as often
// as that is, and the key and the circuit if they do not stay.
func (d *Device) CopiedBytes(c *groth16.Circuit) int64 {
	s := sizesOf(c)
	placement, _ := d.plan.place(s)
	bytes := c.System.Layout().Bytes()
	if placement.late {
		bytes *= lateCopies
	}
	if !placement.resident {
		bytes += s.points + s.circuit
	}
	return bytes
}

// CheckCircuit returns an *Error of kind OutOfMemory if a circuit's domain, or the
// circuit and its witness, are too large for the memory that the card may use.
func (d *Device) CheckCircuit(c *groth16.Circuit) error {
	return d.explain(d.plan.check(c), "making room for a circuit of %d constraints", c.System.NumConstraints())
}

// Preload implements groth16.Device. Of a key that is streamed it only checks
// that the card can use it: what that takes of the card belongs to the works.
func (d *Device) Preload(ctx context.Context, key groth16.Source, c *groth16.Circuit) error {
	if placement, _ := d.plan.place(sizesOf(c)); !placement.resident {
		return cmp.Or(d.usable(ctx), d.checkKey(key, c))
	}
	k, err := d.load(ctx, key, c)
	if err == nil {
		d.keys.Leave(k)
	}
	return err
}

// Prepare implements groth16.Device. The Work is of type *Work. Faults are of
// type *Error.
func (d *Device) Prepare(ctx context.Context, key groth16.Source, c *groth16.Circuit, w *witness.Witness) (groth16.Work, error) {
	if err := c.CheckWitness(w); err != nil {
		return nil, err
	}
	k, err := d.load(ctx, key, c)
	if err != nil {
		return nil, err
	}
	work := &Work{device: d, loaded: k, key: k.Value, host: w}
	if work.key.placement.late {
		return work, nil
	}
	if work.witness, err = d.upload(ctx, k.Value, w); err != nil {
		d.keys.Leave(k)
		return nil, err
	}
	return work, nil
}

// uploadBytes of a witness are copied at a time, so that a done context is
// noticed.
const uploadBytes = 64 << 20

// upload copies a witness to the card while another proof's device phase goes on.
func (d *Device) upload(ctx context.Context, k *key, w *witness.Witness) (handle, error) {
	context, err := d.take(ctx, d.uploads)
	if err != nil {
		return 0, err
	}
	defer d.put(d.uploads, context)
	return d.copyWitness(ctx, context, k, w)
}

// copyWitness copies a witness through a context, straight from where it is: the
// driver copies at some gigabytes a second from there.
func (d *Device) copyWitness(ctx context.Context, h handle, k *key, w *witness.Witness) (onDevice handle, err error) {
	if onDevice, err = d.api.createWitness(h, k.circuit); err != nil {
		return 0, d.explain(err, "making room for a witness of %s", k.source.Name())
	}
	for _, part := range [...]witnessPart{partInputs, partBits, partFull} {
		n, step := part.length(w), uploadBytes/part.elementBytes()
		for from := 0; from < n && err == nil; from += step {
			if err = cause(ctx); err == nil {
				err = d.explain(d.api.loadWitness(h, onDevice, w, part, from, min(n, from+step)), "copying a witness of %s", k.source.Name())
			}
		}
	}
	if err != nil {
		d.api.destroyWitness(onDevice)
		return 0, err
	}
	return onDevice, nil
}

// Close gives back everything on the card. It waits for calls that are running,
// and returns an error, having done nothing, if works are not released.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	if users := d.keys.Close(); users > 0 {
		d.mu.Unlock()
		return fmt.Errorf("closing %s: %d proofs are still using it", d.name, users)
	}
	d.closed = true
	close(d.closing)
	d.mu.Unlock()
	d.thermometer.close()

	last := <-d.compute
	err := d.pinned.free(d, last)
	contexts := []handle{last, d.stream, <-d.probes}
	for range cap(d.uploads) {
		contexts = append(contexts, <-d.uploads)
	}
	for _, h := range contexts {
		d.api.destroyContext(h)
	}
	d.api.closeDevice(d.device)
	return err
}

var errClosed = errors.New("the device is closed")

// usable returns an error if the device is lost or closed, or ctx is done.
func (d *Device) usable(ctx context.Context) error {
	if lost := d.lost.Load(); lost != nil {
		return lost
	}
	select {
	case <-d.closing:
		return fmt.Errorf("%s: %w", d.name, errClosed)
	default:
		return cause(ctx)
	}
}

// take takes a context, waiting until one is there. It fails if the device is
// not usable, and when it is closed or ctx is done meanwhile.
func (d *Device) take(ctx context.Context, from chan handle) (handle, error) {
	if err := d.usable(ctx); err != nil {
		return 0, err
	}
	select {
	case h := <-from:
		return h, nil
	case <-d.closing:
		return 0, fmt.Errorf("%s: %w", d.name, errClosed)
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func (d *Device) put(to chan handle, h handle) { to <- h }

// cause is the cause of ctx's end, nil if it has not ended.
func cause(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// explain adds to an error of the library what was being done on the device, and
// notes if the device is lost.
func (d *Device) explain(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}
	err = explain(err, d.name, doing, args...)
	var e *Error
	if errors.As(err, &e) && e.Kind == DeviceLost && d.lost.CompareAndSwap(nil, e) {
		d.log.Error("a card is lost until this process is started anew", "device", d.name, "error", e)
	}
	return err
}

// explain adds to an error of the library what was being done on which device.
func explain(err error, device, doing string, args ...any) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	with := *e
	with.Device, with.Doing = device, fmt.Sprintf(doing, args...)
	return &with
}

// logSize is the logarithm of a domain's size.
func logSize(domain int) int { return bits.Len(uint(domain)) - 1 }
