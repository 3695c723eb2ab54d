package shared_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/proto"
	"github.com/interlock-prover/interlock/shared/sharedtest"
	"github.com/interlock-prover/interlock/shared/timeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve gives a client of the mock over a unix socket, and the connection for requests that no client would make.
func serve(t testing.TB, mock *sharedtest.Mock) (*shared.Client, *grpc.ClientConn) {
	t.Helper()
	listener, err := net.Listen("unix", t.TempDir()+"/s")
	require.NoError(t, err)
	server := shared.NewServer(grpc.WaitForHandlers(true))
	shared.Register(server, mock, mock)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	conn, err := grpc.NewClient("unix:"+listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, conn.Close())
		server.Stop()
		served.Wait()
	})
	return shared.NewClient(conn), conn
}

func ptr[T any](v T) *T { return &v }

func winningRequest() shared.Request {
	return shared.Request{
		ID: "winning-1", Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB,
		Vanilla: [][]byte{{1, 2, 3}}, MinerID: 138228, Randomness: bytes.Repeat([]byte{7}, 32),
	}
}

// fullRequests set every field that their kind can have.
func fullRequests() []shared.Request {
	deadline := time.Date(2031, 2, 3, 4, 5, 6, 7, time.UTC)
	return []shared.Request{
		{
			ID: "porep-1000-5", Kind: shared.KindPoRep, SectorSize: shared.SectorSize32GiB, Priority: shared.PriorityLow,
			Vanilla: [][]byte{pattern(3<<20+17, 1)}, MinerID: 1<<64 - 1, SectorNumber: ptr(uint64(0)), RegisteredProof: ptr(uint64(8)), Deadline: deadline,
		},
		{
			ID: "window", Kind: shared.KindWindowPoSt, SectorSize: shared.SectorSize64GiB, Priority: shared.PriorityCritical,
			Vanilla: [][]byte{pattern(1<<20, 2), pattern(1, 3), pattern(1<<20-1, 4)}, MinerID: 5,
			Randomness: pattern(32, 5), APIVersion: "1.1.0", Partition: ptr(uint32(0)),
		},
		winningRequest(),
		{
			Kind: shared.KindUpdate, SectorSize: shared.SectorSize8MiB, Priority: shared.PriorityHigh,
			Vanilla: [][]byte{{1}, {2}}, SectorNumber: ptr(uint64(7)),
			CommROld: pattern(32, 6), CommRNew: pattern(32, 7), CommDNew: pattern(32, 8),
		},
	}
}

// pattern gives n bytes that differ by position and seed.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>16) ^ byte(i>>8) ^ byte(i)*31 ^ seed
	}
	return b
}

var fullResult = shared.Result{
	RequestID: "r", Proof: pattern(10*192, 9), Partitions: 10, InsecureParams: true, Margin: 11,
	Timings: shared.Timings{Queue: 1, Params: 2, Witness: 3, Prepare: 4, Device: 5, Finish: 6, Verify: 7, Total: time.Hour},
}

// Property: a request arrives whole, whichever way its payload takes.
func TestRequestsArriveWhole(t *testing.T) {
	t.Run("streamed", func(t *testing.T) { testRequestsArriveWhole(t, func(*shared.Client) {}) })
	t.Run("shared", func(t *testing.T) {
		testRequestsArriveWhole(t, func(c *shared.Client) {
			c.SharePayloads(func(err error) { t.Errorf("not shared: %v", err) })
		})
	})
}

// Property: where the plugin cannot have the host's memory files, requests arrive all the same, and that is said once.
func TestUnsharedRequestsAreStreamed(t *testing.T) {
	var limit unix.Rlimit // no memory file can be written that is larger than files may be
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &limit))
	signal.Ignore(unix.SIGXFSZ)
	t.Cleanup(func() {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
		signal.Reset(unix.SIGXFSZ)
	})
	var said []error
	testRequestsArriveWhole(t, func(c *shared.Client) {
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1 << 10, Max: limit.Max}))
		c.SharePayloads(func(err error) { said = append(said, err) })
	})
	require.Len(t, said, 1)
	require.ErrorIs(t, said[0], unix.EFBIG)
}

