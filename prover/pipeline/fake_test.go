package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fault is called at each stage of each partition (or with partition -1, of each request) and may wait, fail or panic.
type fault func(ctx context.Context, stage shared.Stage, job *fakeJob, k int, device string) error

// fakeJob proves nothing: its proofs say which request and partition they are of.
type fakeJob struct {
	id            string
	priority      shared.Priority
	partitions    int
	witnessBytes  int64
	fallbackBytes int64    // more of them on the fallback
	key           *fakeKey // shared with other jobs; nil if nothing
	witnessTime   time.Duration
	workBytes     map[string]int64 // by device
	unfit         map[string]error // the same: why it can never take the job
	fault         fault
	budget        *meter // of the host's memory; nil if not metered

	opened, closed atomic.Int32
	running        atomic.Int32 // methods and phases that use the job
	corrupt        func(k int, device string) bool
}

func (j *fakeJob) request() Request {
	return Request{ID: j.id, Kind: shared.KindWindowPoSt, SectorSize: shared.SectorSize2KiB, Priority: j.priority, Open: j.open}
}

func (j *fakeJob) at(ctx context.Context, stage shared.Stage, k int, device string) error {
	j.running.Add(1)
	defer j.running.Add(-1)
	if j.fault == nil {
		return nil
	}
	return j.fault(ctx, stage, j, k, device)
}

func (j *fakeJob) open(ctx context.Context) (Job, error) {
	if err := j.at(ctx, shared.StageDecode, -1, ""); err != nil {
		return nil, err
	}
	j.opened.Add(1)
	return j, nil
}

func (j *fakeJob) Partitions() int { return j.partitions }
func (j *fakeJob) HostMemory(fallback bool) interlock.Claim {
	c := interlock.Claim{Bytes: j.witnessBytes}
	if fallback {
		c.Bytes += j.fallbackBytes
	}
	if j.key != nil {
		c.With = j.key.resident
	}
	return c
}

// fakeKey is what jobs share, loaded by the first partition that is prepared with it.
type fakeKey struct {
	t        testing.TB
	resident *interlock.Resident
	meter    *meter
	bytes    int64

	mu     sync.Mutex
	loaded bool
	users  int
}

func newFakeKey(t testing.TB, name string, bytes int64, b *interlock.Budget, m *meter) *fakeKey {
	k := &fakeKey{t: t, meter: m, bytes: bytes}
	k.resident = b.NewResident(name, bytes, k.evict)
	return k
}

func (k *fakeKey) evict() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.users != 0 {
		k.t.Errorf("evicted while %d use it", k.users)
	}
	if k.loaded {
		k.loaded = false
		k.meter.add(-k.bytes)
	}
}

// use loads the key for one user more, or counts one less.
func (k *fakeKey) use(more int) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.users += more
	if more > 0 && !k.loaded {
		k.loaded = true
		k.meter.add(k.bytes)
	}
}
func (j *fakeJob) Insecure() bool                 { return true }
func (j *fakeJob) Load(ctx context.Context) error { return j.at(ctx, shared.StageParams, -1, "") }

func (j *fakeJob) Close() {
	if n := j.running.Load(); n != 0 {
		panic(fmt.Sprintf("closed while %d of its methods run", n))
	}
	j.closed.Add(1)
}

type fakeWitness struct {
	job            *fakeJob
	k              int
	lent, released atomic.Int32
}

func (j *fakeJob) Witness(ctx context.Context, k int) (Witness, error) {
	if err := j.at(ctx, shared.StageWitness, k, ""); err != nil {
		return nil, err
	}
	if err := sleep(ctx, j.witnessTime); err != nil {
		return nil, err
	}
	j.budget.add(j.witnessBytes)
	j.running.Add(1) // until the witness is released
	return &fakeWitness{job: j, k: k}, nil
}

func (j *fakeJob) proof(k int) []byte {
	return fmt.Appendf(nil, "%-192s", fmt.Sprintf("%s/%d", j.id, k))
}

