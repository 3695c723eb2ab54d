package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/shared"
)

var errProbe = errors.New("computes wrong")

func broken(device string) func() error {
	return func() error { return fmt.Errorf("kernel: %w", &DeviceFaultError{Device: device, Err: errFault}) }
}

func lost(device string) func() error {
	return func() error { return fmt.Errorf("kernel: %w", &DeviceLostError{Device: device, Err: errFault}) }
}

func logTo(w io.Writer) hclog.Logger { return hclog.New(&hclog.LoggerOptions{Output: w}) }

// standIn is a configuration in which "cpu" stands in for the devices, for requests of at least that priority.
func standIn(t testing.TB, least shared.Priority, devices ...*fakeDevice) (c Config, cpu *fakeDevice) {
	cpu = newFakeDevice(t, "cpu")
	return Config{
		Devices: onDevices(devices...), Fallback: &DeviceConfig{Device: cpu}, Log: hclog.NewNullLogger(),
		FallbackAllows: func(p shared.Priority) bool { return p >= least },
	}, cpu
}

const (
	always = shared.PriorityLow
	never  = shared.PriorityCritical + 1
)

func outOfUse(p *Pipeline, device int) string { return p.Status().Devices[device].OutOfUse }

// The only device fails wherever: it is tested at once, takes nothing while it is, and makes the partition again. If that
// fails time and again so does the request, with all the faults, and the next one is proven.
func TestFaultOfTheOnlyDevice(t *testing.T) {
	for _, stage := range deviceStages {
		for _, times := range []int32{0, 1, faultTries - 1, faultTries} {
			t.Run(fmt.Sprintf("%s,times=%d", stage, times), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var log bytes.Buffer
					d := newFakeDevice(t, "gpu")
					p := newPipeline(t, Config{Devices: onDevices(d), Log: logTo(&log)})
					var mu sync.Mutex
					var failed time.Time
					var begun []time.Time
					strike := failing(stage, 1, "gpu", times, func() error {
						require.Empty(t, outOfUse(p, 0))
						mu.Lock()
						defer mu.Unlock()
						failed = time.Now()
						return broken("gpu")()
					})
					j := &fakeJob{id: "r", partitions: 3, fault: func(ctx context.Context, s shared.Stage, j *fakeJob, k int, device string) error {
						if s == shared.StagePrepare {
							mu.Lock()
							begun = append(begun, time.Now())
							mu.Unlock()
						}
						return strike(ctx, s, j, k, device)
					}}
					d.onProbe = func(ctx context.Context) error {
						require.Contains(t, outOfUse(p, 0), "device gpu failed: injected fault")
						began := time.Now()
						mu.Lock()
						if len(d.probes(failed)) == 1 {
							require.Equal(t, failed, began, "at once")
						}
						mu.Unlock()
						require.NoError(t, sleep(ctx, ProbeLimit-time.Millisecond))
						mu.Lock()
						defer mu.Unlock()
						for _, at := range begun {
							require.False(t, at.After(began), "a partition was begun on a device out of use")
						}
						return nil
					}
					result, err := p.Prove(t.Context(), j.request(), nil)
					if times < faultTries {
						require.NoError(t, err)
						require.Equal(t, j.whole(), result.Proof)
					} else {
						require.Zero(t, result)
						require.ErrorAs(t, err, new(*DeviceFaultError))
						require.ErrorIs(t, err, errFault)
						require.Equal(t, faultTries, bytes.Count([]byte(err.Error()), []byte("partition 1, "+string(stage)+" on gpu")), err)
					}
					mustProve(t, p, &fakeJob{id: "next", partitions: 3})
					s := p.Status()
					require.Empty(t, s.Devices[0].OutOfUse)
					require.EqualValues(t, times, s.Devices[0].Faults)
					require.EqualValues(t, min(times, faultTries-1), s.Retries)
					require.Equal(t, times == faultTries, s.Failed == 1)
					closeEmpty(t, p)
					require.Len(t, d.probed, int(times))
					require.Equal(t, int(times), bytes.Count(log.Bytes(), []byte("out of use until a self-test succeeds")))
					require.Equal(t, int(times), bytes.Count(log.Bytes(), []byte("back in use")))
				})
			})
		}
	}
}

