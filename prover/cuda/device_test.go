package cuda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/prover/witness"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testCase is a circuit of random gadgets, called several times, with a key of
// random points and a random witness: proofs are what they are, valid or not.
type testCase struct {
	circuit *groth16.Circuit
	key     *groth16.ProvingKey
	witness *witness.Witness
	blind   groth16.Blinding
	proof   *groth16.Proof // the CPU's
}

func randomCircuit(t testing.TB, r *rand.Rand, rows int) *groth16.Circuit {
	t.Helper()
	b := constraint.NewBuilder()
	ports := []constraint.Var{b.Alloc(), b.AllocBit(), b.AllocInput()}
	for b.NumAux() < rows {
		kind := r.IntN(4)
		outs, _ := b.Call(fmt.Sprint("gadget ", kind), ports, func(b *constraint.Builder, ports []constraint.Var) ([]constraint.Var, any) {
			vars := append([]constraint.Var{constraint.One}, ports...)
			vars = append(vars, b.Alloc(), b.AllocBit(), b.AllocBit())
			if kind == 0 {
				vars = append(vars, b.AllocInput())
			}
			for range 4 + r.IntN(8) {
				var lc [3]constraint.LC
				for m := range lc {
					for range 1 + r.IntN(4) {
						var x fr.Element
						x.SetInt64(int64(r.IntN(7) - 3))
						lc[m] = lc[m].Plus(vars[r.IntN(len(vars))], x)
					}
				}
				b.Enforce(lc[0], lc[1], lc[2])
				vars = append(vars, b.AllocBit())
			}
			return []constraint.Var{vars[len(vars)-1], vars[4], ports[r.IntN(3)]}, nil
		})
		b.Enforce(constraint.Lin(outs[0]), constraint.Lin(ports[2]), constraint.Lin(outs[1]))
		ports = outs
	}
	c, err := groth16.NewCircuit(b.Finish())
	require.NoError(t, err)
	return c
}

func randomWitness(r *rand.Rand, l *witness.Layout) *witness.Witness {
	element := func(x *fr.Element) {
		for i := range x {
			x[i] = r.Uint64()
		}
		x[3] >>= 2 // below the modulus
	}
	w := witness.New(l)
	for i := range w.Inputs[1:] {
		element(&w.Inputs[1+i])
	}
	for i := range w.Full {
		element(&w.Full[i])
	}
	for i := range l.NumAux() {
		if l.IsBit(i) && r.IntN(2) == 1 {
			w.Bits[i/64] |= 1 << (i % 64)
		}
	}
	return w
}

// randomKey has points that are all different.
func randomKey(c *groth16.Circuit) *groth16.ProvingKey {
	g1, g2, _, _ := bls12381.Generators()
	p1, p2 := g1, g2
	next1 := func() (p bls12381.G1Affine) { p1.AddAssign(&g1); p.FromJacobian(&p1); return p }
	next2 := func() (p bls12381.G2Affine) { p2.AddAssign(&g2); p.FromJacobian(&p2); return p }
	many := func(n int) (out []bls12381.G1Affine) {
		for range n {
			out = append(out, next1())
		}
		return out
	}
	pk := &groth16.ProvingKey{
		VK: &groth16.VerifyingKey{
			AlphaG1: next1(), BetaG1: next1(), DeltaG1: next1(), BetaG2: next2(), GammaG2: next2(), DeltaG2: next2(),
			IC: many(c.System.NumInputs()),
		},
		H: many(c.QueryLen(groth16.QueryH)), L: many(c.QueryLen(groth16.QueryL)),
		A: many(c.QueryLen(groth16.QueryA)), BG1: many(c.QueryLen(groth16.QueryBG1)),
	}
	for range c.QueryLen(groth16.QueryBG2) {
		pk.BG2 = append(pk.BG2, next2())
	}
	return pk
}

func newCase(t testing.TB, seed uint64, rows int) *testCase {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	k := &testCase{circuit: randomCircuit(t, r, rows)}
	k.key, k.witness = randomKey(k.circuit), randomWitness(r, k.circuit.System.Layout())
	k.blind = groth16.FixedBlinding(fr.NewElement(r.Uint64()), fr.NewElement(r.Uint64()))
	var err error
	k.proof, err = k.prove(t.Context(), groth16.NewCPU("cpu", 2))
	require.NoError(t, err)
	return k
}

