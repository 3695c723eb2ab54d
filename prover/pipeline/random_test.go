package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// Whatever fails, panics, hangs for a while, lies or is cancelled at whatever stage: every request is answered, with a
// right proof or an error that something explains; no budget is exceeded; no two device phases of a device overlap; all
// that was taken is given back, once; and the pipeline can be closed. A hang is a panic of the bubble.
func TestRandomFaults(t *testing.T) {
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) { newChaos(t, seed).run() })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

type chaos struct {
	t        *testing.T
	mu       sync.Mutex
	rng      *rand.Rand
	faulty   int // in a thousand, how often something goes wrong
	recorder *timeline.Recorder
	budget   *interlock.Budget
	payloads *interlock.Budget
	meter    *meter
	keys     []*fakeKey
	devices  []*fakeDevice // the fallback last, if there is one
	fallback bool
	allowed  shared.Priority // the least that may go to the fallback
	p        *Pipeline
}

func (c *chaos) n(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(n)
}

func (c *chaos) millis(n int) time.Duration { return time.Duration(c.n(n)) * time.Millisecond }

func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{t: t, rng: rand.New(rand.NewPCG(seed, 2)), recorder: timeline.NewRecorder(0)}
	c.faulty = []int{0, 20, 100}[c.n(3)]
	c.budget, c.meter = host(t, 100)
	c.payloads = interlock.NewBudget("host memory for requests", 1000)
	for i := range c.n(4) {
		c.keys = append(c.keys, newFakeKey(t, fmt.Sprintf("key %d", i), int64(c.n(90)), c.budget, c.meter))
	}
	config := Config{WitnessWorkers: 1 + c.n(3), WitnessesAhead: c.n(5), HostMemory: c.budget, Timeline: c.recorder, Log: hclog.NewNullLogger()}
	for i := range 1 + c.n(3) {
		config.Devices = append(config.Devices, c.device(fmt.Sprintf("gpu%d", i)))
	}
	if c.fallback = c.n(2) == 0; c.fallback {
		stand := c.device("cpu")
		c.allowed = shared.Priority(1 + c.n(4))
		config.Fallback, config.FallbackAllows = &stand, func(p shared.Priority) bool { return p >= c.allowed }
	}
	c.p = newPipeline(t, config)
	return c
}

// device adds a device.
func (c *chaos) device(name string) DeviceConfig {
	d := newFakeDevice(c.t, name)
	d.prepare, d.execute, d.finish, d.release = c.millis(30), c.millis(30), c.millis(30), c.millis(30)
	d.memory = &meter{t: c.t, what: "memory of " + name, limit: 100}
	d.onProbe = func(ctx context.Context) error { return c.probe(ctx, name) }
	c.devices = append(c.devices, d)
	return DeviceConfig{Device: d, Workers: c.n(4), Memory: interlock.NewBudget("memory of "+name, 100)}
}

// probe is a self-test, which may fail however, but succeeds in the end.
func (c *chaos) probe(ctx context.Context, device string) error {
	switch c.n(8) {
	case 0, 1:
		return errChaos
	case 2:
		panic(errChaos)
	case 3:
		return sleep(ctx, c.millis(300))
	case 4:
		if c.n(4) == 0 {
			return &DeviceLostError{Device: device, Err: errChaos}
		}
	}
	return nil
}

var (
	errChaos = errors.New("chaos")
	errUnfit = errors.New("the circuit is too large for the card")
)

// strike is what may happen at any stage.
func (c *chaos) strike(ctx context.Context, _ shared.Stage, j *fakeJob, _ int, device string) error {
	if device == "cpu" && j.priority.OrNormal() < c.allowed {
		c.t.Errorf("%s came to the fallback", j.id)
	}
	if c.n(1000) >= c.faulty {
		return nil
	}
	switch c.n(8) {
	case 0:
		return errChaos
	case 1:
		panic(errChaos)
	case 2:
		time.Sleep(c.millis(300)) // heeds no context
	case 3:
		return sleep(ctx, c.millis(300))
	case 4:
		if device != "" && c.n(4) == 0 {
			return &DeviceLostError{Device: device, Err: errChaos}
		}
	case 5, 6:
		if device != "" {
			return &DeviceFaultError{Device: device, Err: errChaos}
		}
	}
	return nil
}

func (c *chaos) job(id string) *fakeJob {
	j := &fakeJob{
		id: id, partitions: 1 + c.n(6), witnessTime: c.millis(20), witnessBytes: int64(c.n(101)), budget: c.meter,
		priority: shared.Priority(c.n(5)), fallbackBytes: int64(c.n(30)),
		workBytes: map[string]int64{}, unfit: map[string]error{}, fault: c.strike,
		corrupt: func(int, string) bool { return c.n(1000) < c.faulty },
	}
	if i := c.n(len(c.keys) + 1); i < len(c.keys) {
		j.key = c.keys[i]
	}
	for _, d := range c.devices {
		j.workBytes[d.name] = int64(c.n(110)) // some are too large for some devices
		if c.n(20) == 0 {
			j.unfit[d.name] = errUnfit
		}
	}
	return j
}

