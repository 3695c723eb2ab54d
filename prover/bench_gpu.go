package prover

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/interlock-prover/interlock/examples/inputs"
	"github.com/interlock-prover/interlock/prover/cuda"
	"github.com/interlock-prover/interlock/prover/post"
	"github.com/interlock-prover/interlock/prover/update"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// gpuBenchmarks measure a device, a card as a rule, with parameters that they
// make on it. Sizes of 32 GiB take 44 to 57 GiB of parameters and are asked for by
// name.
func gpuBenchmarks() []benchmark {
	proof := func(name, about string, circuit shared.CircuitRequest, request func(b *benchRun, c shared.CircuitRequest) (shared.Request, error)) benchmark {
		return benchmark{"gpu-" + name, about, func(b *benchRun) error { return b.gpuProof("gpu-"+name, circuit, request) }, true}
	}
	sectors := func(circuit shared.CircuitRequest) benchmark {
		name := "gpu-sectors-" + circuit.SectorSize.String()
		return benchmark{name, "three PoRep sectors at once, with one worker and with two", func(b *benchRun) error { return b.gpuSectors(name, circuit) }, true}
	}
	porep := shared.CircuitRequest{Kind: shared.KindPoRep, SectorSize: shared.SectorSize32GiB}
	window := shared.CircuitRequest{Kind: shared.KindWindowPoSt, SectorSize: shared.SectorSize32GiB}
	return []benchmark{
		proof("winning-2KiB", "winning PoSt", benchWinning, func(*benchRun, shared.CircuitRequest) (shared.Request, error) { return inputs.PoSt(benchCase) }),
		proof("porep10-2KiB", "PoRep of ten partitions", benchPoRep, (*benchRun).porepRequest),
		sectors(benchPoRep),
		proof("porep-32GiB", "PoRep", porep, (*benchRun).porepRequest),
		proof("update-32GiB", "sector update", shared.CircuitRequest{Kind: shared.KindUpdate, SectorSize: shared.SectorSize32GiB}, (*benchRun).updateRequest),
		proof("window-32GiB", "a full partition of window PoSt", window, (*benchRun).windowRequest),
		sectors(porep),
	}
}

func (b *benchRun) porepRequest(c shared.CircuitRequest) (shared.Request, error) {
	r, _, err := b.sector(c, 1)
	return r, err
}

func (b *benchRun) updateRequest(c shared.CircuitRequest) (shared.Request, error) {
	r, err := (&update.Sparse{SectorSize: uint64(c.SectorSize)}).Request()
	if err != nil {
		return shared.Request{}, err
	}
	return shared.Request{
		Kind: c.Kind, SectorSize: c.SectorSize,
		CommROld: r.CommROld, CommRNew: r.CommRNew, CommDNew: r.CommDNew, Vanilla: r.Vanilla,
	}, nil
}

func (b *benchRun) windowRequest(c shared.CircuitRequest) (shared.Request, error) {
	p, err := post.ParamsFor(post.Window, uint64(c.SectorSize))
	if err != nil {
		return shared.Request{}, err
	}
	r, err := (&post.Sparse{Kind: post.Window, SectorSize: p.SectorSize, Sectors: p.SectorsPerPartition}).Request(b.ctx)
	if err != nil {
		return shared.Request{}, err
	}
	return shared.Request{Kind: c.Kind, SectorSize: c.SectorSize, Randomness: r.Randomness, Vanilla: r.Vanilla}, nil
}

// gpuConfig is the configuration of an engine on the device to be measured.
func (b *benchRun) gpuConfig(workers int) (*config.Config, error) {
	c := config.Default()
	if b.device == cpuDevice {
		c.CPU.Workers = workers
		return c, nil
	}
	id, err := config.ParseGPUID(b.device)
	if err != nil {
		return nil, &shared.InvalidRequestError{Field: "device", Reason: err.Error()}
	}
	c.CPU.Enabled = false
	c.GPUs = []config.GPU{{ID: id, Workers: workers, MemoryLimit: b.memoryLimit}}
	return c, nil
}

// cpuDevice is the argument device=cpu: the same measurements without a card.
const cpuDevice = "cpu"

