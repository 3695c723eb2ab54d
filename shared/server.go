package shared

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/interlock-prover/interlock/shared/proto"
)

// newServer makes a gRPC server that register can be used with.
func newServer(options ...grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(options, grpc.ForceServerCodecV2(uploadCodec{encoding.GetCodecV2(grpcproto.Name)}))...)
}

// register offers a prover and a toolbox on a server of newServer.
func register(server *grpc.Server, prover Prover, toolbox Toolbox) {
	proto.RegisterProverServer(server, &proverServer{prover: prover})
	proto.RegisterToolboxServer(server, &toolboxServer{toolbox: toolbox})
}

type proverServer struct {
	proto.UnsafeProverServer
	prover Prover
}

func (s *proverServer) Prove(stream grpc.BidiStreamingServer[proto.Upload, proto.ProveReply]) error {
	request, err := receiveRequest(stream)
	if err != nil {
		return toStatus(err)
	}
	defer request.Release()
	reports := newReporter(func(p *proto.Progress) error {
		return stream.Send(&proto.ProveReply{Reply: &proto.ProveReply_Progress{Progress: p}})
	})
	result, err := s.prover.Prove(stream.Context(), request.Request, reports.report)
	reports.flush()
	if err != nil {
		return toStatus(err)
	}
	return stream.Send(&proto.ProveReply{Reply: &proto.ProveReply_Result{Result: resultToProto(result)}})
}

func (s *proverServer) Submit(stream grpc.ClientStreamingServer[proto.Upload, proto.SubmitReply]) error {
	request, err := receiveRequest(stream)
	if err != nil {
		return toStatus(err)
	}
	job, err := s.prover.Submit(stream.Context(), request.Request)
	if err != nil {
		request.Release()
		return toStatus(err)
	}
	return stream.SendAndClose(&proto.SubmitReply{JobId: string(job)})
}

func (s *proverServer) Await(ctx context.Context, request *proto.AwaitRequest) (*proto.Result, error) {
	result, err := s.prover.Await(ctx, JobID(request.GetJobId()))
	if err != nil {
		return nil, toStatus(err)
	}
	return resultToProto(result), nil
}

func (s *proverServer) Cancel(ctx context.Context, request *proto.CancelRequest) (*proto.CancelReply, error) {
	wasRunning, err := s.prover.Cancel(ctx, JobID(request.GetJobId()))
	if err != nil {
		return nil, toStatus(err)
	}
	return &proto.CancelReply{WasRunning: wasRunning}, nil
}

