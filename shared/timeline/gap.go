package timeline

import "time"

// Cause says what an idle GPU waited for.
type Cause uint8

const (
	NoWork            Cause = iota // no partition was anywhere in the pipeline before the GPU
	WaitingForWitness              // witnesses were being computed, none was ready
	WaitingForMemory               // a partition waited for bytes of the host's or the GPU's budget
	WaitingForParams               // a partition waited for its circuit or its parameters
	HandOver                       // a worker had a partition, or one was ready for it: prepare, finish or the lock in between
	numCauses
)

var causeNames = [numCauses]string{"no work queued", "waiting for witness", "waiting for memory", "waiting for parameters", "hand-over"}

func (c Cause) String() string { return causeNames[c] }

// LengthClass sorts gaps by length: what is under 10 ms is the price of a hand-over, what is over 10 s a missing request.
type LengthClass uint8

var (
	classLimits = [...]time.Duration{10 * time.Millisecond, 200 * time.Millisecond, time.Second, 10 * time.Second}
	classNames  = [...]string{"under 10 ms", "10 to 200 ms", "0.2 to 1 s", "1 to 10 s", "over 10 s"}
)

const numClasses = len(classNames)

func (c LengthClass) String() string { return classNames[c] }

// Gap is a time between two device phases in which no worker held the GPU's interlock.
type Gap struct {
	From, To time.Duration
	ByCause  [numCauses]time.Duration // sums to the length
}

// Length is how long the GPU was idle.
func (g Gap) Length() time.Duration { return g.To - g.From }

// Class is the class of the gap's length; a gap as long as a limit belongs to the longer class.
func (g Gap) Class() LengthClass {
	for c, limit := range classLimits {
		if g.Length() < limit {
			return LengthClass(c)
		}
	}
	return LengthClass(len(classLimits))
}

// Cause is the cause of the largest part of the gap.
func (g Gap) Cause() Cause {
	var largest Cause
	for c := range numCauses {
		if g.ByCause[c] > g.ByCause[largest] {
			largest = c
		}
	}
	return largest
}

// partitionKey names a partition on its way.
type partitionKey struct {
	request   string
	partition int32
}

// holding is what a GPU's worker is busy with.
type holding struct {
	key    partitionKey
	before bool // the device phase is still to come
}

// gpuState is a GPU at one moment of the sweep.
type gpuState struct {
	running        int // workers in the device phase: 0 or 1, unless two lists of events were mixed
	workers        map[int32]holding
	memory, params int // workers waiting for the GPU's memory, for parameters
	gap            *Gap
	gaps           []Gap
}

// sweep walks through the events of a run and knows, at each, what is where.
type sweep struct {
	queued                map[partitionKey]bool // witness ready, no worker has it
	synth, memory, params int                   // partitions off the GPUs in these phases
	gpus                  map[string]*gpuState
}

// findGaps gives the gaps of each GPU between its first device phase and its last, with the time of each split by
// cause.
func findGaps(events []Event) map[string][]Gap {
	s := sweep{queued: map[partitionKey]bool{}, gpus: map[string]*gpuState{}}
	for i, e := range events {
		if i > 0 {
			s.pass(e.Time - events[i-1].Time)
		}
		s.apply(e)
	}
	gaps := map[string][]Gap{}
	for name, g := range s.gpus {
		gaps[name] = g.gaps // an open gap after the last device phase is none
	}
	return gaps
}

// pass books time in which nothing changed.
func (s *sweep) pass(d time.Duration) {
	for _, g := range s.gpus {
		if g.gap != nil {
			g.gap.ByCause[s.cause(g)] += d
		}
	}
}

// cause says why g is idle now. What is nearest to the GPU decides: with a witness ready, that another one is being
// computed matters no more.
func (s *sweep) cause(g *gpuState) Cause {
	before := 0
	for _, h := range g.workers {
		if h.before {
			before++
		}
	}
	switch {
	case before > g.memory+g.params:
		return HandOver
	case g.params > 0:
		return WaitingForParams
	case g.memory > 0:
		return WaitingForMemory
	case len(s.queued) > 0:
		return HandOver
	case s.synth > 0:
		return WaitingForWitness
	case s.params > 0:
		return WaitingForParams
	case s.memory > 0:
		return WaitingForMemory
	}
	return NoWork
}

func (s *sweep) gpu(name string) *gpuState {
	g := s.gpus[name]
	if g == nil {
		g = &gpuState{workers: map[int32]holding{}}
		s.gpus[name] = g
	}
	return g
}

func (s *sweep) apply(e Event) {
	key := partitionKey{e.Request, e.Partition}
	switch e.Kind {
	case SynthStart:
		s.synth++
	case SynthEnd:
		decrement(&s.synth)
	case MemoryWaitStart:
		*s.memoryOf(e)++
	case MemoryWaitEnd:
		decrement(s.memoryOf(e))
	case ParamsStart:
		*s.paramsOf(e)++
	case ParamsEnd:
		decrement(s.paramsOf(e))
	case GPUQueue: // also of a partition that failed on a GPU and tries another
		s.drop(func(k partitionKey) bool { return k == key })
		s.queued[key] = true
	case GPUPickup:
		delete(s.queued, key)
		s.gpu(e.GPU).workers[e.Worker] = holding{key: key, before: true}
	case GPUStart:
		g := s.gpu(e.GPU)
		g.workers[e.Worker] = holding{key: key}
		g.start(e.Time)
	case GPUEnd:
		s.gpu(e.GPU).end(e.Time)
	case FinishEnd:
		delete(s.gpu(e.GPU).workers, e.Worker)
	case RequestEnd:
		s.drop(func(k partitionKey) bool { return k.request == e.Request })
	}
}

func (s *sweep) memoryOf(e Event) *int {
	if e.GPU == "" {
		return &s.memory
	}
	return &s.gpu(e.GPU).memory
}

func (s *sweep) paramsOf(e Event) *int {
	if e.GPU == "" {
		return &s.params
	}
	return &s.gpu(e.GPU).params
}

// drop forgets where the matching partitions were.
func (s *sweep) drop(match func(partitionKey) bool) {
	for k := range s.queued {
		if match(k) {
			delete(s.queued, k)
		}
	}
	for _, g := range s.gpus {
		for w, h := range g.workers {
			if match(h.key) {
				delete(g.workers, w)
			}
		}
	}
}

func (g *gpuState) start(at time.Duration) {
	g.running++
	if g.gap == nil {
		return
	}
	if g.gap.To = at; g.gap.Length() > 0 {
		g.gaps = append(g.gaps, *g.gap)
	}
	g.gap = nil
}

func (g *gpuState) end(at time.Duration) {
	if g.running == 0 {
		return // began before the recording
	}
	if g.running--; g.running == 0 {
		g.gap = &Gap{From: at}
	}
}

// decrement undoes an increment, unless that was before the recording.
func decrement(n *int) {
	if *n > 0 {
		*n--
	}
}