// Self-tests that fail come after 0 s, 1 s, 2 s, 4 s and so on up to 1 min; requests wait, and none is lost. A device that
// proved since is tested at once after its next fault.
func TestSelfTestsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDevice(t, "gpu")
		d.badProbes = 9
		p := newPipeline(t, Config{Devices: onDevices(d), Log: hclog.NewNullLogger()})
		var failed time.Time
		first := &fakeJob{id: "0", partitions: 1, fault: failing(shared.StageDevice, 0, "gpu", 1, func() error {
			failed = time.Now()
			return broken("gpu")()
		})}
		require.NoError(t, p.Submit(first.request()))
		time.Sleep(10 * time.Second)
		require.Contains(t, outOfUse(p, 0), "computes wrong", "the latest reason")
		jobs := []*fakeJob{first, {id: "1", partitions: 4}, {id: "2", partitions: 4}}
		for _, j := range jobs[1:] {
			require.NoError(t, p.Submit(j.request()))
		}
		time.Sleep(3 * time.Minute)
		require.Len(t, p.Status().Requests, 3)
		require.Len(t, d.order(), 1)
		for _, j := range jobs {
			result, err := p.Await(t.Context(), j.id)
			require.NoError(t, err)
			require.Equal(t, j.whole(), result.Proof)
		}
		var want []time.Duration
		for _, s := range []int{0, 1, 3, 7, 15, 31, 63, 123, 183, 243} {
			want = append(want, time.Duration(s)*time.Second)
		}
		require.Equal(t, want, d.probes(failed))
		require.EqualValues(t, 1, p.Status().Devices[0].Faults)

		again := &fakeJob{id: "again", partitions: 1, fault: failing(shared.StageDevice, 0, "gpu", 1, broken("gpu"))}
		began := time.Now()
		mustProve(t, p, again)
		require.Equal(t, 10*time.Millisecond+60*time.Millisecond, time.Since(began)) // prepares in vain, then all
		closeEmpty(t, p)
	})
}

// A device that fails again and again without a proof in between, though its self-tests succeed, is tested later and
// later, as one whose self-tests fail.
func TestFaultsInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDevice(t, "gpu")
		p := newPipeline(t, Config{Devices: onDevices(d), Log: hclog.NewNullLogger()})
		began := time.Now()
		mustProve(t, p, &fakeJob{id: "seven", partitions: 1, fault: failing(shared.StagePrepare, 0, "gpu", faultTries-1, broken("gpu"))})
		const s = time.Second
		require.Equal(t, []time.Duration{0, 1 * s, 3 * s, 7 * s, 15 * s, 31 * s, 63 * s}, d.probes(began))
		closeEmpty(t, p)
	})
}

// A self-test that does not end makes the device a lost one, which does not hold up what other devices can prove.
func TestSelfTestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFakeDevice(t, "a"), newFakeDevice(t, "b")
		b.execute = time.Second
		hung := make(chan struct{})
		a.onProbe = func(context.Context) error { <-hung; return nil }
		p := newPipeline(t, Config{Devices: onDevices(a, b), Log: hclog.NewNullLogger()})
		mustProve(t, p, &fakeJob{id: "r", partitions: 8, fault: func(_ context.Context, s shared.Stage, _ *fakeJob, _ int, device string) error {
			if s == shared.StageDevice && device == "a" {
				return broken("a")()
			}
			return nil
		}})
		time.Sleep(ProbeLimit)
		require.Contains(t, outOfUse(p, 0), "its self-test has not ended within 1m0s")
		require.Empty(t, outOfUse(p, 1))
		mustProve(t, p, &fakeJob{id: "next", partitions: 3})
		close(hung)
		closeEmpty(t, p)
	})
}

// What a device did outside of proving counts as well.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFakeDevice(t, "a"), newFakeDevice(t, "b")
		a.badProbes = 1
		p := newPipeline(t, Config{Devices: onDevices(a, b), Log: hclog.NewNullLogger()})
		require.False(t, p.Observe("a", nil))
		require.False(t, p.Observe("a", io.EOF))
		require.Empty(t, outOfUse(p, 0))
		require.True(t, p.Observe("a", broken("a")()))
		require.Contains(t, outOfUse(p, 0), "device a failed: injected fault")
		require.True(t, p.Observe("b", lost("b")()))
		require.Contains(t, outOfUse(p, 1), "device b is lost")
		mustProve(t, p, &fakeJob{id: "r", partitions: 1}) // on a, when it passes its second self-test
		require.Empty(t, outOfUse(p, 0))
		closeEmpty(t, p)
		p.Observe("a", broken("a")())
		require.Empty(t, outOfUse(p, 0), "a closed pipeline needs no self-test")
	})
}

