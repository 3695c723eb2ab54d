package prover

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/interlock-prover/interlock/prover/cuda"
	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/interlock"
	"github.com/interlock-prover/interlock/prover/witness"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
)

// fakeCard is a card in all but that the CPU computes for it. It fails as often as it is told to.
type fakeCard struct {
	groth16.Device
	info           cuda.Info
	budget         *interlock.Budget
	maxConstraints int // of a circuit that it has room for; 0 for any
	inPreload      *faults
	inPrepare      *faults
	inExecute      *faults

	mu        sync.Mutex
	badProbes int
	proofs    int
	closed    int
}

var _ card = (*fakeCard)(nil)

// faults are those to come, each once. Cards may share them.
type faults struct {
	mu    sync.Mutex
	kinds []cuda.Kind
}

func faultsOf(kinds ...cuda.Kind) *faults { return &faults{kinds: kinds} }

// next is the fault that comes next, if there is one.
func (f *faults) next(device, doing string) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.kinds) == 0 {
		return nil
	}
	kind := f.kinds[0]
	f.kinds = f.kinds[1:]
	return fmt.Errorf("fake: %w", &cuda.Error{Kind: kind, Device: device, Doing: doing, CUDACode: 700})
}

// fakeWorkBytes is what a partition takes of a fake card.
const fakeWorkBytes = 1 << 20

func newFakeCard(index int, bytes int64) *fakeCard {
	name := fmt.Sprintf("gpu %d", index)
	return &fakeCard{
		Device: groth16.NewCPU(name, 0), budget: interlock.NewBudget("the memory of "+name, bytes),
		info: cuda.Info{
			Index: index, Name: "Fake 3000", UUID: fmt.Sprintf("GPU-%08d-0000-0000-0000-000000000000", index),
			PCIAddress: fmt.Sprintf("0000:%02x:00.0", 0x41+index), MemoryBytes: bytes,
		},
	}
}

func (c *fakeCard) Memory() *interlock.Budget       { return c.budget }
func (c *fakeCard) Info() cuda.Info                 { return c.info }
func (c *fakeCard) TemperatureCelsius() (int, bool) { return 61, true }
func (c *fakeCard) MemoryLimit() int64              { return c.budget.Capacity() }

func (c *fakeCard) MemoryUsed() (used, peak int64) {
	used = c.budget.Used()
	return used, used
}

func (c *fakeCard) Footprint(key groth16.Source, circuit *groth16.Circuit) groth16.Footprint {
	return groth16.Footprint{KeyBytes: c.Device.Footprint(key, circuit).KeyBytes, WorkBytes: fakeWorkBytes}
}

func (c *fakeCard) CheckCircuit(circuit *groth16.Circuit) error {
	n := circuit.System.NumConstraints()
	if c.maxConstraints == 0 || n <= c.maxConstraints {
		return nil
	}
	return &cuda.Error{Kind: cuda.OutOfMemory, Device: c.Name(), Doing: fmt.Sprintf("making room for a circuit of %d constraints", n),
		BytesAsked: int64(n), BytesFree: int64(c.maxConstraints)}
}

func (c *fakeCard) Probe(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.badProbes > 0 {
		c.badProbes--
		return &cuda.Error{Kind: cuda.DeviceFailed, Device: c.Name(), Doing: "testing itself", Message: "computes wrong"}
	}
	return nil
}

func (c *fakeCard) Preload(ctx context.Context, key groth16.Source, circuit *groth16.Circuit) error {
	if err := cmp.Or(c.CheckCircuit(circuit), c.inPreload.next(c.Name(), "loading parameters")); err != nil {
		return err
	}
	return c.Device.Preload(ctx, key, circuit)
}

func (c *fakeCard) Prepare(ctx context.Context, key groth16.Source, circuit *groth16.Circuit, w *witness.Witness) (groth16.Work, error) {
	if err := c.inPrepare.next(c.Name(), "uploading a witness"); err != nil {
		return nil, err
	}
	work, err := c.Device.Prepare(ctx, key, circuit, w)
	if err != nil {
		return nil, err
	}
	return &fakeWork{work, c}, nil
}

func (c *fakeCard) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed++
	return nil
}

func (c *fakeCard) made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.proofs
}

