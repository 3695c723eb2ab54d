package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

var stages = []shared.Stage{
	shared.StageDecode, shared.StageParams, shared.StageWitness, shared.StagePrepare, shared.StageDevice,
	shared.StageFinish, shared.StageVerify,
}

var deviceStages = []shared.Stage{shared.StagePrepare, shared.StageDevice, shared.StageFinish}

// Wherever a request is when it is cancelled, and whether or not what works on it takes notice, its answer comes within
// 100 ms, the other requests go on, and nothing is left behind.
func TestCancelAtEveryStage(t *testing.T) {
	for _, heeds := range []bool{true, false} {
		for _, stage := range stages {
			t.Run(fmt.Sprintf("%s,heeds=%v", stage, heeds), func(t *testing.T) {
				cancelAt(t, stage, func(ctx context.Context) {
					if heeds {
						_ = sleep(ctx, time.Hour)
					} else {
						time.Sleep(3 * time.Second)
					}
				})
			})
		}
	}
}

func cancelAt(t *testing.T, stage shared.Stage, stay func(ctx context.Context)) {
	synctest.Test(t, func(t *testing.T) {
		budget, meter := host(t, 100)
		p := newPipeline(t, Config{Devices: onDevices(newFakeDevice(t, "gpu")), HostMemory: budget})
		reached := make(chan struct{}, 10)
		stuck := &fakeJob{id: "stuck", partitions: 3, witnessBytes: 10, budget: meter,
			fault: func(ctx context.Context, s shared.Stage, _ *fakeJob, _ int, _ string) error {
				if s == stage {
					reached <- struct{}{}
					stay(ctx)
				}
				return nil
			}}
		require.NoError(t, p.Submit(stuck.request()))
		<-reached
		time.Sleep(500 * time.Millisecond)
		began := time.Now()
		wasRunning, err := p.Cancel("stuck")
		require.NoError(t, err)
		require.True(t, wasRunning)
		_, err = p.Await(t.Context(), "stuck")
		require.ErrorIs(t, err, shared.ErrCancelled)
		require.Less(t, time.Since(began), 100*time.Millisecond)
		wasRunning, err = p.Cancel("stuck")
		require.NoError(t, err)
		require.False(t, wasRunning)
		mustProve(t, p, &fakeJob{id: "stuck", partitions: 3}) // the id is free again
		closeEmpty(t, p)
		require.Equal(t, stuck.opened.Load(), stuck.closed.Load())
	})
}

// The same while it waits: for a place or for memory ahead of the devices, for a device, for a device's memory, for the
// interlock.
func TestCancelWhileWaiting(t *testing.T) {
	for name, c := range map[string]struct {
		config func(*Config)
		job    *fakeJob
	}{
		"for a place":          {func(c *Config) { c.WitnessesAhead = 1 }, &fakeJob{}},
		"for host memory":      {func(c *Config) { c.HostMemory = interlock.NewBudget("host memory", 30) }, &fakeJob{witnessBytes: 10}},
		"for a device":         {func(c *Config) { c.WitnessesAhead = 100 }, &fakeJob{}},
		"for device memory":    {func(c *Config) { c.Devices[0].Memory = interlock.NewBudget("memory of gpu", 15) }, &fakeJob{workBytes: map[string]int64{"gpu": 10}}},
		"for the interlock":    {func(c *Config) { c.Devices[0].Workers = 5 }, &fakeJob{}},
		"for a witness worker": {func(c *Config) {}, &fakeJob{witnessTime: time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFakeDevice(t, "gpu")
				d.execute = 2 * time.Second
				config := Config{Devices: onDevices(d)}
				c.config(&config)
				p := newPipeline(t, config)
				first, second := c.job.named("first"), c.job.named("second")
				require.NoError(t, p.Submit(first.request()))
				synctest.Wait()
				require.NoError(t, p.Submit(second.request()))
				time.Sleep(time.Second)
				for _, id := range []string{"second", "first"} {
					began := time.Now()
					_, err := p.Cancel(id)
					require.NoError(t, err)
					_, err = p.Await(t.Context(), id)
					require.ErrorIs(t, err, shared.ErrCancelled)
					require.Less(t, time.Since(began), 100*time.Millisecond)
				}
				mustProve(t, p, &fakeJob{id: "third", partitions: 3})
				closeEmpty(t, p)
			})
		})
	}
}