func testRequestsArriveWhole(t *testing.T, prepare func(*shared.Client)) {
	var got shared.Request
	var gotProof []byte
	client, _ := serve(t, &sharedtest.Mock{
		OnProve: func(_ context.Context, r shared.Request, _ func(shared.Progress)) (shared.Result, error) {
			got = shared.OnHeap(r)
			return fullResult, nil
		},
		OnSubmit: func(_ context.Context, r shared.Request) (shared.JobID, error) {
			got = shared.OnHeap(r)
			return "job-1", nil
		},
		OnVerify: func(_ context.Context, r shared.Request, proof []byte) (bool, error) {
			got, gotProof = shared.OnHeap(r), proof
			return true, nil
		},
	})
	prepare(client)
	for _, request := range fullRequests() {
		result, err := client.Prove(t.Context(), request, nil)
		require.NoError(t, err)
		require.Equal(t, request, got)
		require.Equal(t, fullResult, result)

		got = shared.Request{}
		job, err := client.Submit(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, shared.JobID("job-1"), job)
		require.Equal(t, request, got)

		got = shared.Request{}
		valid, err := client.Verify(t.Context(), request, fullResult.Proof)
		require.NoError(t, err)
		require.True(t, valid)
		require.Equal(t, request, got)
		require.Equal(t, fullResult.Proof, gotProof)
	}
}

