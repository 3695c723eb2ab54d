package gateway

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/gateway/cuzkpb"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/sharedtest"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// fakeProver behaves as a prover does whose proofs are done when the test says so.
type fakeProver struct {
	*sharedtest.Mock

	mu       sync.Mutex
	requests []shared.Request // as submitted, in order
	jobs     map[shared.JobID]*fakeJob
	status   shared.Status
	down     error // what Status fails with
	timeline timeline.Recording
	onSubmit func(context.Context, shared.Request) error // before a request is accepted
	loaded   map[shared.CircuitRequest]bool
}

type fakeJob struct {
	done   chan struct{}
	result shared.Result
	err    error
}

func newFakeProver() *fakeProver {
	f := &fakeProver{Mock: &sharedtest.Mock{}, jobs: map[shared.JobID]*fakeJob{}, loaded: map[shared.CircuitRequest]bool{}}
	f.OnSubmit = func(ctx context.Context, r shared.Request) (shared.JobID, error) {
		if f.onSubmit != nil {
			if err := f.onSubmit(ctx, r); err != nil {
				return "", err
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		id := shared.JobID(fmt.Sprintf("prover-%d", len(f.requests)))
		f.requests = append(f.requests, r)
		f.jobs[id] = &fakeJob{done: make(chan struct{})}
		return id, nil
	}
	f.OnAwait = func(ctx context.Context, id shared.JobID) (shared.Result, error) {
		j := f.job(id)
		if j == nil {
			return shared.Result{}, shared.ErrUnknownJob
		}
		select {
		case <-j.done:
			return j.result, j.err
		case <-ctx.Done():
			return shared.Result{}, ctx.Err()
		}
	}
	f.OnCancel = func(_ context.Context, id shared.JobID) (bool, error) {
		j := f.job(id)
		if j == nil {
			return false, shared.ErrUnknownJob
		}
		return f.end(j, shared.Result{}, shared.ErrCancelled), nil
	}
	f.OnStatus = func(context.Context) (shared.Status, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		st := f.status
		st.PID = max(st.PID, 1)
		return st, f.down
	}
	f.OnTimeline = func(context.Context) (timeline.Recording, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.timeline, nil
	}
	return f
}

// State stands for a supervisor's.
func (f *fakeProver) State() host.State { return host.State{Restarts: 3, Deaths: 1} }

// goDown makes Status fail from now on.
func (f *fakeProver) goDown(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down = err
}

// Preload and Evict stand for a toolbox's.
func (f *fakeProver) Preload(_ context.Context, c shared.CircuitRequest) (shared.PreloadResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.Kind == shared.KindUpdate {
		return shared.PreloadResult{}, &shared.ParamsError{Path: "/params/x.params", Reason: "is missing", Remedy: "fetch it"}
	}
	r := shared.PreloadResult{AlreadyLoaded: f.loaded[c], Elapsed: 1500 * time.Microsecond}
	f.loaded[c] = true
	return r, nil
}

func (f *fakeProver) Evict(_ context.Context, c shared.CircuitRequest) (shared.EvictResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.loaded[c]
	delete(f.loaded, c)
	if !was {
		return shared.EvictResult{}, nil
	}
	return shared.EvictResult{WasLoaded: true, FreedBytes: 77}, nil
}

func (f *fakeProver) job(id shared.JobID) *fakeJob {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.jobs[id]
}

// end answers a job unless it is answered.
func (f *fakeProver) end(j *fakeJob, result shared.Result, err error) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-j.done:
		return false
	default:
	}
	j.result, j.err = result, err
	close(j.done)
	return true
}

// submitted are the requests that reached the prover.
func (f *fakeProver) submitted() []shared.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]shared.Request(nil), f.requests...)
}

// nth waits for the n-th request (from 0) and gives its job.
func (f *fakeProver) nth(t *testing.T, n int) *fakeJob {
	t.Helper()
	require.Eventually(t, func() bool { return len(f.submitted()) > n }, 10*time.Second, time.Millisecond)
	return f.job(shared.JobID(fmt.Sprintf("prover-%d", n)))
}

// finish answers the n-th request with a proof that tells which it is.
func (f *fakeProver) finish(t *testing.T, n int) []byte {
	t.Helper()
	proof := fmt.Appendf(nil, "proof %d", n)
	require.True(t, f.end(f.nth(t, n), shared.Result{Proof: proof, Partitions: 1, Timings: shared.Timings{
		Queue: 1 * time.Millisecond, Params: 2 * time.Millisecond, Witness: 3 * time.Millisecond,
		Device: 4 * time.Millisecond, Total: 5 * time.Millisecond,
	}}, nil))
	return proof
}

// serve starts a gateway on a socket of its own, which ends with the test.
func serve(t testing.TB, f *fakeProver, o Options) (*Gateway, string) {
	t.Helper()
	o.Prover, o.Keeper = f, f
	g := New(o)
	l, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // what is under way is given up
		_ = g.Close(ctx)
		require.NoError(t, <-served)
	})
	return g, l.Addr().String()
}

// dial connects a client as Curio does.
func dial(t testing.TB, address string) cuzkpb.ProvingEngineClient {
	t.Helper()
	return cuzkpb.NewProvingEngineClient(connect(t, address))
}

func connect(t testing.TB, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessageBytes), grpc.MaxCallSendMsgSize(2*MaxMessageBytes)),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// winning is a request in good form.
func winning(id string) *cuzkpb.SubmitProofRequest {
	return &cuzkpb.SubmitProofRequest{
		RequestId: id, ProofKind: cuzkpb.ProofKind_WINNING_POST, SectorSize: 2048, RegisteredProof: 0,
		VanillaProofs: [][]byte{{1, 2, 3}}, MinerId: 1000, Randomness: make([]byte, 32), SectorNumber: 7,
	}
}

func connectUnix(t testing.TB, path string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