// While the device is out of use, requests that may go to the fallback do, and are not held up by those that may not: these
// wait for the device. When it is back it takes over what the fallback has not begun.
func TestFallbackStandsIn(t *testing.T) {
	for _, limited := range []bool{false, true} {
		t.Run(fmt.Sprintf("limited memory=%v", limited), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFakeDevice(t, "gpu")
				d.badProbes = 4
				config, cpu := standIn(t, shared.PriorityHigh, d)
				var meter *meter
				if limited { // to two witnesses
					config.HostMemory, meter = host(t, 40)
				}
				cpu.execute = time.Second
				p := newPipeline(t, config)
				job := func(id string, priority shared.Priority, partitions int) *fakeJob {
					return &fakeJob{id: id, priority: priority, partitions: partitions, witnessBytes: 20, budget: meter}
				}
				var failed time.Time
				low := job("low", shared.PriorityNormal, 10)
				low.fault = failing(shared.StageDevice, 2, "gpu", 1, func() error {
					failed = time.Now()
					return broken("gpu")()
				})
				require.NoError(t, p.Submit(low.request()))
				time.Sleep(time.Second) // its partitions have taken whatever places there are
				require.NotEmpty(t, outOfUse(p, 0))
				onGPU := len(d.order())

				began := time.Now()
				mustProve(t, p, job("critical", shared.PriorityCritical, 1))
				require.Equal(t, 1020*time.Millisecond, time.Since(began))
				require.EqualValues(t, 1, p.Status().Fallbacks)
				require.Equal(t, []string{"critical/0"}, cpu.order())

				high := job("high", shared.PriorityHigh, 20)
				require.NoError(t, p.Submit(high.request()))
				result, err := p.Await(t.Context(), "high")
				require.NoError(t, err)
				require.Equal(t, high.whole(), result.Proof)
				back := d.probes(failed)
				require.Equal(t, 15*time.Second, back[len(back)-1])
				require.Less(t, time.Since(failed), 19*time.Second, "the rest was made by the device")
				onCPU := len(cpu.order())
				require.Greater(t, onCPU, 8)
				require.Less(t, onCPU, 18)

				result, err = p.Await(t.Context(), "low")
				require.NoError(t, err)
				require.Equal(t, low.whole(), result.Proof)
				for _, executed := range cpu.order() {
					require.NotContains(t, executed, "low")
				}
				require.Len(t, d.order(), 11+20+1-onCPU) // low's with one failure, high's and critical's
				require.Greater(t, onGPU, 0)
				require.EqualValues(t, onCPU, p.Status().Fallbacks)
				closeEmpty(t, p)
			})
		})
	}
}

// What is out of use takes nothing from the rest: partitions that only one device can take hold no places and no memory
// ahead of another that works.
func TestWhatWaitsForADeviceOutOfUseHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large, small := newFakeDevice(t, "large"), newFakeDevice(t, "small")
		large.badProbes = 100
		budget, meter := host(t, 40)
		p := newPipeline(t, Config{Devices: onDevices(large, small), HostMemory: budget, Log: hclog.NewNullLogger()})
		stuck := &fakeJob{id: "stuck", partitions: 10, priority: shared.PriorityHigh, witnessBytes: 20, budget: meter,
			unfit: map[string]error{"small": errFault}, fault: failing(shared.StageDevice, 1, "large", 1, broken("large"))}
		require.NoError(t, p.Submit(stuck.request()))
		time.Sleep(time.Second)
		require.NotEmpty(t, outOfUse(p, 0))
		began := time.Now()
		mustProve(t, p, &fakeJob{id: "r", partitions: 4, witnessBytes: 20, budget: meter})
		require.Less(t, time.Since(began), time.Second)
		synctest.Wait()
		require.Zero(t, p.Status().HostMemoryUsedBytes)
		_, err := p.Cancel("stuck")
		require.NoError(t, err)
		closeEmpty(t, p)
	})
}

