package prover

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/interlock-prover/interlock/examples/inputs"
	"github.com/interlock-prover/interlock/prover/porep"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
)

// benchmark is one that Bench runs by name.
type benchmark struct {
	name, about string
	run         func(b *benchRun) error
	long        bool // takes many minutes and is not one of all
}

func benchmarks() []benchmark {
	return append([]benchmark{
		{"setup", "development parameters of winning PoSt 2 KiB", (*benchRun).setup, false},
		{"prove", "winning PoSt 2 KiB, whole requests with parameters loaded", (*benchRun).prove, false},
		{"porep", "ten partitions of a 2 KiB PoRep, whole requests with parameters loaded, and peak memory", (*benchRun).porep, false},
		{"sectors", "three such sectors at once: efficiency and gaps", (*benchRun).sectors, false},
		{"memory", "runs times 8 requests of all kinds at once with 3 GiB, and without a limit: peak memory, time", (*benchRun).memory, true},
	}, gpuBenchmarks()...)
}

// benchRun is what the benchmarks of one call share.
type benchRun struct {
	ctx    context.Context
	out    func(line string)
	oracle string // path of the peer; empty: ours alone
	runs   int
	dir    string                      // scratch, with the parameters that setup made
	setups map[blueprint]time.Duration // parameters made so far

	// Of benchmarks of a device.
	device      string          // as a gpu block names it, or cpuDevice
	memoryLimit config.ByteSize // of its memory; 0: all
	json        bool            // rows as JSON objects
}

func (b *benchRun) printf(format string, args ...any) { b.out(fmt.Sprintf(format, args...)) }

// Bench implements shared.Toolbox. Arguments are oracle=PATH, a program that
// makes the same proofs with the originals and is timed in the same run, and
// runs=N; of those that measure a device (gpu-...) device=ID, memory-limit=SIZE,
// dir=PATH, where parameters stay, and json=true.
func (e *Engine) Bench(ctx context.Context, r shared.BenchRequest, out func(line string)) error {
	if r.Name == makeC1Name {
		return makeC1(ctx, r.Args, out)
	}
	b := &benchRun{ctx: ctx, out: out, runs: 5, setups: map[blueprint]time.Duration{}, device: "0"}
	var dir string
	for _, arg := range r.Args {
		name, value, _ := strings.Cut(arg, "=")
		var err error
		switch name {
		case "oracle":
			b.oracle = value
		case "runs":
			if b.runs, err = strconv.Atoi(value); err == nil && b.runs < 1 {
				err = fmt.Errorf("%d is no number of runs", b.runs)
			}
		case "device":
			b.device = value
		case "memory-limit":
			b.memoryLimit, err = config.ParseByteSize(value)
		case "dir":
			dir = value
		case "json":
			b.json, err = strconv.ParseBool(value)
		default:
			name, err = "args", fmt.Errorf("there is no argument %q; there are oracle=PATH, runs=N, device=ID, memory-limit=SIZE, dir=PATH and json=BOOL", arg)
		}
		if err != nil {
			return &shared.InvalidRequestError{Field: name, Reason: err.Error()}
		}
	}
	all := benchmarks()
	if r.Name == "list" {
		for _, m := range all {
			apart := ""
			if m.long {
				apart = " (not among all)"
			}
			b.printf("%-18s %s%s", m.name, m.about, apart)
		}
		return nil
	}
	chosen := all
	if r.Name != "all" {
		i := slices.IndexFunc(all, func(m benchmark) bool { return m.name == r.Name })
		if i < 0 {
			return &shared.InvalidRequestError{Field: "name", Reason: fmt.Sprintf("there is no benchmark %q; 'interlock bench list' names them", r.Name)}
		}
		chosen = all[i : i+1]
	}
	var remove func() error
	var err error
	if b.dir, remove, err = scratch(dir); err != nil {
		return err
	}
	for _, m := range chosen {
		if m.long && r.Name == "all" {
			continue
		}
		if err := m.run(b); err != nil {
			return errors.Join(fmt.Errorf("benchmark %s: %w", m.name, err), remove())
		}
	}
	return remove()
}

const benchCase = "winning-2KiB"

var (
	benchWinning = shared.CircuitRequest{Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB}
	benchPoRep   = shared.CircuitRequest{Kind: shared.KindPoRep, SectorSize: shared.SectorSize2KiB, Partitions: 10}
)

// parameters makes the parameters of a circuit, once, and says how long that took.
func (b *benchRun) parameters(r shared.CircuitRequest) (blueprint, time.Duration, error) {
	bp, err := blueprintOf(r)
	if err != nil {
		return nil, 0, err
	}
	if took, ok := b.setups[bp]; ok {
		return bp, took, nil
	}
	start := time.Now()
	c, err := compile(bp)
	if err != nil {
		return nil, 0, err
	}
	if _, err := bp.set().SetupInsecure(b.ctx, c.groth, b.dir, nil, nil); err != nil {
		return nil, 0, err
	}
	b.setups[bp] = time.Since(start)
	return bp, b.setups[bp], nil
}

