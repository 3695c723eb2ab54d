package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/gateway/cuzkpb"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// serveWeb starts the gateway's HTTP side, which ends with the gateway.
func serveWeb(t testing.TB, g *Gateway) string {
	t.Helper()
	l, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- g.ServeWeb(l) }()
	t.Cleanup(func() {
		g.closeWeb()
		require.NoError(t, <-served)
	})
	return "http://" + l.Addr().String()
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	r, err := http.Get(url)
	require.NoError(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, string(text)
}

// busyDay is a recording with two device phases and a second between them in which a witness was being computed.
func busyDay() timeline.Recording {
	at := func(ms int, kind timeline.Kind, partition int32, gpu string) timeline.Event {
		return timeline.Event{Time: time.Duration(ms) * time.Millisecond, Kind: kind, Request: "r,1", Partition: partition, GPU: gpu}
	}
	return timeline.Recording{Start: time.Now().Add(-6 * time.Second).Round(0), Events: []timeline.Event{
		at(0, timeline.SynthStart, 0, ""), at(1000, timeline.SynthEnd, 0, ""), at(1000, timeline.GPUQueue, 0, ""),
		at(1000, timeline.SynthStart, 1, ""),
		at(1001, timeline.GPUPickup, 0, "gpu-0"), at(1002, timeline.GPUStart, 0, "gpu-0"), at(2002, timeline.GPUEnd, 0, "gpu-0"),
		at(2002, timeline.FinishStart, 0, "gpu-0"), at(2003, timeline.FinishEnd, 0, "gpu-0"),
		at(3000, timeline.SynthEnd, 1, ""), at(3000, timeline.GPUQueue, 1, ""), at(3001, timeline.GPUPickup, 1, "gpu-0"),
		at(3002, timeline.GPUStart, 1, "gpu-0"), at(5002, timeline.GPUEnd, 1, "gpu-0"),
	}}
}

func busyProver() *fakeProver {
	f := newFakeProver()
	f.timeline = busyDay()
	f.status = shared.Status{
		Version: "v1", PID: 7, Uptime: time.Minute, Withheld: 5, Retries: 3, Fallbacks: 2, MemoryBudgetBytes: 100, MemoryUsedBytes: 40,
		Devices: []shared.DeviceStatus{
			{
				Name: "gpu-0", Model: "H200", UUID: "GPU-1", Workers: 2, MemoryTotalBytes: 16, MemoryFreeBytes: 4,
				RequestID: "job-1", Kind: shared.KindPoRep, Partition: 3, Faults: 4, TemperatureCelsius: 71,
			},
			{Name: "gpu-1", Model: "H200", Partition: -1, OutOfUse: "it is lost", Faults: 1},
		},
		Params: []shared.ParamsStatus{{Kind: shared.KindPoRep, SectorSize: shared.SectorSize32GiB, Bytes: 44, Users: 1, Where: "device", Insecure: true}},
		Queues: []shared.QueueStatus{{Kind: shared.KindPoRep, Pending: 6, InProgress: 1}},
		Jobs: []shared.JobStatus{{
			ID: "job-0", RequestID: "job-0", Kind: shared.KindPoRep, SectorSize: shared.SectorSize32GiB, Stage: shared.StageQueued, Elapsed: 8 * time.Second,
		}, {
			ID: "job-1", RequestID: "job-1", Kind: shared.KindPoRep, SectorSize: shared.SectorSize32GiB, Priority: shared.PriorityHigh,
			Stage: shared.StageDevice, Partitions: 10, PartitionsDone: 3, Elapsed: 9 * time.Second, Deadline: time.Now().Add(time.Hour),
		}},
	}
	return f
}