func (j *fakeJob) named(id string) *fakeJob {
	return &fakeJob{id: id, partitions: 10, witnessBytes: j.witnessBytes, witnessTime: j.witnessTime, workBytes: j.workBytes}
}

var errFault = errors.New("injected fault")

// failing gives a fault that strikes the partition on the device as often as times says.
func failing(stage shared.Stage, k int, device string, times int32, strike func() error) fault {
	var struck atomic.Int32
	return func(_ context.Context, s shared.Stage, _ *fakeJob, partition int, d string) error {
		if s == stage && (partition == k || partition < 0) && (device == "" || d == device) && struck.Add(1) <= times {
			return strike()
		}
		return nil
	}
}

func fail() error      { return errFault }
func panicking() error { panic(errFault) }

// An error or a panic at any stage fails its request alone, with an error that names stage, partition and device; the
// interlock is given back and the next request proves.
func TestFaultAtEveryStage(t *testing.T) {
	for how, strike := range map[string]func() error{"error": fail, "panic": panicking} {
		for _, stage := range stages {
			t.Run(how+" in "+string(stage), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPipeline(t, Config{Devices: onDevices(newFakeDevice(t, "gpu"))})
					other := &fakeJob{id: "other", partitions: 20}
					require.NoError(t, p.Submit(other.request()))
					j := &fakeJob{id: "r", partitions: 5, fault: failing(stage, 3, "", 1, strike)}
					result, err := p.Prove(t.Context(), j.request(), nil)
					require.ErrorIs(t, err, errFault)
					require.Empty(t, result.Proof)
					var panicked *interlock.PanicError
					require.Equal(t, how == "panic", errors.As(err, &panicked))
					var at *StageError
					if errors.As(err, &at) {
						require.Equal(t, stage, at.Stage)
						require.Equal(t, "r", at.RequestID)
					}
					onDevice := slices.Contains(deviceStages, stage)
					require.Equal(t, how == "panic" || onDevice || stage == shared.StageWitness, at != nil)
					if onDevice {
						require.Equal(t, "gpu", at.Device)
						require.Equal(t, 3, at.Partition)
						require.ErrorContains(t, err, fmt.Sprintf("request r, partition 3, %s on gpu: ", stage))
					}
					mustProve(t, p, &fakeJob{id: "next", partitions: 5})
					result, err = p.Await(t.Context(), "other")
					require.NoError(t, err)
					require.Equal(t, other.whole(), result.Proof)
					closeEmpty(t, p)
					require.Equal(t, j.opened.Load(), j.closed.Load())
				})
			})
		}
	}
}

// A partition that fails on one device is tried once on another, and not a third time.
func TestFailedPartitionGoesToAnotherDevice(t *testing.T) {
	for _, stage := range deviceStages {
		for how, strike := range map[string]func() error{"error": fail, "panic": panicking} {
			t.Run(how+" in "+string(stage), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a, b := newFakeDevice(t, "a"), newFakeDevice(t, "b")
					p := newPipeline(t, Config{Devices: onDevices(a, b)})
					j := &fakeJob{id: "r", partitions: 6, fault: failing(stage, 3, "", 1, strike)}
					mustProve(t, p, j)
					j = &fakeJob{id: "s", partitions: 6, fault: failing(stage, 3, "", 2, strike)}
					_, err := p.Prove(t.Context(), j.request(), nil)
					require.ErrorIs(t, err, errFault)
					// Only a fails: whatever reaches it is made on b.
					j = &fakeJob{id: "t", partitions: 1, fault: failing(stage, 0, "a", 100, strike)}
					mustProve(t, p, j)
					closeEmpty(t, p)
					require.Empty(t, p.Status().Devices[0].OutOfUse)
				})
			})
		}
	}
}

