package pipeline

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// A request's answer has the proofs of its partitions in order, whichever was ready first, the times of all stages, and
// progress that never goes back.
func TestProve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fast, slow := newFakeDevice(t, "fast"), newFakeDevice(t, "slow")
		slow.execute = 300 * time.Millisecond
		recorder := timeline.NewRecorder(0)
		p := newPipeline(t, Config{Devices: onDevices(fast, slow), WitnessWorkers: 2, Timeline: recorder})
		j := &fakeJob{id: "r", partitions: 10, witnessTime: 20 * time.Millisecond, fault: func(ctx context.Context, stage shared.Stage, _ *fakeJob, _ int, _ string) error {
			switch stage {
			case shared.StageParams:
				time.Sleep(time.Second)
			case shared.StageVerify:
				time.Sleep(2 * time.Second)
			}
			return nil
		}}
		var reports []shared.Progress
		began := time.Now()
		result, err := p.Prove(t.Context(), j.request(), func(r shared.Progress) { reports = append(reports, r) })
		require.NoError(t, err)
		require.Equal(t, j.whole(), result.Proof)
		require.Equal(t, "r", result.RequestID)
		require.Equal(t, 10, result.Partitions)
		require.True(t, result.InsecureParams)

		onSlow := time.Duration(len(slow.order()))
		require.NotZero(t, onSlow)
		times := result.Timings
		require.Equal(t, time.Second, times.Params)
		require.Equal(t, 10*20*time.Millisecond, times.Witness)
		require.Equal(t, 10*10*time.Millisecond, times.Prepare)
		require.Equal(t, onSlow*300*time.Millisecond+(10-onSlow)*40*time.Millisecond, times.Device)
		require.Equal(t, 10*10*time.Millisecond, times.Finish)
		require.Equal(t, 2*time.Second, times.Verify)
		require.Equal(t, time.Since(began), times.Total)

		require.Equal(t, shared.StageDecode, reports[0].Stage)
		require.Equal(t, shared.StageDone, reports[len(reports)-1].Stage)
		require.Equal(t, 10, reports[len(reports)-1].PartitionsDone)
		for i, r := range reports[1:] {
			require.GreaterOrEqual(t, r.PartitionsDone, reports[i].PartitionsDone)
			require.GreaterOrEqual(t, r.Elapsed, reports[i].Elapsed)
			require.Equal(t, "r", r.RequestID)
		}
		closeEmpty(t, p)
		require.EqualValues(t, 1, j.closed.Load())
		require.EqualValues(t, 1, p.Status().Completed)

		count := map[timeline.Kind]int{}
		for _, e := range recorder.Recording().Events {
			count[e.Kind]++
		}
		for k := timeline.SynthStart; k <= timeline.FinishEnd; k++ {
			require.Equal(t, 10, count[k], k)
		}
		for _, k := range []timeline.Kind{timeline.GPUQueue, timeline.GPUPickup} {
			require.Equal(t, 10, count[k], k)
		}
		for _, k := range []timeline.Kind{timeline.RequestStart, timeline.RequestEnd, timeline.ParamsStart, timeline.ParamsEnd, timeline.VerifyStart, timeline.VerifyEnd} {
			require.Equal(t, 1, count[k], k)
		}
	})
}

// Critical goes before high, normal and low, and inside one priority first come is first served; a request without a
// priority is normal.
func TestPriorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDevice(t, "gpu")
		p := newPipeline(t, Config{Devices: []DeviceConfig{{Device: d, Workers: 1}}, WitnessesAhead: 1})
		for _, c := range []struct {
			id       string
			priority shared.Priority
		}{
			{"first", shared.PriorityLow}, // is under way when the others come
			{"low1", shared.PriorityLow}, {"normal1", shared.PriorityUnspecified}, {"high1", shared.PriorityHigh},
			{"critical1", shared.PriorityCritical}, {"critical2", shared.PriorityCritical}, {"high2", shared.PriorityHigh},
			{"normal2", shared.PriorityNormal}, {"low2", shared.PriorityLow},
		} {
			r := (&fakeJob{id: c.id, partitions: 2}).request()
			r.Priority = c.priority
			require.NoError(t, p.Submit(r))
			synctest.Wait()
		}
		closeEmpty(t, p)
		var order []string
		for _, executed := range d.order() {
			order = append(order, strings.Split(executed, "/")[0])
		}
		// The first request's first partition was at the device; its second had the only place ahead, which holds up nobody.
		require.Equal(t, []string{"first", "critical1", "critical1", "critical2", "critical2",
			"high1", "high1", "high2", "high2", "normal1", "normal1", "normal2", "normal2", "first", "low1", "low1", "low2", "low2"}, order)
	})
}