func TestEveryOtherCallRoundTrips(t *testing.T) {
	status := shared.Status{
		Version: "v1", PID: 7, Uptime: time.Minute, Completed: 1, Failed: 2, Withheld: 5, Retries: 6, Fallbacks: 7, MemoryBudgetBytes: 3, MemoryUsedBytes: 4,
		Devices: []shared.DeviceStatus{
			{
				Name: "0", Model: "H200", UUID: "GPU-2d990430-f243-2137-3cfb-69a61ff03be6", Workers: 2,
				MemoryTotalBytes: 5, MemoryFreeBytes: 6, RequestID: "r", Kind: shared.KindUpdate, Partition: 3,
				Faults: 8, TemperatureCelsius: 71,
			},
			{Name: "cpu", Partition: -1, OutOfUse: "it burns"},
		},
		Params: []shared.ParamsStatus{{Kind: shared.KindPoRep, SectorSize: shared.SectorSize32GiB, Bytes: 44 << 30, Users: 2, Where: "device", Insecure: true}},
		Queues: []shared.QueueStatus{{Kind: shared.KindWindowPoSt, Pending: 4, InProgress: 5}},
		Jobs: []shared.JobStatus{{
			ID: "j", RequestID: "r", Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB, Priority: shared.PriorityHigh,
			Stage: shared.StageDevice, PartitionsDone: 1, Partitions: 2, Elapsed: time.Second, Deadline: time.Unix(1700000000, 5).UTC(),
		}},
	}
	recording := timeline.Recording{Start: time.Unix(1700000000, 5).UTC(), Lost: 9}
	for i := range int32(10_000) { // several batches
		recording.Events = append(recording.Events, timeline.Event{
			Time: time.Duration(i), Kind: timeline.GPUStart, Partition: timeline.None, Worker: i, Request: "r", GPU: "0",
		})
	}
	circuit := shared.CircuitRequest{Kind: shared.KindPoRep, SectorSize: shared.SectorSize2KiB, Partitions: 10}
	setup := shared.SetupRequest{CircuitRequest: circuit, Dir: "/d"}
	setupResult := shared.SetupResult{ParamsPath: "p", VKPath: "v", ParamsSHA256: "a", VKSHA256: "b", ParamsBytes: 1, VKBytes: 2, Elapsed: 3}
	report := shared.ParamsReport{
		Path: "p", ParameterSet: "s", Bytes: 1, SHA256: "a", Blake2b: "b", Insecure: true,
		IC: 2, H: 3, L: 4, A: 5, BG1: 6, BG2: 7, Elapsed: 8, Kind: shared.KindUpdate, SectorSize: shared.SectorSize64GiB, Listed: true,
		Leftovers: []string{"l", "m"},
	}
	digest := shared.CircuitDigest{
		Aux: 1, Chunk: 2, Chunks: []string{"a", "b"}, Constraints: 3, Digest: "d", Inputs: 4, Kind: "porep", ParameterSet: "s",
		Partitions: 10, SectorSize: shared.SectorSize2KiB, Terms: shared.CircuitTerms{A: 5, B: 6, C: 7},
	}
	step := shared.Progress{RequestID: "r", Stage: shared.StageWitness, Partition: -1, PartitionsDone: 1, Partitions: 2, Elapsed: 3, Message: "m"}

	client, _ := serve(t, &sharedtest.Mock{
		OnAwait: func(_ context.Context, job shared.JobID) (shared.Result, error) {
			return fullResult, expect(job, "job-1")
		},
		OnCancel: func(_ context.Context, job shared.JobID) (bool, error) { return true, expect(job, "job-1") },
		OnStatus: func(context.Context) (shared.Status, error) { return status, nil },
		OnTimeline: func(context.Context) (timeline.Recording, error) {
			return recording, nil
		},
		OnSetupParams: func(_ context.Context, r shared.SetupRequest, progress func(shared.Progress)) (shared.SetupResult, error) {
			progress(step)
			return setupResult, expect(r, setup)
		},
		OnCheckParams: func(_ context.Context, path string, progress func(shared.Progress)) (shared.ParamsReport, error) {
			progress(step)
			return report, expect(path, "p")
		},
		OnCircuitDigest: func(_ context.Context, r shared.CircuitRequest, progress func(shared.Progress)) (shared.CircuitDigest, error) {
			progress(step)
			return digest, expect(r, circuit)
		},
		OnPreload: func(_ context.Context, r shared.CircuitRequest) (shared.PreloadResult, error) {
			return shared.PreloadResult{AlreadyLoaded: true, Elapsed: 3}, expect(r, circuit)
		},
		OnEvict: func(_ context.Context, r shared.CircuitRequest) (shared.EvictResult, error) {
			return shared.EvictResult{WasLoaded: true, FreedBytes: 9}, expect(r, circuit)
		},
		OnBench: func(_ context.Context, r shared.BenchRequest, out func(string)) error {
			for i := range 1000 {
				out(fmt.Sprint(r.Name, r.Args, i))
			}
			return nil
		},
	})
	ctx := t.Context()

	result, err := client.Await(ctx, "job-1")
	require.NoError(t, err)
	require.Equal(t, fullResult, result)
	was, err := client.Cancel(ctx, "job-1")
	require.NoError(t, err)
	require.True(t, was)
	gotStatus, err := client.Status(ctx)
	require.NoError(t, err)
	require.Equal(t, status, gotStatus)
	gotRecording, err := client.Timeline(ctx)
	require.NoError(t, err)
	require.Equal(t, recording, gotRecording)

	var steps []shared.Progress
	note := func(p shared.Progress) { steps = append(steps, p) }
	gotSetup, err := client.SetupParams(ctx, setup, note)
	require.NoError(t, err)
	require.Equal(t, setupResult, gotSetup)
	gotReport, err := client.CheckParams(ctx, "p", note)
	require.NoError(t, err)
	require.Equal(t, report, gotReport)
	gotDigest, err := client.CircuitDigest(ctx, circuit, note)
	require.NoError(t, err)
	require.Equal(t, digest, gotDigest)
	require.Equal(t, []shared.Progress{step, step, step}, steps)

	preloaded, err := client.Preload(ctx, circuit)
	require.NoError(t, err)
	require.Equal(t, shared.PreloadResult{AlreadyLoaded: true, Elapsed: 3}, preloaded)
	evicted, err := client.Evict(ctx, circuit)
	require.NoError(t, err)
	require.Equal(t, shared.EvictResult{WasLoaded: true, FreedBytes: 9}, evicted)

	var lines int
	require.NoError(t, client.Bench(ctx, shared.BenchRequest{Name: "msm", Args: []string{"20"}}, func(line string) {
		require.Equal(t, fmt.Sprintf("msm[20] %d", lines), line)
		lines++
	}))
	require.Equal(t, 1000, lines)
}

