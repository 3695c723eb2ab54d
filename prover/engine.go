package prover

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/prover/params"
	"github.com/interlock-prover/interlock/prover/pipeline"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// Engine proves. It implements shared.Plugin.
type Engine struct {
	config    *config.Config
	log       hclog.Logger
	paramsDir string
	start     time.Time

	manifest *params.Manifest // nil if none is configured

	memory, requests *interlock.Budget // see memory.go

	devices  []*device
	cpu      *device // of them; nil if the CPU neither proves nor stands in for cards
	hardware hardware
	allLost  chan error // see Lost
	pipeline *pipeline.Pipeline
	recorder *timeline.Recorder

	ctx      context.Context // of loading; ends with Close
	cancel   context.CancelFunc
	loading  sync.WaitGroup
	circuits once[blueprint, *circuit]
	keys     once[blueprint, *key]
	pinned   map[blueprint]bool // circuits that the configuration preloads

	mu sync.Mutex // of the keys' users
}

var _ shared.Plugin = (*Engine)(nil)

// Open starts an engine as configured. paramsDir is where parameters are. It
// loads what the configuration preloads before it returns.
func Open(ctx context.Context, c *config.Config, paramsDir string, log hclog.Logger) (*Engine, error) {
	h, err := openHardware(ctx, c, log)
	if err != nil {
		return nil, err
	}
	e, err := open(ctx, c, paramsDir, log, h, randomBlinding)
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return e, nil
}