// A device does not wait for one request to be complete before it works on the next.
func TestPartitionsOfRequestsMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFakeDevice(t, "a"), newFakeDevice(t, "b")
		a.execute = time.Second
		p := newPipeline(t, Config{Devices: []DeviceConfig{{Device: a, Workers: 1}, {Device: b, Workers: 1}}})
		first, second := &fakeJob{id: "first", partitions: 3}, &fakeJob{id: "second", partitions: 3}
		require.NoError(t, p.Submit(first.request()))
		synctest.Wait()
		mustProve(t, p, second)
		s := p.Status()
		require.EqualValues(t, 1, s.Completed, "the second is complete while a partition of the first is on the slow device")
		require.Equal(t, "first", s.Requests[0].ID)
		closeEmpty(t, p)
		require.Len(t, a.order(), 1)
		require.Equal(t, []string{"second/0", "second/1", "second/2"}, b.order()[2:], "after two of the first")
	})
}

// No more witnesses than allowed are ahead of the devices, and none is begun that the host has no memory for.
func TestWitnessesAheadAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		ahead int
		bytes int64
		most  int64 // witnesses alive: ahead, with the device's two workers, and one being released
	}{
		"by count": {ahead: 3, bytes: 1000, most: 3 + 2 + 1},
		"by bytes": {ahead: 100, bytes: 45, most: 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				budget, meter := host(t, c.bytes)
				p := newPipeline(t, Config{Devices: onDevices(newFakeDevice(t, "gpu")), WitnessWorkers: 4, WitnessesAhead: c.ahead, HostMemory: budget})
				mustProve(t, p, &fakeJob{id: "r", partitions: 30, witnessBytes: 10, budget: meter})
				closeEmpty(t, p)
				require.LessOrEqual(t, meter.peak, c.most*10)
				require.GreaterOrEqual(t, meter.peak, c.most*10-10)
			})
		})
	}
}

// Two workers of a device that has room for one working set take turns, from before prepare until after release; with
// room for two they overlap.
func TestDeviceMemoryIsAdmittedByBytes(t *testing.T) {
	peak := func(bytes int64) (peak int64, took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			d := newFakeDevice(t, "gpu")
			d.memory = &meter{t: t, what: "device memory", limit: bytes}
			d.release = 5 * time.Millisecond
			began := time.Now()
			p := newPipeline(t, Config{Devices: []DeviceConfig{{Device: d, Memory: interlock.NewBudget("memory of gpu", bytes)}}})
			mustProve(t, p, &fakeJob{id: "r", partitions: 10, workBytes: map[string]int64{"gpu": 100}})
			closeEmpty(t, p)
			peak, took = d.memory.peak, time.Since(began)
		})
		return peak, took
	}
	one, slow := peak(199)
	two, fast := peak(200)
	require.EqualValues(t, 100, one)
	require.EqualValues(t, 200, two)
	require.Equal(t, 10*65*time.Millisecond, slow)
	require.Equal(t, 10*40*time.Millisecond+25*time.Millisecond, fast)
}

// What needs more memory than there is, on the host or on every device, is refused before a witness is begun; a device
// that is too small for a request gets none of it.
func TestWhatNeverFitsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		small, large := newFakeDevice(t, "small"), newFakeDevice(t, "large")
		budget, meter := host(t, 1000)
		p := newPipeline(t, Config{HostMemory: budget, Devices: []DeviceConfig{
			{Device: small, Memory: interlock.NewBudget("memory of small", 10)},
			{Device: large, Memory: interlock.NewBudget("memory of large", 100)},
		}})
		var tooLarge *interlock.TooLargeError
		_, err := p.Prove(t.Context(), (&fakeJob{id: "host", partitions: 2, witnessBytes: 1001, budget: meter}).request(), nil)
		require.ErrorAs(t, err, &tooLarge)
		require.Equal(t, &interlock.TooLargeError{Budget: "host memory", WantBytes: 1001, BudgetBytes: 1000}, tooLarge)

		_, err = p.Prove(t.Context(), (&fakeJob{id: "device", partitions: 2, workBytes: map[string]int64{"small": 101, "large": 101}}).request(), nil)
		require.ErrorAs(t, err, &tooLarge)
		require.ErrorAs(t, err, new(*NoDeviceError))
		require.Equal(t, "memory of large", tooLarge.Budget)
		require.Empty(t, append(small.order(), large.order()...))

		mustProve(t, p, &fakeJob{id: "fits", partitions: 5, workBytes: map[string]int64{"small": 50, "large": 50}})
		require.Empty(t, small.order())
		require.Len(t, large.order(), 5)
		closeEmpty(t, p)
	})
}