// A partition that avoids the device where it failed goes back to it once the other one is out of use.
func TestAvoidedDeviceIsBetterThanNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFakeDevice(t, "a"), newFakeDevice(t, "b")
		b.badProbes = 100
		p := newPipeline(t, Config{WitnessesAhead: 10, Log: hclog.NewNullLogger(), Devices: []DeviceConfig{{Device: a, Workers: 1}, {Device: b, Workers: 1}}})
		busy := &fakeJob{id: "busy", partitions: 1, unfit: map[string]error{"a": errFault}, fault: failing(shared.StageDevice, 0, "b", 1, func() error {
			time.Sleep(10 * time.Second)
			return broken("b")()
		})}
		require.NoError(t, p.Submit(busy.request()))
		time.Sleep(time.Second)
		j := &fakeJob{id: "r", partitions: 1, fault: failing(shared.StageDevice, 0, "a", 1, fail)}
		require.NoError(t, p.Submit(j.request()))
		time.Sleep(time.Second)
		require.Equal(t, []string{"r/0"}, a.order(), "it waits for b")
		_, err := p.Cancel("busy") // so that it is not tried again
		require.NoError(t, err)
		result, err := p.Await(t.Context(), "r")
		require.NoError(t, err)
		require.Equal(t, j.whole(), result.Proof)
		require.Equal(t, []string{"r/0", "r/0"}, a.order())
		require.Equal(t, 10*time.Second+10*time.Millisecond+60*time.Millisecond, result.Timings.Total+time.Second)
		closeEmpty(t, p)
	})
}

// A partition that failed twice for the device's fault goes to the fallback if its request may, though the device is in
// use; else it is tried as often as devices may fail.
func TestTwiceFailedPartitionGoesToTheFallback(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		t.Run(fmt.Sprintf("allowed=%v", allowed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFakeDevice(t, "gpu")
				least := map[bool]shared.Priority{true: always, false: never}[allowed]
				config, cpu := standIn(t, least, d)
				p := newPipeline(t, config)
				j := &fakeJob{id: "r", partitions: 6, fault: failing(shared.StageDevice, 3, "gpu", 100, broken("gpu"))}
				result, err := p.Prove(t.Context(), j.request(), nil)
				s := p.Status()
				if allowed {
					require.EqualValues(t, 2, s.Devices[0].Faults)
					require.NoError(t, err)
					require.Equal(t, j.whole(), result.Proof)
					require.Contains(t, cpu.order(), "r/3")
					require.EqualValues(t, 2, s.Retries)
				} else {
					require.EqualValues(t, faultTries, s.Devices[0].Faults)
					require.ErrorAs(t, err, new(*DeviceFaultError))
					require.Zero(t, result)
					require.Empty(t, cpu.order())
				}
				require.EqualValues(t, len(cpu.order()), s.Fallbacks)
				closeEmpty(t, p)
			})
		})
	}
}

// What fails on the device for another reason than its fault does not go to the fallback, and what fails there is not
// tried a third time.
func TestFallbackIsForFaultsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDevice(t, "gpu")
		config, cpu := standIn(t, always, d)
		p := newPipeline(t, config)
		_, err := p.Prove(t.Context(), (&fakeJob{id: "r", partitions: 2, fault: failing(shared.StageDevice, 0, "gpu", 1, fail)}).request(), nil)
		require.ErrorIs(t, err, errFault)
		require.Empty(t, cpu.order())
		d.badProbes = 100
		j := &fakeJob{id: "s", partitions: 1, fault: func(_ context.Context, s shared.Stage, _ *fakeJob, _ int, device string) error {
			if s == shared.StageDevice {
				return broken(device)()
			}
			return nil
		}}
		_, err = p.Prove(t.Context(), j.request(), nil)
		require.ErrorContains(t, err, "device cpu failed")
		require.ErrorContains(t, err, "device gpu failed")
		require.Equal(t, []string{"s/0"}, cpu.order())
		require.Zero(t, p.Status().Fallbacks)
		closeEmpty(t, p)
	})
}

