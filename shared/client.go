package shared

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/interlock-prover/interlock/shared/proto"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// chunkBytes is how much of a vanilla proof goes into one message: 1 MiB with the message's own bytes, so that it fits
// the largest buffers that gRPC keeps for reuse. With 64 bytes more, sending would allocate the whole payload anew.
const chunkBytes = 1<<20 - 64

// Client is a plugin as seen from the host: [Prover] and [Toolbox] over gRPC.
type Client struct {
	prover  proto.ProverClient
	toolbox proto.ToolboxClient
	health  grpc_health_v1.HealthClient

	notShared atomic.Pointer[func(error)] // nil: payloads are streamed
}

var (
	_ Prover  = (*Client)(nil)
	_ Toolbox = (*Client)(nil)
)

// NewClient makes a client of a connection to a plugin.
func NewClient(conn grpc.ClientConnInterface) *Client {
	return &Client{
		prover:  proto.NewProverClient(conn),
		toolbox: proto.NewToolboxClient(conn),
		health:  grpc_health_v1.NewHealthClient(conn),
	}
}

// SharePayloads has large vanilla proofs reach the plugin as sealed memory files instead of in a stream, for a plugin on
// the same machine. If that does not work, they are streamed from then on, and notShared is told why, once.
func (c *Client) SharePayloads(notShared func(error)) { c.notShared.Store(&notShared) }

// Ping asks the plugin whether it serves. A plugin that hangs makes Ping wait until ctx ends.
func (c *Client) Ping(ctx context.Context) error {
	reply, err := c.health.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: healthService})
	if err != nil {
		return fromStatus(err)
	}
	if reply.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("the plugin is not serving: %v", reply.GetStatus())
	}
	return nil
}

// Prove implements [Prover].
func (c *Client) Prove(ctx context.Context, request Request, progress func(Progress)) (Result, error) {
	if err := request.Validate(); err != nil {
		return Result{}, err
	}
	streamCtx, end := context.WithCancel(ctx) // so that no path leaves the stream open
	defer end()
	var result *proto.Result
	err := c.send(&request, nil, func(p *outgoing) error {
		stream, err := c.prover.Prove(streamCtx)
		if err == nil {
			err = p.upload(stream)
		}
		if err == nil {
			err = stream.CloseSend()
		}
		if err != nil {
			return fromStatus(err)
		}
		result, err = lastReply(stream, func(report Progress) {
			p.close() // the plugin has it, since it reports
			if progress != nil {
				progress(report)
			}
		})
		return err
	})
	if err != nil {
		return Result{}, cancelledBy(ctx, err)
	}
	return resultFromProto(result), nil
}

// cancelledBy says of an error that came of the end of a request's context that the request was cancelled with it.
func cancelledBy(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled) {
		return ErrCancelled
	}
	return err
}

// Submit implements [Prover].
func (c *Client) Submit(ctx context.Context, request Request) (JobID, error) {
	if err := request.Validate(); err != nil {
		return "", err
	}
	streamCtx, end := context.WithCancel(ctx)
	defer end()
	var reply *proto.SubmitReply
	err := c.send(&request, nil, func(p *outgoing) error {
		stream, err := c.prover.Submit(streamCtx)
		if err == nil {
			err = p.upload(stream)
		}
		if err == nil {
			reply, err = stream.CloseAndRecv()
		}
		return fromStatus(err)
	})
	return JobID(reply.GetJobId()), err
}

// Await implements [Prover].
func (c *Client) Await(ctx context.Context, job JobID) (Result, error) {
	reply, err := c.prover.Await(ctx, &proto.AwaitRequest{JobId: string(job)})
	if err != nil {
		return Result{}, fromStatus(err)
	}
	return resultFromProto(reply), nil
}