func (j *fakeJob) whole() []byte {
	var all []byte
	for k := range j.partitions {
		all = append(all, j.proof(k)...)
	}
	return all
}

func (j *fakeJob) Verify(ctx context.Context, proofs [][]byte) error {
	if err := j.at(ctx, shared.StageVerify, -1, ""); err != nil {
		return err
	}
	var bad []int
	for k, proof := range proofs {
		if !bytes.Equal(proof, j.proof(k)) {
			bad = append(bad, k)
		}
	}
	if len(bad) > 0 || len(proofs) != j.partitions {
		return &shared.ProofInvalidError{Partitions: bad, Detail: "pairing"}
	}
	return nil
}

// meter watches a sum that must not exceed a limit.
type meter struct {
	t     testing.TB
	what  string
	limit int64
	mu    sync.Mutex
	now   int64
	peak  int64
}

func (m *meter) add(n int64) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now += n
	m.peak = max(m.peak, m.now)
	if m.now > m.limit || m.now < 0 {
		m.t.Errorf("%s: %d of %d", m.what, m.now, m.limit)
	}
}

// fakeDevice takes its time, watches that the interlock is kept and that all is released.
type fakeDevice struct {
	t                        testing.TB
	name                     string
	prepare, execute, finish time.Duration
	release                  time.Duration
	executing                atomic.Int32
	phases                   atomic.Int32 // not released
	memory                   *meter

	mu        sync.Mutex
	executed  []string                        // "request/partition" in the order of their device phases
	badProbes int                             // how many more of them fail
	onProbe   func(ctx context.Context) error // called by the others, if set
	probed    []time.Time
}

func newFakeDevice(t testing.TB, name string) *fakeDevice {
	return &fakeDevice{t: t, name: name, prepare: 10 * time.Millisecond, execute: 40 * time.Millisecond, finish: 10 * time.Millisecond}
}

func (d *fakeDevice) Name() string { return d.name }

func (d *fakeDevice) Memory(job Job) (interlock.Claim, error) {
	return interlock.Claim{Bytes: job.(*fakeJob).workBytes[d.name]}, job.(*fakeJob).unfit[d.name]
}

func (d *fakeDevice) Probe(ctx context.Context) error {
	d.mu.Lock()
	d.probed = append(d.probed, time.Now())
	bad := d.badProbes > 0
	if bad {
		d.badProbes--
	}
	onProbe := d.onProbe
	d.mu.Unlock()
	switch {
	case bad:
		return errProbe
	case onProbe != nil:
		return onProbe(ctx)
	}
	return nil
}

// probes are the times of the self-tests, since a moment.
func (d *fakeDevice) probes(since time.Time) []time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []time.Duration
	for _, at := range d.probed {
		out = append(out, at.Sub(since))
	}
	return out
}

func (d *fakeDevice) order() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.executed...)
}

type fakePhase struct {
	d        *fakeDevice
	w        *fakeWitness
	began    time.Time
	executed bool
	released atomic.Int32
}

func (d *fakeDevice) Prepare(ctx context.Context, job Job, k int, w Witness) (Phase, error) {
	j := job.(*fakeJob)
	witness := w.(*fakeWitness)
	if witness.job != j || witness.k != k {
		d.t.Errorf("partition %s/%d came with the witness of %s/%d", j.id, k, witness.job.id, witness.k)
	}
	if err := j.at(ctx, shared.StagePrepare, k, d.name); err != nil {
		return nil, err
	}
	if err := sleep(ctx, d.prepare); err != nil {
		return nil, err
	}
	d.phases.Add(1)
	j.key.use(1)
	witness.lent.Add(1)
	d.memory.add(j.workBytes[d.name])
	return &fakePhase{d: d, w: witness}, nil
}

func (w *fakeWitness) Release() {
	if n := w.released.Add(1); n != 1 {
		panic(fmt.Sprintf("released %d times", n))
	}
	if w.lent.Load() != 0 {
		panic("released while lent to a phase")
	}
	w.job.budget.add(-w.job.witnessBytes)
	w.job.running.Add(-1)
}

