package shared

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/interlock-prover/interlock/shared/proto"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// Kinds and priorities have the same numbers on both sides, which a test checks.

func requestToHeader(r *Request, proof []byte) *proto.RequestHeader {
	h := &proto.RequestHeader{
		Id:              r.ID,
		Kind:            proto.Kind(r.Kind),
		SectorSize:      uint64(r.SectorSize),
		Priority:        proto.Priority(r.Priority),
		VanillaBytes:    make([]uint64, len(r.Vanilla)),
		MinerId:         r.MinerID,
		SectorNumber:    r.SectorNumber,
		RegisteredProof: r.RegisteredProof,
		Randomness:      r.Randomness,
		ApiVersion:      r.APIVersion,
		Partition:       r.Partition,
		CommROld:        r.CommROld,
		CommRNew:        r.CommRNew,
		CommDNew:        r.CommDNew,
		Proof:           proof,
	}
	for i, v := range r.Vanilla {
		h.VanillaBytes[i] = uint64(len(v))
	}
	h.Deadline = timeToProto(r.Deadline)
	return h
}

// timeToProto leaves the zero time out.
func timeToProto(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

func timeFromProto(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// headerToRequest gives the request without its vanilla proofs.
func headerToRequest(h *proto.RequestHeader) Request {
	r := Request{
		ID:              h.GetId(),
		Kind:            kindFromProto(h.GetKind()),
		SectorSize:      SectorSize(h.GetSectorSize()),
		Priority:        priorityFromProto(h.GetPriority()),
		MinerID:         h.GetMinerId(),
		SectorNumber:    h.SectorNumber,
		RegisteredProof: h.RegisteredProof,
		Randomness:      h.GetRandomness(),
		APIVersion:      h.GetApiVersion(),
		Partition:       h.Partition,
		CommROld:        h.GetCommROld(),
		CommRNew:        h.GetCommRNew(),
		CommDNew:        h.GetCommDNew(),
	}
	r.Deadline = timeFromProto(h.GetDeadline())
	return r
}

// kindFromProto keeps numbers that no kind has out of range instead of wrapping them into it.
func kindFromProto(k proto.Kind) Kind {
	if k < 0 || k > 255 {
		return 255
	}
	return Kind(k)
}

func priorityFromProto(p proto.Priority) Priority {
	if p < 0 || p > 255 {
		return 255
	}
	return Priority(p)
}

func progressToProto(p Progress) *proto.Progress {
	return &proto.Progress{
		RequestId:      p.RequestID,
		Stage:          string(p.Stage),
		Partition:      int32(p.Partition),
		PartitionsDone: int32(p.PartitionsDone),
		Partitions:     int32(p.Partitions),
		Elapsed:        durationpb.New(p.Elapsed),
		Message:        p.Message,
	}
}

func progressFromProto(p *proto.Progress) Progress {
	return Progress{
		RequestID:      p.GetRequestId(),
		Stage:          Stage(p.GetStage()),
		Partition:      int(p.GetPartition()),
		PartitionsDone: int(p.GetPartitionsDone()),
		Partitions:     int(p.GetPartitions()),
		Elapsed:        p.GetElapsed().AsDuration(),
		Message:        p.GetMessage(),
	}
}

func resultToProto(r Result) *proto.Result {
	return &proto.Result{
		RequestId:  r.RequestID,
		Proof:      r.Proof,
		Partitions: int32(r.Partitions),
		Timings: &proto.Timings{
			Queue:   durationpb.New(r.Timings.Queue),
			Params:  durationpb.New(r.Timings.Params),
			Witness: durationpb.New(r.Timings.Witness),
			Prepare: durationpb.New(r.Timings.Prepare),
			Device:  durationpb.New(r.Timings.Device),
			Finish:  durationpb.New(r.Timings.Finish),
			Verify:  durationpb.New(r.Timings.Verify),
			Total:   durationpb.New(r.Timings.Total),
		},
		InsecureParams: r.InsecureParams,
		Margin:         durationpb.New(r.Margin),
	}
}

func resultFromProto(r *proto.Result) Result {
	t := r.GetTimings()
	return Result{
		RequestID:  r.GetRequestId(),
		Proof:      r.GetProof(),
		Partitions: int(r.GetPartitions()),
		Timings: Timings{
			Queue:   t.GetQueue().AsDuration(),
			Params:  t.GetParams().AsDuration(),
			Witness: t.GetWitness().AsDuration(),
			Prepare: t.GetPrepare().AsDuration(),
			Device:  t.GetDevice().AsDuration(),
			Finish:  t.GetFinish().AsDuration(),
			Verify:  t.GetVerify().AsDuration(),
			Total:   t.GetTotal().AsDuration(),
		},
		InsecureParams: r.GetInsecureParams(),
		Margin:         r.GetMargin().AsDuration(),
	}
}

func statusToProto(s Status) *proto.StatusReply {
	reply := &proto.StatusReply{
		Version:           s.Version,
		Pid:               int64(s.PID),
		Uptime:            durationpb.New(s.Uptime),
		Completed:         s.Completed,
		Failed:            s.Failed,
		Withheld:          s.Withheld,
		Retries:           s.Retries,
		Fallbacks:         s.Fallbacks,
		MemoryBudgetBytes: s.MemoryBudgetBytes,
		MemoryUsedBytes:   s.MemoryUsedBytes,
	}
	for _, d := range s.Devices {
		reply.Devices = append(reply.Devices, &proto.DeviceStatus{
			Name:               d.Name,
			Model:              d.Model,
			Workers:            int32(d.Workers),
			MemoryTotalBytes:   d.MemoryTotalBytes,
			MemoryFreeBytes:    d.MemoryFreeBytes,
			RequestId:          d.RequestID,
			Kind:               proto.Kind(d.Kind),
			Partition:          int32(d.Partition),
			OutOfUse:           d.OutOfUse,
			Faults:             d.Faults,
			TemperatureCelsius: int32(d.TemperatureCelsius),
			Uuid:               d.UUID,
		})
	}
	for _, p := range s.Params {
		reply.Params = append(reply.Params, &proto.ParamsStatus{
			Kind:       proto.Kind(p.Kind),
			SectorSize: uint64(p.SectorSize),
			Bytes:      p.Bytes,
			Users:      int32(p.Users),
			Where:      p.Where,
			Insecure:   p.Insecure,
		})
	}
	for _, q := range s.Queues {
		reply.Queues = append(reply.Queues, &proto.QueueStatus{
			Kind:       proto.Kind(q.Kind),
			Pending:    int32(q.Pending),
			InProgress: int32(q.InProgress),
		})
	}
	for _, j := range s.Jobs {
		reply.Jobs = append(reply.Jobs, &proto.JobStatus{
			Id:             string(j.ID),
			RequestId:      j.RequestID,
			Kind:           proto.Kind(j.Kind),
			SectorSize:     uint64(j.SectorSize),
			Priority:       proto.Priority(j.Priority),
			Stage:          string(j.Stage),
			PartitionsDone: int32(j.PartitionsDone),
			Partitions:     int32(j.Partitions),
			Elapsed:        durationpb.New(j.Elapsed),
			Deadline:       timeToProto(j.Deadline),
		})
	}
	return reply
}

func statusFromProto(reply *proto.StatusReply) Status {
	s := Status{
		Version:           reply.GetVersion(),
		PID:               int(reply.GetPid()),
		Uptime:            reply.GetUptime().AsDuration(),
		Completed:         reply.GetCompleted(),
		Failed:            reply.GetFailed(),
		Withheld:          reply.GetWithheld(),
		Retries:           reply.GetRetries(),
		Fallbacks:         reply.GetFallbacks(),
		MemoryBudgetBytes: reply.GetMemoryBudgetBytes(),
		MemoryUsedBytes:   reply.GetMemoryUsedBytes(),
	}
	for _, d := range reply.GetDevices() {
		s.Devices = append(s.Devices, DeviceStatus{
			Name:               d.GetName(),
			Model:              d.GetModel(),
			Workers:            int(d.GetWorkers()),
			MemoryTotalBytes:   d.GetMemoryTotalBytes(),
			MemoryFreeBytes:    d.GetMemoryFreeBytes(),
			RequestID:          d.GetRequestId(),
			Kind:               kindFromProto(d.GetKind()),
			Partition:          int(d.GetPartition()),
			OutOfUse:           d.GetOutOfUse(),
			Faults:             d.GetFaults(),
			TemperatureCelsius: int(d.GetTemperatureCelsius()),
			UUID:               d.GetUuid(),
		})
	}
	for _, p := range reply.GetParams() {
		s.Params = append(s.Params, ParamsStatus{
			Kind:       kindFromProto(p.GetKind()),
			SectorSize: SectorSize(p.GetSectorSize()),
			Bytes:      p.GetBytes(),
			Users:      int(p.GetUsers()),
			Where:      p.GetWhere(),
			Insecure:   p.GetInsecure(),
		})
	}
	for _, q := range reply.GetQueues() {
		s.Queues = append(s.Queues, QueueStatus{
			Kind:       kindFromProto(q.GetKind()),
			Pending:    int(q.GetPending()),
			InProgress: int(q.GetInProgress()),
		})
	}
	for _, j := range reply.GetJobs() {
		s.Jobs = append(s.Jobs, JobStatus{
			ID:             JobID(j.GetId()),
			RequestID:      j.GetRequestId(),
			Kind:           kindFromProto(j.GetKind()),
			SectorSize:     SectorSize(j.GetSectorSize()),
			Priority:       priorityFromProto(j.GetPriority()),
			Stage:          Stage(j.GetStage()),
			PartitionsDone: int(j.GetPartitionsDone()),
			Partitions:     int(j.GetPartitions()),
			Elapsed:        j.GetElapsed().AsDuration(),
			Deadline:       timeFromProto(j.GetDeadline()),
		})
	}
	return s
}

// eventsInBatch keeps a batch well below the 4 MiB that gRPC allows a message.
const eventsInBatch = 4096

// recordingToProto cuts a recording into batches, at least one.
func recordingToProto(r timeline.Recording) []*proto.TimelineBatch {
	first := &proto.TimelineBatch{Lost: r.Lost}
	if !r.Start.IsZero() {
		first.Start = timestamppb.New(r.Start)
	}
	batches := []*proto.TimelineBatch{first}
	for i, e := range r.Events {
		if i > 0 && i%eventsInBatch == 0 {
			batches = append(batches, &proto.TimelineBatch{})
		}
		batch := batches[len(batches)-1]
		batch.Events = append(batch.Events, &proto.Event{
			TimeNs:    int64(e.Time),
			Kind:      uint32(e.Kind),
			Partition: e.Partition,
			Worker:    e.Worker,
			Request:   e.Request,
			Gpu:       e.GPU,
		})
	}
	return batches
}

// addBatch adds a batch to the recording it belongs to.
func addBatch(r *timeline.Recording, batch *proto.TimelineBatch) {
	if batch.GetStart() != nil {
		r.Start = batch.GetStart().AsTime()
	}
	r.Lost += batch.GetLost()
	for _, e := range batch.GetEvents() {
		r.Events = append(r.Events, timeline.Event{
			Time:      time.Duration(e.GetTimeNs()),
			Kind:      timeline.Kind(e.GetKind()),
			Partition: e.GetPartition(),
			Worker:    e.GetWorker(),
			Request:   e.GetRequest(),
			GPU:       e.GetGpu(),
		})
	}
}

func circuitToProto(r CircuitRequest) *proto.CircuitRequest {
	return &proto.CircuitRequest{Kind: proto.Kind(r.Kind), SectorSize: uint64(r.SectorSize), Partitions: int32(r.Partitions)}
}

func circuitFromProto(r *proto.CircuitRequest) CircuitRequest {
	return CircuitRequest{
		Kind:       kindFromProto(r.GetKind()),
		SectorSize: SectorSize(r.GetSectorSize()),
		Partitions: int(r.GetPartitions()),
	}
}

func setupResultToProto(r SetupResult) *proto.SetupResult {
	return &proto.SetupResult{
		ParamsPath:   r.ParamsPath,
		VkPath:       r.VKPath,
		ParamsSha256: r.ParamsSHA256,
		VkSha256:     r.VKSHA256,
		ParamsBytes:  r.ParamsBytes,
		VkBytes:      r.VKBytes,
		Elapsed:      durationpb.New(r.Elapsed),
	}
}

func setupResultFromProto(r *proto.SetupResult) SetupResult {
	return SetupResult{
		ParamsPath:   r.GetParamsPath(),
		VKPath:       r.GetVkPath(),
		ParamsSHA256: r.GetParamsSha256(),
		VKSHA256:     r.GetVkSha256(),
		ParamsBytes:  r.GetParamsBytes(),
		VKBytes:      r.GetVkBytes(),
		Elapsed:      r.GetElapsed().AsDuration(),
	}
}

func reportToProto(r ParamsReport) *proto.ParamsReport {
	return &proto.ParamsReport{
		Path:         r.Path,
		ParameterSet: r.ParameterSet,
		Bytes:        r.Bytes,
		Sha256:       r.SHA256,
		Blake2B:      r.Blake2b,
		Insecure:     r.Insecure,
		Ic:           int64(r.IC),
		H:            int64(r.H),
		L:            int64(r.L),
		A:            int64(r.A),
		BG1:          int64(r.BG1),
		BG2:          int64(r.BG2),
		Elapsed:      durationpb.New(r.Elapsed),
		Kind:         proto.Kind(r.Kind),
		SectorSize:   uint64(r.SectorSize),
		Listed:       r.Listed,
		Leftovers:    r.Leftovers,
	}
}

func reportFromProto(r *proto.ParamsReport) ParamsReport {
	return ParamsReport{
		Path:         r.GetPath(),
		ParameterSet: r.GetParameterSet(),
		Bytes:        r.GetBytes(),
		SHA256:       r.GetSha256(),
		Blake2b:      r.GetBlake2B(),
		Insecure:     r.GetInsecure(),
		IC:           int(r.GetIc()),
		H:            int(r.GetH()),
		L:            int(r.GetL()),
		A:            int(r.GetA()),
		BG1:          int(r.GetBG1()),
		BG2:          int(r.GetBG2()),
		Elapsed:      r.GetElapsed().AsDuration(),
		Kind:         kindFromProto(r.GetKind()),
		SectorSize:   SectorSize(r.GetSectorSize()),
		Listed:       r.GetListed(),
		Leftovers:    r.GetLeftovers(),
	}
}

func digestToProto(d CircuitDigest) *proto.CircuitDigest {
	return &proto.CircuitDigest{
		Aux:          int64(d.Aux),
		Chunk:        int64(d.Chunk),
		Chunks:       d.Chunks,
		Constraints:  int64(d.Constraints),
		Digest:       d.Digest,
		Inputs:       int64(d.Inputs),
		Kind:         d.Kind,
		ParameterSet: d.ParameterSet,
		Partitions:   int32(d.Partitions),
		SectorSize:   uint64(d.SectorSize),
		TermsA:       int64(d.Terms.A),
		TermsB:       int64(d.Terms.B),
		TermsC:       int64(d.Terms.C),
	}
}

func digestFromProto(d *proto.CircuitDigest) CircuitDigest {
	return CircuitDigest{
		Aux:          int(d.GetAux()),
		Chunk:        int(d.GetChunk()),
		Chunks:       d.GetChunks(),
		Constraints:  int(d.GetConstraints()),
		Digest:       d.GetDigest(),
		Inputs:       int(d.GetInputs()),
		Kind:         d.GetKind(),
		ParameterSet: d.GetParameterSet(),
		Partitions:   int(d.GetPartitions()),
		SectorSize:   SectorSize(d.GetSectorSize()),
		Terms:        CircuitTerms{A: int(d.GetTermsA()), B: int(d.GetTermsB()), C: int(d.GetTermsC())},
	}
}