// gpuRow is what is measured of one kind of request. Seconds and bytes; of
// partitions, the mean of the last run.
type gpuRow struct {
	Benchmark         string    `json:"benchmark"`
	Device            string    `json:"device"`
	DeviceMemoryLimit uint64    `json:"device_memory_limit_bytes,omitempty"`
	Partitions        int       `json:"partitions"`
	SetupSeconds      float64   `json:"setup_seconds,omitempty"` // absent if the parameters were there
	ParamsBytes       int64     `json:"params_bytes"`
	FirstSeconds      float64   `json:"first_seconds"` // opening the engine, loading the parameters, one proof
	WallSeconds       []float64 `json:"wall_seconds"`  // of each run
	Median            float64   `json:"median_seconds"`
	Witness           float64   `json:"witness_seconds"`
	Prepare           float64   `json:"prepare_seconds"`
	DevicePhase       float64   `json:"device_seconds"`
	DevicePhaseMax    float64   `json:"device_max_seconds"`
	Kernel            float64   `json:"kernel_seconds"` // zero if the device does not tell
	Finish            float64   `json:"finish_seconds"`
	Verify            float64   `json:"verify_seconds"` // of the whole proof
	ToDeviceBytes     int64     `json:"to_device_bytes"`
	KeyBytes          int64     `json:"key_on_device_bytes"` // zero if it is streamed
	DevicePeakBytes   int64     `json:"device_peak_bytes,omitempty"`
	HostPeakBytes     int64     `json:"host_peak_bytes"`
	Verified          bool      `json:"verified"`
}

// gpuProof proves one request again and again, alone on the device.
func (b *benchRun) gpuProof(name string, circuit shared.CircuitRequest, makeRequest func(*benchRun, shared.CircuitRequest) (shared.Request, error)) error {
	c, err := b.gpuConfig(2)
	if err != nil {
		return err
	}
	request, err := makeRequest(b, circuit)
	if err != nil {
		return err
	}
	row := gpuRow{Benchmark: name, Device: b.device, DeviceMemoryLimit: uint64(b.memoryLimit)}
	if row.SetupSeconds, err = b.gpuParameters(circuit); err != nil {
		return err
	}
	resetPeakMemory()
	start := time.Now()
	e, err := Open(b.ctx, c, b.dir, hclog.NewNullLogger())
	if err != nil {
		return err
	}
	defer e.Close()
	if _, err := e.Prove(b.ctx, request, nil); err != nil {
		return err
	}
	row.FirstSeconds = time.Since(start).Seconds()

	var result shared.Result
	var since time.Duration
	for range b.runs {
		since = e.recorder.Now()
		if result, err = e.Prove(b.ctx, request, nil); err != nil {
			return err
		}
		row.WallSeconds = append(row.WallSeconds, result.Timings.Total.Seconds())
	}
	row.Median = median(row.WallSeconds)
	row.Partitions = result.Partitions
	if row.Verified, err = e.Verify(b.ctx, request, result.Proof); err != nil {
		return err
	}
	row.HostPeakBytes = peakMemory()
	row.DevicePeakBytes = e.devicePeak()
	if err := row.addFootprint(b, e, circuit); err != nil {
		return err
	}
	row.addPhases(e, since)
	if b.json {
		err = b.printJSON(row)
	} else {
		b.out(row.text())
	}
	if err == nil && !row.Verified {
		err = errors.New("the proof does not verify")
	}
	return err
}

// gpuParameters makes the parameters of a circuit with the device, unless the
// directory has them.
func (b *benchRun) gpuParameters(circuit shared.CircuitRequest) (seconds float64, err error) {
	bp, err := blueprintOf(circuit)
	if err != nil {
		return 0, err
	}
	if _, err := os.Stat(bp.set().ParamsPath(b.dir)); err == nil {
		return 0, nil
	}
	c, err := b.gpuConfig(1)
	if err != nil {
		return 0, err
	}
	e, err := Open(b.ctx, c, b.dir, hclog.NewNullLogger())
	if err != nil {
		return 0, err
	}
	defer e.Close()
	made, err := e.SetupParams(b.ctx, shared.SetupRequest{CircuitRequest: circuit, Dir: b.dir}, nil)
	if err != nil {
		return 0, err
	}
	return made.Elapsed.Seconds(), nil
}