// Cancel implements [Prover].
func (c *Client) Cancel(ctx context.Context, job JobID) (wasRunning bool, err error) {
	reply, err := c.prover.Cancel(ctx, &proto.CancelRequest{JobId: string(job)})
	if err != nil {
		return false, fromStatus(err)
	}
	return reply.GetWasRunning(), nil
}

// Status implements [Prover].
func (c *Client) Status(ctx context.Context) (Status, error) {
	reply, err := c.prover.Status(ctx, &proto.StatusRequest{})
	if err != nil {
		return Status{}, fromStatus(err)
	}
	return statusFromProto(reply), nil
}

// Timeline implements [Prover].
func (c *Client) Timeline(ctx context.Context) (timeline.Recording, error) {
	streamCtx, end := context.WithCancel(ctx)
	defer end()
	stream, err := c.prover.Timeline(streamCtx, &proto.TimelineRequest{})
	if err != nil {
		return timeline.Recording{}, fromStatus(err)
	}
	var recording timeline.Recording
	for {
		batch, err := stream.Recv()
		if err == io.EOF {
			return recording, nil
		}
		if err != nil {
			return timeline.Recording{}, fromStatus(err)
		}
		addBatch(&recording, batch)
	}
}

// Verify implements [Toolbox].
func (c *Client) Verify(ctx context.Context, request Request, proof []byte) (valid bool, err error) {
	if err := validateVerify(&request, request.vanillaBytes(), proof); err != nil {
		return false, err
	}
	streamCtx, end := context.WithCancel(ctx)
	defer end()
	var reply *proto.VerifyReply
	err = c.send(&request, proof, func(p *outgoing) error {
		stream, err := c.toolbox.Verify(streamCtx)
		if err == nil {
			err = p.upload(stream)
		}
		if err == nil {
			reply, err = stream.CloseAndRecv()
		}
		return fromStatus(err)
	})
	return reply.GetValid(), err
}

// SetupParams implements [Toolbox].
func (c *Client) SetupParams(ctx context.Context, request SetupRequest, progress func(Progress)) (SetupResult, error) {
	if err := request.Validate(); err != nil {
		return SetupResult{}, err
	}
	streamCtx, end := context.WithCancel(ctx)
	defer end()
	stream, err := c.toolbox.SetupParams(streamCtx, &proto.SetupRequest{
		Circuit: circuitToProto(request.CircuitRequest),
		Dir:     request.Dir,
	})
	if err != nil {
		return SetupResult{}, fromStatus(err)
	}
	result, err := lastReply(stream, progress)
	if err != nil {
		return SetupResult{}, err
	}
	return setupResultFromProto(result), nil
}

// CheckParams implements [Toolbox].
func (c *Client) CheckParams(ctx context.Context, path string, progress func(Progress)) (ParamsReport, error) {
	streamCtx, end := context.WithCancel(ctx)
	defer end()
	stream, err := c.toolbox.CheckParams(streamCtx, &proto.CheckParamsRequest{Path: path})
	if err != nil {
		return ParamsReport{}, fromStatus(err)
	}
	report, err := lastReply(stream, progress)
	if err != nil {
		return ParamsReport{}, err
	}
	return reportFromProto(report), nil
}

// CircuitDigest implements [Toolbox].
func (c *Client) CircuitDigest(ctx context.Context, request CircuitRequest, progress func(Progress)) (CircuitDigest, error) {
	if err := request.Validate(); err != nil {
		return CircuitDigest{}, err
	}
	streamCtx, end := context.WithCancel(ctx)
	defer end()
	stream, err := c.toolbox.CircuitDigest(streamCtx, circuitToProto(request))
	if err != nil {
		return CircuitDigest{}, fromStatus(err)
	}
	digest, err := lastReply(stream, progress)
	if err != nil {
		return CircuitDigest{}, err
	}
	return digestFromProto(digest), nil
}