func (ph *fakePhase) Execute(ctx context.Context) error {
	d := ph.d
	if n := d.executing.Add(1); n != 1 {
		d.t.Errorf("%d device phases at once on %s", n, d.name)
	}
	defer d.executing.Add(-1)
	d.mu.Lock()
	d.executed = append(d.executed, fmt.Sprintf("%s/%d", ph.w.job.id, ph.w.k))
	d.mu.Unlock()
	ph.began = time.Now()
	if err := ph.w.job.at(ctx, shared.StageDevice, ph.w.k, d.name); err != nil {
		return err
	}
	time.Sleep(d.execute) // a kernel heeds no context
	ph.executed = true
	return nil
}

func (ph *fakePhase) Finish(ctx context.Context) ([]byte, error) {
	if !ph.executed || ph.released.Load() != 0 {
		ph.d.t.Errorf("finished before executed, or after released")
	}
	if err := ph.w.job.at(ctx, shared.StageFinish, ph.w.k, ph.d.name); err != nil {
		return nil, err
	}
	if err := sleep(ctx, ph.d.finish); err != nil {
		return nil, err
	}
	proof := ph.w.job.proof(ph.w.k)
	if ph.w.job.corrupt != nil && ph.w.job.corrupt(ph.w.k, ph.d.name) {
		proof[0] ^= 1
	}
	return proof, nil
}

func (ph *fakePhase) Measurements() []Measurement {
	return []Measurement{{Start: timeline.KernelStart, From: time.Millisecond, To: ph.d.execute - time.Millisecond}}
}

func (ph *fakePhase) Release() {
	if n := ph.released.Add(1); n != 1 {
		ph.d.t.Errorf("released %d times", n)
	}
	time.Sleep(ph.d.release)
	ph.d.memory.add(-ph.w.job.workBytes[ph.d.name])
	ph.w.lent.Add(-1)
	ph.w.job.key.use(-1)
	ph.d.phases.Add(-1)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// newPipeline is a pipeline whose errors in the log fail the test, unless the test has a log of its own.
func newPipeline(t testing.TB, c Config) *Pipeline {
	if c.Log == nil {
		c.Log = strictLog(t)
	}
	p, err := New(c)
	require.NoError(t, err)
	return p
}

// closeEmpty closes the pipeline and checks that nothing is left of any request.
func closeEmpty(t testing.TB, p *Pipeline) {
	require.NoError(t, p.Close(context.Background()))
	s := p.Status()
	require.Empty(t, s.Requests)
	require.Empty(t, s.Queues)
	require.Zero(t, s.HostMemoryUsedBytes)
	for i, d := range s.Devices {
		require.Zero(t, d.MemoryUsedBytes)
		require.Zero(t, d.Waiting)
		for _, w := range d.Workers {
			require.Empty(t, w.RequestID)
		}
		if fake, ok := p.devices[i].Device.(*fakeDevice); ok {
			require.Zero(t, fake.phases.Load(), "phases not released")
		}
	}
	require.Empty(t, p.pending.tasks)
	require.Empty(t, p.ready.tasks)
}

func onDevices(devices ...*fakeDevice) []DeviceConfig {
	var all []DeviceConfig
	for _, d := range devices {
		all = append(all, DeviceConfig{Device: d})
	}
	return all
}

func mustProve(t testing.TB, p *Pipeline, j *fakeJob) {
	t.Helper()
	result, err := p.Prove(context.Background(), j.request(), nil)
	require.NoError(t, err)
	require.Equal(t, j.whole(), result.Proof)
}

// host is a budget for the host's memory with a meter that watches it.
func host(t testing.TB, bytes int64) (*interlock.Budget, *meter) {
	return interlock.NewBudget("host memory", bytes), &meter{t: t, what: "host memory", limit: bytes}
}

// strictLog fails the test when something is logged as an error.
func strictLog(t testing.TB) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Level: hclog.Error, Output: writerFunc(func(line []byte) (int, error) {
		t.Errorf("logged: %s", line)
		return len(line), nil
	})})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