// What Prometheus reads says what the prover says, over HTTP and by GetMetrics.
func TestMetrics(t *testing.T) {
	f := busyProver()
	g, address := serve(t, f, Options{})
	client, ctx := dial(t, address), testContext(t)
	for i, end := range []error{nil, errors.New("no"), shared.ErrCancelled, &shared.ProofInvalidError{}} {
		submitted, err := client.SubmitProof(ctx, winning(string(rune('a'+i))))
		require.NoError(t, err)
		require.True(t, f.end(f.nth(t, i), shared.Result{Timings: shared.Timings{Device: 3 * time.Second}}, end))
		_, err = client.AwaitProof(ctx, &cuzkpb.AwaitProofRequest{JobId: submitted.JobId})
		require.NoError(t, err)
	}
	problems, err := testutil.GatherAndLint(g.service.metrics.registry)
	require.NoError(t, err)
	require.Empty(t, problems)

	status, page := get(t, serveWeb(t, g)+"/metrics")
	require.Equal(t, http.StatusOK, status)
	reply, err := client.GetMetrics(ctx, &cuzkpb.GetMetricsRequest{})
	require.NoError(t, err)
	for _, text := range []string{page, reply.PrometheusText} {
		for _, line := range []string{
			`interlock_up 1`,
			`interlock_build_info{version="v1"} 1`,
			`interlock_proofs_total{kind="winning-post",result="completed"} 1`,
			`interlock_proofs_total{kind="winning-post",result="failed"} 2`,
			`interlock_proofs_total{kind="winning-post",result="cancelled"} 1`,
			`interlock_proofs_total{kind="update",result="failed"} 0`,
			`interlock_proofs_withheld_total 5`,
			`interlock_plugin_restarts_total 3`,
			`interlock_plugin_crash_loop 0`,
			`interlock_proof_phase_seconds_bucket{kind="winning-post",phase="device",le="2"} 0`,
			`interlock_proof_phase_seconds_bucket{kind="winning-post",phase="device",le="5"} 1`,
			`interlock_requests{kind="porep",state="in_progress"} 1`,
			`interlock_partitions{kind="porep",state="pending"} 6`,
			`interlock_oldest_request_seconds{kind="porep"} 9`,
			`interlock_memory_budget_bytes 100`,
			`interlock_memory_used_bytes 40`,
			`interlock_device_up{device="gpu-0",model="H200"} 1`,
			`interlock_device_up{device="gpu-1",model="H200"} 0`,
			`interlock_partition_retries_total 3`,
			`interlock_partition_fallbacks_total 2`,
			`interlock_device_faults_total{device="gpu-0"} 4`,
			`interlock_device_temperature_celsius{device="gpu-0"} 71`,
			`interlock_device_busy{device="gpu-0"} 1`,
			`interlock_device_memory_bytes{device="gpu-0",state="free"} 4`,
			`interlock_device_efficiency_ratio{device="gpu-0"} 0.75`, // 3 of 4 seconds
			`interlock_device_gap_seconds_total{cause="waiting for witness",device="gpu-0"} 0.998`,
			`interlock_params_bytes{circuit="porep-32g",where="device"} 44`,
			`interlock_params_insecure{circuit="porep-32g"} 1`,
		} {
			require.True(t, strings.Contains(text, line+"\n"), line)
		}
		require.NotContains(t, text, `interlock_device_temperature_celsius{device="gpu-1"}`, "it is not known")
	}

	// A gap is counted once, however often one looks.
	g.observer.at = time.Time{}
	g.observer.look(ctx)
	require.Equal(t, 998*time.Millisecond, g.observer.gapsUntilNow()[gapKey{"gpu-0", timeline.WaitingForWitness}])

	f.goDown(shared.ErrUnreachable)
	g.observer.at = time.Time{}
	reply, err = client.GetMetrics(ctx, &cuzkpb.GetMetricsRequest{})
	require.NoError(t, err)
	require.Contains(t, reply.PrometheusText, "interlock_up 0\n")
	require.NotContains(t, reply.PrometheusText, "interlock_device_up")
}