// A request that fits no device goes to the fallback if it may and fits there; else it is refused with the reason.
func TestWhatFitsNoDevice(t *testing.T) {
	for name, c := range map[string]struct {
		least  shared.Priority
		job    *fakeJob
		want   string // in the error; empty if it is proven
		reason func(error) bool
	}{
		"unfit, allowed":                    {always, &fakeJob{unfit: map[string]error{"gpu": errUnfit}}, "", nil},
		"too many bytes, allowed":           {always, &fakeJob{workBytes: map[string]int64{"gpu": 51}}, "", nil},
		"fits, allowed":                     {always, &fakeJob{workBytes: map[string]int64{"gpu": 50}}, "", nil},
		"unfit, not allowed":                {never, &fakeJob{unfit: map[string]error{"gpu": errUnfit}}, errUnfit.Error(), func(err error) bool { return errors.Is(err, errUnfit) }},
		"too many bytes, not allowed":       {never, &fakeJob{workBytes: map[string]int64{"gpu": 51}}, "memory of gpu: 51 bytes", isTooLarge},
		"too many bytes there and here":     {always, &fakeJob{workBytes: map[string]int64{"gpu": 51}, fallbackBytes: 101}, "memory of gpu: 51 bytes", isTooLarge},
		"too many bytes for the fallback":   {always, &fakeJob{fallbackBytes: 101}, "", nil},
		"too many bytes for any witness":    {always, &fakeJob{witnessBytes: 101}, "host memory: 101 bytes", isTooLarge},
		"as many bytes as the fallback has": {always, &fakeJob{workBytes: map[string]int64{"gpu": 51}, fallbackBytes: 100}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFakeDevice(t, "gpu")
				config, cpu := standIn(t, c.least, d)
				config.HostMemory, _ = host(t, 100)
				config.Devices[0].Memory = interlock.NewBudget("memory of gpu", 50)
				p := newPipeline(t, config)
				j := c.job
				j.id, j.partitions = "r", 3
				result, err := p.Prove(t.Context(), j.request(), nil)
				if c.want == "" {
					require.NoError(t, err)
					require.Equal(t, j.whole(), result.Proof)
					fits := j.unfit == nil && j.workBytes["gpu"] <= 50
					require.Equal(t, map[bool]int{true: 3, false: 0}[fits], len(d.order()))
					require.Len(t, cpu.order(), 3-len(d.order()))
				} else {
					require.Zero(t, result)
					require.ErrorContains(t, err, c.want)
					require.True(t, c.reason(err))
					require.Empty(t, append(d.order(), cpu.order()...))
				}
				require.EqualValues(t, len(cpu.order()), p.Status().Fallbacks)
				closeEmpty(t, p)
			})
		})
	}
}

func isTooLarge(err error) bool { return errors.As(err, new(*interlock.TooLargeError)) }

// A proof from the only device that does not verify is made again on the fallback if the request may go there, else on
// the device.
func TestInvalidProofIsMadeAgainOnTheFallback(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		t.Run(fmt.Sprintf("allowed=%v", allowed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFakeDevice(t, "gpu")
				least := map[bool]shared.Priority{true: always, false: never}[allowed]
				config, cpu := standIn(t, least, d)
				p := newPipeline(t, config)
				j := &fakeJob{id: "r", partitions: 4, corrupt: func(k int, device string) bool { return k == 2 && device == "gpu" }}
				result, err := p.Prove(t.Context(), j.request(), nil)
				if allowed {
					require.NoError(t, err)
					require.Equal(t, j.whole(), result.Proof)
					require.Equal(t, []string{"r/2"}, cpu.order())
					require.Equal(t, Counts{Completed: 1, Withheld: 1, Retries: 1, Fallbacks: 1}, p.Status().Counts)
				} else {
					require.Zero(t, result)
					require.ErrorAs(t, err, new(*shared.ProofInvalidError))
					require.Empty(t, cpu.order())
					require.Equal(t, Counts{Failed: 1, Withheld: 2, Retries: 1}, p.Status().Counts)
				}
				closeEmpty(t, p)
			})
		})
	}
}

// A proof from the fallback that does not verify is made again there, though the device is back by then.
func TestInvalidProofOfTheFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDevice(t, "gpu")
		d.badProbes = 2 // 3 s
		config, cpu := standIn(t, shared.PriorityHigh, d)
		p := newPipeline(t, config)
		// Another request, which waits for the device, finds the fault: so r goes to the fallback from the start.
		other := &fakeJob{id: "other", priority: shared.PriorityNormal, partitions: 1,
			fault: failing(shared.StageDevice, 0, "gpu", 1, broken("gpu"))}
		require.NoError(t, p.Submit(other.request()))
		time.Sleep(100 * time.Millisecond)
		require.NotEmpty(t, outOfUse(p, 0))
		mustProve(t, p, &fakeJob{id: "r", priority: shared.PriorityHigh, partitions: 1, witnessTime: 2 * time.Second, corrupt: onceFor(0)})
		require.Equal(t, []string{"r/0", "r/0"}, cpu.order())
		result, err := p.Await(t.Context(), "other")
		require.NoError(t, err)
		require.Equal(t, other.whole(), result.Proof)
		require.Empty(t, outOfUse(p, 0))
		closeEmpty(t, p)
	})
}