func (k *testCase) prove(ctx context.Context, d groth16.Device) (*groth16.Proof, error) {
	work, err := d.Prepare(ctx, k.key, k.circuit, k.witness)
	if err != nil {
		return nil, err
	}
	defer work.Release()
	if err := work.Execute(ctx); err != nil {
		return nil, err
	}
	return work.Finish(ctx, k.blind)
}

// requireProof makes a proof and compares it with the CPU's.
func (k *testCase) requireProof(t *testing.T, d groth16.Device) {
	t.Helper()
	p, err := k.prove(t.Context(), d)
	require.NoError(t, err)
	require.Equal(t, k.proof.Bytes(), p.Bytes())
}

// smallPlan is one for small circuits, with segments and copies that are smaller.
var smallPlan = plan{
	limitBytes: 1 << 30, phaseBytes: tableBytes + 64<<20, scratchBytes: 1 << 20, logDomain: 20,
	segment: 64, streamed: 64, pinnedBytes: 40 * 192,
}

// plans are smallPlan with room for the key; without; and with room for the circuit alone, and a device phase that has
// as much as it must for witnesses to come late.
func (k *testCase) plans() map[string]plan {
	s := sizesOf(k.circuit)
	streamed, late := smallPlan, smallPlan
	streamed.limitBytes = streamed.phaseBytes + s.witness + s.circuit
	late.scratchBytes, late.streamed = 1<<16, leastSegment
	buffers := int64(2 * 96 * leastSegment)
	late.phaseBytes = tableBytes + max(3*s.domain, 2*s.domain+s.witness,
		s.domain+late.scratchBytes+buffers, s.witness+late.scratchBytes+gatheredBytes*leastSegment+buffers)
	late.limitBytes = late.phaseBytes + s.circuit
	return map[string]plan{"resident": smallPlan, "streamed": streamed, "late": late}
}

// newCardFor makes a card with as much memory as a plan may use, but for what the library takes for tables.
func newCardFor(p plan) *card { return newCard(p.limitBytes - tableBytes) }

func openCard(t *testing.T, c *card, p plan) *Device {
	t.Helper()
	d, err := open(c, Config{Name: "gpu 0", Workers: 2}, p)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, d.Close())
		require.Empty(t, c.objects, "objects left on the card")
		require.Empty(t, c.pinned, "pinned memory left")
		require.Zero(t, c.used)
	})
	return d
}

// Proofs are the CPU's, whether the key stays on the card or is streamed, and
// the memory taken is what was counted.
func TestProofsAreTheCPUs(t *testing.T) {
	for seed := range uint64(4) {
		k := newCase(t, seed, 100+int(seed)*250)
		for name, p := range k.plans() {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				c := newCardFor(p)
				d := openCard(t, c, p)
				f := d.Footprint(k.key, k.circuit)
				require.Equal(t, name == "resident", f.KeyBytes > 0)
				require.Zero(t, f.ExecuteBytes)
				require.NoError(t, d.CheckCircuit(k.circuit))
				require.NoError(t, d.Memory().Check(interlock.Claim{Bytes: f.KeyBytes + f.WorkBytes}))
				for range 2 {
					k.requireProof(t, d)
					used, peak := d.MemoryUsed()
					require.LessOrEqual(t, used, f.KeyBytes)
					require.Positive(t, peak)
				}
				require.Equal(t, name == "resident", c.count() > 0, "what is streamed leaves nothing")
				d.Evict(k.key)
				require.Zero(t, c.count())
				k.requireProof(t, d)
			})
		}
	}
}

