package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/gateway/cuzkpb"
	"github.com/interlock-prover/interlock/shared"
)

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestSubmitThenAwait(t *testing.T) {
	f := newFakeProver()
	_, address := serve(t, f, Options{})
	client, ctx := dial(t, address), testContext(t)

	submitted, err := client.SubmitProof(ctx, winning("porep-1000-7"))
	require.NoError(t, err)
	require.NotEmpty(t, submitted.JobId)

	waiting, err := client.AwaitProof(ctx, &cuzkpb.AwaitProofRequest{JobId: submitted.JobId, TimeoutMs: 20})
	require.NoError(t, err)
	require.Equal(t, cuzkpb.AwaitProofResponse_TIMEOUT, waiting.Status)
	require.NotEmpty(t, waiting.ErrorMessage)

	proof := f.finish(t, 0)
	for _, id := range []string{submitted.JobId, "porep-1000-7"} { // by the request's id too
		answer, err := client.AwaitProof(ctx, &cuzkpb.AwaitProofRequest{JobId: id})
		require.NoError(t, err)
		require.True(t, proto.Equal(&cuzkpb.AwaitProofResponse{
			JobId: submitted.JobId, Status: cuzkpb.AwaitProofResponse_COMPLETED, Proof: proof,
			QueueWaitMs: 1, SrsLoadMs: 2, SynthesisMs: 3, GpuComputeMs: 4, TotalMs: 5,
		}, answer), "%v", answer)
	}
	n := uint64(7)
	r := f.submitted()[0]
	require.Equal(t, submitted.JobId, r.ID)
	r.ID = ""
	require.Equal(t, shared.Request{
		Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB, Vanilla: [][]byte{{1, 2, 3}}, MinerID: 1000,
		SectorNumber: &n, Randomness: make([]byte, 32), APIVersion: shared.APIVersion100,
	}, r)

	unknown, err := client.AwaitProof(ctx, &cuzkpb.AwaitProofRequest{JobId: "nobody's"})
	require.NoError(t, err)
	require.Equal(t, cuzkpb.AwaitProofResponse_UNKNOWN, unknown.Status)
}

// Same id and same content: one proof made, however many ask at once, and for those that come later too.
func TestEqualRequestsAreOneJob(t *testing.T) {
	f := newFakeProver()
	_, address := serve(t, f, Options{})
	client, ctx := dial(t, address), testContext(t)

	const calls = 50
	answers := make([]*cuzkpb.ProveResponse, calls)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			reply, err := client.Prove(ctx, &cuzkpb.ProveRequest{Submit: winning("a")})
			if err != nil {
				t.Error(err)
			}
			answers[i] = reply
		})
	}
	proof := f.finish(t, 0)
	wg.Wait()
	late, err := client.Prove(ctx, &cuzkpb.ProveRequest{Submit: winning("a")})
	require.NoError(t, err)
	for _, a := range append(answers, late) {
		require.True(t, proto.Equal(late, a))
		require.Equal(t, proof, a.Result.Proof)
	}
	require.Len(t, f.submitted(), 1)
}

// Same id, other content: a new job, never the old proof; both go on.
func TestSameIDWithOtherContentIsAnotherJob(t *testing.T) {
	f := newFakeProver()
	_, address := serve(t, f, Options{})
	client, ctx := dial(t, address), testContext(t)

	first, err := client.SubmitProof(ctx, winning("a"))
	require.NoError(t, err)
	f.finish(t, 0)
	other := winning("a")
	other.Randomness[31] = 1
	second, err := client.SubmitProof(ctx, other)
	require.NoError(t, err)
	require.NotEqual(t, first.JobId, second.JobId)
	proof := f.finish(t, 1)
	answer, err := client.AwaitProof(ctx, &cuzkpb.AwaitProofRequest{JobId: second.JobId})
	require.NoError(t, err)
	require.Equal(t, proof, answer.Proof)
	again, err := client.SubmitProof(ctx, winning("a")) // the first content once more: its own answer is kept
	require.NoError(t, err)
	require.Equal(t, first.JobId, again.JobId)
}

// Requests without an id are never joined.
func TestRequestsWithoutIDAreApart(t *testing.T) {
	f := newFakeProver()
	_, address := serve(t, f, Options{})
	client, ctx := dial(t, address), testContext(t)
	a, err := client.SubmitProof(ctx, winning(""))
	require.NoError(t, err)
	b, err := client.SubmitProof(ctx, winning(""))
	require.NoError(t, err)
	require.NotEqual(t, a.JobId, b.JobId)
}