type fakeWork struct {
	groth16.Work
	card *fakeCard
}

func (w *fakeWork) Execute(ctx context.Context) error {
	if err := w.card.inExecute.next(w.card.Name(), "launching a kernel"); err != nil {
		return err
	}
	return w.Work.Execute(ctx)
}

func (w *fakeWork) Finish(ctx context.Context, b groth16.Blinding) (*groth16.Proof, error) {
	p, err := w.Work.Finish(ctx, b)
	w.card.mu.Lock()
	w.card.proofs++
	w.card.mu.Unlock()
	return p, err
}

// cardConfig is a configuration of so many cards, whose partitions one worker each carries.
func cardConfig(fallback config.Fallback, cards int) *config.Config {
	c := config.Default()
	c.CPU.Enabled = false
	c.CUDA.Fallback = fallback
	for i := range cards {
		c.GPUs = append(c.GPUs, config.GPU{ID: config.GPUID{Index: i}, Workers: 1})
	}
	return c
}

var errNoCard = errors.New("there is no such card")

// newCardEngine opens an engine with cards; one that is nil could not be opened. The test ends with the engine closed, the
// cards closed once, nothing on them and no goroutine left.
func newCardEngine(t *testing.T, c *config.Config, blind blinder, cards ...*fakeCard) *Engine {
	t.Helper()
	dir, err := paramsDir()
	require.NoError(t, err)
	before := goleak.IgnoreCurrent()
	h := hardware{cpu: groth16.NewCPU("cpu", 0)}
	for _, fake := range cards {
		if fake == nil {
			h.cards = append(h.cards, cardOrFault{err: errNoCard})
		} else {
			h.cards = append(h.cards, cardOrFault{card: fake})
		}
	}
	e, err := open(t.Context(), c, dir, hclog.NewNullLogger(), h, blind)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, e.Close())
		for _, fake := range cards {
			if fake != nil {
				require.Equal(t, 1, fake.closed, "closed once")
				require.Zero(t, fake.budget.Used())
			}
		}
		require.Zero(t, e.memory.Used())
		goleak.VerifyNone(t, before)
	})
	return e
}

func status(t *testing.T, e *Engine) shared.Status {
	t.Helper()
	s, err := e.Status(t.Context())
	require.NoError(t, err)
	return s
}

// settled is the status once nobody uses parameters: what partitions took is given back after the answer.
func settled(t *testing.T, e *Engine) (s shared.Status) {
	t.Helper()
	require.Eventually(t, func() bool {
		s = status(t, e)
		return !slices.ContainsFunc(s.Params, func(p shared.ParamsStatus) bool { return p.Users > 0 })
	}, time.Minute, time.Millisecond)
	return s
}

// smallest is a kind's circuit at 2 KiB.
func smallest(kind shared.Kind) shared.CircuitRequest {
	return shared.CircuitRequest{Kind: kind, SectorSize: shared.SectorSize2KiB}
}

// keyBytes is what the parameters of a kind take of a card.
func keyBytes(t *testing.T, kind shared.Kind) int64 {
	t.Helper()
	b, err := blueprintOf(smallest(kind))
	require.NoError(t, err)
	c, err := compile(b)
	require.NoError(t, err)
	dir, err := paramsDir()
	require.NoError(t, err)
	file, err := b.set().Open(dir)
	require.NoError(t, err)
	defer file.Close()
	return newFakeCard(0, 0).Footprint(file, c.groth).KeyBytes
}