// A device that says it is lost is taken out of use: its partitions go to the others, it gets no more, and with the last
// one gone requests are refused with the reason.
func TestLostDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFakeDevice(t, "a"), newFakeDevice(t, "b")
		var log bytes.Buffer
		p := newPipeline(t, Config{Devices: onDevices(a, b), Log: hclog.New(&hclog.LoggerOptions{Output: &log})})
		lose := func(device string) fault {
			return failing(shared.StageDevice, 2, device, 1, func() error {
				return fmt.Errorf("kernel: %w", &DeviceLostError{Device: device, Err: errFault})
			})
		}
		j := &fakeJob{id: "r", partitions: 8}
		j.fault = func(ctx context.Context, s shared.Stage, j *fakeJob, k int, d string) error {
			if s == shared.StageDevice && d == "a" && k > 1 {
				return &DeviceLostError{Device: d, Err: errFault}
			}
			return nil
		}
		mustProve(t, p, j)
		require.Contains(t, p.Status().Devices[0].OutOfUse, "device a is lost: injected fault")
		on := len(a.order())
		mustProve(t, p, &fakeJob{id: "s", partitions: 8})
		require.Len(t, a.order(), on)

		// The last one: the request that saw it, and one that was waiting.
		waiting := &fakeJob{id: "waiting", partitions: 8}
		last := &fakeJob{id: "last", partitions: 8, fault: lose("b")}
		require.NoError(t, p.Submit(last.request()))
		require.NoError(t, p.Submit(waiting.request()))
		for _, id := range []string{"last", "waiting"} {
			_, err := p.Await(t.Context(), id)
			require.ErrorIs(t, err, errFault)
			require.ErrorAs(t, err, new(*DeviceLostError))
		}
		err := p.Submit((&fakeJob{id: "refused", partitions: 1}).request())
		require.ErrorAs(t, err, new(*NoDeviceError))
		require.ErrorContains(t, err, "device b is lost")
		closeEmpty(t, p)
		require.Contains(t, log.String(), "a device is lost and was taken out of use: device=a")
	})
}

// A proof that does not verify is never handed out: what is wrong is made once more, on another device if there is one,
// and if that is wrong too the error says what was tried. Devices that may be wrong are tested before they make more.
func TestSelfCheck(t *testing.T) {
	for name, c := range map[string]struct {
		corrupt func(k int, device string) bool
		devices []string
		proven  bool
		counts  Counts
	}{
		"one device errs once":   {onceFor(2), []string{"a"}, true, Counts{Completed: 1, Withheld: 1}},
		"one device errs always": {func(k int, _ string) bool { return k == 2 }, []string{"a"}, false, Counts{Failed: 1, Withheld: 2}},
		"one of two devices errs always": {
			func(_ int, device string) bool { return device == "a" }, []string{"a", "b"}, true, Counts{Completed: 1, Withheld: 1},
		},
		"all of two devices err always": {func(int, string) bool { return true }, []string{"a", "b"}, false, Counts{Failed: 1, Withheld: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var devices []*fakeDevice
				for _, name := range c.devices {
					devices = append(devices, newFakeDevice(t, name))
				}
				var log bytes.Buffer
				p := newPipeline(t, Config{Devices: onDevices(devices...), Log: logTo(&log)})
				var lastDone, most int
				j := &fakeJob{id: "r", partitions: 5, corrupt: c.corrupt}
				result, err := p.Prove(t.Context(), j.request(), func(r shared.Progress) {
					lastDone, most = r.PartitionsDone, max(most, r.PartitionsDone)
				})
				require.Equal(t, 5, most)
				if c.proven {
					require.NoError(t, err)
					require.Equal(t, j.whole(), result.Proof)
					require.Equal(t, 5, lastDone)
				} else {
					require.Zero(t, result)
					var invalid *shared.ProofInvalidError
					require.ErrorAs(t, err, &invalid)
					require.Equal(t, "r", invalid.RequestID)
					require.Contains(t, invalid.Partitions, 2)
					first, second, found := strings.Cut(invalid.Detail, "; ")
					require.True(t, found)
					if len(devices) > 1 { // each partition was made on the other device
						second = strings.NewReplacer("made on a", "made on b", "made on b", "made on a", ",a", ",b", ",b", ",a").Replace(second)
					}
					require.Contains(t, first, "attempt 1, partitions made on ")
					require.Equal(t, strings.Replace(first, "attempt 1", "attempt 2", 1), second)
				}
				counts := p.Status().Counts
				require.NotZero(t, counts.Retries)
				counts.Retries = 0 // as many as partitions were wrong
				require.Equal(t, c.counts, counts)
				time.Sleep(time.Minute) // the last self-tests, too
				closeEmpty(t, p)
				tested := 0
				for i, d := range devices {
					require.EqualValues(t, len(d.probed), p.Status().Devices[i].Faults)
					tested += len(d.probed)
				}
				require.GreaterOrEqual(t, tested, int(counts.Withheld))
				require.Equal(t, tested, strings.Count(log.String(), "[ERROR] a device failed and is out of use"))
			})
		})
	}
}

