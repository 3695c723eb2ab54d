package gateway

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/gateway/cuzkpb"
	"github.com/interlock-prover/interlock/shared"
)

// service answers the calls of cuzk.v1.
//
// A proof that fails is an answer with status FAILED and a message. So is a request that is found faulty, at once or
// later. Errors of a call are left for what is no one's proof: no room for another request, a gateway that is shutting
// down, a prover that cannot be asked.
type service struct {
	cuzkpb.UnimplementedProvingEngineServer
	prover  shared.Prover
	keeper  Keeper
	book    *book
	uploads *uploads
	metrics *metrics
	log     hclog.Logger
	start   time.Time
}

// statusTimeout is how long the prover may take to say what it does.
const statusTimeout = 5 * time.Second

// submit gives the job of a request, once the prover has it or the job has failed.
// deadline is when its answer stops being of use; zero: never.
func (s *service) submit(ctx context.Context, submit *cuzkpb.SubmitProofRequest, deadline time.Time, release func()) (*job, error) {
	request, fault := toRequest(submit)
	request.Deadline = deadline
	j, err := s.book.submit(submit.GetRequestId(), contentOf(submit), request, fault, release)
	if err != nil {
		return nil, callError(err)
	}
	select {
	case <-j.handedOver:
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if j.answered() && refused(j.err) {
		return nil, callError(j.err)
	}
	return j, nil
}

// refused tells that an error is no fault of the request, which may be sent again later.
func refused(err error) bool {
	var busy *shared.BusyError
	return errors.As(err, &busy)
}

// forget drops a request's payload.
func forget(submit *cuzkpb.SubmitProofRequest) {
	size := len(submit.GetVanillaProof())
	for _, v := range submit.GetVanillaProofs() {
		size += len(v)
	}
	submit.Reset()
	collect(size)
}

// collect frees the memory of a payload of that size that nobody needs any more, if it is a large one: left to itself, the
// collector would wait until several of them have piled up.
func collect(size int) {
	if size >= collectedBytes {
		debug.FreeOSMemory()
	}
}

// collectedBytes is the size of a payload from which on it pays to collect it at once; a collection of what a gateway has
// in memory takes about a millisecond.
const collectedBytes = 16 << 20

func (s *service) submitProof(ctx context.Context, submit *cuzkpb.SubmitProofRequest, release func()) (*cuzkpb.SubmitProofResponse, error) {
	j, err := s.submit(ctx, submit, time.Time{}, release) // the answer is fetched by another call
	if err != nil {
		return nil, err
	}
	forget(submit)
	reply := &cuzkpb.SubmitProofResponse{JobId: j.id}
	if st, err := s.status(ctx); err == nil { // where the job stands is a courtesy
		reply.QueuePosition = queuePosition(st, j.id)
		for _, d := range st.Devices {
			if d.RequestID == j.id {
				reply.AssignedGpu = d.Name
			}
		}
	}
	return reply, nil
}

func (s *service) prove(ctx context.Context, submit *cuzkpb.SubmitProofRequest, release func()) (*cuzkpb.ProveResponse, error) {
	deadline, _ := ctx.Deadline()
	j, err := s.submit(ctx, submit, deadline, release)
	if err != nil {
		return nil, err
	}
	forget(submit) // what waits for the answer keeps no payload
	select {
	case <-j.done:
		return &cuzkpb.ProveResponse{Result: answerOf(j)}, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// AwaitProof implements cuzk.v1.
func (s *service) AwaitProof(ctx context.Context, await *cuzkpb.AwaitProofRequest) (*cuzkpb.AwaitProofResponse, error) {
	j := s.book.find(ctx, await.GetJobId())
	if j == nil {
		return &cuzkpb.AwaitProofResponse{
			JobId: await.GetJobId(), Status: cuzkpb.AwaitProofResponse_UNKNOWN,
			ErrorMessage: "there is no such job: it never was, or its answer is no longer kept",
		}, nil
	}
	var timeout <-chan time.Time
	if ms := await.GetTimeoutMs(); ms > 0 && ms < math.MaxInt64/uint64(time.Millisecond) {
		timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-j.done:
		return answerOf(j), nil
	case <-timeout:
		return &cuzkpb.AwaitProofResponse{
			JobId: j.id, Status: cuzkpb.AwaitProofResponse_TIMEOUT, TotalMs: millis(time.Since(j.accepted)),
			ErrorMessage: fmt.Sprintf("no answer within %d ms; the job goes on", await.GetTimeoutMs()),
		}, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// answerOf is the answer of a job that has one.
func answerOf(j *job) *cuzkpb.AwaitProofResponse {
	t := j.result.Timings
	a := &cuzkpb.AwaitProofResponse{
		JobId:        j.id,
		Status:       cuzkpb.AwaitProofResponse_COMPLETED,
		Proof:        j.result.Proof,
		QueueWaitMs:  millis(t.Queue),
		SrsLoadMs:    millis(t.Params),
		SynthesisMs:  millis(t.Witness),
		GpuComputeMs: millis(t.Device),
		TotalMs:      millis(t.Total),
	}
	if j.err != nil {
		a.Status, a.Proof, a.ErrorMessage = cuzkpb.AwaitProofResponse_FAILED, nil, j.err.Error()
		if errors.Is(j.err, shared.ErrCancelled) {
			a.Status = cuzkpb.AwaitProofResponse_CANCELLED
		}
	}
	return a
}

// CancelProof implements cuzk.v1. Of a job that nobody knows, it says that it was not running.
func (s *service) CancelProof(ctx context.Context, cancel *cuzkpb.CancelProofRequest) (*cuzkpb.CancelProofResponse, error) {
	j := s.book.find(ctx, cancel.GetJobId())
	if j == nil {
		return &cuzkpb.CancelProofResponse{}, nil
	}
	wasRunning, err := s.book.cancel(ctx, j)
	if err != nil {
		return nil, callError(err)
	}
	return &cuzkpb.CancelProofResponse{WasRunning: wasRunning}, nil
}

// GetStatus implements cuzk.v1.
func (s *service) GetStatus(ctx context.Context, _ *cuzkpb.GetStatusRequest) (*cuzkpb.GetStatusResponse, error) {
	st, err := s.status(ctx)
	if err != nil {
		return nil, callError(err)
	}
	counts := s.book.answers()
	reply := &cuzkpb.GetStatusResponse{
		TotalProofsCompleted:   counts.completed,
		TotalProofsFailed:      counts.failed,
		UptimeSeconds:          uint64(time.Since(s.start) / time.Second),
		PinnedMemoryBytes:      st.MemoryUsedBytes,
		PinnedMemoryLimitBytes: st.MemoryBudgetBytes,
	}
	for i, d := range st.Devices {
		gpu := &cuzkpb.GPUStatus{
			Ordinal: uint32(i), Name: d.Name, VramTotalBytes: d.MemoryTotalBytes, VramFreeBytes: d.MemoryFreeBytes,
			CurrentJobId: d.RequestID,
		}
		if d.RequestID != "" {
			gpu.CurrentProofKind = d.Kind.String()
		}
		reply.Gpus = append(reply.Gpus, gpu)
	}
	for _, p := range st.Params {
		reply.LoadedSrs = append(reply.LoadedSrs, &cuzkpb.SRSStatus{
			CircuitId: circuitID(p.Kind, p.SectorSize), Tier: tierOf(p.Where), SizeBytes: p.Bytes, RefCount: uint32(p.Users),
		})
	}
	for _, q := range requestQueues(st, s.book.onTheirWay()) {
		reply.Queues = append(reply.Queues, &cuzkpb.QueueStatus{
			ProofKind: q.Kind.String(), Pending: uint32(q.Pending), InProgress: uint32(q.InProgress),
		})
	}
	return reply, nil
}

func tierOf(where string) cuzkpb.SRSStatus_Tier {
	switch where {
	case "device":
		return cuzkpb.SRSStatus_HOT
	case "memory":
		return cuzkpb.SRSStatus_WARM
	default:
		return cuzkpb.SRSStatus_COLD
	}
}

// GetMetrics implements cuzk.v1.
func (s *service) GetMetrics(context.Context, *cuzkpb.GetMetricsRequest) (*cuzkpb.GetMetricsResponse, error) {
	text, err := s.metrics.text()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &cuzkpb.GetMetricsResponse{PrometheusText: text}, nil
}

// PreloadSRS implements cuzk.v1.
func (s *service) PreloadSRS(ctx context.Context, preload *cuzkpb.PreloadSrsRequest) (*cuzkpb.PreloadSrsResponse, error) {
	circuit, err := parseCircuitID(preload.GetCircuitId())
	if err != nil {
		return nil, callError(err)
	}
	r, err := s.keeper.Preload(ctx, circuit)
	if err != nil {
		return nil, callError(err)
	}
	return &cuzkpb.PreloadSrsResponse{AlreadyLoaded: r.AlreadyLoaded, LoadTimeMs: millis(r.Elapsed)}, nil
}

// EvictSRS implements cuzk.v1.
func (s *service) EvictSRS(ctx context.Context, evict *cuzkpb.EvictSrsRequest) (*cuzkpb.EvictSrsResponse, error) {
	circuit, err := parseCircuitID(evict.GetCircuitId())
	if err != nil {
		return nil, callError(err)
	}
	r, err := s.keeper.Evict(ctx, circuit)
	if err != nil {
		return nil, callError(err)
	}
	return &cuzkpb.EvictSrsResponse{WasLoaded: r.WasLoaded, FreedBytes: r.FreedBytes}, nil
}

func (s *service) status(ctx context.Context) (shared.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	return s.prover.Status(ctx)
}

// callError is an error of the prover, or of the gateway, as the error of a call.
func callError(err error) error {
	code := codes.Internal
	var (
		invalid *shared.InvalidRequestError
		params  *shared.ParamsError
		busy    *shared.BusyError
		large   *shared.TooLargeError
		aside   *shared.SetAsideError
		died    *shared.PluginDiedError
	)
	switch {
	case errors.As(err, &invalid):
		code = codes.InvalidArgument
	case errors.As(err, &params), errors.As(err, &large): // no use to try again as things are
		code = codes.FailedPrecondition
	case errors.As(err, &busy):
		code = codes.ResourceExhausted
	case errors.As(err, &aside):
		code = codes.Aborted
	case errors.Is(err, shared.ErrUnknownJob):
		code = codes.NotFound
	case errors.As(err, &died), errors.Is(err, shared.ErrUnreachable), errors.Is(err, host.ErrStopped), errors.Is(err, errDraining):
		code = codes.Unavailable
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	}
	return status.Error(code, err.Error())
}

// millis rounds up, so that what took any time at all is not 0.
func millis(d time.Duration) uint64 {
	if d <= 0 {
		return 0
	}
	return uint64((d + time.Millisecond - 1) / time.Millisecond)
}