// Answers are told apart by how long before their deadline they were there, and those that missed it are counted.
func TestMargins(t *testing.T) {
	m := newMetrics()
	at := func(left time.Duration, err error) *job {
		return &job{kind: shared.KindWinningPoSt, due: time.Now(), margin: left, err: err}
	}
	tooLate := fmt.Errorf("given up: %w", context.DeadlineExceeded)
	for _, j := range []*job{
		{kind: shared.KindWinningPoSt}, // has no deadline
		{kind: shared.KindWinningPoSt, err: tooLate},
		at(12*time.Second, nil),
		at(700*time.Millisecond, nil),
		at(-2*time.Second, nil),           // late
		at(-20*time.Millisecond, tooLate), // late
		at(5*time.Second, tooLate),        // refused as hopeless: late
		at(-time.Second, shared.ErrCancelled),
		at(-time.Second, errors.New("no")),
		at(time.Second, &host.CrashLoopError{Last: tooLate}),
	} {
		m.answered(j)
	}
	text, err := m.text()
	require.NoError(t, err)
	for _, line := range []string{
		`interlock_proofs_late_total{kind="winning-post"} 3`,
		`interlock_proofs_late_total{kind="porep"} 0`,
		`interlock_proof_margin_seconds_bucket{kind="winning-post",le="-10"} 0`,
		`interlock_proof_margin_seconds_bucket{kind="winning-post",le="-1"} 1`,
		`interlock_proof_margin_seconds_bucket{kind="winning-post",le="0"} 2`,
		`interlock_proof_margin_seconds_bucket{kind="winning-post",le="1"} 3`,
		`interlock_proof_margin_seconds_bucket{kind="winning-post",le="10"} 3`,
		`interlock_proof_margin_seconds_bucket{kind="winning-post",le="15"} 4`,
		`interlock_proof_margin_seconds_count{kind="winning-post"} 4`,
	} {
		require.Contains(t, text, line+"\n")
	}
}

// A proof that comes after its deadline is handed out, and said and counted to be late.
func TestLateProof(t *testing.T) {
	f := newFakeProver()
	var log bytes.Buffer
	var lines sync.Mutex
	g, _ := serve(t, f, Options{Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Mutex: &lines})})
	r := shared.Request{Kind: shared.KindWinningPoSt, Deadline: time.Now().Add(20 * time.Millisecond).Round(0)}
	j, err := g.service.book.submit("late", content{}, r, nil, func() {})
	require.NoError(t, err)
	late := f.nth(t, 0)
	time.Sleep(40 * time.Millisecond)
	require.True(t, f.end(late, shared.Result{Proof: []byte{1}}, nil))
	<-j.over
	require.NoError(t, j.err)
	require.InDelta(t, -1, j.margin.Seconds(), 0.99)
	require.Equal(t, 1.0, testutil.ToFloat64(g.service.metrics.late.WithLabelValues("winning-post")))
	lines.Lock()
	defer lines.Unlock()
	require.Regexp(t, `\[WARN\] +proof done after its deadline: .*late_by=`, log.String())
}

// What is older than the window is left out. The window goes by the monotonic clock from the first look at a recording on.
func TestWindow(t *testing.T) {
	f := newFakeProver()
	f.status.Jobs = []shared.JobStatus{{ID: "under way"}}
	o := newObserver(f, hclog.NewNullLogger())
	start := time.Now().Add(-window - time.Minute).Round(0)
	look := func(times ...time.Duration) timeline.Recording {
		f.timeline = timeline.Recording{Start: start, Lost: 5}
		for _, at := range times {
			f.timeline.Events = append(f.timeline.Events, timeline.Event{Time: at})
		}
		o.at = time.Time{}
		return o.look(t.Context()).recording
	}
	first := look(0, time.Second, 2*time.Minute, 3*time.Minute)
	require.Equal(t, []timeline.Event{{Time: 2 * time.Minute}, {Time: 3 * time.Minute}}, first.Events)
	require.EqualValues(t, 7, first.Lost)
	require.True(t, first.Start.Equal(start))
	require.Contains(t, first.Start.String(), " m=", "a reading of the monotonic clock")
	second := look(0, time.Second)
	require.Empty(t, second.Events)
	require.EqualValues(t, 7, second.Lost)
	require.Equal(t, first.Start, second.Start, "the very same reading")
	start = time.Time{}
	require.True(t, look().Start.IsZero(), "a plugin without a timeline")
}

