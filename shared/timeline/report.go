package timeline

import (
	"slices"
	"time"
)

// Usage is how much of the time from a first start to a last end was used.
type Usage struct {
	Busy time.Duration // length of the union of the intervals
	Span time.Duration // from the first start to the last end
}

// Efficiency is Busy/Span, or 0 where nothing happened.
func (u Usage) Efficiency() float64 {
	if u.Span == 0 {
		return 0
	}
	return float64(u.Busy) / float64(u.Span)
}

// Report is what a recording says about the run.
type Report struct {
	Duration time.Duration // from the first event to the last
	Phases   []PhaseReport // in the order of the pipeline; those that occurred
	GPUs     []GPUReport   // by name
}

// PhaseReport sums up the phases of one kind over all GPUs and requests.
type PhaseReport struct {
	Start      Kind // the kind that begins the phase
	Count      int
	Total, Max time.Duration
}

// GPUReport is how busy one GPU was, between its first device phase and its last.
type GPUReport struct {
	Name       string
	Partitions int   // device phases that ended
	Device     Usage // GPU efficiency: the interlock was held
	Kernel     Usage // kernel efficiency: the same by the device's clock; zero if the device reports no kernel times
	Gaps       []Gap // times between device phases, in order
}

// Analyze computes the report of a run.
func Analyze(events []Event) Report {
	events = byTime(events)
	all := intervals(events)
	var r Report
	if len(events) > 0 {
		r.Duration = events[len(events)-1].Time - events[0].Time
	}
	phases := map[Kind]*PhaseReport{}
	for _, i := range all {
		p := phases[i.event.Kind]
		if p == nil {
			p = &PhaseReport{Start: i.event.Kind}
			phases[i.event.Kind] = p
		}
		p.Count++
		p.Total += i.to - i.from
		p.Max = max(p.Max, i.to-i.from)
	}
	for k := RequestStart; k.isStart(); k += 2 {
		if p := phases[k]; p != nil {
			r.Phases = append(r.Phases, *p)
		}
	}
	gaps := findGaps(events)
	for _, name := range gpuNames(events) {
		device := filter(all, GPUStart, name)
		g := GPUReport{Name: name, Partitions: len(device), Device: usage(device), Kernel: usage(filter(all, KernelStart, name))}
		g.Gaps = gaps[name]
		r.GPUs = append(r.GPUs, g)
	}
	return r
}

// gpuNames lists the devices on which a device phase began.
func gpuNames(events []Event) []string {
	var names []string
	for _, e := range events {
		if e.Kind == GPUStart && !slices.Contains(names, e.GPU) {
			names = append(names, e.GPU)
		}
	}
	slices.Sort(names)
	return names
}
