package prover

import (
	"context"
	"os"
	"time"

	"github.com/interlock-prover/interlock/prover/pipeline"
	"github.com/interlock-prover/interlock/shared"
)

// Status implements shared.Prover.
func (e *Engine) Status(context.Context) (shared.Status, error) {
	p := e.pipeline.Status()
	s := shared.Status{
		Version: shared.Version, PID: os.Getpid(), Uptime: time.Since(e.start),
		Completed: p.Completed, Failed: p.Failed, Withheld: p.Withheld, Retries: p.Retries, Fallbacks: p.Fallbacks,
		MemoryBudgetBytes: uint64(e.memory.Capacity() + e.requests.Capacity()),
		MemoryUsedBytes:   uint64(e.memory.Used() + e.requests.Used()),
		Params:            e.paramsStatus(),
	}
	for i, d := range p.Devices { // in the order of the engine's
		s.Devices = append(s.Devices, e.devices[i].status(d, p))
	}
	for _, q := range p.Queues {
		// The boundary counts by kind; here they are apart by priority too.
		if n := len(s.Queues); n > 0 && s.Queues[n-1].Kind == q.Kind {
			s.Queues[n-1].Pending += q.Pending
			s.Queues[n-1].InProgress += q.InProgress
			continue
		}
		s.Queues = append(s.Queues, shared.QueueStatus{Kind: q.Kind, Pending: q.Pending, InProgress: q.InProgress})
	}
	for _, r := range p.Requests {
		s.Jobs = append(s.Jobs, shared.JobStatus{
			ID: shared.JobID(r.ID), RequestID: r.ID, Kind: r.Kind, SectorSize: r.SectorSize, Priority: r.Priority,
			Stage: r.Stage, PartitionsDone: r.PartitionsDone, Partitions: r.Partitions, Elapsed: r.Elapsed, Deadline: r.Deadline,
		})
	}
	return s, nil
}

// status describes a device. The CPU's memory is the host's.
func (d *device) status(in pipeline.DeviceStatus, p pipeline.Status) shared.DeviceStatus {
	s := shared.DeviceStatus{
		Name: in.Name, Model: "CPU", Workers: len(in.Workers), Partition: -1, OutOfUse: in.OutOfUse, Faults: in.Faults,
		MemoryTotalBytes: uint64(p.HostMemoryBytes),
		MemoryFreeBytes:  uint64(p.HostMemoryBytes - p.HostMemoryUsedBytes),
	}
	switch {
	case d.card != nil:
		info := d.card.Info()
		used, _ := d.card.MemoryUsed()
		s.Model, s.UUID = info.Name, info.UUID
		s.MemoryTotalBytes, s.MemoryFreeBytes = uint64(info.MemoryBytes), uint64(max(0, d.card.MemoryLimit()-used))
		s.TemperatureCelsius, _ = d.card.TemperatureCelsius()
	case d.Device == nil: // a card that could not be opened
		s.Model, s.MemoryTotalBytes, s.MemoryFreeBytes = "", 0, 0
	}
	for _, w := range in.Workers {
		if w.Stage == shared.StageDevice {
			s.RequestID, s.Kind, s.Partition = w.RequestID, w.Kind, w.Partition
		}
	}
	return s
}

func (e *Engine) paramsStatus() []shared.ParamsStatus {
	var out []shared.ParamsStatus
	for _, k := range e.keys.values() {
		e.mu.Lock()
		users := k.users
		e.mu.Unlock()
		kind, err := shared.ParseKind(k.set.Kind)
		if err != nil {
			continue // every blueprint names a kind that exists
		}
		size, err := shared.ParseSectorSize(k.set.SectorSize)
		if err != nil {
			continue
		}
		where := "disk"
		for _, p := range k.points {
			if p.loaded() {
				where = "memory"
				if p.device.card != nil {
					where = "device"
					break
				}
			}
		}
		out = append(out, shared.ParamsStatus{
			Kind: kind, SectorSize: size, Bytes: uint64(k.file.SizeBytes()),
			Users: users, Where: where, Insecure: k.insecure,
		})
	}
	return out
}