// addFootprint says what the parameters take and what goes to the device for each
// partition: its witness, three times if it has no room there for longer, and
// parameters that do not stay there.
func (r *gpuRow) addFootprint(b *benchRun, e *Engine, circuit shared.CircuitRequest) error {
	bp, err := blueprintOf(circuit)
	if err != nil {
		return err
	}
	c, err := e.circuit(b.ctx, bp)
	if err != nil {
		return err
	}
	k, err := e.hold(b.ctx, c)
	if err != nil {
		return err
	}
	defer e.release(k)
	r.ParamsBytes = k.file.SizeBytes()
	if b.device == cpuDevice {
		return nil
	}
	r.KeyBytes = e.devices[0].Footprint(k.file, c.groth).KeyBytes
	if card, ok := e.devices[0].card.(*cuda.Device); ok {
		r.ToDeviceBytes = card.CopiedBytes(c.groth)
	}
	return nil
}

// addPhases adds what the timeline says of the time since then.
func (r *gpuRow) addPhases(e *Engine, since time.Duration) {
	report := timeline.Analyze(eventsSince(e, since))
	partitions := 0
	for _, p := range report.Phases {
		mean := p.Total.Seconds() / float64(p.Count)
		switch p.Start {
		case timeline.SynthStart:
			r.Witness = mean
		case timeline.PrepareStart:
			r.Prepare = mean
		case timeline.GPUStart:
			r.DevicePhase, r.DevicePhaseMax = mean, p.Max.Seconds()
			partitions = p.Count
		case timeline.KernelStart: // several in a device phase
			r.Kernel = p.Total.Seconds()
		case timeline.FinishStart:
			r.Finish = mean
		case timeline.VerifyStart:
			r.Verify = mean
		}
	}
	r.Kernel /= float64(max(1, partitions))
}

func eventsSince(e *Engine, since time.Duration) []timeline.Event {
	return slices.DeleteFunc(e.recorder.Recording().Events, func(event timeline.Event) bool { return event.Time < since })
}

func (r *gpuRow) text() string {
	var t strings.Builder
	fmt.Fprintf(&t, "%s on %s: median %.3f s of %d (%.3f to %.3f), %d partitions, verified: %v\n", r.Benchmark, r.Device,
		r.Median, len(r.WallSeconds), slices.Min(r.WallSeconds), slices.Max(r.WallSeconds), r.Partitions, r.Verified)
	fmt.Fprintf(&t, "  parameters %d MiB", r.ParamsBytes>>20)
	if r.SetupSeconds > 0 {
		fmt.Fprintf(&t, ", made in %.1f s", r.SetupSeconds)
	}
	fmt.Fprintf(&t, "; first proof %.2f s after the start\n", r.FirstSeconds)
	fmt.Fprintf(&t, "  a partition: witness %.3f s, prepare %.3f, device phase %.3f (longest %.3f), kernels %.3f, finish %.3f; verify %.3f\n",
		r.Witness, r.Prepare, r.DevicePhase, r.DevicePhaseMax, r.Kernel, r.Finish, r.Verify)
	fmt.Fprintf(&t, "  to the device for a partition %.1f MiB, parameters there %d MiB; peak memory: device %d MiB, host %d MiB",
		float64(r.ToDeviceBytes)/(1<<20), r.KeyBytes>>20, r.DevicePeakBytes>>20, r.HostPeakBytes>>20)
	return t.String()
}

// gpuRun is a run of several requests at once.
type gpuRun struct {
	Benchmark        string                 `json:"benchmark"`
	Device           string                 `json:"device"`
	Workers          int                    `json:"workers"`
	Sectors          int                    `json:"sectors"`
	Partitions       int                    `json:"partitions"`
	Seconds          float64                `json:"seconds"`
	PerMinute        float64                `json:"partitions_per_minute"`
	GPUEfficiency    float64                `json:"gpu_efficiency"`
	KernelEfficiency float64                `json:"kernel_efficiency"` // kernels' time over the time between the first device phase and the last
	Gaps             []timeline.GapRow      `json:"gaps"`              // by length, shortest first
	Phases           []timeline.PhaseReport `json:"phases"`
	DevicePeakBytes  int64                  `json:"device_peak_bytes,omitempty"`
	HostPeakBytes    int64                  `json:"host_peak_bytes"`
}

