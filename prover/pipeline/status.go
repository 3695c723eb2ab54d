package pipeline

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/interlock-prover/interlock/shared"
)

// Counts is what became of requests since the start.
type Counts struct {
	Completed uint64
	Failed    uint64
	Cancelled uint64
	Withheld  uint64 // proofs that did not verify, of requests that were answered or are under way
	Retries   uint64 // partitions that were sent to a device again, having failed or not verified
	Fallbacks uint64 // partitions that the fallback proved
}

func (c *Counts) add(err error) {
	switch {
	case err == nil:
		c.Completed++
	case errors.Is(err, shared.ErrCancelled):
		c.Cancelled++
	default:
		c.Failed++
	}
}

// Status is what a pipeline does at one moment.
type Status struct {
	Counts
	HostMemoryBytes, HostMemoryUsedBytes int64 // 0 if boundless

	Requests []RequestStatus // under way, in the order they came
	Queues   []QueueStatus   // by kind, then from the highest priority down
	Devices  []DeviceStatus  // in the order of the configuration
}

// RequestStatus is the state of a request under way.
type RequestStatus struct {
	ID             string
	Kind           shared.Kind
	SectorSize     shared.SectorSize
	Priority       shared.Priority
	Stage          shared.Stage // the last that it or one of its partitions came to
	Partitions     int          // 0 while it is not decoded
	PartitionsDone int
	Elapsed        time.Duration // since it was accepted
	Deadline       time.Time     // zero: none
}

// QueueStatus counts the partitions of one kind and priority.
type QueueStatus struct {
	Kind       shared.Kind
	Priority   shared.Priority
	Pending    int // wait for a witness worker
	InProgress int // from there until proven
}

// DeviceStatus is the state of one device.
type DeviceStatus struct {
	Name                         string
	MemoryBytes, MemoryUsedBytes int64  // 0 if boundless
	Waiting                      int    // workers that wait for the interlock
	OutOfUse                     string // why it was taken out of use; empty if it is in use
	Faults                       uint64 // its own, since the start
	Workers                      []WorkerStatus
}

// WorkerStatus is what a device's worker does. Only one worker of a device at a time is in StageDevice: it holds the
// interlock. One that waits for it, or for memory, is in StagePrepare.
type WorkerStatus struct {
	RequestID string // empty if idle
	Kind      shared.Kind
	Partition int           // -1 if idle
	Stage     shared.Stage  // empty if idle
	For       time.Duration // how long it has been so
}

// Status tells what the pipeline does. Its parts are of moments close to each other.
func (p *Pipeline) Status() Status {
	p.mu.Lock()
	active := make([]*request, 0, len(p.active))
	for _, r := range p.active {
		active = append(active, r)
	}
	s := Status{Counts: p.counts}
	p.mu.Unlock()

	slices.SortFunc(active, func(a, b *request) int { return cmp.Compare(a.number, b.number) })
	for _, r := range active {
		s.addRequest(r)
	}
	slices.SortFunc(s.Queues, func(a, b QueueStatus) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), -cmp.Compare(a.Priority, b.Priority))
	})
	s.HostMemoryBytes, s.HostMemoryUsedBytes = p.memory.Capacity(), p.memory.Used()
	for _, d := range p.devices {
		s.Devices = append(s.Devices, d.status())
	}
	return s
}

func (s *Status) addRequest(r *request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Requests = append(s.Requests, RequestStatus{
		ID: r.ID, Kind: r.Kind, SectorSize: r.SectorSize, Priority: r.Priority, Stage: r.stage,
		Partitions: r.partitions, PartitionsDone: r.proven, Elapsed: time.Since(r.accepted), Deadline: r.Deadline,
	})
	i := slices.IndexFunc(s.Queues, func(q QueueStatus) bool { return q.Kind == r.Kind && q.Priority == r.Priority })
	if i < 0 {
		i = len(s.Queues)
		s.Queues = append(s.Queues, QueueStatus{Kind: r.Kind, Priority: r.Priority})
	}
	s.Queues[i].Pending += r.partitions - r.proven - r.flying
	s.Queues[i].InProgress += r.flying
}

func (d *device) status() DeviceStatus {
	s := DeviceStatus{
		Name: d.name, MemoryBytes: d.memory.Capacity(), MemoryUsedBytes: d.memory.Used(), Waiting: d.lock.Waiting(),
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.Faults = d.faults
	if err := cmp.Or(d.lost, d.fault); err != nil {
		s.OutOfUse = err.Error()
	}
	for _, w := range d.workers {
		ws := WorkerStatus{Partition: -1, For: time.Since(w.since)}
		if w.request != nil {
			ws.RequestID, ws.Kind, ws.Partition, ws.Stage = w.request.ID, w.request.Kind, w.k, w.stage
		}
		s.Workers = append(s.Workers, ws)
	}
	return s
}