// A client that goes away does not lose its job: with the same request it is there again.
func TestVanishedClientFindsItsJobAgain(t *testing.T) {
	f := newFakeProver()
	_, address := serve(t, f, Options{})
	ctx, gone := context.WithCancel(testContext(t))
	failed := make(chan error)
	go func() {
		_, err := dial(t, address).Prove(ctx, &cuzkpb.ProveRequest{Submit: winning("a")})
		failed <- err
	}()
	f.nth(t, 0)
	gone()
	require.Equal(t, codes.Canceled, status.Code(<-failed))
	proof := f.finish(t, 0)
	answer, err := dial(t, address).Prove(testContext(t), &cuzkpb.ProveRequest{Submit: winning("a")})
	require.NoError(t, err)
	require.Equal(t, proof, answer.Result.Proof)
	require.Len(t, f.submitted(), 1)
}

// What fails is answered FAILED with a message, and tried anew when it is asked for again.
func TestFailedProofIsAnAnswer(t *testing.T) {
	f := newFakeProver()
	_, address := serve(t, f, Options{})
	client, ctx := dial(t, address), testContext(t)
	submitted, err := client.SubmitProof(ctx, winning("a"))
	require.NoError(t, err)
	require.True(t, f.end(f.nth(t, 0), shared.Result{}, &shared.InvalidRequestError{Field: "vanilla[0].comm_r", Reason: "is not that"}))
	answer, err := client.AwaitProof(ctx, &cuzkpb.AwaitProofRequest{JobId: submitted.JobId})
	require.NoError(t, err)
	require.Equal(t, cuzkpb.AwaitProofResponse_FAILED, answer.Status)
	require.Equal(t, "invalid request: vanilla[0].comm_r: is not that", answer.ErrorMessage)
	require.Empty(t, answer.Proof)

	again, err := client.SubmitProof(ctx, winning("a"))
	require.NoError(t, err)
	proof := f.finish(t, 1)
	answer, err = client.AwaitProof(ctx, &cuzkpb.AwaitProofRequest{JobId: again.JobId})
	require.NoError(t, err)
	require.Equal(t, proof, answer.Proof)

	bad := winning("b")
	bad.RegisteredProof = 3
	prove, err := client.Prove(ctx, &cuzkpb.ProveRequest{Submit: bad})
	require.NoError(t, err)
	require.Equal(t, cuzkpb.AwaitProofResponse_FAILED, prove.Result.Status)
	require.Contains(t, prove.Result.ErrorMessage, "registered_proof")

	empty, err := client.Prove(ctx, &cuzkpb.ProveRequest{})
	require.NoError(t, err)
	require.Equal(t, cuzkpb.AwaitProofResponse_FAILED, empty.Result.Status)
}

// No room is no failure of the proof: the call says so, and the next try may succeed.
func TestBusyProverRefusesTheCall(t *testing.T) {
	f := newFakeProver()
	busy := true
	f.onSubmit = func(context.Context, shared.Request) error {
		if busy {
			return &shared.BusyError{Resource: "the queue of 2 requests"}
		}
		return nil
	}
	_, address := serve(t, f, Options{})
	client, ctx := dial(t, address), testContext(t)
	_, err := client.SubmitProof(ctx, winning("a"))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	busy = false
	_, err = client.SubmitProof(ctx, winning("a"))
	require.NoError(t, err)
}

// A gateway that was restarted finds what its prover has kept: jobs by their ids, and, since the same request has the
// same id again, by the request.
func TestJobsOfAnEarlierGateway(t *testing.T) {
	f := newFakeProver()
	_, first := serve(t, f, Options{})
	ctx := testContext(t)
	a, err := dial(t, first).SubmitProof(ctx, winning("a"))
	require.NoError(t, err)
	f.mu.Lock() // as a prover with a journal has it
	f.jobs[shared.JobID(a.JobId)] = f.jobs["prover-0"]
	f.status.Jobs = []shared.JobStatus{{ID: shared.JobID(a.JobId), Kind: shared.KindWinningPoSt}}
	f.mu.Unlock()

	g, second := serve(t, f, Options{})
	client := dial(t, second)
	waiting, err := client.AwaitProof(ctx, &cuzkpb.AwaitProofRequest{JobId: a.JobId, TimeoutMs: 1})
	require.NoError(t, err)
	require.Equal(t, cuzkpb.AwaitProofResponse_TIMEOUT, waiting.Status)
	again, err := client.SubmitProof(ctx, winning("a"))
	require.NoError(t, err)
	require.Equal(t, a.JobId, again.JobId)
	proof := f.finish(t, 0)
	answer, err := client.AwaitProof(ctx, &cuzkpb.AwaitProofRequest{JobId: a.JobId})
	require.NoError(t, err)
	require.Equal(t, proof, answer.Proof)
	require.Len(t, f.submitted(), 1)
	require.Equal(t, uint64(1), g.service.book.answers().completed)
}