// Proofs from cards are the originals' bytes, though the card fails before, and what a card keeps counts against its own
// memory and is given back when it is evicted.
func TestCardProofsAreTheOriginals(t *testing.T) {
	gpu := newFakeCard(0, 1<<30)
	gpu.inExecute = faultsOf(cuda.DeviceFailed)
	e := newCardEngine(t, cardConfig(config.FallbackNever, 2), referenceBlinding, gpu, nil)
	for i, c := range []struct {
		name string
		kind shared.Kind
	}{{"winning-2KiB", shared.KindWinningPoSt}, {"window-2KiB", shared.KindWindowPoSt}} {
		request, want := loadCase(t, c.name)
		got, err := e.Prove(t.Context(), request, nil)
		require.NoError(t, err)
		require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(got.Proof))

		parameters := keyBytes(t, c.kind)
		s := settled(t, e)
		require.EqualValues(t, i+1, s.Retries)
		require.Zero(t, s.Fallbacks)
		require.Len(t, s.Devices, 2, "the CPU does not stand in")
		require.Equal(t, shared.DeviceStatus{
			Name: "gpu 0", Model: "Fake 3000", UUID: gpu.info.UUID, Workers: 1, Partition: -1, Faults: uint64(i + 1),
			MemoryTotalBytes: 1 << 30, MemoryFreeBytes: uint64(1<<30 - parameters), TemperatureCelsius: 61,
		}, s.Devices[0])
		require.Equal(t, shared.DeviceStatus{Name: "gpu 1", Workers: 1, Partition: -1, OutOfUse: errNoCard.Error()}, s.Devices[1])
		require.Len(t, s.Params, 1)
		require.Equal(t, "device", s.Params[0].Where)
		require.Equal(t, parameters, e.devicePeak())
		require.Zero(t, e.memory.Used(), "nothing of the host's")

		freed, err := e.Evict(t.Context(), smallest(c.kind))
		require.NoError(t, err)
		require.Equal(t, shared.EvictResult{WasLoaded: true, FreedBytes: uint64(parameters)}, freed)
		require.Zero(t, gpu.budget.Used())
		require.Empty(t, status(t, e).Params)
		gpu.inPrepare = faultsOf(cuda.OutOfMemory) // of the next
	}
	require.Equal(t, 3, gpu.made())
}