func onceFor(k int) func(int, string) bool {
	var done atomic.Bool
	return func(partition int, _ string) bool { return partition == k && done.CompareAndSwap(false, true) }
}

// If the check itself fails, nothing is known of the proof and it is withheld, without making it again.
func TestFailingCheckWithholdsTheProof(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDevice(t, "a")
		p := newPipeline(t, Config{Devices: onDevices(d)})
		j := &fakeJob{id: "r", partitions: 2, fault: failing(shared.StageVerify, -1, "", 1, fail)}
		result, err := p.Prove(t.Context(), j.request(), nil)
		require.ErrorIs(t, err, errFault)
		require.Zero(t, result)
		require.Len(t, d.order(), 2)
		closeEmpty(t, p)
	})
}

// A panic in what only cleans up is logged and stops nothing.
func TestPanicInRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		p := newPipeline(t, Config{
			Devices:  []DeviceConfig{{Device: rudeDevice{newFakeDevice(t, "gpu")}}},
			Timeline: timeline.NewRecorder(0),
			Log:      hclog.New(&hclog.LoggerOptions{Output: &log}),
		})
		for i := range 3 {
			_, err := p.Prove(t.Context(), (&fakeJob{id: fmt.Sprint(i), partitions: 3}).request(), nil)
			require.NoError(t, err)
		}
		closeEmpty(t, p)
		require.Contains(t, log.String(), "releasing a partition's device memory failed")
		require.Contains(t, log.String(), "asking a device for its measurements failed")
	})
}

type rudeDevice struct{ *fakeDevice }
type rudePhase struct{ Phase }

func (d rudeDevice) Prepare(ctx context.Context, job Job, k int, w Witness) (Phase, error) {
	phase, err := d.fakeDevice.Prepare(ctx, job, k, w)
	return rudePhase{phase}, err
}

func (ph rudePhase) Release() {
	ph.Phase.Release()
	panic(errFault)
}

func (ph rudePhase) Measurements() []Measurement { panic(errFault) }

// Methods that have no reason to fail fail their request alone when they do.
func TestPanicInSmallMethods(t *testing.T) {
	for _, method := range []string{"Partitions", "HostMemory", "Memory", "Insecure"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFakeDevice(t, "gpu")
				p := newPipeline(t, Config{Devices: []DeviceConfig{{Device: pickyDevice{d}}}})
				j := &fakeJob{id: "r", partitions: 2}
				r := j.request()
				r.Open = func(ctx context.Context) (Job, error) {
					_, err := j.open(ctx)
					return &rudeJob{j, method}, err
				}
				result, err := p.Prove(t.Context(), r, nil)
				require.Zero(t, result)
				require.ErrorAs(t, err, new(*interlock.PanicError))
				require.ErrorIs(t, err, errFault)
				mustProve(t, p, &fakeJob{id: "next", partitions: 2})
				closeEmpty(t, p)
				require.EqualValues(t, 1, j.closed.Load())
			})
		})
	}
}

// rudeJob panics in the named method.
type rudeJob struct {
	*fakeJob
	method string
}

func (j *rudeJob) panicIn(method string) {
	if j.method == method {
		panic(errFault)
	}
}

func (j *rudeJob) Partitions() int { j.panicIn("Partitions"); return j.fakeJob.Partitions() }
func (j *rudeJob) Insecure() bool  { j.panicIn("Insecure"); return j.fakeJob.Insecure() }
func (j *rudeJob) HostMemory(fallback bool) interlock.Claim {
	j.panicIn("HostMemory")
	return j.fakeJob.HostMemory(fallback)
}

// pickyDevice knows rude jobs.
type pickyDevice struct{ *fakeDevice }

func (d pickyDevice) Memory(job Job) (interlock.Claim, error) {
	if rude, ok := job.(*rudeJob); ok {
		rude.panicIn("Memory")
		job = rude.fakeJob
	}
	return d.fakeDevice.Memory(job)
}

func (d pickyDevice) Prepare(ctx context.Context, job Job, k int, w Witness) (Phase, error) {
	if rude, ok := job.(*rudeJob); ok {
		job = rude.fakeJob
	}
	return d.fakeDevice.Prepare(ctx, job, k, w)
}
