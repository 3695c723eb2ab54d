package shared_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/proto"
	"github.com/interlock-prover/interlock/shared/sharedtest"
	"github.com/interlock-prover/interlock/shared/sharedtest/bounded"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// rawCodec sends and receives messages as they are.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// Whatever two messages come to whichever call of a plugin: it answers or refuses, what it passes on is valid, nothing
// panics, and no more is allocated than the messages warrant.
func FuzzCalls(f *testing.F) {
	var methods []string
	for _, service := range []grpc.ServiceDesc{proto.Prover_ServiceDesc, proto.Toolbox_ServiceDesc} {
		for _, m := range service.Methods {
			methods = append(methods, "/"+service.ServiceName+"/"+m.MethodName)
		}
		for _, s := range service.Streams {
			methods = append(methods, "/"+service.ServiceName+"/"+s.StreamName)
		}
	}
	taken := make(chan shared.Request, 1)
	take := func(r shared.Request) { taken <- r }
	mock := &sharedtest.Mock{
		OnProve: func(_ context.Context, r shared.Request, _ func(shared.Progress)) (shared.Result, error) {
			take(r)
			return shared.Result{RequestID: r.ID}, nil
		},
		OnSubmit: func(_ context.Context, r shared.Request) (shared.JobID, error) { take(r); return "id", nil },
		OnVerify: func(_ context.Context, r shared.Request, _ []byte) (bool, error) { take(r); return true, nil },
		OnAwait: func(context.Context, shared.JobID) (shared.Result, error) {
			return shared.Result{}, shared.ErrCancelled
		},
		OnCancel:   func(context.Context, shared.JobID) (bool, error) { return true, nil },
		OnStatus:   func(context.Context) (shared.Status, error) { return shared.Status{}, nil },
		OnTimeline: func(context.Context) (timeline.Recording, error) { return timeline.Recording{}, nil },
		OnSetupParams: func(context.Context, shared.SetupRequest, func(shared.Progress)) (shared.SetupResult, error) {
			return shared.SetupResult{}, nil
		},
		OnCheckParams: func(context.Context, string, func(shared.Progress)) (shared.ParamsReport, error) {
			return shared.ParamsReport{}, nil
		},
		OnCircuitDigest: func(context.Context, shared.CircuitRequest, func(shared.Progress)) (shared.CircuitDigest, error) {
			return shared.CircuitDigest{}, nil
		},
		OnPreload: func(context.Context, shared.CircuitRequest) (shared.PreloadResult, error) {
			return shared.PreloadResult{}, nil
		},
		OnEvict: func(context.Context, shared.CircuitRequest) (shared.EvictResult, error) {
			return shared.EvictResult{}, nil
		},
		OnBench: func(context.Context, shared.BenchRequest, func(string)) error { return nil },
	}
	_, conn := serve(f, mock)

	seed := func(messages ...protobuf.Message) {
		encoded := make([][]byte, 2)
		for i, m := range messages {
			var err error
			encoded[i], err = protobuf.Marshal(m)
			require.NoError(f, err)
		}
		for i := range methods {
			f.Add(uint8(i), encoded[0], encoded[1])
		}
	}
	header := &proto.RequestHeader{
		Id: "r", Kind: proto.Kind_KIND_WINNING_POST, SectorSize: 2048, MinerId: 7, Randomness: make([]byte, 32), VanillaBytes: []uint64{3},
	}
	chunk := &proto.Upload{Part: &proto.Upload_Chunk{Chunk: []byte{1, 2, 3}}}
	seed(&proto.Upload{Part: &proto.Upload_Header{Header: header}}, chunk)
	huge := protobuf.Clone(header).(*proto.RequestHeader)
	huge.VanillaBytes = []uint64{1 << 27, 1 << 62}
	seed(&proto.Upload{Part: &proto.Upload_Header{Header: huge}}, chunk)
	huge.VanillaBytes = []uint64{100 << 20} // announced, and not sent
	seed(&proto.Upload{Part: &proto.Upload_Header{Header: huge}}, chunk)
	seed(&proto.CircuitRequest{SectorSize: 2048}, chunk)
	seed(&proto.AwaitRequest{}, chunk)

	f.Fuzz(func(t *testing.T, method uint8, first, second []byte) {
		name := methods[int(method)%len(methods)]
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var fault error
		bounded.Allocation(t, len(first)+len(second), func() {
			desc := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
			stream, err := conn.NewStream(ctx, desc, name, grpc.ForceCodecV2(rawCodec{}))
			require.NoError(t, err)
			_ = stream.SendMsg(&first) // the answer tells
			_ = stream.SendMsg(&second)
			_ = stream.CloseSend()
			for fault == nil {
				var reply []byte
				fault = stream.RecvMsg(&reply)
			}
		})
		if code := status.Code(fault); code == codes.DeadlineExceeded || code == codes.Unavailable {
			t.Fatalf("%s: %v", name, fault)
		}
		select {
		case r := <-taken:
			require.NoError(t, r.Validate(), name)
		default:
		}
	})
}