// A witness without room beside the device phase is on the card in that alone, and only while it is needed: it is copied
// for A and B, for C and for the sums. What the plan sets aside for that is taken to the last byte, and the log says it once.
func TestLateWitness(t *testing.T) {
	k := newCase(t, 17, 3000)
	p, s := k.plans()["late"], sizesOf(k.circuit)
	require.Equal(t, tableBytes+3*s.domain, p.phaseBytes)
	c := newCardFor(p)
	c.capacity -= s.circuit - circuitBytes(k.circuit.System.Flat())
	var log bytes.Buffer
	d := openCard(t, c, p)
	d.log = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Info})
	require.Equal(t, groth16.Footprint{WorkBytes: s.circuit}, d.Footprint(k.key, k.circuit))
	require.Equal(t, 3*k.circuit.System.Layout().Bytes()+s.points+s.circuit, d.CopiedBytes(k.circuit))
	calls := map[string]int{}
	c.before = func(call string) *Error { calls[call]++; return nil }
	for n := range 2 {
		clear(calls)
		c.peak = 0
		work, err := d.Prepare(t.Context(), k.key, k.circuit, k.witness)
		require.NoError(t, err)
		require.Zero(t, calls["createWitness"])
		require.Equal(t, s.circuit, c.used)
		require.NoError(t, work.Execute(t.Context()))
		require.Equal(t, s.circuit, c.used, "the witness is gone")
		require.Equal(t, 3, calls["createWitness"])
		require.Equal(t, c.capacity, c.peak)
		proof, err := work.Finish(t.Context(), k.blind)
		require.NoError(t, err)
		require.Equal(t, k.proof.Bytes(), proof.Bytes())
		work.Release()
		require.Zero(t, c.used)
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("a larger memory_limit avoids that")), "proof %d", n)
	}
	c.capacity--
	_, err := k.prove(t.Context(), d)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, OutOfMemory, e.Kind)
	require.Zero(t, c.count())

	// Without room for the circuit, or in the device phase, it is refused by name.
	for what, less := range map[string]func(p *plan){
		"circuit": func(p *plan) { p.limitBytes-- },
		"phase":   func(p *plan) { p.scratchBytes = p.phaseBytes - tableBytes - s.witness },
	} {
		tight := p
		less(&tight)
		c := newCard(1 << 30)
		d := openCard(t, c, tight)
		require.ErrorAs(t, d.CheckCircuit(k.circuit), &e, what)
		checked := e.Message
		_, err := k.prove(t.Context(), d)
		require.ErrorAs(t, err, &e)
		require.Equal(t, OutOfMemory, e.Kind)
		require.Equal(t, checked, e.Message)
		require.Equal(t, s.circuit+s.witness, e.BytesAsked)
		require.Equal(t, tight.budgetBytes(), e.BytesFree)
		require.Contains(t, err.Error(), fmt.Sprintf("a circuit of %d bytes and its witness of %d", s.circuit, s.witness))
		require.Contains(t, err.Error(), "raise memory_limit, or use a card with more memory")
		require.Zero(t, c.count())
	}
}

// Kernel spans are in order and within the device phase.
func TestSpans(t *testing.T) {
	k := newCase(t, 1, 200)
	d := openCard(t, newCard(1<<30), smallPlan)
	work, err := d.Prepare(t.Context(), k.key, k.circuit, k.witness)
	require.NoError(t, err)
	defer work.Release()
	start := time.Now()
	require.NoError(t, work.Execute(t.Context()))
	took := time.Since(start)
	spans := work.(*Work).Spans()
	require.Len(t, spans, 4+len(segments(k.circuit, smallPlan.segment)))
	last := time.Duration(0)
	for _, s := range spans {
		require.LessOrEqual(t, last, s.From)
		require.LessOrEqual(t, s.From, s.To)
		last = s.To
	}
	require.LessOrEqual(t, last, took)
}

// Several workers prepare and prove at the same time, with two keys, while one of
// these is evicted over and over.
func TestWorkersBesideEachOther(t *testing.T) {
	cases := []*testCase{newCase(t, 1, 150), newCase(t, 2, 200)}
	for name, p := range cases[1].plans() { // of the larger
		t.Run(name, func(t *testing.T) {
			d := openCard(t, newCard(1<<30), p) // nobody admits as many as have room
			var workers sync.WaitGroup
			for i := range 3 {
				workers.Go(func() {
					for n := range 4 {
						k := cases[(i+n)%2]
						p, err := k.prove(t.Context(), d)
						if err != nil || p.Bytes() != k.proof.Bytes() {
							t.Errorf("worker %d: %v, %v", i, p, err)
						}
						d.Evict(cases[0].key)
						if err := d.Probe(t.Context()); err != nil {
							t.Error(err)
						}
					}
				})
			}
			workers.Wait()
		})
	}
}