// Where the parameters of two kinds do not fit a card side by side, requests of both are all proven: one's make room for
// the other's.
func TestKindsThatExcludeEachOtherOnACard(t *testing.T) {
	winning, window := keyBytes(t, shared.KindWinningPoSt), keyBytes(t, shared.KindWindowPoSt)
	gpu := newFakeCard(0, max(winning, window)+fakeWorkBytes+min(winning, window)/2)
	e := newCardEngine(t, cardConfig(config.FallbackNever, 1), randomBlinding, gpu)
	var wg sync.WaitGroup
	for _, name := range []string{"winning-2KiB", "window-2KiB"} {
		request, _ := loadCase(t, name)
		request.Vanilla = request.Vanilla[:1]
		request.ID, request.Priority = name, shared.PriorityNormal
		wg.Go(func() {
			if _, err := e.Prove(context.Background(), request, nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wg.Wait()
	var where []string
	for _, p := range status(t, e).Params {
		where = append(where, p.Where)
	}
	require.ElementsMatch(t, []string{"device", "disk"}, where)
}

// Parameters that the configuration preloads are on every card, not on the CPU that stands in, and are the last to make
// room there.
func TestPinnedParametersGoLast(t *testing.T) {
	winning, window := keyBytes(t, shared.KindWinningPoSt), keyBytes(t, shared.KindWindowPoSt)
	gpu, second := newFakeCard(0, winning+2*window-1), newFakeCard(1, 1<<30)
	c := cardConfig(config.FallbackAlways, 2)
	c.Parameters.Preload = []config.Preload{{Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB}}
	e := newCardEngine(t, c, randomBlinding, gpu, second)
	require.Equal(t, winning, gpu.budget.Used())
	require.Equal(t, winning, second.budget.Used())
	require.Zero(t, e.memory.Used(), "nothing on the CPU")

	evicted := false
	other := gpu.budget.NewResident("other", window, func() { evicted = true })
	use, err := gpu.budget.Reserve(t.Context(), interlock.Claim{With: other})
	require.NoError(t, err)
	use.Release() // it was used later than the pinned ones

	loaded, err := e.Preload(t.Context(), smallest(shared.KindWindowPoSt))
	require.NoError(t, err)
	require.False(t, loaded.AlreadyLoaded)
	require.True(t, evicted)
	require.Equal(t, winning+window, gpu.budget.Used(), "the pinned ones stayed")
	for _, kind := range []shared.Kind{shared.KindWinningPoSt, shared.KindWindowPoSt} {
		loaded, err = e.Preload(t.Context(), smallest(kind))
		require.NoError(t, err)
		require.True(t, loaded.AlreadyLoaded)
	}
	require.Zero(t, e.memory.Used(), "nothing on the CPU")

	all, err := gpu.budget.Reserve(t.Context(), interlock.Claim{Bytes: gpu.budget.Capacity()})
	require.NoError(t, err, "where nothing else is left they go too")
	all.Release()
	require.Zero(t, gpu.budget.Used())
	freed, err := e.Evict(t.Context(), smallest(shared.KindWinningPoSt))
	require.NoError(t, err)
	require.Equal(t, shared.EvictResult{WasLoaded: true, FreedBytes: uint64(winning)}, freed, "what the second card had")
}

// Of two cards that are lost the first leaves its work to the other; with the last one the engine says so, and what is
// under way is not answered before it is closed.
func TestLostCards(t *testing.T) {
	cards := []*fakeCard{newFakeCard(0, 1<<30), newFakeCard(1, 1<<30)}
	first := faultsOf(cuda.DeviceLost) // of whichever takes the request
	cards[0].inExecute, cards[1].inExecute = first, first
	e := newCardEngine(t, cardConfig(config.FallbackNever, 2), referenceBlinding, cards...)
	request, want := loadCase(t, "winning-2KiB")
	got, err := e.Prove(t.Context(), request, nil)
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(got.Proof))
	s := status(t, e)
	require.EqualValues(t, 1, s.Retries)
	left := 0
	if cards[1].made() > 0 {
		left = 1
	}
	gone := 1 - left
	require.Zero(t, cards[gone].made())
	require.Contains(t, s.Devices[gone].OutOfUse, "is lost")
	require.Empty(t, s.Devices[left].OutOfUse)
	select {
	case err := <-e.Lost():
		t.Fatal(err)
	default:
	}
	loaded, err := e.Preload(t.Context(), smallest(shared.KindWinningPoSt))
	require.NoError(t, err)
	require.True(t, loaded.AlreadyLoaded, "the lost card is left out")

	cards[left].inExecute = faultsOf(cuda.DeviceLost)
	request.ID = "last"
	id, err := e.Submit(t.Context(), request)
	require.NoError(t, err)
	why := <-e.Lost()
	require.ErrorAs(t, why, new(*cuda.Error))
	require.ErrorContains(t, why, fmt.Sprint("gpu ", left))
	request.ID = "new"
	_, err = e.Submit(t.Context(), request)
	require.NoError(t, err)
	soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = e.Await(soon, id)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	s = status(t, e)
	require.Zero(t, s.Failed)
	require.Len(t, s.Jobs, 2)
}

// A card that fails while parameters are loaded on request is tested, and one that is lost ends the process, as in proving.
func TestCardFailsInPreload(t *testing.T) {
	gpu := newFakeCard(0, 1<<30)
	gpu.inPreload = faultsOf(cuda.DeviceFailed, cuda.DeviceLost)
	e := newCardEngine(t, cardConfig(config.FallbackNever, 1), referenceBlinding, gpu)
	_, err := e.Preload(t.Context(), smallest(shared.KindWinningPoSt))
	require.ErrorContains(t, err, "loading parameters")
	require.Zero(t, gpu.budget.Used(), "what was not loaded takes nothing")
	require.Equal(t, "disk", status(t, e).Params[0].Where)
	request, want := loadCase(t, "winning-2KiB")
	result, err := e.Prove(t.Context(), request, nil)
	require.NoError(t, err)
	require.Equal(t, want, result.Proof)
	require.EqualValues(t, 1, status(t, e).Devices[0].Faults)

	_, err = e.Preload(t.Context(), smallest(shared.KindWinningPoSt))
	require.Error(t, err)
	require.ErrorContains(t, <-e.Lost(), "loading parameters")
}

// A circuit that the card has no room for is refused by name, or proven by the CPU if that may stand in.
func TestCircuitTooLargeForTheCard(t *testing.T) {
	request, want := loadCase(t, "winning-2KiB")
	gpu := newFakeCard(0, 1<<30)
	gpu.maxConstraints = 1000
	e := newCardEngine(t, cardConfig(config.FallbackNever, 1), referenceBlinding, gpu)
	_, err := e.Prove(t.Context(), request, nil)
	var tooLarge *shared.TooLargeError
	require.ErrorAs(t, err, &tooLarge)
	require.Greater(t, tooLarge.WantBytes, uint64(1000))
	require.EqualValues(t, 1000, tooLarge.BudgetBytes)
	require.Contains(t, tooLarge.Detail, "gpu 0: making room for a circuit of")

	// So are parameters that fit no budget of the card.
	gpu = newFakeCard(0, keyBytes(t, shared.KindWinningPoSt)+fakeWorkBytes-1)
	e = newCardEngine(t, cardConfig(config.FallbackNever, 1), referenceBlinding, gpu)
	_, err = e.Prove(t.Context(), request, nil)
	require.ErrorAs(t, err, &tooLarge)
	require.EqualValues(t, gpu.budget.Capacity(), tooLarge.BudgetBytes)
	require.Contains(t, tooLarge.Detail, "the memory of gpu 0")

	gpu = newFakeCard(0, 1<<30)
	gpu.maxConstraints = 1000
	e = newCardEngine(t, cardConfig(config.FallbackAlways, 1), referenceBlinding, gpu)
	got, err := e.Prove(t.Context(), request, nil)
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(got.Proof))
	s := settled(t, e)
	require.EqualValues(t, 1, s.Fallbacks)
	require.Empty(t, s.Devices[0].OutOfUse)
	require.Zero(t, gpu.made())
	freed, err := e.Evict(t.Context(), smallest(shared.KindWinningPoSt))
	require.NoError(t, err)
	require.NotZero(t, freed.FreedBytes, "what the CPU had loaded")
	require.Zero(t, e.memory.Used())
}

// Parameters are loaded ahead on the cards that have room for them. That one has not is no fault of it; if none has,
// the error says so.
func TestPreloadWhereThereIsRoom(t *testing.T) {
	small, tooSmall, large := newFakeCard(0, 1<<30), newFakeCard(1, keyBytes(t, shared.KindWinningPoSt)), newFakeCard(2, 1<<30)
	small.maxConstraints = 1000
	c := cardConfig(config.FallbackNever, 3)
	c.Parameters.Preload = []config.Preload{{Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB}}
	e := newCardEngine(t, c, referenceBlinding, small, tooSmall, large)
	require.Zero(t, small.budget.Used()+tooSmall.budget.Used())
	require.Equal(t, keyBytes(t, shared.KindWinningPoSt), large.budget.Used())
	again, err := e.Preload(t.Context(), smallest(shared.KindWinningPoSt))
	require.NoError(t, err)
	require.True(t, again.AlreadyLoaded)
	for _, d := range status(t, e).Devices {
		require.Zero(t, d.Faults)
		require.Empty(t, d.OutOfUse)
	}

	small = newFakeCard(0, 1<<30)
	small.maxConstraints = 1000
	e = newCardEngine(t, cardConfig(config.FallbackNever, 1), referenceBlinding, small)
	_, err = e.Preload(t.Context(), smallest(shared.KindWinningPoSt))
	var tooLarge *shared.TooLargeError
	require.ErrorAs(t, err, &tooLarge)
	require.Zero(t, status(t, e).Devices[0].Faults)
}

// A card that fails while parameters are loaded ahead keeps neither the others nor the engine from starting.
func TestEngineStartsBesideACardThatFails(t *testing.T) {
	for _, kind := range []cuda.Kind{cuda.DeviceFailed, cuda.DeviceLost} {
		bad, good := newFakeCard(0, 1<<30), newFakeCard(1, 1<<30)
		bad.inPreload = faultsOf(kind)
		c := cardConfig(config.FallbackNever, 2)
		c.Parameters.Preload = []config.Preload{{Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB}}
		e := newCardEngine(t, c, referenceBlinding, bad, good)
		require.Zero(t, bad.budget.Used())
		require.Equal(t, keyBytes(t, shared.KindWinningPoSt), good.budget.Used())
		require.EqualValues(t, 1, status(t, e).Devices[0].Faults)
		require.Empty(t, e.allLost)
	}
}

// With its card out of use the CPU proves what is critical, though other requests came first; these wait.
func TestCriticalRequestsFallBack(t *testing.T) {
	gpu := newFakeCard(0, 1<<30)
	gpu.badProbes = 1000
	gpu.inExecute = faultsOf(cuda.DeviceFailed)
	e := newCardEngine(t, cardConfig(config.FallbackCriticalOnly, 1), referenceBlinding, gpu)
	window, _ := loadCase(t, "window-2KiB")
	window.ID = "window"
	id, err := e.Submit(t.Context(), window)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return status(t, e).Devices[0].OutOfUse != "" }, time.Minute, time.Millisecond)

	winning, want := loadCase(t, "winning-2KiB")
	got, err := e.Prove(t.Context(), winning, nil)
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(want), hex.EncodeToString(got.Proof))
	s := status(t, e)
	require.EqualValues(t, 1, s.Fallbacks)
	require.Len(t, s.Devices, 2)
	require.Equal(t, "gpu 0", s.Devices[0].Name)
	require.Contains(t, s.Devices[0].OutOfUse, "computes wrong")
	require.EqualValues(t, 1, s.Devices[0].Faults)
	require.Equal(t, "cpu", s.Devices[1].Name)
	require.Equal(t, "CPU", s.Devices[1].Model)
	require.Equal(t, uint64(e.memory.Capacity()), s.Devices[1].MemoryTotalBytes)
	require.Len(t, s.Jobs, 1)
	require.Zero(t, gpu.made())
	running, err := e.Cancel(t.Context(), id)
	require.NoError(t, err)
	require.True(t, running)
}