// With the last device lost the process is about to end: nothing that is under way or comes then is answered before
// Close, whatever the partitions failed of, and however many at once.
func TestNothingIsAnsweredWhenTheProcessEnds(t *testing.T) {
	for name, c := range map[string]struct{ devices, faults int }{
		"at its first try": {1, 0}, "at its second try": {1, 1}, "of two devices": {2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var devices []*fakeDevice
				for i := range c.devices {
					devices = append(devices, newFakeDevice(t, fmt.Sprint("gpu", i)))
				}
				var p *Pipeline
				newer := &fakeJob{id: "newer", partitions: 1}
				var left atomic.Int32
				left.Store(int32(c.devices))
				p = newPipeline(t, Config{Devices: onDevices(devices...), Log: hclog.NewNullLogger(), OnLost: func(device string, why error) bool {
					require.ErrorAs(t, why, new(*DeviceLostError))
					require.Contains(t, why.Error(), device)
					ending := left.Add(-1) == 0
					if ending {
						require.NoError(t, p.Submit(newer.request()), "it comes just now")
					}
					return ending
				}})
				var struck atomic.Int32
				j := &fakeJob{id: "r", partitions: 6, fault: func(_ context.Context, s shared.Stage, _ *fakeJob, _ int, device string) error {
					switch n := int(struck.Load()); {
					case s != shared.StageDevice:
						return nil
					case n < c.faults:
						struck.Add(1)
						return broken(device)()
					}
					return lost(device)()
				}}
				require.NoError(t, p.Submit(j.request()))
				time.Sleep(time.Hour)
				require.Zero(t, left.Load())
				require.NoError(t, p.Submit((&fakeJob{id: "newest", partitions: 2}).request()))
				time.Sleep(time.Hour)
				s := p.Status()
				require.Zero(t, s.Completed+s.Failed+s.Cancelled)
				require.Len(t, s.Requests, 3)
				for _, d := range s.Devices {
					require.Contains(t, d.OutOfUse, "is lost")
				}
				now, cancel := context.WithCancel(t.Context())
				cancel()
				require.ErrorContains(t, p.Close(now), "3 requests")
				for _, id := range []string{"r", "newer", "newest"} {
					_, err := p.Await(t.Context(), id)
					require.ErrorIs(t, err, ErrClosed)
				}
			})
		})
	}
}

// A second partition that finds the last device lost while the first one still tells so is not answered either.
func TestDeviceLostForTwoAtOnce(t *testing.T) {
	d := newFakeDevice(t, "gpu")
	telling, second, told := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var once sync.Once
	p := newPipeline(t, Config{Devices: onDevices(d), WitnessesAhead: 2, Log: hclog.NewNullLogger(), OnLost: func(string, error) bool {
		once.Do(func() { close(telling) })
		<-told
		return true
	}})
	var prepared sync.WaitGroup
	prepared.Add(2)
	var first atomic.Bool
	for i := range 2 {
		j := &fakeJob{id: fmt.Sprint(i), partitions: 1, fault: func(_ context.Context, s shared.Stage, _ *fakeJob, _ int, device string) error {
			switch s {
			case shared.StagePrepare:
				prepared.Done()
			case shared.StageDevice:
				prepared.Wait()
				if !first.CompareAndSwap(false, true) {
					<-telling
					close(second)
				}
				return lost(device)()
			}
			return nil
		}}
		require.NoError(t, p.Submit(j.request()))
	}
	<-second
	for range 1000 {
		runtime.Gosched()
	}
	time.Sleep(10 * time.Millisecond)
	close(told)
	time.Sleep(10 * time.Millisecond)
	require.Len(t, p.Status().Requests, 2)
	now, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, p.Close(now))
}

