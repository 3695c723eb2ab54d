package timeline

import (
	"encoding/json"
	"io"
	"strconv"
	"time"
)

// traceEvent is an entry of the Trace Event Format that Chrome's tracing and Perfetto read ("Trace Event Format",
// Google, 2016).
type traceEvent struct {
	Name     string         `json:"name"`
	Phase    string         `json:"ph"` // X: complete, i: instant, b and e: asynchronous, M: metadata
	Micros   float64        `json:"ts"`
	Duration *float64       `json:"dur,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Category string         `json:"cat,omitempty"`
	ID       string         `json:"id,omitempty"`
	Scope    string         `json:"s,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// Threads of a worker in a trace: phases of one thread must nest, and these may overlap.
const (
	lanePhases = iota
	laneKernels
	laneBG2
	numLanes
)

// WriteChromeTrace writes the recording as JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open: a process
// for the CPU and one for each GPU, a thread for each worker, with its kernels and its B in G2 beside it. Waits and
// whole requests are asynchronous slices. Phases that the recording has only half of are left out.
func (r Recording) WriteChromeTrace(w io.Writer) error {
	events := byTime(r.Events)
	t := tracer{process: map[string]int{}, named: map[[2]int]bool{}}
	t.processOf("")
	for n, i := range intervals(events) {
		t.addInterval(n, i)
	}
	for _, e := range events {
		if !e.Kind.isStart() && !e.Kind.isEnd() {
			t.addMoment(e)
		}
	}
	return json.NewEncoder(w).Encode(map[string]any{
		"displayTimeUnit": "ms",
		"traceEvents":     t.events,
		"otherData":       map[string]any{"start": r.Start.UTC().Format(time.RFC3339Nano), "lost": r.Lost},
	})
}

type tracer struct {
	events  []traceEvent
	process map[string]int  // by GPU; "" is the CPU
	named   map[[2]int]bool // threads that have their name
}

func (t *tracer) addInterval(number int, i interval) {
	e := traceEvent{Name: i.event.Kind.phaseName(), Micros: micros(i.from), Category: "pipeline", Args: args(i.event)}
	switch i.event.Kind {
	case RequestStart, ParamsStart, MemoryWaitStart, VerifyStart:
		e.Process, e.Phase, e.ID = t.processOf(i.event.GPU), "b", strconv.Itoa(number)
		t.events = append(t.events, e)
		e.Phase, e.Micros, e.Args = "e", micros(i.to), nil
	default:
		e.Process, e.Thread = t.threadOf(i.event)
		length := micros(i.to - i.from)
		e.Phase, e.Duration = "X", &length
	}
	t.events = append(t.events, e)
}

func (t *tracer) addMoment(m Event) {
	e := traceEvent{Name: m.Kind.String(), Phase: "i", Scope: "t", Micros: micros(m.Time), Category: "pipeline", Args: args(m)}
	e.Process, e.Thread = t.threadOf(m)
	t.events = append(t.events, e)
}

func (t *tracer) processOf(gpu string) int {
	if id, ok := t.process[gpu]; ok {
		return id
	}
	id := len(t.process) + 1
	t.process[gpu] = id
	name := gpu
	if gpu == "" {
		name = "CPU"
	}
	t.events = append(t.events, traceEvent{Name: "process_name", Phase: "M", Process: id, Args: map[string]any{"name": name}})
	return id
}

func (t *tracer) threadOf(e Event) (process, thread int) {
	lane, suffix := lanePhases, ""
	switch e.Kind {
	case KernelStart:
		lane, suffix = laneKernels, " kernels"
	case BG2Start:
		lane, suffix = laneBG2, " B in G2"
	}
	process, thread = t.processOf(e.GPU), int(e.Worker+1)*numLanes+lane
	if !t.named[[2]int{process, thread}] {
		t.named[[2]int{process, thread}] = true
		name := "worker " + strconv.Itoa(int(e.Worker))
		if e.Worker == None {
			name = "queue"
		}
		t.events = append(t.events, traceEvent{Name: "thread_name", Phase: "M", Process: process, Thread: thread, Args: map[string]any{"name": name + suffix}})
	}
	return process, thread
}

func args(e Event) map[string]any {
	a := map[string]any{"request": e.Request}
	if e.Partition != None {
		a["partition"] = e.Partition
	}
	return a
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