// An engine that cannot be opened leaves its cards to who gave them.
func TestCardsOfAnEngineThatDoesNotOpen(t *testing.T) {
	gpu := newFakeCard(0, 1<<30)
	h := hardware{cpu: groth16.NewCPU("cpu", 0), cards: []cardOrFault{{card: gpu}, {err: errNoCard}}}
	c := cardConfig(config.FallbackNever, 2)
	c.Parameters.Preload = []config.Preload{{Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB}}
	_, err := open(t.Context(), c, t.TempDir(), hclog.NewNullLogger(), h, randomBlinding)
	require.ErrorAs(t, err, new(*shared.ParamsError))
	require.Zero(t, gpu.closed)
	require.NoError(t, h.close())
	require.Equal(t, 1, gpu.closed)
}

// Cards are found by index in the order of PCI addresses, whatever order CUDA lists them in, by UUID and by PCI address.
func TestFindCard(t *testing.T) {
	infos := []cuda.Info{
		{Index: 0, UUID: "GPU-aaaaaaaa-0000-0000-0000-000000000000", PCIAddress: "0000:c1:00.0"},
		{Index: 1, UUID: "GPU-bbbbbbbb-0000-0000-0000-000000000000", PCIAddress: "0000:41:00.0"},
		{Index: 2, UUID: "GPU-cccccccc-0000-0000-0000-000000000000", PCIAddress: "0001:01:00.0"},
	}
	for label, want := range map[string]int{
		"0": 1, "1": 0, "2": 2, "GPU-AAAAAAAA-0000-0000-0000-000000000000": 0, "gpu-cccccccc-0000-0000-0000-000000000000": 2,
		"41:00.0": 1, "0000:C1:00.0": 0, "00000000:41:00.0": 1, "0001:01:00.0": 2,
		"3": -1, "01:00.0": -1, "GPU-dddddddd-0000-0000-0000-000000000000": -1,
	} {
		id, err := config.ParseGPUID(label)
		require.NoError(t, err)
		got, err := findCard(infos, id)
		if want < 0 {
			require.ErrorContains(t, err, "no such card among the 3", label)
			continue
		}
		require.NoError(t, err, label)
		require.Equal(t, want, got, label)
	}
}