// A lost device beside another: its partitions and all that wait go on there, and OnLost is told once.
func TestLostDeviceBesideAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFakeDevice(t, "a"), newFakeDevice(t, "b")
		var told []string
		p := newPipeline(t, Config{Devices: onDevices(a, b), Log: hclog.NewNullLogger(), OnLost: func(device string, _ error) bool {
			told = append(told, device)
			return false
		}})
		jobs := make([]*fakeJob, 4)
		for i := range jobs {
			jobs[i] = &fakeJob{id: fmt.Sprint(i), partitions: 6, fault: func(_ context.Context, s shared.Stage, _ *fakeJob, _ int, device string) error {
				if s == shared.StageDevice && device == "a" {
					return lost("a")()
				}
				return nil
			}}
			require.NoError(t, p.Submit(jobs[i].request()))
		}
		for _, j := range jobs {
			result, err := p.Await(t.Context(), j.id)
			require.NoError(t, err)
			require.Equal(t, j.whole(), result.Proof)
		}
		require.Equal(t, []string{"a"}, told)
		require.LessOrEqual(t, len(a.order()), 2, "what its workers carried")
		require.Len(t, b.order(), 24)
		closeEmpty(t, p)
	})
}

// A device that is found lost by its self-test is out for good.
func TestSelfTestFindsTheDeviceLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDevice(t, "gpu")
		d.onProbe = func(context.Context) error { return lost("gpu")() }
		p := newPipeline(t, Config{Devices: onDevices(d), Log: hclog.NewNullLogger()})
		_, err := p.Prove(t.Context(), (&fakeJob{id: "r", partitions: 3, fault: failing(shared.StageDevice, 1, "", 1, broken("gpu"))}).request(), nil)
		require.ErrorAs(t, err, new(*NoDeviceError))
		require.ErrorContains(t, err, "device gpu is lost")
		require.Contains(t, outOfUse(p, 0), "device gpu is lost")
		require.ErrorAs(t, p.Submit((&fakeJob{id: "s", partitions: 3}).request()), new(*NoDeviceError))
		time.Sleep(time.Hour)
		require.Len(t, d.probed, 1)
		closeEmpty(t, p)
	})
}

// onlyName panics in all methods but one: of a device that is lost from the start only the name may be asked.
type onlyName struct{ Device }

func (onlyName) Name() string { return "gone" }

// A device that is lost from the start is named in the status and never used; with no other left, requests go to the
// fallback or are refused.
func TestLostFromTheStart(t *testing.T) {
	gone := DeviceConfig{Device: onlyName{}, Lost: errors.New("there is no such card")}
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDevice(t, "gpu")
		p := newPipeline(t, Config{Devices: append([]DeviceConfig{gone}, onDevices(d)...)})
		mustProve(t, p, &fakeJob{id: "r", partitions: 5})
		require.Len(t, d.order(), 5)
		s := p.Status().Devices
		require.Equal(t, "gone", s[0].Name)
		require.Equal(t, "there is no such card", s[0].OutOfUse)
		require.Empty(t, s[1].OutOfUse)
		closeEmpty(t, p)
	})
	synctest.Test(t, func(t *testing.T) {
		config, cpu := standIn(t, shared.PriorityHigh)
		config.Devices = []DeviceConfig{gone}
		p := newPipeline(t, config)
		err := p.Submit((&fakeJob{id: "low", partitions: 1}).request())
		require.ErrorAs(t, err, new(*NoDeviceError))
		require.ErrorContains(t, err, "there is no such card")
		mustProve(t, p, &fakeJob{id: "high", priority: shared.PriorityHigh, partitions: 3})
		require.Len(t, cpu.order(), 3)
		closeEmpty(t, p)
	})
}