// Requests whose keys exclude each other are proven one after the other, whatever order their partitions come in; a key
// that stays between partitions is loaded once.
func TestKeysThatExcludeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget, meter := host(t, 100)
		p := newPipeline(t, Config{Devices: onDevices(newFakeDevice(t, "gpu")), WitnessesAhead: 10, WitnessWorkers: 3, HostMemory: budget})
		for i := range 3 {
			key := newFakeKey(t, fmt.Sprintf("key %d", i), 60, budget, meter)
			require.NoError(t, p.Submit((&fakeJob{id: fmt.Sprint(i), partitions: 4, witnessBytes: 15, budget: meter, key: key}).request()))
		}
		tooLarge := (&fakeJob{id: "large", partitions: 1, witnessBytes: 41, key: newFakeKey(t, "large key", 60, budget, meter)}).request()
		_, err := p.Prove(t.Context(), tooLarge, nil)
		require.ErrorContains(t, err, "101 bytes (101.00 B) are needed, which are 41 bytes (41.00 B) and 60 bytes (60.00 B) for large key")
		for i := range 3 {
			_, err := p.Await(t.Context(), fmt.Sprint(i))
			require.NoError(t, err)
		}
		require.NoError(t, p.Close(t.Context()))
		require.EqualValues(t, 90, meter.peak)
		require.EqualValues(t, 60, budget.Used(), "the last key stays")
	})
}

// A critical request that comes while another waits for memory goes first, and is no longer kept waiting than until
// enough for its own small witness is free.
func TestHigherPriorityOvertakesAWaitForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDevice(t, "gpu")
		d.execute = time.Second
		budget, meter := host(t, 100)
		p := newPipeline(t, Config{Devices: onDevices(d), WitnessesAhead: 10, HostMemory: budget})
		require.NoError(t, p.Submit((&fakeJob{id: "low", partitions: 3, witnessBytes: 60, budget: meter}).request()))
		time.Sleep(100 * time.Millisecond) // low/0 runs, low/1 waits for memory
		critical := (&fakeJob{id: "critical", partitions: 1, witnessBytes: 40, budget: meter}).request()
		critical.Priority = shared.PriorityCritical
		require.NoError(t, p.Submit(critical))
		closeEmpty(t, p)
		require.Equal(t, []string{"low/0", "critical/0", "low/1", "low/2"}, d.order())
	})
}

// Awaiting is apart from the job: a caller that goes away ends its own waiting alone, several may wait, and the answer
// can be fetched later.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeline(t, Config{Devices: onDevices(newFakeDevice(t, "gpu")), KeepResults: 2})
		_, err := p.Await(t.Context(), "r")
		require.ErrorIs(t, err, shared.ErrUnknownJob)
		_, err = p.Cancel("r")
		require.ErrorIs(t, err, shared.ErrUnknownJob)

		j := &fakeJob{id: "r", partitions: 5}
		require.NoError(t, p.Submit(j.request()))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err = p.Await(ctx, "r")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		for range 2 {
			result, err := p.Await(t.Context(), "r")
			require.NoError(t, err)
			require.Equal(t, j.whole(), result.Proof)
		}
		result, err := p.Await(ctx, "r") // has ended, but nothing needs waiting for
		require.NoError(t, err)
		require.Equal(t, j.whole(), result.Proof)
		wasRunning, err := p.Cancel("r")
		require.NoError(t, err)
		require.False(t, wasRunning)

		// Only so many answers are kept; one more pushes out the oldest. An id that was answered may come again.
		mustProve(t, p, &fakeJob{id: "s", partitions: 1})
		mustProve(t, p, &fakeJob{id: "r", partitions: 2})
		result, err = p.Await(t.Context(), "r")
		require.NoError(t, err)
		require.Equal(t, 2, result.Partitions, "the later answer of an id")
		mustProve(t, p, &fakeJob{id: "t", partitions: 1})
		_, err = p.Await(t.Context(), "s")
		require.ErrorIs(t, err, shared.ErrUnknownJob)
		_, err = p.Await(t.Context(), "r")
		require.NoError(t, err)
		closeEmpty(t, p)
		_, err = p.Await(t.Context(), "t")
		require.NoError(t, err, "answers outlive Close")
	})
}