// Cards that cannot be opened are told by name; the others are opened with their settings. It is an error only if none is
// left.
func TestOpenCards(t *testing.T) {
	infos := []cuda.Info{{Index: 0, PCIAddress: "0000:c1:00.0"}, {Index: 1, PCIAddress: "0000:41:00.0"}, {Index: 2, PCIAddress: "0000:42:00.0"}}
	gpu := func(label string) config.GPU {
		id, err := config.ParseGPUID(label)
		require.NoError(t, err)
		return config.GPU{ID: id, Workers: 3, MemoryLimit: 1 << 30}
	}
	var asked []cuda.Config
	open := func(c cuda.Config) (card, error) {
		asked = append(asked, c)
		if c.Index == 2 {
			return (*fakeCard)(nil), errors.New("out of order")
		}
		return newFakeCard(c.Index, c.MemoryLimitBytes), nil
	}
	cards, err := openCards([]config.GPU{gpu("0"), gpu("41:00.0"), gpu("1"), gpu("7"), gpu("c1:00.0")}, infos, open, nil)
	require.NoError(t, err)
	require.Len(t, cards, 5)
	require.NotNil(t, cards[0].card)
	require.Nil(t, cards[1].card)
	require.EqualError(t, cards[1].err, `gpu "0000:41:00.0": it is the same card as gpu "0": take one of the blocks out`)
	require.Nil(t, cards[2].card)
	require.EqualError(t, cards[2].err, `gpu "1": out of order`)
	require.ErrorContains(t, cards[3].err, `gpu "7": there is no such card`)
	require.NotNil(t, cards[4].card)
	require.Equal(t, []cuda.Config{
		{Name: "gpu 0", Index: 1, MemoryLimitBytes: 1 << 30, Workers: 3},
		{Name: "gpu 1", Index: 2, MemoryLimitBytes: 1 << 30, Workers: 3},
		{Name: "gpu 0000:c1:00.0", Index: 0, MemoryLimitBytes: 1 << 30, Workers: 3},
	}, asked)

	_, err = openCards([]config.GPU{gpu("1"), gpu("9")}, infos, open, nil)
	require.ErrorContains(t, err, `gpu "1": out of order`)
	require.ErrorContains(t, err, `gpu "9": there is no such card`)
}