// A partition claims what it takes of the host where it goes: more on the fallback, whose memory is not lent to others
// meanwhile, and less on a device.
func TestHostMemoryIsClaimedForWhereAPartitionGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDevice(t, "gpu")
		config, cpu := standIn(t, shared.PriorityHigh, d)
		config.HostMemory, _ = host(t, 100)
		p := newPipeline(t, config)
		var on []string
		observed := func(id string, priority shared.Priority) *fakeJob {
			return &fakeJob{id: id, priority: priority, partitions: 1, witnessBytes: 10, fallbackBytes: 40, fault: func(_ context.Context, s shared.Stage, _ *fakeJob, _ int, device string) error {
				if s == shared.StageDevice {
					on = append(on, fmt.Sprint(device, " ", p.Status().HostMemoryUsedBytes))
				}
				return nil
			}}
		}
		mustProve(t, p, observed("on the device", shared.PriorityHigh))
		failed := (&fakeJob{id: "fails", partitions: 1, witnessBytes: 10, fault: failing(shared.StageDevice, 0, "gpu", 100, broken("gpu"))}).request()
		d.badProbes = 100
		require.NoError(t, p.Submit(failed))
		time.Sleep(time.Second)
		mustProve(t, p, observed("on the fallback", shared.PriorityHigh))
		require.Equal(t, []string{"gpu 10", "cpu 50"}, on)
		require.Len(t, cpu.order(), 1)
		_, err := p.Cancel("fails")
		require.NoError(t, err)
		closeEmpty(t, p)
	})
}

// Requests that wait for a device out of use can be cancelled at once, and Close does not wait for it, whether it waits
// for its self-test or is being tested.
func TestCancelAndCloseWhileADeviceIsOutOfUse(t *testing.T) {
	for _, tested := range []bool{false, true} {
		for _, close := range []bool{false, true} {
			t.Run(fmt.Sprintf("tested=%v,close=%v", tested, close), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := newFakeDevice(t, "gpu")
					if tested {
						d.onProbe = func(ctx context.Context) error { return sleep(ctx, time.Hour) }
					} else {
						d.badProbes = 100
					}
					p := newPipeline(t, Config{Devices: onDevices(d), Log: hclog.NewNullLogger()})
					require.NoError(t, p.Submit((&fakeJob{id: "r", partitions: 3, fault: failing(shared.StageDevice, 1, "gpu", 1, broken("gpu"))}).request()))
					require.NoError(t, p.Submit((&fakeJob{id: "s", partitions: 3}).request()))
					time.Sleep(50 * time.Second)
					require.NotEmpty(t, outOfUse(p, 0))
					began := time.Now()
					if close {
						now, cancel := context.WithCancel(t.Context())
						cancel()
						require.ErrorContains(t, p.Close(now), "2 requests")
						require.Less(t, time.Since(began), 100*time.Millisecond)
						return
					}
					for _, id := range []string{"s", "r"} {
						_, err := p.Cancel(id)
						require.NoError(t, err)
						_, err = p.Await(t.Context(), id)
						require.ErrorIs(t, err, shared.ErrCancelled)
					}
					require.Less(t, time.Since(began), 100*time.Millisecond)
					closeEmpty(t, p)
					require.Less(t, time.Since(began), 100*time.Millisecond)
				})
			})
		}
	}
}

// A self-test that panics has failed.
func TestPanicInProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFakeDevice(t, "gpu")
		panics := 2
		var p *Pipeline
		d.onProbe = func(context.Context) error {
			if panics--; panics >= 0 {
				panic(errProbe)
			}
			require.Contains(t, outOfUse(p, 0), errProbe.Error())
			return nil
		}
		p = newPipeline(t, Config{Devices: onDevices(d), Log: hclog.NewNullLogger()})
		mustProve(t, p, &fakeJob{id: "r", partitions: 3, fault: failing(shared.StageDevice, 1, "gpu", 1, broken("gpu"))})
		require.Len(t, d.probed, 3)
		require.Empty(t, outOfUse(p, 0))
		closeEmpty(t, p)
	})
}

// Of several devices one that fails gives its work to the others and takes some again when it is back.
func TestDeviceThatComesBackWorksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newFakeDevice(t, "a"), newFakeDevice(t, "b")
		a.badProbes = 1
		config, cpu := standIn(t, always, a, b)
		p := newPipeline(t, config)
		var struck atomic.Bool
		mustProve(t, p, &fakeJob{id: "r", partitions: 100, fault: func(_ context.Context, s shared.Stage, _ *fakeJob, _ int, device string) error {
			if s == shared.StageDevice && device == "a" && struck.CompareAndSwap(false, true) {
				return broken("a")()
			}
			return nil
		}})
		require.Len(t, a.probed, 2)
		require.Empty(t, cpu.order(), "b was there")
		require.Greater(t, len(a.order()), 10)
		require.Greater(t, len(b.order()), 30)
		require.Len(t, append(a.order(), b.order()...), 101)
		closeEmpty(t, p)
	})
}