func expect[T comparable](got, want T) error {
	if got != want {
		return fmt.Errorf("got %v, not %v", got, want)
	}
	return nil
}

// Every call passes on the plugin's error with its type.
func TestErrorsPassThroughEveryCall(t *testing.T) {
	params := &shared.ParamsError{Path: "p", Reason: "is short", Remedy: "fetch it"}
	fail := fmt.Errorf("loading: %w", params)
	client, _ := serve(t, &sharedtest.Mock{
		OnProve: func(context.Context, shared.Request, func(shared.Progress)) (shared.Result, error) {
			return shared.Result{}, fail
		},
		OnSubmit:   func(context.Context, shared.Request) (shared.JobID, error) { return "", fail },
		OnAwait:    func(context.Context, shared.JobID) (shared.Result, error) { return shared.Result{}, fail },
		OnCancel:   func(context.Context, shared.JobID) (bool, error) { return false, fail },
		OnStatus:   func(context.Context) (shared.Status, error) { return shared.Status{}, fail },
		OnTimeline: func(context.Context) (timeline.Recording, error) { return timeline.Recording{}, fail },
		OnVerify:   func(context.Context, shared.Request, []byte) (bool, error) { return false, fail },
		OnSetupParams: func(context.Context, shared.SetupRequest, func(shared.Progress)) (shared.SetupResult, error) {
			return shared.SetupResult{}, fail
		},
		OnCheckParams: func(context.Context, string, func(shared.Progress)) (shared.ParamsReport, error) {
			return shared.ParamsReport{}, fail
		},
		OnCircuitDigest: func(context.Context, shared.CircuitRequest, func(shared.Progress)) (shared.CircuitDigest, error) {
			return shared.CircuitDigest{}, fail
		},
		OnPreload: func(context.Context, shared.CircuitRequest) (shared.PreloadResult, error) {
			return shared.PreloadResult{}, fail
		},
		OnEvict: func(context.Context, shared.CircuitRequest) (shared.EvictResult, error) {
			return shared.EvictResult{}, fail
		},
		OnBench: func(context.Context, shared.BenchRequest, func(string)) error { return fail },
	})
	for name, call := range everyCall(client) {
		t.Run(name, func(t *testing.T) {
			err := call(t.Context())
			require.EqualError(t, err, fail.Error())
			var got *shared.ParamsError
			require.ErrorAs(t, err, &got)
			require.Equal(t, params, got)
		})
	}
}

// everyCall makes each call of a plugin with a request that its validation lets pass.
func everyCall(p interface {
	shared.Prover
	shared.Toolbox
}) map[string]func(context.Context) error {
	circuit := shared.CircuitRequest{Kind: shared.KindPoRep, SectorSize: shared.SectorSize2KiB}
	return map[string]func(context.Context) error{
		"Prove":    func(ctx context.Context) error { _, err := p.Prove(ctx, winningRequest(), nil); return err },
		"Submit":   func(ctx context.Context) error { _, err := p.Submit(ctx, winningRequest()); return err },
		"Await":    func(ctx context.Context) error { _, err := p.Await(ctx, "j"); return err },
		"Cancel":   func(ctx context.Context) error { _, err := p.Cancel(ctx, "j"); return err },
		"Status":   func(ctx context.Context) error { _, err := p.Status(ctx); return err },
		"Timeline": func(ctx context.Context) error { _, err := p.Timeline(ctx); return err },
		"Verify": func(ctx context.Context) error {
			_, err := p.Verify(ctx, winningRequest(), make([]byte, 192))
			return err
		},
		"SetupParams": func(ctx context.Context) error {
			_, err := p.SetupParams(ctx, shared.SetupRequest{CircuitRequest: circuit, Dir: "d"}, nil)
			return err
		},
		"CheckParams":   func(ctx context.Context) error { _, err := p.CheckParams(ctx, "p", nil); return err },
		"CircuitDigest": func(ctx context.Context) error { _, err := p.CircuitDigest(ctx, circuit, nil); return err },
		"Preload":       func(ctx context.Context) error { _, err := p.Preload(ctx, circuit); return err },
		"Evict":         func(ctx context.Context) error { _, err := p.Evict(ctx, circuit); return err },
		"Bench": func(ctx context.Context) error {
			return p.Bench(ctx, shared.BenchRequest{}, func(string) {})
		},
	}
}