func TestCancel(t *testing.T) {
	f := newFakeProver()
	_, address := serve(t, f, Options{})
	client, ctx := dial(t, address), testContext(t)
	submitted, err := client.SubmitProof(ctx, winning("a"))
	require.NoError(t, err)
	for _, want := range []bool{true, false} {
		reply, err := client.CancelProof(ctx, &cuzkpb.CancelProofRequest{JobId: submitted.JobId})
		require.NoError(t, err)
		require.Equal(t, want, reply.WasRunning)
		answer, err := client.AwaitProof(ctx, &cuzkpb.AwaitProofRequest{JobId: submitted.JobId})
		require.NoError(t, err)
		require.Equal(t, cuzkpb.AwaitProofResponse_CANCELLED, answer.Status)
	}
	reply, err := client.CancelProof(ctx, &cuzkpb.CancelProofRequest{JobId: "nobody's"})
	require.NoError(t, err)
	require.False(t, reply.WasRunning)
}

// A job that is cancelled while its request is still on the way to the prover is answered at once, and cancelled there
// as soon as it arrives.
func TestCancelOnTheWayToTheProver(t *testing.T) {
	f := newFakeProver()
	arrived, goOn := make(chan struct{}), make(chan struct{})
	f.onSubmit = func(context.Context, shared.Request) error {
		close(arrived)
		<-goOn
		return nil
	}
	_, address := serve(t, f, Options{})
	client, ctx := dial(t, address), testContext(t)
	answered := make(chan *cuzkpb.AwaitProofResponse, 1)
	var submitting sync.WaitGroup
	submitting.Go(func() {
		if _, err := client.SubmitProof(ctx, winning("a")); err != nil {
			t.Error(err)
		}
	})
	<-arrived
	go func() {
		answer, err := client.AwaitProof(ctx, &cuzkpb.AwaitProofRequest{JobId: "a"})
		if err != nil {
			t.Error(err)
		}
		answered <- answer
	}()
	reply, err := client.CancelProof(ctx, &cuzkpb.CancelProofRequest{JobId: "a"})
	require.NoError(t, err)
	require.True(t, reply.WasRunning)
	require.Equal(t, cuzkpb.AwaitProofResponse_CANCELLED, (<-answered).GetStatus())
	close(goOn)
	j := f.nth(t, 0)
	<-j.done
	require.ErrorIs(t, j.err, shared.ErrCancelled)
	submitting.Wait()
}