func (c *chaos) run() {
	var jobs []*fakeJob
	var clients sync.WaitGroup
	for i := range 2 + c.n(8) {
		j := c.job(fmt.Sprint(i))
		jobs = append(jobs, j)
		clients.Go(func() { c.client(j) })
	}
	clients.Wait()
	ctx, cancel := context.WithTimeout(c.t.Context(), c.millis(1000))
	defer cancel()
	if err := c.p.Close(ctx); err != nil {
		c.t.Errorf("requests under way without clients: %v", err)
	}
	for _, k := range c.keys {
		if !k.resident.Drop() {
			c.t.Error("a key is still in use")
		}
	}
	closeEmpty(c.t, c.p)
	c.checkLeftovers(jobs)
	c.checkTimeline()
}

// client submits a job, may cancel it or lose patience, and checks the answer.
func (c *chaos) client(j *fakeJob) {
	time.Sleep(c.millis(200))
	r := j.request()
	r.Payload, _ = c.payloads.TryReserve(interlock.Claim{Bytes: 1})
	mayEnd := false
	if c.n(6) == 0 {
		mayEnd = true
		r.Deadline = time.Now().Add(c.millis(300))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if c.n(4) == 0 {
		mayEnd = true
		defer time.AfterFunc(c.millis(300), cancel).Stop()
	}
	var result shared.Result
	var err error
	if c.n(2) == 0 {
		result, err = c.p.Prove(ctx, r, func(shared.Progress) { time.Sleep(c.millis(3)) })
	} else if err = c.p.Submit(r); err == nil {
		if result, err = c.p.Await(ctx, j.id); ctx.Err() != nil {
			if running, cancelErr := c.p.Cancel(j.id); cancelErr != nil || running {
				result, err = c.p.Await(context.Background(), j.id)
				if !errors.Is(err, shared.ErrCancelled) {
					c.t.Errorf("cancelled %s and got %v", j.id, err)
				}
			} else {
				result, err = c.p.Await(context.Background(), j.id)
			}
		}
	}
	c.judge(j, result, err, mayEnd)
}

func (c *chaos) judge(j *fakeJob, result shared.Result, err error, mayEnd bool) {
	var tooLarge *interlock.TooLargeError
	var invalid *shared.ProofInvalidError
	switch {
	case err == nil:
		if string(result.Proof) != string(j.whole()) {
			c.t.Errorf("a wrong proof of %s was handed out", j.id)
		}
	case len(result.Proof) > 0:
		c.t.Errorf("a proof of %s with the error %v", j.id, err)
	case errors.Is(err, errChaos), errors.As(err, &invalid):
		if c.faulty == 0 {
			c.t.Errorf("%s failed of itself: %v", j.id, err)
		}
	case errors.Is(err, shared.ErrCancelled), errors.Is(err, context.DeadlineExceeded):
		if !mayEnd {
			c.t.Errorf("%s ended of itself: %v", j.id, err)
		}
	case errors.As(err, &tooLarge), errors.Is(err, errUnfit):
	default:
		c.t.Errorf("%s got an error that nothing explains: %v", j.id, err)
	}
}

func (c *chaos) checkLeftovers(jobs []*fakeJob) {
	for _, j := range jobs {
		if j.opened.Load() != j.closed.Load() || j.running.Load() != 0 {
			c.t.Errorf("%s was opened %d times, closed %d times, and %d of it are left", j.id, j.opened.Load(), j.closed.Load(), j.running.Load())
		}
	}
	if c.meter.now != 0 {
		c.t.Errorf("%d bytes of witnesses are left", c.meter.now)
	}
	if n := c.payloads.Used(); n != 0 {
		c.t.Errorf("%d payloads are left", n)
	}
	for _, d := range c.devices {
		if d.memory.now != 0 {
			c.t.Errorf("%d bytes of %s are left", d.memory.now, d.name)
		}
	}
}

// checkTimeline holds the recorded device phases of each device against the interlock, and every start against its end.
func (c *chaos) checkTimeline() {
	open := map[timeline.Event]int{}
	held := map[string]bool{}
	for _, e := range c.recorder.Recording().Events {
		switch e.Kind {
		case timeline.GPUStart, timeline.GPUEnd:
			if held[e.GPU] == (e.Kind == timeline.GPUStart) {
				c.t.Errorf("%s out of turn on %s", e.Kind, e.GPU)
			}
			held[e.GPU] = e.Kind == timeline.GPUStart
		case timeline.GPUQueue, timeline.GPUPickup:
			continue
		}
		key := e
		key.Time = 0
		if e.Kind%2 == 1 {
			open[key]++
			continue
		}
		key.Kind--
		open[key]--
	}
	for e, n := range open {
		require.Zero(c.t, n, "%v is not ended", e)
	}
}