func TestSnapshot(t *testing.T) {
	f := busyProver()
	g, _ := serve(t, f, Options{})
	url := serveWeb(t, g)
	g.pace.answered(&job{kind: shared.KindPoRep, size: shared.SectorSize32GiB, result: shared.Result{
		Partitions: 10, Timings: shared.Timings{Queue: time.Second, Total: 31 * time.Second},
	}})
	status, text := get(t, url+"/api/status")
	require.Equal(t, http.StatusOK, status)
	var s Snapshot
	require.NoError(t, json.Unmarshal([]byte(text), &s))
	require.Equal(t, "job-1", s.Jobs[0].ID, "what is in progress comes first")
	require.InDelta(t, 21, *s.Jobs[0].LeftSeconds, 0.01, "seven partitions of three seconds")
	require.Nil(t, s.Jobs[1].LeftSeconds)
	require.InDelta(t, 3600, *s.Jobs[0].DueSeconds, 60)
	require.Nil(t, s.Jobs[1].DueSeconds)
	require.EqualValues(t, 5, s.Withheld)
	require.EqualValues(t, 3, s.Retries)
	require.EqualValues(t, 2, s.Fallbacks)
	require.EqualValues(t, 4, s.Devices[0].Faults)
	require.Equal(t, 71, s.Devices[0].Temperature)
	require.Equal(t, "GPU-1", s.Devices[0].UUID)
	require.Equal(t, "it is lost", s.Devices[1].OutOfUse)
	require.InDelta(t, 0.75, *s.Devices[0].Efficiency, 1e-9)
	require.Equal(t, "porep-32g", s.Parameters[0].Circuit)
	require.Equal(t, QueueSnapshot{Kind: "porep", Pending: 1, InProgress: 1, PartitionsPending: 6, PartitionsInProgress: 1}, s.Queues[0])

	status, _ = get(t, url+"/healthz")
	require.Equal(t, http.StatusOK, status)
	f.goDown(shared.ErrUnreachable)
	g.observer.mu.Lock()
	g.observer.at = time.Time{}
	g.observer.mu.Unlock()
	status, _ = get(t, url+"/healthz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	_, text = get(t, url+"/api/status")
	require.Contains(t, text, shared.ErrUnreachable.Error())
}

// Server-sent events tell all of the timeline, and nothing twice.
func TestEventsTellTheTimelineOnce(t *testing.T) {
	f := busyProver()
	g, _ := serve(t, f, Options{})
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, serveWeb(t, g)+"/api/events", nil)
	require.NoError(t, err)
	reply, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer reply.Body.Close()
	require.Equal(t, "text/event-stream", reply.Header.Get("Content-Type"))

	lines := bufio.NewScanner(reply.Body)
	lines.Buffer(nil, 1<<20)
	next := func() (m timelineMessage) {
		for lines.Scan() {
			if lines.Text() == "event: timeline" && lines.Scan() {
				require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "data: ")), &m))
				return m
			}
		}
		t.Fatal(lines.Err())
		return m
	}
	first := next()
	require.Len(t, first.Events, len(busyDay().Events))
	require.Equal(t, eventEntry{1002.0, "GPU_START", "r,1", 0.0, "gpu-0", 0.0}, first.Events[5])
	require.Equal(t, []gapEntry{{"gpu-0", 2002.0, 3002.0, "waiting for witness"}}, first.Gaps)
	f.mu.Lock()
	f.timeline.Events = append(f.timeline.Events, timeline.Event{Time: 5500 * time.Millisecond, Kind: timeline.RequestEnd, Request: "r,1", Partition: -1, Worker: -1})
	f.mu.Unlock()
	for {
		if m := next(); len(m.Events) > 0 {
			require.Equal(t, []eventEntry{{5500.0, "REQUEST_END", "r,1", -1.0, "", -1.0}}, m.Events)
			break
		}
	}
}

// The page loads nothing but itself, and is small.
func TestPageIsSmallAndAlone(t *testing.T) {
	g, _ := serve(t, busyProver(), Options{})
	url := serveWeb(t, g)
	total := 0
	for _, path := range []string{"/", "/page.css", "/page.js", "/icon.svg"} {
		status, text := get(t, url+path)
		require.Equal(t, http.StatusOK, status, path)
		require.NotContains(t, strings.ReplaceAll(text, `xmlns="http://www.w3.org/2000/svg"`, ""), "http://")
		require.NotContains(t, text, "https://")
		total += len(text)
	}
	require.Less(t, total, 200<<10)
	status, _ := get(t, url+"/nothing")
	require.Equal(t, http.StatusNotFound, status)
}