// engine opens an engine on the benchmark's parameters.
func (b *benchRun) engine() (*Engine, error) {
	return Open(b.ctx, config.Default(), b.dir, hclog.NewNullLogger())
}

func (b *benchRun) setup() error {
	_, took, err := b.parameters(benchWinning)
	if err != nil {
		return err
	}
	b.printf("setup winning-post 2KiB: %.2f s", took.Seconds())
	if b.oracle == "" {
		return nil
	}
	var peer struct{ Seconds float64 }
	if _, err := b.runOracle(&peer, "setup", "winning", "2KiB", "-"); err != nil {
		return err
	}
	b.printf("setup winning-post 2KiB, the originals: %.2f s; ratio %.1f", peer.Seconds, peer.Seconds/took.Seconds())
	return nil
}

func (b *benchRun) prove() error {
	request, err := inputs.PoSt(benchCase)
	if err != nil {
		return err
	}
	folder, err := inputs.Extract(benchCase, b.dir)
	if err != nil {
		return err
	}
	return b.compare("prove winning-post 2KiB", benchWinning, request, folder, b.runs)
}

func (b *benchRun) porep() error {
	request, folder, err := b.sector(benchPoRep, 1)
	if err != nil {
		return err
	}
	return b.compare("prove porep 2KiB, ten partitions", benchPoRep, request, folder, (b.runs+2)/3)
}

// sector makes the phase-1 output of a sector that nobody sealed, in a folder as
// the peer reads it.
func (b *benchRun) sector(circuit shared.CircuitRequest, number uint64) (r shared.Request, folder string, err error) {
	sparse := porep.Sparse{
		SectorSize: uint64(circuit.SectorSize), Variant: porep.V1_1, Partitions: circuit.Partitions,
		Seed: number, MinerID: 1000, SectorNumber: number,
	}
	s, err := sparse.Statement()
	if err != nil {
		return r, "", err
	}
	var c1 bytes.Buffer
	if err := s.WritePhase1(&c1); err != nil {
		return r, "", err
	}
	folder = filepath.Join(b.dir, fmt.Sprintf("sector-%d", number))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return r, "", err
	}
	description := fmt.Sprintf(`{"kind": "porep", "sector_size": %d, "partitions": %d}`, sparse.SectorSize, sparse.Partitions)
	if err := errors.Join(
		os.WriteFile(filepath.Join(folder, "c1.json"), c1.Bytes(), 0o644),
		os.WriteFile(filepath.Join(folder, "case.json"), []byte(description), 0o644),
	); err != nil {
		return r, "", err
	}
	return shared.Request{
		ID: fmt.Sprintf("sector-%d", number), Kind: shared.KindPoRep, MinerID: sparse.MinerID,
		SectorNumber: &sparse.SectorNumber, Vanilla: [][]byte{c1.Bytes()},
	}, folder, nil
}

// compare alternates whole requests to an engine of its own with runs of the peer,
// and compares medians. Ours counts decoding, checking, witnesses, proofs and
// self-check; the peer's own figure counts synthesis and proofs alone.
func (b *benchRun) compare(title string, circuit shared.CircuitRequest, request shared.Request, folder string, runs int) error {
	bp, _, err := b.parameters(circuit)
	if err != nil {
		return err
	}
	e, err := b.engine()
	if err != nil {
		return err
	}
	defer e.Close()
	resetPeakMemory()
	first, err := e.Prove(b.ctx, request, nil)
	if err != nil {
		return err
	}
	b.printf("%s: first %.2f s, which loads the parameters", title, first.Timings.Total.Seconds())
	var ours, peers []float64
	var last shared.Timings
	var peerPeak int64
	for range runs {
		r, err := e.Prove(b.ctx, request, nil)
		if err != nil {
			return err
		}
		last = r.Timings
		ours = append(ours, last.Total.Seconds())
		if b.oracle == "" {
			continue
		}
		var peer struct {
			Seconds float64 `json:"prove_seconds"`
		}
		if peerPeak, err = b.runOracle(&peer, "prove", folder, bp.set().ParamsPath(b.dir)); err != nil {
			return err
		}
		peers = append(peers, peer.Seconds)
	}
	b.printf("%s: median %.3f s of %d (%.3f to %.3f), peak memory %d MiB; last: witness %v, prepare %v, device %v, finish %v, verify %v",
		title, median(ours), len(ours), slices.Min(ours), slices.Max(ours), peakMemory()>>20,
		last.Witness, last.Prepare, last.Device, last.Finish, last.Verify)
	if len(peers) > 0 {
		b.printf("%s, the originals: median %.3f s of %d (%.3f to %.3f), peak memory %d MiB; ratio %.2f",
			title, median(peers), len(peers), slices.Min(peers), slices.Max(peers), peerPeak>>20, median(peers)/median(ours))
	}
	return nil
}