// A key that is evicted while proofs use it stays until the last of them.
func TestEvictInUse(t *testing.T) {
	k := newCase(t, 3, 200)
	c := newCard(1 << 30)
	d := openCard(t, c, smallPlan)
	first, err := d.Prepare(t.Context(), k.key, k.circuit, k.witness)
	require.NoError(t, err)
	d.Evict(k.key)
	second, err := d.Prepare(t.Context(), k.key, k.circuit, k.witness) // loads it anew
	require.NoError(t, err)
	require.NoError(t, first.Execute(t.Context()))
	p, err := first.Finish(t.Context(), k.blind)
	require.NoError(t, err)
	require.Equal(t, k.proof.Bytes(), p.Bytes())
	before := c.count()
	first.Release()
	first.Release()
	require.Less(t, c.count(), before)
	require.ErrorContains(t, d.Close(), "1 proofs are still using it")
	second.Release()
	require.ErrorIs(t, second.Execute(t.Context()), groth16.ErrReleased)
	d.Evict(k.key)
	require.Zero(t, c.count())
}

// failAt fails the n-th call of a function, counted from 0, or of all if it has
// no name.
type failAt struct {
	call string
	n    int
	err  *Error

	mu     sync.Mutex
	calls  int
	failed bool
}

func (f *failAt) before(call string) *Error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.call != "" && f.call != call {
		return nil
	}
	f.calls++
	if f.calls-1 != f.n {
		return nil
	}
	f.failed = true
	return f.err
}

// Whatever call fails: the error has its kind and says what was being done,
// nothing is left on the card, and, unless the card is lost, the next proof is
// right.
func TestFaultAtEveryCall(t *testing.T) {
	k := newCase(t, 4, 60)
	calls := []string{
		"createCircuit", "createBases", "loadBases", "allocHost", "createWitness", "loadWitness",
		"createQuotient", "multiplyQuotient", "evaluateC", "finishQuotient", "sumQuotient", "sumG1", "sumG2",
	}
	for name, p := range k.plans() {
		p.segment, p.streamed = 128, 128
		for _, kind := range []Kind{BadArgument, OutOfMemory, DeviceFailed, DeviceLost} {
			t.Run(fmt.Sprint(name, " ", int(kind)), func(t *testing.T) {
				for _, call := range calls {
					for n := 0; k.fault(t, p, &failAt{call: call, n: n, err: &Error{Kind: kind, Message: "as the test says"}}); n++ {
					}
				}
			})
		}
	}
}

// fault makes proofs with a card on which a call fails. It tells whether there
// was one.
func (k *testCase) fault(t *testing.T, p plan, f *failAt) bool {
	t.Helper()
	c := newCardFor(p)
	d := openCard(t, c, p)
	c.before = f.before
	proof, err := k.prove(t.Context(), d)
	if !f.failed {
		require.Positive(t, f.n, "%s is never called", f.call)
		require.NoError(t, err)
		require.Equal(t, k.proof.Bytes(), proof.Bytes())
		return false
	}
	var e *Error
	require.ErrorAs(t, err, &e, "%s failed", f.call)
	require.Equal(t, f.err.Kind, e.Kind)
	require.Equal(t, "gpu 0", e.Device)
	require.NotEmpty(t, e.Doing)
	if e.Kind == DeviceLost {
		_, err = k.prove(t.Context(), d)
		require.ErrorAs(t, err, &e)
		require.Equal(t, DeviceLost, e.Kind)
		require.ErrorAs(t, d.Probe(t.Context()), &e)
	} else {
		k.requireProof(t, d)
		require.NoError(t, d.Probe(t.Context()))
	}
	d.Evict(k.key)
	require.Zero(t, c.count(), "after %s failed", f.call)
	return true
}

// Faults while a card is opened leave nothing.
func TestFaultWhileOpening(t *testing.T) {
	for n := range 8 {
		c := newCard(1 << 30)
		f := &failAt{n: n, err: &Error{Kind: OutOfMemory}}
		c.before = f.before
		d, err := open(c, Config{Name: "gpu 0", Workers: 2}, smallPlan)
		if !f.failed {
			require.Greater(t, n, 6)
			require.NoError(t, err)
			require.NoError(t, d.Close())
		} else {
			var e *Error
			require.ErrorAs(t, err, &e)
		}
		require.Empty(t, c.objects)
	}
}