func (s *proverServer) Status(ctx context.Context, _ *proto.StatusRequest) (*proto.StatusReply, error) {
	status, err := s.prover.Status(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	return statusToProto(status), nil
}

func (s *proverServer) Timeline(_ *proto.TimelineRequest, stream grpc.ServerStreamingServer[proto.TimelineBatch]) error {
	recording, err := s.prover.Timeline(stream.Context())
	if err != nil {
		return toStatus(err)
	}
	for _, batch := range recordingToProto(recording) {
		if err := stream.Send(batch); err != nil {
			return err
		}
	}
	return nil
}

type toolboxServer struct {
	proto.UnsafeToolboxServer
	toolbox Toolbox
}

func (s *toolboxServer) Verify(stream grpc.ClientStreamingServer[proto.Upload, proto.VerifyReply]) error {
	request, err := receiveRequest(stream)
	if err != nil {
		return toStatus(err)
	}
	defer request.Release()
	valid, err := s.toolbox.Verify(stream.Context(), request.Request, request.proof)
	if err != nil {
		return toStatus(err)
	}
	return stream.SendAndClose(&proto.VerifyReply{Valid: valid})
}

func (s *toolboxServer) SetupParams(request *proto.SetupRequest, stream grpc.ServerStreamingServer[proto.SetupReply]) error {
	setup := SetupRequest{CircuitRequest: circuitFromProto(request.GetCircuit()), Dir: request.GetDir()}
	if err := setup.Validate(); err != nil {
		return toStatus(err)
	}
	reports := newReporter(func(p *proto.Progress) error {
		return stream.Send(&proto.SetupReply{Reply: &proto.SetupReply_Progress{Progress: p}})
	})
	result, err := s.toolbox.SetupParams(stream.Context(), setup, reports.report)
	reports.flush()
	if err != nil {
		return toStatus(err)
	}
	return stream.Send(&proto.SetupReply{Reply: &proto.SetupReply_Result{Result: setupResultToProto(result)}})
}

func (s *toolboxServer) CheckParams(request *proto.CheckParamsRequest, stream grpc.ServerStreamingServer[proto.CheckParamsReply]) error {
	reports := newReporter(func(p *proto.Progress) error {
		return stream.Send(&proto.CheckParamsReply{Reply: &proto.CheckParamsReply_Progress{Progress: p}})
	})
	report, err := s.toolbox.CheckParams(stream.Context(), request.GetPath(), reports.report)
	reports.flush()
	if err != nil {
		return toStatus(err)
	}
	return stream.Send(&proto.CheckParamsReply{Reply: &proto.CheckParamsReply_Result{Result: reportToProto(report)}})
}

func (s *toolboxServer) CircuitDigest(request *proto.CircuitRequest, stream grpc.ServerStreamingServer[proto.CircuitDigestReply]) error {
	circuit := circuitFromProto(request)
	if err := circuit.Validate(); err != nil {
		return toStatus(err)
	}
	reports := newReporter(func(p *proto.Progress) error {
		return stream.Send(&proto.CircuitDigestReply{Reply: &proto.CircuitDigestReply_Progress{Progress: p}})
	})
	digest, err := s.toolbox.CircuitDigest(stream.Context(), circuit, reports.report)
	reports.flush()
	if err != nil {
		return toStatus(err)
	}
	return stream.Send(&proto.CircuitDigestReply{Reply: &proto.CircuitDigestReply_Result{Result: digestToProto(digest)}})
}

func (s *toolboxServer) Preload(ctx context.Context, request *proto.CircuitRequest) (*proto.PreloadReply, error) {
	circuit := circuitFromProto(request)
	if err := circuit.Validate(); err != nil {
		return nil, toStatus(err)
	}
	result, err := s.toolbox.Preload(ctx, circuit)
	if err != nil {
		return nil, toStatus(err)
	}
	return &proto.PreloadReply{AlreadyLoaded: result.AlreadyLoaded, Elapsed: durationpb.New(result.Elapsed)}, nil
}

func (s *toolboxServer) Evict(ctx context.Context, request *proto.CircuitRequest) (*proto.EvictReply, error) {
	circuit := circuitFromProto(request)
	if err := circuit.Validate(); err != nil {
		return nil, toStatus(err)
	}
	result, err := s.toolbox.Evict(ctx, circuit)
	if err != nil {
		return nil, toStatus(err)
	}
	return &proto.EvictReply{WasLoaded: result.WasLoaded, FreedBytes: result.FreedBytes}, nil
}

func (s *toolboxServer) Bench(request *proto.BenchRequest, stream grpc.ServerStreamingServer[proto.BenchLine]) error {
	var mu sync.Mutex // a stream takes one message at a time
	var broken error
	err := s.toolbox.Bench(stream.Context(), BenchRequest{Name: request.GetName(), Args: request.GetArgs()}, func(line string) {
		mu.Lock()
		defer mu.Unlock()
		if broken == nil {
			broken = stream.Send(&proto.BenchLine{Line: line})
		}
	})
	if err != nil {
		return toStatus(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return broken
}

// received is a request as it came over the wire.
type received struct {
	Request
	proof []byte // that is to be verified
}

// receiveRequest reads an upload to its end. Everything the header says is checked before the payload is read, and no
// vanilla proof's buffer is made before its first byte has come.
func receiveRequest(stream grpc.ServerStream) (received, error) {
	var first proto.Upload
	if err := stream.RecvMsg(&first); err == io.EOF {
		return received{}, uploadFault("nothing was sent")
	} else if err != nil {
		return received{}, err
	}
	header := first.GetHeader()
	if header == nil {
		return received{}, uploadFault("it does not begin with its header")
	}
	r := received{Request: headerToRequest(header), proof: header.GetProof()}
	if err := validateVerify(&r.Request, header.GetVanillaBytes(), r.proof); err != nil {
		return received{}, err
	}
	if where := header.GetShared(); where != nil {
		var err error
		r.Vanilla, r.mapped, err = openSealed(where, header.GetVanillaBytes())
		return r, err
	}
	payload := payload{sizes: header.GetVanillaBytes()}
	for {
		err := stream.RecvMsg(&payload)
		if err == io.EOF {
			r.Vanilla, err = payload.whole()
			return r, err
		}
		if err = cmp.Or(err, payload.fault); err != nil {
			return received{}, err
		}
	}
}

// payload is the message that chunks are received as. It takes them into the vanilla proofs straight from the
// connection's buffers: decoded as protobuf, every chunk would be allocated once more on its way.
type payload struct {
	sizes   []uint64 // of all vanilla proofs
	vanilla [][]byte // as far as they have come
	rest    []byte   // of the last of them, not filled yet
	fault   error
}

// chunkTag begins an Upload whose part is a chunk: field 2, of bytes.
const chunkTag = 2<<3 | 2

// take reads one message, in protobuf's encoding of an Upload.
func (p *payload) take(data mem.BufferSlice) {
	reader := data.Reader()
	defer func() { _ = reader.Close() }() // never fails
	tag, tagErr := binary.ReadUvarint(reader)
	size, sizeErr := binary.ReadUvarint(reader)
	if tagErr != nil || sizeErr != nil || tag != chunkTag || size == 0 || size != uint64(reader.Remaining()) {
		p.fault = uploadFault("a message that is no chunk came after the header")
		return
	}
	for reader.Remaining() > 0 {
		if len(p.rest) == 0 {
			if len(p.vanilla) == len(p.sizes) {
				p.fault = uploadFault("it is longer than its header says")
				return
			}
			p.rest = make([]byte, p.sizes[len(p.vanilla)])
			p.vanilla = append(p.vanilla, p.rest)
		}
		n, err := reader.Read(p.rest)
		if err != nil {
			p.fault = err
			return
		}
		p.rest = p.rest[n:]
	}
}

// whole gives the vanilla proofs if all have come.
func (p *payload) whole() ([][]byte, error) {
	if len(p.rest) > 0 || len(p.vanilla) < len(p.sizes) {
		return nil, uploadFault("it ended after %d of %d vanilla proofs, with %d bytes missing of the last",
			len(p.vanilla), len(p.sizes), len(p.rest))
	}
	return p.vanilla, nil
}

// uploadCodec is gRPC's protobuf codec, but for payload.
type uploadCodec struct{ encoding.CodecV2 }

func (c uploadCodec) Unmarshal(data mem.BufferSlice, message any) error {
	if p, ok := message.(*payload); ok {
		p.take(data)
		return nil
	}
	return c.CodecV2.Unmarshal(data, message)
}

func uploadFault(format string, args ...any) error {
	return &InvalidRequestError{Field: "upload", Reason: fmt.Sprintf(format, args...)}
}

// reporter sends progress from a goroutine of its own, so that a slow reader never holds up the work reported on: while
// reports wait to be sent, newer ones push out the oldest.
type reporter struct {
	mu     sync.Mutex
	closed bool
	queue  chan *proto.Progress
	sent   chan struct{}
}

// reportsWaiting is how many reports may wait for a slow reader.
const reportsWaiting = 256

func newReporter(send func(*proto.Progress) error) *reporter {
	r := &reporter{queue: make(chan *proto.Progress, reportsWaiting), sent: make(chan struct{})}
	go func() {
		defer close(r.sent)
		var broken bool
		for p := range r.queue {
			if !broken {
				broken = send(p) != nil // the reader has gone, which the handler's context tells the prover
			}
		}
	}()
	return r
}

// report may be called by any goroutine; it never waits. After flush it does nothing.
func (r *reporter) report(p Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	message := progressToProto(p)
	for {
		select {
		case r.queue <- message:
			return
		default:
		}
		select {
		case <-r.queue: // the oldest makes room
		default:
		}
	}
}

// flush waits until every report has been sent, and takes no more.
func (r *reporter) flush() {
	r.mu.Lock()
	r.closed = true
	close(r.queue)
	r.mu.Unlock()
	<-r.sent
}
