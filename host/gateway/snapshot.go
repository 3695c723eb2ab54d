package gateway

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// Snapshot is what a gateway and its prover do, as /api/status and `interlock status` show it.
type Snapshot struct {
	Version       string              `json:"version"` // of the plugin
	PID           int                 `json:"pid"`     // of the plugin
	UptimeSeconds float64             `json:"uptime_seconds"`
	Error         string              `json:"error,omitempty"` // the prover could not be asked; the rest is older then
	Draining      bool                `json:"draining"`
	Completed     uint64              `json:"completed"`
	Failed        uint64              `json:"failed"`
	Cancelled     uint64              `json:"cancelled"`
	Withheld      uint64              `json:"withheld"`  // proofs that did not verify, by this plugin
	Retries       uint64              `json:"retries"`   // partitions tried again because a device failed, by this plugin
	Fallbacks     uint64              `json:"fallbacks"` // partitions that the CPU proved because no card could, by this plugin
	Memory        MemorySnapshot      `json:"memory"`
	Devices       []DeviceSnapshot    `json:"devices"`
	Parameters    []ParameterSnapshot `json:"parameters"`
	Queues        []QueueSnapshot     `json:"queues"`
	Jobs          []JobSnapshot       `json:"jobs"`
}

// MemorySnapshot is the host's memory as the prover budgets it.
type MemorySnapshot struct {
	BudgetBytes uint64 `json:"budget_bytes"`
	UsedBytes   uint64 `json:"used_bytes"`
}

// DeviceSnapshot is one device.
type DeviceSnapshot struct {
	Name             string   `json:"name"`
	Model            string   `json:"model"`
	UUID             string   `json:"uuid,omitempty"`
	Workers          int      `json:"workers"`
	MemoryTotalBytes uint64   `json:"memory_total_bytes"`
	MemoryFreeBytes  uint64   `json:"memory_free_bytes"`
	Job              string   `json:"job,omitempty"` // in its device phase
	Kind             string   `json:"kind,omitempty"`
	Partition        int      `json:"partition"` // -1 if idle
	OutOfUse         string   `json:"out_of_use,omitempty"`
	Faults           uint64   `json:"faults"`                        // times that it failed, in this plugin
	Temperature      int      `json:"temperature_celsius,omitempty"` // left out if it is not known
	Efficiency       *float64 `json:"efficiency,omitempty"`          // of the last minutes, from the first device phase to the last
}

// ParameterSnapshot is one parameter set.
type ParameterSnapshot struct {
	Circuit  string `json:"circuit"`
	Bytes    uint64 `json:"bytes"`
	Users    int    `json:"users"`
	Where    string `json:"where"`
	Insecure bool   `json:"insecure"`
}

// QueueSnapshot counts requests and partitions of one kind.
type QueueSnapshot struct {
	Kind                 string `json:"kind"`
	Pending              int    `json:"pending"`
	InProgress           int    `json:"in_progress"`
	PartitionsPending    int    `json:"partitions_pending"`
	PartitionsInProgress int    `json:"partitions_in_progress"`
}

// JobSnapshot is a request under way.
type JobSnapshot struct {
	ID             string   `json:"id"`
	Kind           string   `json:"kind"`
	SectorSize     string   `json:"sector_size"`
	Priority       string   `json:"priority"`
	Stage          string   `json:"stage"`
	PartitionsDone int      `json:"partitions_done"`
	Partitions     int      `json:"partitions"`
	ElapsedSeconds float64  `json:"elapsed_seconds"`
	LeftSeconds    *float64 `json:"left_seconds,omitempty"` // by how long such proofs took before
	DueSeconds     *float64 `json:"due_seconds,omitempty"`  // until its deadline; below 0 once that has passed
}