// Progress keeps its order, arrives before the result, and none of it is lost while the reader keeps up; a reader that
// does not keep up holds up nobody and still gets the latest report.
func TestProgressOrder(t *testing.T) {
	const steps = 20_000 // far more than flow control lets through to a reader that stands still
	proved := make(chan struct{})
	client, _ := serve(t, &sharedtest.Mock{
		OnProve: func(_ context.Context, r shared.Request, progress func(shared.Progress)) (shared.Result, error) {
			for i := range steps {
				progress(shared.Progress{RequestID: r.ID, PartitionsDone: i})
			}
			close(proved)
			return shared.Result{}, nil
		},
		OnCheckParams: func(_ context.Context, _ string, progress func(shared.Progress)) (shared.ParamsReport, error) {
			for i := range 200 {
				progress(shared.Progress{PartitionsDone: i})
			}
			return shared.ParamsReport{}, nil
		},
	})

	var seen []int
	_, err := client.CheckParams(t.Context(), "p", func(p shared.Progress) { seen = append(seen, p.PartitionsDone) })
	require.NoError(t, err)
	require.Len(t, seen, 200)
	require.IsIncreasing(t, seen)

	seen = nil
	_, err = client.Prove(t.Context(), winningRequest(), func(p shared.Progress) {
		<-proved // the prover gets to its end while its first report has not been read
		seen = append(seen, p.PartitionsDone)
	})
	require.NoError(t, err)
	require.IsIncreasing(t, seen)
	require.Equal(t, steps-1, seen[len(seen)-1])
}

// Every call's context reaches the plugin within 100 ms of its end, as cancellation and as deadline.
func TestCancellationAndDeadlineReachThePlugin(t *testing.T) {
	entered, left := make(chan struct{}), make(chan time.Time)
	block := func(ctx context.Context) error {
		entered <- struct{}{}
		<-ctx.Done()
		left <- time.Now()
		return ctx.Err()
	}
	client, _ := serve(t, &sharedtest.Mock{
		OnProve: func(ctx context.Context, _ shared.Request, _ func(shared.Progress)) (shared.Result, error) {
			return shared.Result{}, block(ctx)
		},
		OnSubmit:   func(ctx context.Context, _ shared.Request) (shared.JobID, error) { return "", block(ctx) },
		OnAwait:    func(ctx context.Context, _ shared.JobID) (shared.Result, error) { return shared.Result{}, block(ctx) },
		OnCancel:   func(ctx context.Context, _ shared.JobID) (bool, error) { return false, block(ctx) },
		OnStatus:   func(ctx context.Context) (shared.Status, error) { return shared.Status{}, block(ctx) },
		OnTimeline: func(ctx context.Context) (timeline.Recording, error) { return timeline.Recording{}, block(ctx) },
		OnVerify:   func(ctx context.Context, _ shared.Request, _ []byte) (bool, error) { return false, block(ctx) },
		OnSetupParams: func(ctx context.Context, _ shared.SetupRequest, _ func(shared.Progress)) (shared.SetupResult, error) {
			return shared.SetupResult{}, block(ctx)
		},
		OnCheckParams: func(ctx context.Context, _ string, _ func(shared.Progress)) (shared.ParamsReport, error) {
			return shared.ParamsReport{}, block(ctx)
		},
		OnCircuitDigest: func(ctx context.Context, _ shared.CircuitRequest, _ func(shared.Progress)) (shared.CircuitDigest, error) {
			return shared.CircuitDigest{}, block(ctx)
		},
		OnPreload: func(ctx context.Context, _ shared.CircuitRequest) (shared.PreloadResult, error) {
			return shared.PreloadResult{}, block(ctx)
		},
		OnEvict: func(ctx context.Context, _ shared.CircuitRequest) (shared.EvictResult, error) {
			return shared.EvictResult{}, block(ctx)
		},
		OnBench: func(ctx context.Context, _ shared.BenchRequest, _ func(string)) error { return block(ctx) },
	})
	for name, call := range everyCall(client) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() { failed <- call(ctx) }()
			<-entered
			ended := time.Now()
			cancel()
			require.Less(t, (<-left).Sub(ended), 100*time.Millisecond)
			err := <-failed
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, name == "Prove", errors.Is(err, shared.ErrCancelled), "only Prove's request ends with its context")

			ctx, cancel = context.WithTimeout(t.Context(), 30*time.Millisecond)
			defer cancel()
			go func() { failed <- call(ctx) }()
			<-entered
			at, _ := ctx.Deadline()
			require.Less(t, (<-left).Sub(at), 100*time.Millisecond)
			require.ErrorIs(t, <-failed, context.DeadlineExceeded)
		})
	}
}

