package timeline

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// script builds events from times in milliseconds.
type script []Event

func (s *script) at(ms int, kind Kind, partition, worker int32, gpu string) {
	*s = append(*s, Event{Time: time.Duration(ms) * time.Millisecond, Kind: kind, Request: "r", Partition: partition, Worker: worker, GPU: gpu})
}

// device adds a whole passage of a partition through a worker.
func (s *script) device(pickup, start, end, finish int, partition, worker int32, gpu string) {
	s.at(pickup, GPUPickup, partition, worker, gpu)
	s.at(pickup, PrepareStart, partition, worker, gpu)
	s.at(start, PrepareEnd, partition, worker, gpu)
	s.at(start, GPUStart, partition, worker, gpu)
	s.at(end, GPUEnd, partition, worker, gpu)
	s.at(end, FinishStart, partition, worker, gpu)
	s.at(finish, FinishEnd, partition, worker, gpu)
}

// Efficiency is the union of device phases over the time from the first start to the last end, for each GPU; kernel
// efficiency is the same by the device's clock. Definitions: the system's description of the timeline.
func TestEfficiency(t *testing.T) {
	var s script
	s.device(0, 100, 400, 500, 0, 0, "a")
	s.device(150, 300, 600, 700, 1, 1, "a") // overlaps: counted once
	s.device(700, 800, 1100, 1200, 2, 0, "a")
	s.device(0, 10, 20, 30, 3, 0, "b")
	s.at(150, KernelStart, 0, 0, "a")
	s.at(350, KernelEnd, 0, 0, "a")
	s.at(850, KernelStart, 2, 0, "a")
	s.at(1150, KernelEnd, 2, 0, "a")
	s.at(1200, GPUStart, 9, 0, "a") // not ended: left out
	s.at(1200, GPUEnd, 10, 0, "a")  // not started: left out
	r := Analyze(s)
	require.Len(t, r.GPUs, 2)
	a, b := r.GPUs[0], r.GPUs[1]
	require.Equal(t, "a", a.Name)
	require.Equal(t, 3, a.Partitions)
	require.Equal(t, Usage{Busy: 800 * time.Millisecond, Span: 1000 * time.Millisecond}, a.Device)
	require.InDelta(t, 0.8, a.Device.Efficiency(), 1e-9)
	require.Equal(t, Usage{Busy: 500 * time.Millisecond, Span: 1000 * time.Millisecond}, a.Kernel)
	require.InDelta(t, 1, b.Device.Efficiency(), 1e-9)
	require.Zero(t, b.Kernel)
	require.Zero(t, b.Kernel.Efficiency())
}

// Each cause of a gap is told from the state of the pipeline at the time.
func TestGapCauses(t *testing.T) {
	for name, c := range map[string]struct {
		between func(s *script) // events between a device phase that ends at 100 and one that starts at 600
		want    [numCauses]time.Duration
	}{
		"nothing": {func(s *script) {}, [numCauses]time.Duration{NoWork: 500}},
		"witness being computed": {func(s *script) {
			s.at(150, SynthStart, 1, 0, "")
			s.at(590, SynthEnd, 1, 0, "")
			s.at(590, GPUQueue, 1, None, "")
			s.at(590, GPUPickup, 1, 1, "g")
		}, [numCauses]time.Duration{NoWork: 50, WaitingForWitness: 440, HandOver: 10}},
		"host memory, then witness": {func(s *script) {
			s.at(100, MemoryWaitStart, 1, None, "")
			s.at(400, MemoryWaitEnd, 1, None, "")
			s.at(400, SynthStart, 1, 0, "")
			s.at(600, SynthEnd, 1, 0, "")
		}, [numCauses]time.Duration{WaitingForMemory: 300, WaitingForWitness: 200}},
		"others wait for memory behind a running synthesis": {func(s *script) {
			s.at(100, MemoryWaitStart, 2, None, "")
			s.at(100, SynthStart, 1, 0, "")
			s.at(600, SynthEnd, 1, 0, "")
		}, [numCauses]time.Duration{WaitingForWitness: 500}},
		"parameters of a request": {func(s *script) {
			s.at(100, ParamsStart, None, None, "")
			s.at(600, ParamsEnd, None, None, "")
		}, [numCauses]time.Duration{WaitingForParams: 500}},
		"parameters on the GPU": {func(s *script) {
			s.at(100, GPUPickup, 1, 1, "g")
			s.at(100, ParamsStart, 1, 1, "g")
			s.at(350, ParamsEnd, 1, 1, "g")
		}, [numCauses]time.Duration{WaitingForParams: 250, HandOver: 250}},
		"memory of the GPU": {func(s *script) {
			s.at(100, GPUPickup, 1, 1, "g")
			s.at(100, MemoryWaitStart, 1, 1, "g")
			s.at(600, MemoryWaitEnd, 1, 1, "g")
		}, [numCauses]time.Duration{WaitingForMemory: 500}},
		"one worker finishes while a partition is ready": {func(s *script) {
			s.at(100, GPUQueue, 1, None, "")
		}, [numCauses]time.Duration{HandOver: 500}},
		"the ready partition's request is cancelled": {func(s *script) {
			s.at(100, GPUQueue, 1, None, "")
			s.at(200, RequestEnd, None, None, "")
		}, [numCauses]time.Duration{HandOver: 100, NoWork: 400}},
		"a worker whose partition failed in prepare goes to another GPU": {func(s *script) {
			s.at(100, GPUPickup, 1, 1, "g")
			s.at(300, GPUQueue, 1, None, "")
			s.at(300, GPUPickup, 1, 0, "other")
		}, [numCauses]time.Duration{HandOver: 200, NoWork: 300}},
	} {
		t.Run(name, func(t *testing.T) {
			var s script
			s.device(0, 50, 100, 100, 0, 0, "g")
			c.between(&s)
			s.device(600, 600, 700, 700, 1, 1, "g")
			s.at(5000, SynthStart, 7, 0, "") // what follows the last device phase is no gap
			gaps := Analyze(s).GPUs[0].Gaps
			require.Len(t, gaps, 1)
			for cause := range c.want {
				c.want[cause] *= time.Millisecond
			}
			require.Equal(t, c.want, gaps[0].ByCause)
			require.Equal(t, 500*time.Millisecond, gaps[0].Length())
			require.GreaterOrEqual(t, c.want[gaps[0].Cause()], 250*time.Millisecond)
		})
	}
}