// sectors proves three sectors at once and shows what the timeline says of it.
func (b *benchRun) sectors() error {
	if _, _, err := b.parameters(benchPoRep); err != nil {
		return err
	}
	requests, err := b.threeSectors(benchPoRep)
	if err != nil {
		return err
	}
	_, text, err := b.atOnce(config.Default(), benchPoRep, requests)
	if err != nil {
		return err
	}
	b.printf("three porep sectors of 2KiB, ten partitions each, at once:")
	b.outLines(text)
	return nil
}

func (b *benchRun) threeSectors(circuit shared.CircuitRequest) ([]shared.Request, error) {
	requests := make([]shared.Request, 3)
	for number := range requests {
		var err error
		if requests[number], _, err = b.sector(circuit, uint64(number)); err != nil {
			return nil, err
		}
	}
	return requests, nil
}

func (b *benchRun) outLines(text string) {
	for line := range strings.Lines(text) {
		b.out(strings.TrimRight(line, "\n"))
	}
}

// memoryBudget is what the benchmark memory has: room for its parameter sets,
// 1.4 GiB, and a few of its partitions.
const memoryBudget = 3 * config.GiB

// memory proves requests of all kinds at once, first with a budget that they do
// not all fit into, then with what the machine has.
func (b *benchRun) memory() error {
	for _, c := range []shared.CircuitRequest{
		benchWinning, benchPoRep,
		{Kind: shared.KindWindowPoSt, SectorSize: shared.SectorSize2KiB},
		{Kind: shared.KindUpdate, SectorSize: shared.SectorSize2KiB},
	} {
		if _, _, err := b.parameters(c); err != nil {
			return err
		}
	}
	requests, err := b.allKinds()
	if err != nil {
		return err
	}
	limited := config.Default()
	limited.Memory.Budget = config.MemoryShare{Bytes: memoryBudget}
	slow, peak, err := b.proveAll(limited, requests)
	if err != nil {
		return err
	}
	b.printf("%d requests of all kinds, memory budget %s: %.1f s, peak memory %d MiB, %.1f %% of the budget",
		len(requests), memoryBudget, slow.Seconds(), peak>>20, 100*float64(peak)/float64(memoryBudget))
	fast, peak, err := b.proveAll(config.Default(), requests)
	if err != nil {
		return err
	}
	b.printf("%d requests of all kinds, without that budget: %.1f s, peak memory %d MiB; ratio of the times %.2f",
		len(requests), fast.Seconds(), peak>>20, slow.Seconds()/fast.Seconds())
	return nil
}

// allKinds makes 8 requests for each run: a PoRep, two updates, two winning and
// three window PoSts.
func (b *benchRun) allKinds() ([]shared.Request, error) {
	winning, err1 := inputs.PoSt("winning-2KiB")
	window, err2 := inputs.PoSt("window-2KiB")
	update, err3 := inputs.Update("update-2KiB")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	var all []shared.Request
	for run := range b.runs {
		porep, _, err := b.sector(benchPoRep, uint64(run))
		if err != nil {
			return nil, err
		}
		for i, r := range []shared.Request{porep, window, winning, update, window, winning, update, window} {
			r.ID, r.Priority = fmt.Sprintf("%d-%d", run, i), shared.PriorityNormal
			all = append(all, r)
		}
	}
	return all, nil
}

// proveAll proves requests at once and measures.
func (b *benchRun) proveAll(c *config.Config, requests []shared.Request) (took time.Duration, peakBytes int64, err error) {
	resetPeakMemory()
	start := time.Now()
	e, err := Open(b.ctx, c, b.dir, hclog.NewNullLogger())
	if err != nil {
		return 0, 0, err
	}
	defer e.Close()
	for _, r := range requests {
		if _, err := e.Submit(b.ctx, r); err != nil {
			return 0, 0, err
		}
	}
	for _, r := range requests {
		if _, err := e.Await(b.ctx, shared.JobID(r.ID)); err != nil {
			return 0, 0, fmt.Errorf("request %s: %w", r.ID, err)
		}
	}
	return time.Since(start), peakMemory(), nil
}

// runOracle runs the peer, reads the JSON object that it prints, and says how much
// memory it had at its peak.
func (b *benchRun) runOracle(into any, args ...string) (peakBytes int64, err error) {
	c := exec.CommandContext(b.ctx, b.oracle, args...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return 0, fmt.Errorf("running %s: %w", c, err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		return 0, fmt.Errorf("reading what %s printed: %w", c, err)
	}
	if usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		peakBytes = usage.Maxrss << 10
	}
	return peakBytes, nil
}

// resetPeakMemory makes peakMemory count anew from here (clear_refs in proc(5)).
func resetPeakMemory() {
	debug.FreeOSMemory()
	// Where that is not allowed the peak is that of the whole process: too high,
	// never too low.
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// peakMemory is the most resident memory of this process, in bytes; 0 where the
// system does not tell.
func peakMemory() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return 0
	}
	return kib << 10
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}