func TestStatus(t *testing.T) {
	f := newFakeProver()
	f.status = shared.Status{
		MemoryBudgetBytes: 100, MemoryUsedBytes: 40,
		Devices: []shared.DeviceStatus{
			{Name: "gpu-0", MemoryTotalBytes: 16, MemoryFreeBytes: 4, RequestID: "job-1", Kind: shared.KindPoRep},
			{Name: "gpu-1", MemoryTotalBytes: 16, MemoryFreeBytes: 16, Partition: -1},
		},
		Params: []shared.ParamsStatus{
			{Kind: shared.KindWindowPoSt, SectorSize: shared.SectorSize32GiB, Bytes: 57, Users: 2, Where: "device"},
			{Kind: shared.KindUpdate, SectorSize: shared.SectorSize64GiB, Bytes: 33, Where: "memory"},
			{Kind: shared.KindPoRep, SectorSize: shared.SectorSize2KiB, Bytes: 1, Where: "disk"},
		},
		// Ten partitions are one request.
		Queues: []shared.QueueStatus{{Kind: shared.KindPoRep, Pending: 9, InProgress: 1}},
		Jobs: []shared.JobStatus{
			{ID: "job-1", Kind: shared.KindPoRep, Stage: shared.StageDevice, Partitions: 10},
			{ID: "job-2", Kind: shared.KindPoRep, Stage: shared.StageQueued, Partitions: 10},
			{ID: "job-3", Kind: shared.KindWinningPoSt, Stage: shared.StageDecode},
		},
	}
	_, address := serve(t, f, Options{})
	client, ctx := dial(t, address), testContext(t)
	for _, id := range []string{"a", "b", "c", "d"} {
		_, err := client.SubmitProof(ctx, winning(id))
		require.NoError(t, err)
	}
	f.finish(t, 0)
	f.finish(t, 1)
	require.True(t, f.end(f.nth(t, 2), shared.Result{}, errors.New("no")))
	require.True(t, f.end(f.nth(t, 3), shared.Result{}, shared.ErrCancelled))
	for _, id := range []string{"a", "b", "c", "d"} {
		_, err := client.AwaitProof(ctx, &cuzkpb.AwaitProofRequest{JobId: id})
		require.NoError(t, err)
	}
	got, err := client.GetStatus(ctx, &cuzkpb.GetStatusRequest{})
	require.NoError(t, err)
	require.True(t, proto.Equal(&cuzkpb.GetStatusResponse{
		Gpus: []*cuzkpb.GPUStatus{
			{Ordinal: 0, Name: "gpu-0", VramTotalBytes: 16, VramFreeBytes: 4, CurrentJobId: "job-1", CurrentProofKind: "porep"},
			{Ordinal: 1, Name: "gpu-1", VramTotalBytes: 16, VramFreeBytes: 16},
		},
		LoadedSrs: []*cuzkpb.SRSStatus{
			{CircuitId: "wpost-32g", Tier: cuzkpb.SRSStatus_HOT, SizeBytes: 57, RefCount: 2},
			{CircuitId: "snap-64g", Tier: cuzkpb.SRSStatus_WARM, SizeBytes: 33},
			{CircuitId: "porep-2k", Tier: cuzkpb.SRSStatus_COLD, SizeBytes: 1},
		},
		Queues: []*cuzkpb.QueueStatus{
			{ProofKind: "porep", Pending: 1, InProgress: 1}, {ProofKind: "winning-post", Pending: 1},
			{ProofKind: "window-post"}, {ProofKind: "update"},
		},
		TotalProofsCompleted: 2, TotalProofsFailed: 1,
		PinnedMemoryBytes: 40, PinnedMemoryLimitBytes: 100,
	}, got), "%v", got)

	f.goDown(&shared.PluginDiedError{Path: "p", Status: "exit status 2"})
	_, err = client.GetStatus(ctx, &cuzkpb.GetStatusRequest{})
	require.Equal(t, codes.Unavailable, status.Code(err))
}

func TestPreloadAndEvict(t *testing.T) {
	f := newFakeProver()
	_, address := serve(t, f, Options{})
	client, ctx := dial(t, address), testContext(t)
	for _, already := range []bool{false, true} {
		reply, err := client.PreloadSRS(ctx, &cuzkpb.PreloadSrsRequest{CircuitId: "winning-32g"})
		require.NoError(t, err)
		require.True(t, proto.Equal(&cuzkpb.PreloadSrsResponse{AlreadyLoaded: already, LoadTimeMs: 2}, reply))
	}
	for _, want := range []*cuzkpb.EvictSrsResponse{{WasLoaded: true, FreedBytes: 77}, {}} {
		reply, err := client.EvictSRS(ctx, &cuzkpb.EvictSrsRequest{CircuitId: "winning-32g"})
		require.NoError(t, err)
		require.True(t, proto.Equal(want, reply))
	}
	_, err := client.PreloadSRS(ctx, &cuzkpb.PreloadSrsRequest{CircuitId: "winning-33g"})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	_, err = client.EvictSRS(ctx, &cuzkpb.EvictSrsRequest{})
	require.Equal(t, codes.InvalidArgument, status.Code(err))
	_, err = client.PreloadSRS(ctx, &cuzkpb.PreloadSrsRequest{CircuitId: "snap-32g"})
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
}