// Looking at the cards starts none of them; opening one starts that alone, whose faults are told as its own.
func TestOnlyOpenedCardsAreStarted(t *testing.T) {
	c := newCard(1 << 30)
	fault := &failAt{call: "freeMemory", err: &Error{Kind: NoDevice, Message: "busy"}}
	c.before = fault.before
	l := &Library{api: c}
	infos, err := l.Devices()
	require.NoError(t, err)
	require.Len(t, infos, 1)
	require.Zero(t, fault.calls)
	_, err = l.Open(Config{Name: "gpu 0"})
	require.EqualError(t, err, "gpu 0: opening card 0: no device: busy")
	_, err = l.Open(Config{Name: "gpu 0", MemoryLimitBytes: 1 << 20})
	require.ErrorContains(t, err, "raise memory_limit")
	require.Equal(t, 2, fault.calls)

	c.used = 1 << 29 // by somebody else
	_, err = l.Open(Config{Name: "gpu 0"})
	require.EqualError(t, err, "gpu 0: 0 bytes of device memory are too few: raise memory_limit or free some")
	c.used = 0
}

// A memory_limit above what is free is not met, which the log says.
func TestMemoryLimit(t *testing.T) {
	c := newCard(4 << 30)
	for limit, want := range map[int64]struct {
		limit int64
		says  string
	}{
		0:       {4<<30 - outsideBytes, ""},
		2 << 30: {2 << 30, ""},
		4 << 30: {4<<30 - outsideBytes, "less of a card is free than its memory_limit"},
	} {
		var log bytes.Buffer
		l := &Library{api: c}
		d, err := l.Open(Config{Name: "gpu 0", MemoryLimitBytes: limit, Log: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Warn})})
		require.NoError(t, err)
		require.Equal(t, want.limit, d.MemoryLimit())
		require.Equal(t, want.says == "", log.Len() == 0)
		require.Contains(t, log.String(), want.says)
		require.NoError(t, d.Close())
	}
}

// Out of memory says how much was missing, and once others have left, it works.
func TestOutOfMemoryThenSuccess(t *testing.T) {
	k := newCase(t, 5, 200)
	c := newCard(1 << 30)
	d := openCard(t, c, smallPlan)
	c.capacity = 100_000
	_, err := k.prove(t.Context(), d)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, OutOfMemory, e.Kind)
	require.Positive(t, e.BytesAsked)
	require.Contains(t, err.Error(), "bytes wanted")
	require.Zero(t, c.count())
	c.capacity = 1 << 30
	k.requireProof(t, d)
}

