package prover

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/interlock-prover/interlock/examples/inputs"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
)

// benchmark is one that Bench runs by name.
type benchmark struct {
	name, about string
	run         func(b *benchRun) error
}

func benchmarks() []benchmark {
	return []benchmark{
		{"setup", "development parameters of winning PoSt 2 KiB", (*benchRun).setup},
		{"prove", "winning PoSt 2 KiB, whole requests with parameters loaded", (*benchRun).prove},
	}
}

// benchRun is what the benchmarks of one call share.
type benchRun struct {
	ctx    context.Context
	out    func(line string)
	oracle string // path of the peer; empty: ours alone
	runs   int
	dir    string // scratch, with the parameters that setup made
	ready  bool
	setups time.Duration
}

func (b *benchRun) printf(format string, args ...any) { b.out(fmt.Sprintf(format, args...)) }

// Bench implements shared.Toolbox. Arguments are oracle=PATH, a program that
// makes the same proofs with the originals and is timed in the same run, and
// runs=N.
func (e *Engine) Bench(ctx context.Context, r shared.BenchRequest, out func(line string)) error {
	b := &benchRun{ctx: ctx, out: out, runs: 5}
	for _, arg := range r.Args {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "oracle":
			b.oracle = value
		case "runs":
			if _, err := fmt.Sscanf(value, "%d", &b.runs); err != nil || b.runs < 1 {
				return &shared.InvalidRequestError{Field: "runs", Reason: fmt.Sprintf("%q is no number of runs", value)}
			}
		default:
			return &shared.InvalidRequestError{Field: "args", Reason: fmt.Sprintf("there is no argument %q; there are oracle=PATH and runs=N", arg)}
		}
	}
	all := benchmarks()
	if r.Name == "list" {
		for _, m := range all {
			b.printf("%-8s %s", m.name, m.about)
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
	var err error
	if b.dir, err = os.MkdirTemp("", "interlock-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	for _, m := range chosen {
		if err := m.run(b); err != nil {
			return fmt.Errorf("benchmark %s: %w", m.name, err)
		}
	}
	return nil
}

const benchCase = "winning-2KiB"

// parameters makes the parameters of the benchmark's circuit, once.
func (b *benchRun) parameters() (blueprint, error) {
	bp, err := blueprintOf(shared.CircuitRequest{Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB})
	if err != nil || b.ready {
		return bp, err
	}
	start := time.Now()
	c, err := compile(bp)
	if err != nil {
		return nil, err
	}
	if _, err := bp.set().SetupInsecure(b.ctx, c.groth, b.dir, nil); err != nil {
		return nil, err
	}
	b.setups, b.ready = time.Since(start), true
	return bp, nil
}

func (b *benchRun) setup() error {
	if _, err := b.parameters(); err != nil {
		return err
	}
	b.printf("setup winning-post 2KiB: %.2f s", b.setups.Seconds())
	if b.oracle == "" {
		return nil
	}
	var peer struct{ Seconds float64 }
	if err := b.runOracle(&peer, "setup", "winning", "2KiB", "-"); err != nil {
		return err
	}
	b.printf("setup winning-post 2KiB, the originals: %.2f s; ratio %.1f", peer.Seconds, peer.Seconds/b.setups.Seconds())
	return nil
}

// prove alternates whole requests to an engine of its own with runs of the peer,
// and compares medians. Ours counts decoding, checking, witness, proof and
// self-check; the peer's own figure counts synthesis and proof alone.
func (b *benchRun) prove() error {
	bp, err := b.parameters()
	if err != nil {
		return err
	}
	request, err := inputs.PoSt(benchCase)
	if err != nil {
		return err
	}
	folder, err := inputs.Extract(benchCase, b.dir)
	if err != nil {
		return err
	}
	e, err := open(b.ctx, config.Default(), b.dir, hclog.NewNullLogger(), randomBlinding)
	if err != nil {
		return err
	}
	defer e.Close()
	first, err := e.Prove(b.ctx, request, nil)
	if err != nil {
		return err
	}
	b.printf("prove winning-post 2KiB: first %.2f s, which loads the parameters", first.Timings.Total.Seconds())
	var ours, peers []float64
	var last shared.Timings
	for range b.runs {
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
		if err := b.runOracle(&peer, "prove", folder, bp.set().ParamsPath(b.dir)); err != nil {
			return err
		}
		peers = append(peers, peer.Seconds)
	}
	b.printf("prove winning-post 2KiB: median %.3f s of %d (%.3f to %.3f); last: witness %v, prepare %v, device %v, finish %v, verify %v",
		median(ours), len(ours), slices.Min(ours), slices.Max(ours), last.Witness, last.Prepare, last.Device, last.Finish, last.Verify)
	if len(peers) > 0 {
		b.printf("prove winning-post 2KiB, the originals: median %.3f s of %d (%.3f to %.3f); ratio %.2f",
			median(peers), len(peers), slices.Min(peers), slices.Max(peers), median(peers)/median(ours))
	}
	return nil
}

// runOracle runs the peer and reads the JSON object that it prints.
func (b *benchRun) runOracle(into any, args ...string) error {
	c := exec.CommandContext(b.ctx, b.oracle, args...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return fmt.Errorf("running %s: %w", c, err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("reading what %s printed: %w", c, err)
	}
	return nil
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}