// A gateway that closes answers what is under way and takes nothing new.
func TestCloseDrains(t *testing.T) {
	f := newFakeProver()
	g := New(Options{Prover: f, Keeper: f})
	l, err := Listen("unix:" + t.TempDir() + "/s")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	client := cuzkpb.NewProvingEngineClient(connectUnix(t, l.Addr().String()))
	ctx := testContext(t)

	answered := make(chan *cuzkpb.ProveResponse, 1)
	go func() {
		reply, err := client.Prove(ctx, &cuzkpb.ProveRequest{Submit: winning("a")})
		if err != nil {
			t.Error(err)
		}
		answered <- reply
	}()
	f.nth(t, 0)
	closed := make(chan error, 1)
	go func() { closed <- g.Close(ctx) }()
	require.Eventually(t, func() bool {
		_, err := client.SubmitProof(ctx, winning("b"))
		return status.Code(err) == codes.Unavailable
	}, 10*time.Second, 5*time.Millisecond)
	proof := f.finish(t, 0)
	require.Equal(t, proof, (<-answered).GetResult().GetProof())
	require.NoError(t, <-closed)
	require.NoError(t, <-served)
}

// The book forgets the oldest answers and keeps no payload.
func TestAnswersAreForgotten(t *testing.T) {
	f := newFakeProver()
	g, address := serve(t, f, Options{KeepAnswers: 3})
	client, ctx := dial(t, address), testContext(t)
	for i := range 10 {
		submitted, err := client.SubmitProof(ctx, winning(string(rune('a'+i))))
		require.NoError(t, err)
		f.finish(t, i)
		_, err = client.AwaitProof(ctx, &cuzkpb.AwaitProofRequest{JobId: submitted.JobId})
		require.NoError(t, err)
	}
	b := g.service.book
	require.Len(t, b.byID, 3)
	require.Len(t, b.latest, 3)
	answer, err := client.AwaitProof(ctx, &cuzkpb.AwaitProofRequest{JobId: "a"})
	require.NoError(t, err)
	require.Equal(t, cuzkpb.AwaitProofResponse_UNKNOWN, answer.Status)
}

// What a call may last is the proof's deadline where the call waits for the proof, and there alone.
func TestDeadlineOfProveIsTheRequests(t *testing.T) {
	f := newFakeProver()
	var log bytes.Buffer
	var lines sync.Mutex
	_, address := serve(t, f, Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Mutex: &lines})})
	client := dial(t, address)
	deadline := time.Now().Add(30 * time.Second)
	ctx, cancel := context.WithDeadline(testContext(t), deadline)
	defer cancel()
	_, err := client.SubmitProof(ctx, winning("submitted"))
	require.NoError(t, err)
	answered := make(chan error, 1)
	go func() {
		_, err := client.Prove(ctx, &cuzkpb.ProveRequest{Submit: winning("proven")})
		answered <- err
	}()
	second := f.nth(t, 1)
	f.mu.Lock()
	requests := slices.Clone(f.requests)
	f.mu.Unlock()
	require.Zero(t, requests[0].Deadline)
	require.WithinDuration(t, deadline, requests[1].Deadline, time.Second)
	require.True(t, f.end(second, shared.Result{Proof: []byte{1}}, nil))
	require.NoError(t, <-answered)
	require.Eventually(t, func() bool { // how narrow it was is said
		lines.Lock()
		defer lines.Unlock()
		return regexp.MustCompile(`proof done: .*before_deadline=29\.\d+s`).MatchString(log.String())
	}, 10*time.Second, time.Millisecond)
}

// Every typed error has a code that tells a client what sort it is.
func TestErrorsOfCallsHaveCodes(t *testing.T) {
	for want, errs := range map[codes.Code][]error{
		codes.InvalidArgument:    {&shared.InvalidRequestError{}, shared.Faults{{Field: "a"}, {Field: "b"}}},
		codes.FailedPrecondition: {&shared.ParamsError{}, &shared.TooLargeError{}},
		codes.ResourceExhausted:  {&shared.BusyError{}},
		codes.Unavailable:        {&shared.PluginDiedError{}, shared.ErrUnreachable, host.ErrStopped, errDraining},
		codes.Aborted:            {&shared.SetAsideError{}},
		codes.NotFound:           {shared.ErrUnknownJob},
		codes.DeadlineExceeded:   {context.DeadlineExceeded},
		codes.Canceled:           {shared.ErrCancelled, context.Canceled},
		codes.Internal:           {&shared.ProofInvalidError{}, errors.New("anything else")},
	} {
		for _, err := range errs {
			require.Equal(t, want, status.Code(callError(fmt.Errorf("wrapped: %w", err))), "%v", err)
		}
	}
}