// A request that the client refuses does not reach the plugin; neither does one that only the server can refuse,
// because the client is not ours.
func TestBadRequestsAreRefused(t *testing.T) {
	mock := &sharedtest.Mock{}
	client, conn := serve(t, mock)
	bad := winningRequest()
	bad.Randomness = nil
	var invalid *shared.InvalidRequestError
	_, err := client.Prove(t.Context(), bad, nil)
	require.ErrorAs(t, err, &invalid)
	_, err = client.Submit(t.Context(), bad)
	require.ErrorAs(t, err, &invalid)
	_, err = client.Verify(t.Context(), bad, nil)
	require.ErrorAs(t, err, &invalid)
	_, err = client.SetupParams(t.Context(), shared.SetupRequest{}, nil)
	require.ErrorAs(t, err, &invalid)
	_, err = client.CircuitDigest(t.Context(), shared.CircuitRequest{}, nil)
	require.ErrorAs(t, err, &invalid)

	header := func(change func(*proto.RequestHeader)) *proto.Upload {
		h := &proto.RequestHeader{
			Kind: proto.Kind_KIND_WINNING_POST, SectorSize: 2048, VanillaBytes: []uint64{3}, Randomness: make([]byte, 32),
		}
		if change != nil {
			change(h)
		}
		return &proto.Upload{Part: &proto.Upload_Header{Header: h}}
	}
	chunk := func(n int) *proto.Upload { return &proto.Upload{Part: &proto.Upload_Chunk{Chunk: make([]byte, n)}} }
	for _, c := range []struct {
		name   string
		parts  []*proto.Upload
		reason string
	}{
		{"nothing", nil, "nothing was sent"},
		{"no header", []*proto.Upload{chunk(3)}, "does not begin with its header"},
		{"empty message", []*proto.Upload{{}}, "does not begin with its header"},
		{"two headers", []*proto.Upload{header(nil), header(nil)}, "no chunk"},
		{"empty second message", []*proto.Upload{header(nil), {}}, "no chunk"},
		{"empty chunk", []*proto.Upload{header(nil), chunk(0)}, "no chunk"},
		{"too short", []*proto.Upload{header(nil), chunk(2)}, "after 1 of 1 vanilla proofs, with 1 bytes missing"},
		{"no payload", []*proto.Upload{header(nil)}, "after 0 of 1 vanilla proofs"},
		{"too long", []*proto.Upload{header(nil), chunk(4)}, "longer than its header says"},
		{"one message too many", []*proto.Upload{header(nil), chunk(3), chunk(1)}, "longer than its header says"},
		{"a terabyte announced", []*proto.Upload{header(func(h *proto.RequestHeader) { h.VanillaBytes = []uint64{1 << 40} })}, "larger than the 1073741824 bytes"},
		{"sizes that wrap around", []*proto.Upload{header(func(h *proto.RequestHeader) {
			h.Kind, h.VanillaBytes = proto.Kind_KIND_WINDOW_POST, []uint64{1 << 63, 1 << 63}
		})}, "larger than the 1073741824 bytes"},
		{"a kind out of range", []*proto.Upload{header(func(h *proto.RequestHeader) { h.Kind = 257 })}, "kind: unknown"},
		{"a negative kind", []*proto.Upload{header(func(h *proto.RequestHeader) { h.Kind = -255 })}, "kind: unknown"},
		{"a priority out of range", []*proto.Upload{header(func(h *proto.RequestHeader) { h.Priority = 256 })}, "priority: unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			stream, err := proto.NewProverClient(conn).Submit(t.Context())
			require.NoError(t, err)
			for _, part := range c.parts {
				if stream.Send(part) != nil {
					break // refused already; the reason comes below
				}
			}
			_, err = stream.CloseAndRecv()
			require.ErrorContains(t, err, c.reason)
			require.ErrorContains(t, err, "InvalidArgument")
		})
	}
	t.Run("a message above gRPC's limit", func(t *testing.T) {
		stream, err := proto.NewProverClient(conn).Submit(t.Context())
		require.NoError(t, err)
		require.NoError(t, stream.Send(header(func(h *proto.RequestHeader) {
			h.Kind, h.Randomness, h.VanillaBytes = proto.Kind_KIND_POREP, nil, []uint64{5 << 20}
		})))
		_ = stream.Send(chunk(5 << 20))
		_, err = stream.CloseAndRecv()
		require.ErrorContains(t, err, "ResourceExhausted")
	})
	require.Empty(t, mock.Calls())
}

