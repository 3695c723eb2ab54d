package prover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/go-hclog"

	"github.com/interlock-prover/interlock/prover/cuda"
	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/prover/params"
	"github.com/interlock-prover/interlock/prover/pipeline"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// card is what the engine asks of a GPU beyond proving.
type card interface {
	groth16.Device

	// Memory is the budget that the card's keys and witnesses count against.
	Memory() *interlock.Budget
	// CheckCircuit returns an error if the circuit is too large for the card.
	CheckCircuit(c *groth16.Circuit) error
	// Probe returns nil if the card computes right.
	Probe(ctx context.Context) error
	// MemoryUsed is what proving takes of the card now, and the most it took;
	// MemoryLimit is what it may take.
	MemoryUsed() (used, peak int64)
	MemoryLimit() int64
	// Info describes the card.
	Info() cuda.Info
	// TemperatureCelsius is how hot the card is, if that is known.
	TemperatureCelsius() (celsius int, known bool)
	// Close gives everything on the card back.
	Close() error
}

var _ card = (*cuda.Device)(nil)

// hardware is what an engine proves with: the CPU and, where the configuration
// names some, cards, one for each gpu block in order.
type hardware struct {
	cpu   groth16.Device
	cards []cardOrFault
}

// cardOrFault is an opened card, or why it could not be opened.
type cardOrFault struct {
	card
	err error
}

// openHardware opens what the configuration names. It fails if it names cards and
// none of them can be opened.
func openHardware(ctx context.Context, c *config.Config, log hclog.Logger) (hardware, error) {
	h := hardware{cpu: groth16.NewCPU("cpu", c.CPU.Threads)}
	if len(c.GPUs) == 0 {
		return h, nil
	}
	library, err := cuda.Load(c.CUDA.Library)
	if err != nil {
		return hardware{}, fmt.Errorf("gpu %q: %w", c.GPUs[0].ID, err)
	}
	infos, err := library.Devices()
	if err != nil {
		return hardware{}, fmt.Errorf("gpu %q: %w", c.GPUs[0].ID, err)
	}
	h.cards, err = openCards(c.GPUs, infos, func(c cuda.Config) (card, error) { return openCard(ctx, library, c) }, log)
	return h, err
}