// The process keeps to the CPUs of its devices only if all of them name some; the CPU counts if it proves.
func TestProcessCPUs(t *testing.T) {
	gpu := func(cpus ...int) config.GPU { return config.GPU{CPUs: cpus} }
	for name, c := range map[string]struct {
		cpu  config.CPU
		gpus []config.GPU
		want config.CPUSet
	}{
		"CPU":               {config.CPU{Enabled: true, CPUs: config.CPUSet{1, 2}}, nil, config.CPUSet{1, 2}},
		"CPU, all":          {config.CPU{Enabled: true}, nil, nil},
		"card":              {config.CPU{}, []config.GPU{gpu(3)}, config.CPUSet{3}},
		"cards":             {config.CPU{}, []config.GPU{gpu(3), gpu(4, 5)}, config.CPUSet{3, 4, 5}},
		"a card, all":       {config.CPU{}, []config.GPU{gpu(3), gpu()}, nil},
		"both":              {config.CPU{Enabled: true, CPUs: config.CPUSet{1}}, []config.GPU{gpu(3)}, config.CPUSet{1, 3}},
		"both, CPU all":     {config.CPU{Enabled: true}, []config.GPU{gpu(3)}, nil},
		"CPU not in use":    {config.CPU{CPUs: config.CPUSet{1}}, []config.GPU{gpu(3)}, config.CPUSet{3}},
		"both, a card, all": {config.CPU{Enabled: true, CPUs: config.CPUSet{1}}, []config.GPU{gpu()}, nil},
	} {
		cfg := &config.Config{CPU: c.cpu, GPUs: c.gpus}
		require.Equal(t, c.want, processCPUs(cfg), name)
		require.Equal(t, c.cpu.CPUs, cfg.CPU.CPUs, "left as it was")
	}
}

// A device's calls run on its CPUs, and the thread is given back as it was.
func TestDeviceRunsOnItsCPUs(t *testing.T) {
	var all unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	last := -1
	for cpu := range 8 * len(all) * 8 {
		if all.IsSet(cpu) {
			last = cpu
		}
	}
	d := &device{cpus: config.CPUSet{last}}
	done := errors.New("done")
	var inside unix.CPUSet
	var thread int
	err := onCPUs(d.cpus, func() error {
		thread = unix.Gettid()
		require.NoError(t, unix.SchedGetaffinity(0, &inside))
		return done
	})
	require.Equal(t, done, err)
	require.Equal(t, 1, inside.Count())
	require.True(t, inside.IsSet(last))
	var after unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(thread, &after))
	require.Equal(t, all, after)

	err = onCPUs(config.CPUSet{1 << 14}, func() error { t.Error("ran"); return nil })
	require.ErrorContains(t, err, "running on CPUs 16384")
}