// A request whose context or deadline ends is given up with the reason.
func TestProveHeedsItsContextAndDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeline(t, Config{Devices: onDevices(newFakeDevice(t, "gpu"))})
		request := func() Request { return (&fakeJob{id: "r", partitions: 100}).request() }
		within := func(want error, ctx context.Context, r Request) {
			t.Helper()
			began := time.Now()
			_, err := p.Prove(ctx, r, func(shared.Progress) {})
			require.ErrorIs(t, err, want)
			require.Equal(t, 500*time.Millisecond, time.Since(began))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		within(shared.ErrCancelled, ctx, request())
		_, err := p.Prove(ctx, request(), nil)
		require.ErrorIs(t, err, shared.ErrCancelled)

		ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		within(context.DeadlineExceeded, ctx, request())

		late := request()
		late.Deadline = time.Now().Add(500 * time.Millisecond)
		within(context.DeadlineExceeded, t.Context(), late)
		s := p.Status()
		require.Equal(t, Counts{Completed: 0, Failed: 2, Cancelled: 1}, s.Counts)
		closeEmpty(t, p)
	})
}

// Whatever a progress function does, it does to its own caller alone.
func TestProgressFunctionsDisturbNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeline(t, Config{Devices: onDevices(newFakeDevice(t, "gpu"))})
		slow := &fakeJob{id: "slow", partitions: 30}
		var last shared.Progress
		calls := 0
		result, err := p.Prove(t.Context(), slow.request(), func(r shared.Progress) {
			time.Sleep(time.Second)
			calls++
			last = r
		})
		require.NoError(t, err)
		require.Equal(t, slow.whole(), result.Proof)
		require.Less(t, result.Timings.Total, 2*time.Second, "the job itself was not slowed")
		require.Equal(t, shared.StageDone, last.Stage, "what is missed are older reports")
		require.Less(t, calls, 5*30)

		bad := &fakeJob{id: "bad", partitions: 30}
		require.PanicsWithValue(t, "progress", func() {
			_, _ = p.Prove(t.Context(), bad.request(), func(shared.Progress) { panic("progress") })
		})
		_, err = p.Await(t.Context(), "bad")
		require.ErrorIs(t, err, shared.ErrCancelled)
		mustProve(t, p, &fakeJob{id: "good", partitions: 3})
		closeEmpty(t, p)
	})
}

// What cannot be accepted is refused at once, with its reason.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := New(Config{})
		require.ErrorContains(t, err, "at least one device")
		_, err = New(Config{Devices: onDevices(newFakeDevice(t, "gpu"), newFakeDevice(t, "gpu"))})
		require.ErrorContains(t, err, `two devices are named "gpu"`)

		p := newPipeline(t, Config{Devices: onDevices(newFakeDevice(t, "gpu")), MaxRequests: 2})
		require.Error(t, p.Submit(Request{}))
		a := &fakeJob{id: "a", partitions: 3}
		require.NoError(t, p.Submit(a.request()))
		var duplicate *DuplicateError
		require.ErrorAs(t, p.Submit(a.request()), &duplicate)
		require.Equal(t, "a", duplicate.RequestID)
		require.NoError(t, p.Submit((&fakeJob{id: "b", partitions: 3}).request()))
		var busy *shared.BusyError
		require.ErrorAs(t, p.Submit((&fakeJob{id: "c", partitions: 3}).request()), &busy)
		closeEmpty(t, p)
		require.ErrorIs(t, p.Submit(a.request()), ErrClosed)
	})
}