// openCard opens a card that passes a self-test: a library may be without kernels
// for its kind.
func openCard(ctx context.Context, library *cuda.Library, c cuda.Config) (*cuda.Device, error) {
	opened, err := library.Open(c)
	if err != nil {
		return nil, err
	}
	err = interlock.Within(pipeline.ProbeLimit, func() error { return opened.Probe(ctx) })
	switch {
	case errors.Is(err, interlock.ErrHangs): // and Close would wait for it
		return nil, fmt.Errorf("its self-test has not ended within %s: the card hangs; nvidia-smi and the kernel's log tell more", pipeline.ProbeLimit)
	case err != nil:
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

// openCards opens the cards that the configuration names among those that there
// are. It fails if none can be opened.
func openCards(gpus []config.GPU, infos []cuda.Info, open func(cuda.Config) (card, error), log hclog.Logger) ([]cardOrFault, error) {
	var cards []cardOrFault
	var errs []error
	taken := map[int]config.GPUID{}
	for _, g := range gpus {
		opened := cardOrFault{}
		index, err := findCard(infos, g.ID)
		if other, twice := taken[index]; err == nil && twice {
			err = fmt.Errorf("it is the same card as gpu %q: take one of the blocks out", other)
		}
		if err == nil {
			taken[index] = g.ID
			opened.card, err = open(cuda.Config{
				Name: cardName(g.ID), Index: index, MemoryLimitBytes: int64(g.MemoryLimit), Workers: g.Workers, Log: log,
			})
		}
		if err != nil {
			opened = cardOrFault{err: fmt.Errorf("gpu %q: %w", g.ID, err)}
			errs = append(errs, opened.err)
		}
		cards = append(cards, opened)
	}
	if len(errs) == len(gpus) {
		return nil, errors.Join(errs...)
	}
	return cards, nil
}

// cardName is how a card is called in logs, status and timelines.
func cardName(id config.GPUID) string { return "gpu " + id.String() }

// findCard returns the library's index of the card that a configuration names. An
// index of a configuration counts cards by PCI address, as nvidia-smi does, the
// library's as CUDA does.
func findCard(infos []cuda.Info, id config.GPUID) (int, error) {
	sorted := slices.SortedFunc(slices.Values(infos), func(a, b cuda.Info) int { return cmp.Compare(a.PCIAddress, b.PCIAddress) })
	for i, info := range sorted {
		if id.UUID != "" && id.UUID == info.UUID || id.PCIAddress != "" && id.PCIAddress == info.PCIAddress ||
			id.UUID == "" && id.PCIAddress == "" && id.Index == i {
			return info.Index, nil
		}
	}
	return 0, fmt.Errorf("there is no such card among the %d that CUDA lists; `nvidia-smi -L` lists cards, and CUDA_VISIBLE_DEVICES may hide some", len(infos))
}

// close closes the cards.
func (h *hardware) close() error {
	var errs []error
	for _, c := range h.cards {
		if c.card != nil {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// device is a groth16.Device as the pipeline sees it.
type device struct {
	groth16.Device
	card   card // the same; nil if it is the CPU
	lost   error
	name   string
	memory *interlock.Budget // of its keys: the card's own, else the host's
	cpus   config.CPUSet     // that its calls run on; empty for all
	blind  blinder
}

var _ pipeline.Device = (*device)(nil)

// blinder gives the blinding of partition k's proof. Only tests give another
// than randomBlinding.
type blinder func(k int) (groth16.Blinding, error)

func randomBlinding(int) (groth16.Blinding, error) { return groth16.NewBlinding() }

// setDevices makes the engine's devices from what is there: the cards, and the CPU
// if it proves beside them or in their stead.
func (e *Engine) setDevices(h hardware, blind blinder) {
	for i, c := range h.cards {
		d := &device{name: cardName(e.config.GPUs[i].ID), cpus: e.config.GPUs[i].CPUs, blind: blind, lost: c.err}
		if c.err == nil {
			d.Device, d.card, d.memory = c.card, c.card, c.Memory()
		}
		e.devices = append(e.devices, d)
	}
	if e.config.CPU.Enabled || e.config.CUDA.Fallback != config.FallbackNever {
		e.cpu = &device{Device: h.cpu, name: h.cpu.Name(), memory: e.memory, blind: blind}
		e.devices = append(e.devices, e.cpu)
	}
}

// pipelineDevices is how the pipeline uses the devices.
func (e *Engine) pipelineDevices() (devices []pipeline.DeviceConfig, fallback *pipeline.DeviceConfig) {
	for i, d := range e.devices {
		c := pipeline.DeviceConfig{Device: d, Lost: d.lost}
		if d != e.cpu {
			c.Workers = e.config.GPUs[i].Workers
			c.Memory = d.memory
			devices = append(devices, c)
			continue
		}
		c.Workers = e.config.CPU.Workers
		if e.config.CPU.Enabled {
			devices = append(devices, c)
		} else {
			fallback = &c
		}
	}
	return devices, fallback
}

// processCPUs are the CPUs that this process may run on: those of all devices, if
// each of them names some.
func processCPUs(c *config.Config) config.CPUSet {
	var all config.CPUSet
	if c.CPU.Enabled {
		all = c.CPU.CPUs
		if len(all) == 0 {
			return nil
		}
	}
	for _, g := range c.GPUs {
		if len(g.CPUs) == 0 {
			return nil
		}
		all = append(slices.Clone(all), g.CPUs...)
	}
	return all
}

// Name implements pipeline.Device.
func (d *device) Name() string { return d.name }

// Memory implements pipeline.Device. What the CPU takes is the host's memory, and
// job.HostMemory counts it.
func (d *device) Memory(pj pipeline.Job) (interlock.Claim, error) {
	if d.card == nil {
		return interlock.Claim{}, nil
	}
	j := pj.(*job) // made in this package
	p := j.key.on(d)
	return p.claim(j.key.file, j.circuit.groth)
}

// tooLarge says of a circuit that it never fits the card, as the boundary knows it.
func (d *device) tooLarge(err error) error {
	var fault *cuda.Error
	if !errors.As(err, &fault) {
		return err
	}
	return &shared.TooLargeError{WantBytes: uint64(fault.BytesAsked), BudgetBytes: uint64(fault.BytesFree), Detail: err.Error()}
}

// Probe implements pipeline.Device. The CPU has no faults of its own.
func (d *device) Probe(ctx context.Context) error {
	if d.card == nil {
		return nil
	}
	return d.explain(d.card.Probe(ctx))
}

// Prepare implements pipeline.Device.
func (d *device) Prepare(ctx context.Context, pj pipeline.Job, k int, pw pipeline.Witness) (pipeline.Phase, error) {
	j, w := pj.(*job), pw.(*assignment) // both made in this package
	var work groth16.Work
	err := onCPUs(d.cpus, func() (err error) {
		work, err = d.Device.Prepare(ctx, j.key.file, j.circuit.groth, w.Witness)
		return err
	})
	if err != nil {
		return nil, d.explain(err)
	}
	return &phase{Work: work, device: d, k: k}, nil
}

// explain tells the pipeline, and the boundary, what sort of error it is.
func (d *device) explain(err error) error {
	var fault *cuda.Error
	if !errors.As(err, &fault) {
		return atBoundary(err)
	}
	switch fault.Kind {
	case cuda.DeviceLost, cuda.NoDevice:
		return &pipeline.DeviceLostError{Device: d.name, Err: err}
	case cuda.OutOfMemory, cuda.DeviceFailed:
		return &pipeline.DeviceFaultError{Device: d.name, Err: err}
	}
	return err
}

// phase is one partition on a device.
type phase struct {
	groth16.Work
	device *device
	k      int
}

// Execute implements pipeline.Phase.
func (p *phase) Execute(ctx context.Context) error {
	return p.device.explain(onCPUs(p.device.cpus, func() error { return p.Work.Execute(ctx) }))
}

// Finish implements pipeline.Phase.
func (p *phase) Finish(ctx context.Context) ([]byte, error) {
	b, err := p.device.blind(p.k)
	if err != nil {
		return nil, err
	}
	proof, err := p.Work.Finish(ctx, b)
	if err != nil {
		return nil, err
	}
	encoded := proof.Bytes()
	return encoded[:], nil
}

// Measurements implements pipeline.Measured: when a card's kernels ran.
func (p *phase) Measurements() []pipeline.Measurement {
	work, ok := p.Work.(*cuda.Work)
	if !ok {
		return nil
	}
	var out []pipeline.Measurement
	for _, s := range work.Spans() {
		out = append(out, pipeline.Measurement{Start: timeline.KernelStart, From: s.From, To: s.To})
	}
	return out
}

// multiplier makes the points of parameters, on a card that is not lost if there
// is one; else it is nil, for the CPU.
func (e *Engine) multiplier() (m params.Multiplier, of *device) {
	for _, d := range e.devices {
		if card, ok := d.card.(*cuda.Device); ok && e.whyLost(d) == nil {
			return card.Multiplier(), d
		}
	}
	return nil, nil
}

// lose notes that a device is lost, and tells whether the process is to end for
// that: with the last card, since only a new process can take one up again.
func (e *Engine) lose(name string, why error) (ending bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	left := 0
	for _, d := range e.devices {
		if d.name == name {
			d.lost = why
		}
		if d.card != nil && d.lost == nil {
			left++
		}
	}
	if left > 0 {
		e.log.Error("a card is lost until the plugin is started anew; going on without it", "device", name, "cards_left", left)
		return false
	}
	select {
	case e.allLost <- why:
	default: // it was said already
	}
	return true
}

// Lost gives the reason when the last card is lost. The process must end then,
// without answering: another one can take the cards up again.
func (e *Engine) Lost() <-chan error { return e.allLost }

// devicePeak is the most memory that the engine's cards held.
func (e *Engine) devicePeak() (bytes int64) {
	for _, d := range e.devices {
		if d.card != nil {
			_, peak := d.card.MemoryUsed()
			bytes += peak
		}
	}
	return bytes
}