// While a call blocks, whoever waits for its turn gives up at once when its
// context ends; who is in the call itself does after it.
func TestCancel(t *testing.T) {
	const soon = 100 * time.Millisecond
	k := newCase(t, 6, 200)
	stop := errors.New("the test stops it")
	for name, p := range k.plans() {
		for _, at := range []string{"createCircuit", "loadBases", "loadWitness", "createQuotient", "multiplyQuotient", "evaluateC", "finishQuotient", "sumQuotient", "sumG2"} {
			t.Run(name+" "+at, func(t *testing.T) {
				c := newCardFor(p)
				d := openCard(t, c, p)
				entered, release := make(chan struct{}), make(chan struct{})
				var once sync.Once
				c.before = func(call string) *Error {
					if call == at {
						once.Do(func() { close(entered); <-release })
					}
					return nil
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				done := make(chan error)
				go func() {
					_, err := k.prove(ctx, d)
					done <- err
				}()
				<-entered
				// Another waits for the key or for its turn.
				waiting, giveUp := context.WithCancelCause(t.Context())
				waited := make(chan error)
				go func() {
					_, err := k.prove(waiting, d)
					waited <- err
				}()
				giveUp(stop)
				start := time.Now()
				require.ErrorIs(t, <-waited, stop)
				require.Less(t, time.Since(start), soon)
				cancel(stop)
				close(release)
				start = time.Now()
				require.ErrorIs(t, <-done, stop)
				require.Less(t, time.Since(start), soon)
				k.requireProof(t, d)
				d.Evict(k.key)
				require.Zero(t, c.count())
			})
		}
	}
}

// One that waits for a key whose loading another gave up loads it itself.
func TestLoadGivenUpByAnother(t *testing.T) {
	k := newCase(t, 7, 100)
	c := newCard(1 << 30)
	d := openCard(t, c, smallPlan)
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c.before = func(call string) *Error {
		if call == "loadBases" {
			once.Do(func() { close(entered); <-release })
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error), make(chan error)
	go func() { first <- d.Preload(ctx, k.key, k.circuit) }()
	<-entered
	go func() { second <- d.Preload(t.Context(), k.key, k.circuit) }()
	cancel()
	close(release)
	require.ErrorIs(t, <-first, context.Canceled)
	require.NoError(t, <-second)
	k.requireProof(t, d)
}

// What does not belong together is refused before the card hears of it.
func TestWrongKeyOrWitness(t *testing.T) {
	k, other := newCase(t, 8, 100), newCase(t, 9, 300)
	c := newCard(1 << 30)
	d := openCard(t, c, smallPlan)
	var incompatible *groth16.IncompatibleError
	_, err := d.Prepare(t.Context(), other.key, k.circuit, k.witness)
	require.ErrorAs(t, err, &incompatible)
	_, err = d.Prepare(t.Context(), k.key, k.circuit, other.witness)
	require.ErrorAs(t, err, &incompatible)
	require.ErrorAs(t, d.Preload(t.Context(), other.key, k.circuit), &incompatible)
	require.Zero(t, c.count())

	small := smallPlan
	small.logDomain = 5
	d = openCard(t, newCard(1<<30), small)
	var e *Error
	_, err = d.Prepare(t.Context(), k.key, k.circuit, k.witness)
	require.ErrorAs(t, err, &e)
	require.Equal(t, OutOfMemory, e.Kind)
	require.Contains(t, err.Error(), "the device phase has 603979776: raise memory_limit, or use a card with more memory")

	// Of host memory nobody knows what is free.
	e = &Error{Kind: OutOfMemory, Device: "gpu 0", Doing: "page-locking", BytesAsked: 7, Message: "as the driver says", CUDACode: 2}
	require.EqualError(t, e, "gpu 0: page-locking: out of memory: 7 bytes wanted: as the driver says (CUDA error 2)")
}

// Methods of a Work out of order.
func TestMisuse(t *testing.T) {
	k := newCase(t, 10, 100)
	d := openCard(t, newCard(1<<30), smallPlan)
	work, err := d.Prepare(t.Context(), k.key, k.circuit, k.witness)
	require.NoError(t, err)
	_, err = work.Finish(t.Context(), k.blind)
	require.ErrorIs(t, err, groth16.ErrNotExecuted)
	require.NoError(t, work.Execute(t.Context()))
	require.ErrorContains(t, work.Execute(t.Context()), "before")
	work.Release()
	_, err = work.Finish(t.Context(), k.blind)
	require.ErrorIs(t, err, groth16.ErrReleased)
}

// A card that computes wrong is found by the self-test.
func TestProbe(t *testing.T) {
	c := newCard(1 << 30)
	d := openCard(t, c, smallPlan)
	require.NoError(t, d.Probe(t.Context()))
	c.wrong = true
	var e *Error
	require.ErrorAs(t, d.Probe(t.Context()), &e)
	require.Equal(t, DeviceFailed, e.Kind)
	require.Contains(t, e.Error(), "the card computed it wrong")
}

// Preloading a key that is streamed takes nothing of the card, of which nothing was reserved for it; it says what
// the first proof would say.
func TestPreloadOfAStreamedKey(t *testing.T) {
	k, other := newCase(t, 13, 100), newCase(t, 14, 300)
	c := newCard(1 << 30)
	d := openCard(t, c, k.plans()["streamed"])
	require.Zero(t, d.Footprint(k.key, k.circuit).KeyBytes)
	require.NoError(t, d.Preload(t.Context(), k.key, k.circuit))
	require.Zero(t, c.peak)
	var incompatible *groth16.IncompatibleError
	require.ErrorAs(t, d.Preload(t.Context(), other.key, k.circuit), &incompatible)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, d.Preload(ctx, k.key, k.circuit), context.Canceled)
	k.requireProof(t, d)
	require.NoError(t, d.Close())
	require.ErrorIs(t, d.Preload(t.Context(), k.key, k.circuit), errClosed)
}

// However many keys are being loaded, which may take minutes, a self-test is done at once.
func TestProbeWhileKeysAreLoaded(t *testing.T) {
	c := newCard(1 << 30)
	d := openCard(t, c, smallPlan)
	loading, release := make(chan struct{}), make(chan struct{})
	c.before = func(call string) *Error {
		if call == "createCircuit" {
			loading <- struct{}{}
			<-release
		}
		return nil
	}
	var loads sync.WaitGroup
	for seed := range uint64(cap(d.uploads)) {
		k := newCase(t, 20+seed, 60)
		loads.Go(func() {
			if err := d.Preload(t.Context(), k.key, k.circuit); err != nil {
				t.Error(err)
			}
		})
		<-loading
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	err := d.Probe(ctx)
	close(release)
	loads.Wait()
	require.NoError(t, err)
}

// Where giving a pinned buffer back fails, the others are given back, and so is the card.
func TestCloseWithAFault(t *testing.T) {
	k := newCase(t, 15, 100)
	c := newCard(1 << 30)
	d, err := open(c, Config{Name: "gpu 0", Workers: 2}, smallPlan)
	require.NoError(t, err)
	k.requireProof(t, d)
	require.Len(t, c.pinned, pinnedBuffers)
	c.before = (&failAt{call: "freeHost", err: &Error{Kind: DeviceFailed}}).before
	require.ErrorContains(t, d.Close(), "gpu 0: giving page-locked host memory back: the device failed")
	require.Len(t, c.pinned, 1)
	require.Empty(t, c.objects)
}

// A point that the card refuses is the key's fault, which the error names with the place.
func TestDamagedKey(t *testing.T) {
	k := newCase(t, 16, 300)
	for name, p := range k.plans() {
		c := newCard(1 << 30)
		d := openCard(t, c, p)
		c.before = (&failAt{call: "loadBases", n: 1, err: &Error{Kind: BadArgument, Message: "encoded points: base 65 is at infinity"}}).before
		_, err := k.prove(t.Context(), d)
		var damaged *groth16.IncompatibleError
		require.ErrorAs(t, err, &damaged, name)
		require.Contains(t, damaged.Reason, "of query H of "+k.key.Name()+": encoded points: base 65 is at infinity")
	}
}

// A closed card refuses work.
func TestClosed(t *testing.T) {
	k := newCase(t, 11, 100)
	c := newCard(1 << 30)
	d := openCard(t, c, smallPlan)
	k.requireProof(t, d)
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	require.Empty(t, c.objects)
	_, err := k.prove(t.Context(), d)
	require.ErrorIs(t, err, errClosed)
	require.ErrorIs(t, d.Probe(t.Context()), errClosed)
	used, peak := d.MemoryUsed()
	require.Zero(t, used+peak)
}

// Multiples of the generators are refused in wrong numbers, and right otherwise.
func TestMultiplier(t *testing.T) {
	d := openCard(t, newCard(1<<30), smallPlan)
	m := d.Multiplier()
	scalars := []fr.Element{fr.NewElement(1), fr.NewElement(5)}
	points := make([]byte, 2*96)
	require.NoError(t, m.MultiplesG1(t.Context(), points, scalars))
	_, _, g, _ := bls12381.Generators()
	want := g.RawBytes()
	require.Equal(t, want[:], points[:96])
	require.NoError(t, m.MultiplesG2(t.Context(), make([]byte, 2*192), scalars))
	require.Error(t, m.MultiplesG2(t.Context(), points, scalars))
	require.Error(t, m.MultiplesG1(t.Context(), make([]byte, 96*(m.Batch()+1)), make([]fr.Element, m.Batch()+1)))
}

// countingSource counts what is read of a key.
type countingSource struct {
	groth16.Source
	reads atomic.Int64
}

func (s *countingSource) ReadEncoded(ctx context.Context, q groth16.Query, from int, dst []byte) error {
	s.reads.Add(1)
	return s.Source.ReadEncoded(ctx, q, from, dst)
}

// Once copying a key to the card has failed, the rest of it is not read: a large one takes minutes.
func TestNothingIsReadInVain(t *testing.T) {
	k := newCase(t, 12, 500)
	for name, p := range k.plans() {
		p.pinnedBytes = 192
		c := newCardFor(p)
		d := openCard(t, c, p)
		key := &countingSource{Source: k.key}
		prove := func() error {
			work, err := d.Prepare(t.Context(), key, k.circuit, k.witness)
			if err != nil {
				return err
			}
			defer work.Release()
			return work.Execute(t.Context())
		}
		c.before = (&failAt{call: "loadBases", err: &Error{Kind: DeviceFailed}}).before
		var e *Error
		require.ErrorAs(t, prove(), &e, name)
		require.Equal(t, DeviceFailed, e.Kind)
		require.LessOrEqual(t, key.reads.Swap(0), int64(2*pinnedBuffers), name)
		require.NoError(t, prove())
		require.Greater(t, key.reads.Load(), int64(100), name)
		d.Evict(key)
		require.Zero(t, c.count())
	}
}
