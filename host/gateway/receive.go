package gateway

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/interlock-prover/interlock/host/gateway/cuzkpb"
)

// MaxMessageBytes bounds a message, both ways; Curio's client has the same bound.
const MaxMessageBytes = 256 << 20

// uploads bounds the memory that requests take on their way in. A place is held from before the first byte of a message
// is read until the prover has the request, so that places times the size of a message is all there can be.
type uploads struct {
	places  chan struct{}
	waiting chan struct{}
	timeout time.Duration // until a message has come
}

// uploadsWaiting is how many calls may wait for a place; each has up to a stream's window of data in memory.
const uploadsWaiting = 256

func newUploads(places int, timeout time.Duration) *uploads {
	return &uploads{places: make(chan struct{}, places), waiting: make(chan struct{}, uploadsWaiting), timeout: timeout}
}

var (
	errManyUploads = status.Error(codes.ResourceExhausted, "too many requests are being uploaded at once; try again")
	errNoMessage   = status.Error(codes.InvalidArgument, "the call has no message")
)

// receive reads a call's message. release gives the place back; it is nil if receive fails.
func (u *uploads) receive(stream grpc.ServerStream, message any) (release func(), err error) {
	select {
	case u.waiting <- struct{}{}:
	default:
		return nil, errManyUploads
	}
	select {
	case u.places <- struct{}{}:
		<-u.waiting
	case <-stream.Context().Done():
		<-u.waiting
		return nil, status.FromContextError(stream.Context().Err()).Err()
	}
	release = sync.OnceFunc(func() { <-u.places })

	timeout := time.AfterFunc(u.timeout, func() { endReading(stream.Context()) })
	err = stream.RecvMsg(message)
	if !timeout.Stop() {
		err = context.DeadlineExceeded
	}
	if err != nil {
		release()
		if errors.Is(err, io.EOF) {
			err = errNoMessage
		}
		return nil, err
	}
	return release, nil
}

// reading is the context of a call whose message may be too slow. gRPC ends the reading of a message with nothing but
// the context that a call has from its first moment, and answers with that context's error.
type reading struct {
	context.Context
	end  context.CancelFunc
	slow atomic.Bool
}

// readingKey finds the reading among a context's ancestors.
type readingKey struct{}

func (r *reading) Value(key any) any {
	if key == (readingKey{}) {
		return r
	}
	return r.Context.Value(key)
}

func (r *reading) Err() error {
	err := r.Context.Err()
	if err != nil && r.slow.Load() {
		return context.DeadlineExceeded
	}
	return err
}

// tapReading gives every call a reading.
func tapReading(ctx context.Context, _ *tap.Info) (context.Context, error) {
	r := &reading{}
	r.Context, r.end = context.WithCancel(ctx)
	return r, nil
}

// endReading ends the reading of a call's message because it is too slow.
func endReading(ctx context.Context) {
	if r, ok := ctx.Value(readingKey{}).(*reading); ok {
		r.slow.Store(true)
		r.end()
	}
}

// register offers the service on a server. Calls that carry vanilla proofs are unary on the wire, but taken as streams:
// gRPC reads the whole message of a unary call before anything else hears of it.
func register(server *grpc.Server, s *service) {
	desc := cuzkpb.ProvingEngine_ServiceDesc
	desc.Methods = slices.DeleteFunc(slices.Clone(desc.Methods), func(m grpc.MethodDesc) bool {
		return m.MethodName == "SubmitProof" || m.MethodName == "Prove"
	})
	desc.Streams = append(slices.Clone(desc.Streams),
		grpc.StreamDesc{StreamName: "SubmitProof", ClientStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
			var submit cuzkpb.SubmitProofRequest
			release, err := s.uploads.receive(stream, &submit)
			if err != nil {
				return err
			}
			reply, err := s.submitProof(stream.Context(), &submit, release)
			if err != nil {
				return err
			}
			return stream.SendMsg(reply)
		}},
		grpc.StreamDesc{StreamName: "Prove", ClientStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
			var prove cuzkpb.ProveRequest
			release, err := s.uploads.receive(stream, &prove)
			if err != nil {
				return err
			}
			if prove.Submit == nil {
				prove.Submit = &cuzkpb.SubmitProofRequest{}
			}
			reply, err := s.prove(stream.Context(), prove.Submit, release)
			if err != nil {
				return err
			}
			return stream.SendMsg(reply)
		}},
	)
	server.RegisterService(&desc, s)
}