// A request that turns out to be invalid is answered with that error as it is.
func TestDecodingErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeline(t, Config{Devices: onDevices(newFakeDevice(t, "gpu"))})
		invalid := &shared.InvalidRequestError{Field: "vanilla[0]", Reason: "is not a proof"}
		j := &fakeJob{id: "r", fault: func(context.Context, shared.Stage, *fakeJob, int, string) error { return invalid }}
		_, err := p.Prove(t.Context(), j.request(), nil)
		require.Equal(t, invalid, err)
		_, err = p.Prove(t.Context(), (&fakeJob{id: "none"}).request(), nil)
		require.ErrorContains(t, err, "0 partitions")
		closeEmpty(t, p)
	})
}

// Close lets what is under way come to its end; when it may wait no longer it gives the rest up, and in either case no
// goroutine is left.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipeline(t, Config{Devices: onDevices(newFakeDevice(t, "gpu"))})
		for i := range 3 {
			require.NoError(t, p.Submit((&fakeJob{id: fmt.Sprint(i), partitions: 10}).request()))
		}
		closeEmpty(t, p)
		require.EqualValues(t, 3, p.Status().Completed)

		d := newFakeDevice(t, "gpu")
		d.execute = 5 * time.Second
		p = newPipeline(t, Config{Devices: onDevices(d)})
		for i := range 3 {
			require.NoError(t, p.Submit((&fakeJob{id: fmt.Sprint(i), partitions: 10}).request()))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		began := time.Now()
		err := p.Close(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "3 requests")
		require.Equal(t, 10*time.Second+10*time.Millisecond, time.Since(began), "the device phase that was running came to its end")
		_, err = p.Await(t.Context(), "1")
		require.ErrorIs(t, err, ErrClosed)
		require.NoError(t, p.Close(t.Context()), "closing again does nothing")
	})
}

// The status tells where every partition is.
func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDevice(t, "gpu")
		d.execute = time.Second
		budget, meter := host(t, 100)
		p := newPipeline(t, Config{WitnessesAhead: 2, HostMemory: budget, Devices: []DeviceConfig{
			{Device: d, Memory: interlock.NewBudget("memory of gpu", 50)},
		}})
		a := &fakeJob{id: "a", partitions: 10, witnessTime: 5 * time.Millisecond, witnessBytes: 10, budget: meter, workBytes: map[string]int64{"gpu": 20}}
		require.NoError(t, p.Submit(a.request()))
		time.Sleep(100 * time.Millisecond) // its first two partitions are at the device, the next two ahead of it
		b := (&fakeJob{id: "b", partitions: 3}).request()
		b.Priority, b.Kind = shared.PriorityHigh, shared.KindWinningPoSt
		require.NoError(t, p.Submit(b))
		time.Sleep(1400 * time.Millisecond)

		s := p.Status()
		require.Equal(t, []QueueStatus{
			{Kind: shared.KindWinningPoSt, Priority: shared.PriorityHigh, Pending: 1, InProgress: 2},
			{Kind: shared.KindWindowPoSt, Priority: shared.PriorityNormal, Pending: 6, InProgress: 3},
		}, s.Queues)
		require.Len(t, s.Requests, 2)
		require.Equal(t, RequestStatus{
			ID: "a", Kind: shared.KindWindowPoSt, SectorSize: shared.SectorSize2KiB, Priority: shared.PriorityNormal,
			Stage: shared.StageFinish, Partitions: 10, PartitionsDone: 1, Elapsed: 1500 * time.Millisecond,
		}, s.Requests[0])
		require.EqualValues(t, 100, s.HostMemoryBytes)
		require.EqualValues(t, 30, s.HostMemoryUsedBytes)
		workers := s.Devices[0].Workers
		require.ElementsMatch(t, []WorkerStatus{
			{RequestID: "a", Kind: shared.KindWindowPoSt, Partition: 1, Stage: shared.StageDevice, For: 485 * time.Millisecond},
			{RequestID: "b", Kind: shared.KindWinningPoSt, Partition: 0, Stage: shared.StagePrepare, For: 475 * time.Millisecond},
		}, workers)
		require.Equal(t, []DeviceStatus{{Name: "gpu", MemoryBytes: 50, MemoryUsedBytes: 20, Waiting: 1, Workers: workers}}, s.Devices)
		closeEmpty(t, p)
		require.Equal(t, Counts{Completed: 2}, p.Status().Counts)
	})
}