// The classes of length are those of the system's description.
func TestGapClasses(t *testing.T) {
	for length, want := range map[time.Duration]string{
		1: "under 10 ms", 10*time.Millisecond - 1: "under 10 ms",
		10 * time.Millisecond: "10 to 200 ms", 200*time.Millisecond - 1: "10 to 200 ms",
		200 * time.Millisecond: "0.2 to 1 s", time.Second: "1 to 10 s", 10*time.Second - 1: "1 to 10 s",
		10 * time.Second: "over 10 s", time.Hour: "over 10 s",
	} {
		require.Equal(t, want, Gap{From: time.Second, To: time.Second + length}.Class().String(), length)
	}
}

func exampleRun() Recording {
	var s script
	s.at(0, RequestStart, None, None, "")
	s.at(0, SynthStart, 0, 0, "")
	s.at(100, SynthEnd, 0, 0, "")
	s.at(100, GPUQueue, 0, None, "")
	s.device(100, 200, 500, 600, 0, 0, "H200")
	s.at(210, KernelStart, 0, 0, "H200")
	s.at(490, KernelEnd, 0, 0, "H200")
	s.at(500, BG2Start, 0, 0, "H200")
	s.at(580, BG2End, 0, 0, "H200")
	s.device(400, 504, 800, 900, 1, 1, "H200")
	s.at(900, VerifyStart, None, None, "")
	s.at(1000, VerifyEnd, None, None, "")
	s.at(1000, RequestEnd, None, None, "")
	return Recording{Start: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Events: s}
}

// The report's table carries the figures that Analyze computed.
func TestReportText(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, Analyze(exampleRun().Events).WriteText(&text))
	rows := map[string][]string{}
	for line := range strings.Lines(text.String()) {
		if f := strings.Fields(line); len(f) > 0 {
			rows[f[0]] = f
		}
	}
	require.Equal(t, strings.Fields("H200 2 0.596 s 0.600 s 99.3 % 0.280 s 100.0 %"), rows["H200"])
	require.Equal(t, strings.Fields("SYNTH 1 0.100 s 0.100 s 0.100 s"), rows["SYNTH"])
	require.Equal(t, strings.Fields("under 10 ms 1 0.004 s 0.000 s 0.000 s 0.000 s 0.000 s 0.004 s"), rows["under"])
	require.Equal(t, strings.Fields("over 10 s 0 0.000 s 0.000 s 0.000 s 0.000 s 0.000 s 0.000 s"), rows["over"])
	require.Equal(t, strings.Fields("all 1 0.004 s 0.000 s 0.000 s 0.000 s 0.000 s 0.004 s"), rows["all"])
}

// The waterfall shows the phases in proportion.
func TestWaterfall(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, exampleRun().WriteWaterfall(&text, 50))
	require.Equal(t, ``+
		`requests      |                                             vvvvv|`+"\n"+
		`cpu 0         |sssss                                             |`+"\n"+
		`H200          |          ###############+##############          |`+"\n"+
		`H200 worker 0 |     ppppp###############fffff                    |`+"\n"+
		`H200 worker 1 |                    ppppp###############fffff     |`+"\n"+
		`               0                                          1.000 s`+"\n"+
		waterfallLegend+"\n", text.String())
}

// The trace has the fields that the Trace Event Format asks of each phase type, slices of one thread nest, and
// everything recorded is there.
func TestChromeTrace(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, exampleRun().WriteChromeTrace(&text))
	var trace struct {
		TraceEvents []map[string]any
	}
	require.NoError(t, json.Unmarshal(text.Bytes(), &trace))
	count := map[string]int{}
	ends := map[[2]any]float64{}
	names := map[any]bool{}
	for _, e := range trace.TraceEvents {
		phase := e["ph"].(string)
		count[phase]++
		require.IsType(t, float64(0), e["ts"])
		require.Contains(t, e, "pid")
		require.Contains(t, e, "tid")
		switch phase {
		case "X":
			thread := [2]any{e["pid"], e["tid"]}
			require.GreaterOrEqual(t, e["ts"], ends[thread], "slices of a thread follow each other: %v", e)
			ends[thread] = e["ts"].(float64) + e["dur"].(float64)
		case "b", "e":
			require.NotEmpty(t, e["id"])
			require.NotEmpty(t, e["cat"])
		case "M":
			names[e["args"].(map[string]any)["name"]] = true
		}
	}
	require.Equal(t, map[string]int{"X": 1 + 3 + 3 + 1 + 1, "i": 3, "b": 2, "e": 2, "M": count["M"]}, count)
	for _, name := range []string{"CPU", "H200", "queue", "worker 0", "worker 1", "worker 0 kernels", "worker 0 B in G2"} {
		require.True(t, names[name], name)
	}
}
