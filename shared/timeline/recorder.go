package timeline

import (
	"sync"
	"time"
)

// DefaultCapacity is enough events for some 3,000 partitions, in about 4 MiB.
const DefaultCapacity = 1 << 16

// Recorder keeps the latest events in a ring buffer. Any number of goroutines may record at once; recording allocates
// nothing. The methods of a nil *Recorder do nothing, which is how a timeline is switched off.
type Recorder struct {
	start time.Time // with monotonic reading

	mu    sync.Mutex
	ring  []Event
	count uint64 // events ever recorded; the next goes to ring[count % len(ring)]
}

// NewRecorder starts a recorder that keeps the latest capacity events; DefaultCapacity if capacity is not positive.
func NewRecorder(capacity int) *Recorder {
	if capacity <= 0 {
		capacity = DefaultCapacity
	}
	return &Recorder{start: time.Now(), ring: make([]Event, capacity)}
}

// Now is the time that Record would give to an event.
func (r *Recorder) Now() time.Duration {
	if r == nil {
		return 0
	}
	return time.Since(r.start)
}

// Record adds e with the present time. Events are kept in the order of their times.
func (r *Recorder) Record(e Event) {
	if r == nil {
		return
	}
	r.mu.Lock()
	e.Time = time.Since(r.start)
	r.put(e)
	r.mu.Unlock()
}

// RecordAt adds e with the time it carries, for events whose time was taken by another clock (a GPU's) and translated
// to this recorder's. They may come later than others of a later time.
func (r *Recorder) RecordAt(e Event) {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.put(e)
	r.mu.Unlock()
}

func (r *Recorder) put(e Event) {
	r.ring[r.count%uint64(len(r.ring))] = e
	r.count++
}

// Recording is what a recorder held at one moment.
type Recording struct {
	Start  time.Time // wall-clock time of Event.Time zero; the zero time if unknown
	Lost   uint64    // older events that had been overwritten
	Events []Event   // in the order they were recorded
}

// Recording copies out what the recorder holds.
func (r *Recorder) Recording() Recording {
	if r == nil {
		return Recording{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	size := uint64(len(r.ring))
	if r.count <= size {
		return Recording{Start: r.start.Round(0), Events: append([]Event(nil), r.ring[:r.count]...)}
	}
	oldest := r.count % size
	events := make([]Event, 0, size)
	events = append(events, r.ring[oldest:]...)
	events = append(events, r.ring[:oldest]...)
	return Recording{Start: r.start.Round(0), Lost: r.count - size, Events: events}
}