// A refused upload fails at once with the reason, not with a broken stream, and is not sent to its end.
func TestRefusalDuringUpload(t *testing.T) {
	client, _ := serve(t, &sharedtest.Mock{
		OnProve: func(context.Context, shared.Request, func(shared.Progress)) (shared.Result, error) {
			return shared.Result{}, &shared.BusyError{Resource: "the queue"}
		},
	})
	request := fullRequests()[0]
	var busy *shared.BusyError
	_, err := client.Prove(t.Context(), request, nil)
	require.ErrorAs(t, err, &busy)
}

// 50 MB and more pass as they are, and the memory they need beside the payload itself is small.
func TestLargePayload(t *testing.T) {
	payload := pattern(64<<20, 1)
	arrived := make(chan uint64, 1)
	client, _ := serve(t, &sharedtest.Mock{
		OnProve: func(_ context.Context, r shared.Request, _ func(shared.Progress)) (shared.Result, error) {
			if !bytes.Equal(r.Vanilla[0], payload) {
				return shared.Result{}, errors.New("the payload was changed on its way")
			}
			arrived <- peakHeap()
			return shared.Result{}, nil
		},
	})
	debug.FreeOSMemory()
	before := peakHeap()
	request := shared.Request{Kind: shared.KindPoRep, SectorSize: shared.SectorSize32GiB, Vanilla: [][]byte{payload}}
	start := time.Now()
	_, err := client.Prove(t.Context(), request, nil)
	require.NoError(t, err)
	grown := <-arrived - before
	t.Logf("%d MiB in %v; heap grew by %d MiB", len(payload)>>20, time.Since(start), grown>>20)
	extra := uint64(len(payload) / 3)
	if raceEnabled {
		extra = uint64(2 * len(payload)) // the race detector makes sync.Pool forget buffers, so gRPC's are not reused
	}
	require.Less(t, grown, uint64(len(payload))+extra)
}

// peakHeap is how much memory the heap has had from the system so far, what it has given back not counted.
func peakHeap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapSys - m.HeapReleased
}

// BenchmarkUpload measures the way of a 32 GiB C1, 50 MB, over a unix socket without TLS.
func BenchmarkUpload(b *testing.B) {
	client, _ := serve(b, &sharedtest.Mock{
		OnSubmit: func(context.Context, shared.Request) (shared.JobID, error) { return "j", nil },
	})
	request := shared.Request{Kind: shared.KindPoRep, SectorSize: shared.SectorSize32GiB, Vanilla: [][]byte{pattern(50_000_000, 1)}}
	b.SetBytes(50_000_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.Submit(b.Context(), request); err != nil {
			b.Fatal(err)
		}
	}
}