// snapshot describes a view.
func (g *Gateway) snapshot(v view) Snapshot {
	st, answers := v.status, g.service.book.answers()
	s := Snapshot{
		Version: st.Version, PID: st.PID, UptimeSeconds: time.Since(g.service.start).Seconds(),
		Draining:  g.service.book.isDraining(),
		Completed: answers.completed, Failed: answers.failed, Cancelled: answers.cancelled, Withheld: st.Withheld,
		Retries: st.Retries, Fallbacks: st.Fallbacks,
		Memory:  MemorySnapshot{BudgetBytes: st.MemoryBudgetBytes, UsedBytes: st.MemoryUsedBytes},
		Devices: []DeviceSnapshot{}, Parameters: []ParameterSnapshot{}, Queues: []QueueSnapshot{}, Jobs: []JobSnapshot{},
	}
	if v.err != nil {
		s.Error = v.err.Error()
	}
	for _, d := range st.Devices {
		ds := DeviceSnapshot{
			Name: d.Name, Model: d.Model, UUID: d.UUID, Workers: d.Workers, MemoryTotalBytes: d.MemoryTotalBytes,
			MemoryFreeBytes: d.MemoryFreeBytes, Job: d.RequestID, Partition: d.Partition, OutOfUse: d.OutOfUse,
			Faults: d.Faults, Temperature: d.TemperatureCelsius,
		}
		if d.RequestID != "" {
			ds.Kind = d.Kind.String()
		}
		if e, ok := efficiency(v.report, d.Name); ok {
			ds.Efficiency = &e
		}
		s.Devices = append(s.Devices, ds)
	}
	for _, p := range st.Params {
		s.Parameters = append(s.Parameters, ParameterSnapshot{
			Circuit: circuitID(p.Kind, p.SectorSize), Bytes: p.Bytes, Users: p.Users, Where: p.Where, Insecure: p.Insecure,
		})
	}
	for _, q := range requestQueues(st, g.service.book.onTheirWay()) {
		qs := QueueSnapshot{Kind: q.Kind.String(), Pending: q.Pending, InProgress: q.InProgress}
		for _, parts := range st.Queues {
			if parts.Kind == q.Kind {
				qs.PartitionsPending, qs.PartitionsInProgress = parts.Pending, parts.InProgress
			}
		}
		s.Queues = append(s.Queues, qs)
	}
	jobs := slices.Clone(st.Jobs)
	slices.SortStableFunc(jobs, func(a, b shared.JobStatus) int { // what is in progress first, each part oldest first
		return cmp.Compare(number(inProgress(b)), number(inProgress(a)))
	})
	for _, j := range jobs {
		js := JobSnapshot{
			ID: string(j.ID), Kind: j.Kind.String(), SectorSize: j.SectorSize.String(), Priority: j.Priority.String(),
			Stage: string(j.Stage), PartitionsDone: j.PartitionsDone, Partitions: j.Partitions, ElapsedSeconds: j.Elapsed.Seconds(),
		}
		if left, ok := g.pace.left(j); ok {
			seconds := left.Seconds()
			js.LeftSeconds = &seconds
		}
		if !j.Deadline.IsZero() {
			seconds := time.Until(j.Deadline).Seconds()
			js.DueSeconds = &seconds
		}
		s.Jobs = append(s.Jobs, js)
	}
	return s
}

func efficiency(r timeline.Report, device string) (float64, bool) {
	for _, gpu := range r.GPUs {
		if gpu.Name == device && gpu.Device.Span > 0 {
			return gpu.Device.Efficiency(), true
		}
	}
	return 0, false
}

// pace knows how long proofs of each kind and size take, a partition.
type pace struct {
	mu   sync.Mutex
	mean map[paceKey]time.Duration
}

type paceKey struct {
	kind shared.Kind
	size shared.SectorSize
}

// paceWeight is how much the latest proof counts against all before.
const paceWeight = 0.3

func newPace() *pace { return &pace{mean: map[paceKey]time.Duration{}} }

// answered learns from a job that has its answer.
func (p *pace) answered(j *job) {
	if j.err != nil || j.result.Partitions == 0 {
		return
	}
	t := j.result.Timings
	took := max(t.Total-t.Queue-t.Params, 0) / time.Duration(j.result.Partitions)
	p.mu.Lock()
	defer p.mu.Unlock()
	key := paceKey{j.kind, j.size}
	if mean, known := p.mean[key]; known {
		took = time.Duration(paceWeight*float64(took) + (1-paceWeight)*float64(mean))
	}
	p.mean[key] = took
}

// left guesses how long a job that is in progress still takes.
func (p *pace) left(j shared.JobStatus) (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	mean, known := p.mean[paceKey{j.Kind, j.SectorSize}]
	if !known || j.Partitions == 0 || !inProgress(j) {
		return 0, false
	}
	return mean * time.Duration(j.Partitions-j.PartitionsDone), true
}