// open is Open with hardware and a source of blinding, which tests replace. The
// hardware is the engine's if it succeeds.
func open(ctx context.Context, c *config.Config, paramsDir string, log hclog.Logger, h hardware, blind blinder) (*Engine, error) {
	machine, err := config.DetectHardware()
	if err != nil {
		return nil, fmt.Errorf("looking at this machine: %w", err)
	}
	if err := restrictCPUs(processCPUs(c)); err != nil {
		return nil, err
	}
	e := &Engine{
		config: c, log: log, paramsDir: paramsDir, start: time.Now(),
		pinned: map[blueprint]bool{}, allLost: make(chan error, 1),
	}
	if path := c.Parameters.Manifest; path != "" {
		if e.manifest, err = params.ReadManifest(path); err != nil {
			return nil, atBoundary(err)
		}
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	if c.Timeline.Events > 0 {
		e.recorder = timeline.NewRecorder(c.Timeline.Events)
	}
	e.memory, e.requests = budgets(&c.Memory, machine.MemoryBytes)
	e.setDevices(h, blind)
	devices, fallback := e.pipelineDevices()
	e.pipeline, err = pipeline.New(pipeline.Config{
		Devices:        devices,
		Fallback:       fallback,
		FallbackAllows: c.CUDA.Fallback.Allows,
		OnLost:         e.lose,
		WitnessWorkers: c.Witness.Workers,
		WitnessesAhead: c.Witness.Ahead,
		HostMemory:     e.memory,
		Timeline:       e.recorder,
		Log:            log,
	})
	if err != nil {
		e.cancel()
		return nil, err
	}
	e.announce(machine)
	for _, p := range c.Parameters.Preload {
		if err := e.preloadPinned(ctx, shared.CircuitRequest{Kind: p.Kind, SectorSize: p.SectorSize}); err != nil {
			return nil, errors.Join(fmt.Errorf("preloading %s: %w", p, err), e.Close())
		}
	}
	e.hardware = h
	return e, nil
}

// announce logs what proves.
func (e *Engine) announce(machine *config.Hardware) {
	budget := e.config.Memory.BudgetBytes(machine.MemoryBytes).Approx()
	for _, d := range e.devices {
		switch {
		case d.lost != nil:
			e.log.Error("a card cannot be used; going on without it", "device", d.name, "error", d.lost)
		case d.card != nil:
			e.log.Info("proving on a card", "device", d.name, "card", d.card.Info().Name, "memory", budget, "parameters", e.paramsDir)
		case e.config.CPU.Enabled:
			e.log.Info("proving on the CPU", "threads", cmp.Or(e.config.CPU.Threads, runtime.GOMAXPROCS(0)), "workers", e.config.CPU.Workers,
				"memory", budget, "parameters", e.paramsDir)
		default:
			e.log.Info("the CPU stands in for cards that fail", "fallback", e.config.CUDA.Fallback)
		}
	}
}

// preloadPinned loads parameters that make room for others last. It is for open
// alone.
func (e *Engine) preloadPinned(ctx context.Context, r shared.CircuitRequest) error {
	b, err := e.blueprint(r)
	if err != nil {
		return err
	}
	e.pinned[b] = true
	_, err = e.preload(ctx, b)
	return atBoundary(err)
}

// circuit returns a compiled circuit, which is made once.
func (e *Engine) circuit(ctx context.Context, b blueprint) (*circuit, error) {
	return e.circuits.get(ctx, &e.loading, b, func() (*circuit, error) { return compile(b) })
}

// Prove implements shared.Prover.
func (e *Engine) Prove(ctx context.Context, r shared.Request, progress func(shared.Progress)) (shared.Result, error) {
	pr, err := e.accept(r)
	if err != nil {
		return shared.Result{}, err
	}
	result, err := e.pipeline.Prove(ctx, pr, progress)
	return result, refusal(err)
}

// Submit implements shared.Prover.
func (e *Engine) Submit(_ context.Context, r shared.Request) (shared.JobID, error) {
	pr, err := e.accept(r)
	if err != nil {
		return "", err
	}
	if err := e.pipeline.Submit(pr); err != nil {
		return "", refusal(err)
	}
	return shared.JobID(pr.ID), nil
}

// accept checks what can be told without decoding, gives the request the name
// and the priority that it lacks, and takes the memory for it.
func (e *Engine) accept(r shared.Request) (pipeline.Request, error) {
	if err := r.Validate(); err != nil {
		return pipeline.Request{}, err
	}
	if r.ID == "" {
		var random [8]byte
		if _, err := rand.Read(random[:]); err != nil {
			return pipeline.Request{}, err
		}
		r.ID = r.Kind.String() + "-" + hex.EncodeToString(random[:])
	}
	if r.Priority == shared.PriorityUnspecified {
		r.Priority = e.config.Priority.Of(r.Kind)
	}
	r.Deadline = shared.AsOfNow(r.Deadline)
	payload, err := e.reservePayload(&r)
	if err != nil {
		return pipeline.Request{}, err
	}
	return pipeline.Request{
		ID: r.ID, Kind: r.Kind, SectorSize: r.SectorSize, Priority: r.Priority, Deadline: r.Deadline, Payload: payload,
		Open: func(ctx context.Context) (pipeline.Job, error) { return e.openJob(ctx, &r) },
	}, nil
}

// refusal is why the pipeline did not take or prove a request, as the boundary
// knows it.
func refusal(err error) error {
	var duplicate *pipeline.DuplicateError
	switch {
	case errors.As(err, &duplicate):
		return &shared.InvalidRequestError{Field: "id", Reason: fmt.Sprintf("a request %s is already under way", duplicate.RequestID)}
	case errors.Is(err, pipeline.ErrClosed):
		return &shared.BusyError{Resource: "the prover, which is shutting down,"}
	}
	return atBoundary(err)
}

// Await implements shared.Prover.
func (e *Engine) Await(ctx context.Context, id shared.JobID) (shared.Result, error) {
	result, err := e.pipeline.Await(ctx, string(id))
	return result, refusal(err)
}

// Cancel implements shared.Prover.
func (e *Engine) Cancel(_ context.Context, id shared.JobID) (bool, error) {
	return e.pipeline.Cancel(string(id))
}

// Timeline implements shared.Prover.
func (e *Engine) Timeline(context.Context) (timeline.Recording, error) {
	if e.recorder == nil {
		return timeline.Recording{}, nil
	}
	return e.recorder.Recording(), nil
}

// Close implements shared.Plugin: it gives up what is under way, writes the
// timeline's file if one is configured, and closes every parameter file.
func (e *Engine) Close() error {
	e.cancel()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.pipeline.Close(now); err != nil {
		e.log.Warn("closing", "error", err)
	}
	e.loading.Wait()
	var errs []error
	for _, k := range e.keys.values() {
		errs = append(errs, e.close(k))
	}
	errs = append(errs, e.hardware.close())
	if path := e.config.Timeline.File; path != "" && e.recorder != nil {
		// A plugin that has done nothing, such as a check's, leaves the timeline of the one before.
		if recording := e.recorder.Recording(); len(recording.Events) > 0 {
			errs = append(errs, writeFile(path, recording.WriteText))
		}
	}
	return errors.Join(errs...)
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