// Preload implements [Toolbox].
func (c *Client) Preload(ctx context.Context, request CircuitRequest) (PreloadResult, error) {
	if err := request.Validate(); err != nil {
		return PreloadResult{}, err
	}
	reply, err := c.toolbox.Preload(ctx, circuitToProto(request))
	if err != nil {
		return PreloadResult{}, fromStatus(err)
	}
	return PreloadResult{AlreadyLoaded: reply.GetAlreadyLoaded(), Elapsed: reply.GetElapsed().AsDuration()}, nil
}

// Evict implements [Toolbox].
func (c *Client) Evict(ctx context.Context, request CircuitRequest) (EvictResult, error) {
	if err := request.Validate(); err != nil {
		return EvictResult{}, err
	}
	reply, err := c.toolbox.Evict(ctx, circuitToProto(request))
	if err != nil {
		return EvictResult{}, fromStatus(err)
	}
	return EvictResult{WasLoaded: reply.GetWasLoaded(), FreedBytes: reply.GetFreedBytes()}, nil
}

// Bench implements [Toolbox].
func (c *Client) Bench(ctx context.Context, request BenchRequest, out func(line string)) error {
	streamCtx, end := context.WithCancel(ctx)
	defer end()
	stream, err := c.toolbox.Bench(streamCtx, &proto.BenchRequest{Name: request.Name, Args: request.Args})
	if err != nil {
		return fromStatus(err)
	}
	for {
		line, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fromStatus(err)
		}
		out(line.GetLine())
	}
}

// outgoing is a request on its way to the plugin.
type outgoing struct {
	header  *proto.RequestHeader
	vanilla [][]byte // that are streamed
	file    *os.File // that has them otherwise; nil: none, or closed
}

// send makes a call with a request, whose vanilla proofs are shared if that pays and works, else streamed.
func (c *Client) send(r *Request, proof []byte, call func(*outgoing) error) error {
	total := 0
	for _, v := range r.Vanilla {
		total += len(v)
	}
	notShared := c.notShared.Load()
	if notShared != nil && total >= sharedFromBytes {
		p := &outgoing{header: requestToHeader(r, proof)}
		var err error
		if p.file, p.header.Shared, err = newSealed(r.Vanilla); err == nil {
			err = call(p)
			p.close()
			if !errors.Is(err, errNotShared) {
				return err
			}
		}
		if c.notShared.CompareAndSwap(notShared, nil) {
			(*notShared)(err)
		}
	}
	return call(&outgoing{header: requestToHeader(r, proof), vanilla: r.Vanilla})
}

// close gives up the memory file. The plugin must have mapped it by then.
func (p *outgoing) close() {
	if p.file != nil {
		_ = p.file.Close() // nothing of it is kept
		p.file = nil
	}
}

// upload sends a request. If the plugin refuses it halfway, the reason is what the stream's next receive fails with, so
// upload then stops without an error.
func (p *outgoing) upload(stream interface{ Send(*proto.Upload) error }) error {
	err := stream.Send(&proto.Upload{Part: &proto.Upload_Header{Header: p.header}})
	for _, v := range p.vanilla {
		for start := 0; start < len(v) && err == nil; start += chunkBytes {
			chunk := v[start:min(start+chunkBytes, len(v))]
			err = stream.Send(&proto.Upload{Part: &proto.Upload_Chunk{Chunk: chunk}})
		}
	}
	if err == io.EOF {
		return nil
	}
	return err
}

// lastReply reads the answers of a long task: progress, and last the result.
func lastReply[M interface {
	GetProgress() *proto.Progress
	GetResult() *R
}, R any](stream interface{ Recv() (M, error) }, progress func(Progress)) (*R, error) {
	var result *R
	for {
		reply, err := stream.Recv()
		if err == io.EOF && result != nil {
			return result, nil
		}
		if err != nil {
			return nil, fromStatus(err)
		}
		if p := reply.GetProgress(); p != nil && progress != nil {
			progress(progressFromProto(p))
		}
		if r := reply.GetResult(); r != nil {
			result = r
		}
	}
}