// gpuSectors proves three sectors at once with one worker, then with two.
func (b *benchRun) gpuSectors(name string, circuit shared.CircuitRequest) error {
	if _, err := b.gpuParameters(circuit); err != nil {
		return err
	}
	requests, err := b.threeSectors(circuit)
	if err != nil {
		return err
	}
	var runs [2]gpuRun
	for i := range runs {
		c, err := b.gpuConfig(i + 1)
		if err != nil {
			return err
		}
		var text string
		if runs[i], text, err = b.atOnce(c, circuit, requests); err != nil {
			return err
		}
		runs[i].Benchmark, runs[i].Device, runs[i].Workers = name, b.device, i+1
		if b.json {
			if err := b.printJSON(runs[i]); err != nil {
				return err
			}
			continue
		}
		b.printf("%s on %s, %d at once, workers: %d: %.2f s, %.1f partitions a minute; peak memory: device %d MiB, host %d MiB",
			name, b.device, len(requests), i+1, runs[i].Seconds, runs[i].PerMinute, runs[i].DevicePeakBytes>>20, runs[i].HostPeakBytes>>20)
		b.outLines(text)
	}
	if !b.json {
		b.printf("%s: two workers make %.1f %% of one's throughput", name, 100*runs[1].PerMinute/runs[0].PerMinute)
	}
	return nil
}

// atOnce proves requests of one circuit at once, and says what the timeline does
// of that.
func (b *benchRun) atOnce(c *config.Config, circuit shared.CircuitRequest, requests []shared.Request) (run gpuRun, text string, err error) {
	resetPeakMemory()
	e, err := Open(b.ctx, c, b.dir, hclog.NewNullLogger())
	if err != nil {
		return run, "", err
	}
	defer e.Close()
	if _, err := e.Preload(b.ctx, circuit); err != nil {
		return run, "", err
	}
	since, start := e.recorder.Now(), time.Now()
	for _, r := range requests {
		if _, err := e.Submit(b.ctx, r); err != nil {
			return run, "", err
		}
	}
	run.Sectors = len(requests)
	for _, r := range requests {
		result, err := e.Await(b.ctx, shared.JobID(r.ID))
		if err != nil {
			return run, "", fmt.Errorf("request %s: %w", r.ID, err)
		}
		run.Partitions += result.Partitions
	}
	run.Seconds = time.Since(start).Seconds()
	run.PerMinute = float64(run.Partitions) / run.Seconds * 60
	run.HostPeakBytes, run.DevicePeakBytes = peakMemory(), e.devicePeak()
	report := timeline.Analyze(eventsSince(e, since))
	run.Phases = report.Phases
	for _, g := range report.GPUs {
		run.GPUEfficiency, run.KernelEfficiency = g.Device.Efficiency(), g.Kernel.Efficiency()
		rows := g.GapTable()
		run.Gaps = rows[:]
	}
	var table strings.Builder
	err = report.WriteText(&table)
	return run, table.String(), err
}

func (b *benchRun) printJSON(row any) error {
	line, err := json.Marshal(row)
	if err != nil {
		return err
	}
	b.out(string(line))
	return nil
}

// scratch is the directory of a benchmark's files: one that the caller names,
// where parameters stay for the next time, or a temporary one.
func scratch(named string) (dir string, remove func() error, err error) {
	if named != "" {
		if err := writable(named); err != nil {
			return "", nil, &shared.InvalidRequestError{Field: "dir", Reason: err.Error()}
		}
		return filepath.Clean(named), func() error { return nil }, nil
	}
	dir, err = os.MkdirTemp("", "interlock-bench-")
	return dir, func() error { return os.RemoveAll(dir) }, err
}
