//go:build gpu

package prover

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
)

// gpuConfig is a configuration of the cards that labels name, with the library
// that INTERLOCK_CUDA_LIBRARY names and the CPU left out.
func gpuConfig(t *testing.T, memoryLimit config.ByteSize, labels ...string) *config.Config {
	t.Helper()
	path := os.Getenv("INTERLOCK_CUDA_LIBRARY")
	require.NotEmpty(t, path, "set INTERLOCK_CUDA_LIBRARY to the path of libinterlock_cuda.so")
	c := config.Default()
	c.CPU.Enabled = false
	c.CUDA = config.CUDA{Library: path, Fallback: config.FallbackNever}
	for _, label := range labels {
		id, err := config.ParseGPUID(label)
		require.NoError(t, err)
		c.GPUs = append(c.GPUs, config.GPU{ID: id, Workers: 2, MemoryLimit: memoryLimit})
	}
	return c
}

func newGPUEngine(t *testing.T, dir string, c *config.Config, blind blinder) *Engine {
	t.Helper()
	log := hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: os.Stderr})
	h, err := openHardware(t.Context(), c, log)
	require.NoError(t, err)
	e, err := open(context.Background(), c, dir, log, h, blind)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// setupOnGPU makes the parameters of all reference cases on a card, which are the
// originals'.
func setupOnGPU(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	e := newGPUEngine(t, dir, gpuConfig(t, 0, "0"), randomBlinding)
	for name, r := range map[string]shared.CircuitRequest{
		"porep-2KiB":   {Kind: shared.KindPoRep, SectorSize: shared.SectorSize2KiB},
		"porep10-2KiB": {Kind: shared.KindPoRep, SectorSize: shared.SectorSize2KiB, Partitions: 10},
		"update-2KiB":  {Kind: shared.KindUpdate, SectorSize: shared.SectorSize2KiB},
		"window-2KiB":  {Kind: shared.KindWindowPoSt, SectorSize: shared.SectorSize2KiB},
		"winning-2KiB": {Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB},
	} {
		setupReference(t, e, name, dir, r)
	}
	return dir
}

// Parameters made on a card and proofs made with them are the originals', byte for
// byte, with resident keys and, on a card limited to next to nothing, with streamed
// ones.
func TestGPUProofsAreTheOriginals(t *testing.T) {
	dir := setupOnGPU(t)
	for _, limit := range []config.ByteSize{0, 1 << 30} {
		e := newGPUEngine(t, dir, gpuConfig(t, limit, "0"), referenceBlinding)
		for range 2 { // the second finds the parameters loaded
			for _, name := range caseNames {
				r, _ := loadCase(t, name)
				requireReferenceProof(t, e, name, r)
			}
			requireReferenceProof(t, e, "update-2KiB", loadUpdate(t, "update-2KiB"))
			requireReferenceProof(t, e, "porep-2KiB", phase1(t, "porep-2KiB", "c1-wrapped.json"))
			requireReferenceProof(t, e, "porep10-2KiB", phase1(t, "porep10-2KiB", "c1.json"))
		}
		s, err := e.Status(context.Background())
		require.NoError(t, err)
		t.Logf("limit %s: %+v", limit, s.Devices[0])
		require.Len(t, s.Devices, 1)
		require.Empty(t, s.Devices[0].OutOfUse)
		require.Zero(t, s.Devices[0].Faults)
	}
}

// Two devices, two cards where the machine has them, share the work of one queue
// and make the originals' bytes.
func TestGPUsShareOneQueue(t *testing.T) {
	dir := setupOnGPU(t)
	c := gpuConfig(t, 0, "0", "1")
	h, err := openHardware(t.Context(), c, hclog.NewNullLogger())
	require.NoError(t, err)
	if h.cards[1].err != nil { // one card: twice, with half of its memory each
		require.NoError(t, h.close())
		c = gpuConfig(t, 40<<30, "0", "1")
		h = hardware{}
		for i := range 2 {
			one, err := openHardware(t.Context(), gpuConfig(t, 40<<30, "0"), hclog.NewNullLogger())
			require.NoError(t, err)
			h.cpu = one.cpu
			h.cards = append(h.cards, one.cards[0])
			t.Logf("device %d is %s", i, one.cards[0].Info().UUID)
		}
	}
	e, err := open(context.Background(), c, dir, hclog.NewNullLogger(), h, referenceBlinding)
	require.NoError(t, err)
	defer func() { require.NoError(t, e.Close()) }()
	requireReferenceProof(t, e, "porep10-2KiB", phase1(t, "porep10-2KiB", "c1.json")) // loads the parameters on both
	since := e.recorder.Now()
	start := time.Now()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { requireReferenceProof(t, e, "porep10-2KiB", phase1(t, "porep10-2KiB", "c1.json")) })
	}
	all.Wait()
	t.Logf("40 partitions in %v", time.Since(start))
	on := map[string]int{}
	for _, event := range eventsSince(e, since) {
		if event.Kind.String() == "GPU_START" {
			on[event.GPU]++
		}
	}
	t.Logf("partitions by device: %v", on)
	require.Len(t, on, 2)
	for _, n := range on {
		require.GreaterOrEqual(t, n, 10)
	}
}

// A card that cannot be opened is told by name; beside one that can it is out of
// use.
func TestGPUThatIsNotThere(t *testing.T) {
	_, err := Open(t.Context(), gpuConfig(t, 0, "77"), t.TempDir(), hclog.NewNullLogger())
	require.ErrorContains(t, err, `gpu "77"`)
	e, err := Open(t.Context(), gpuConfig(t, 0, "0", "77"), t.TempDir(), hclog.NewNullLogger())
	require.NoError(t, err)
	s, err := e.Status(t.Context())
	require.NoError(t, err)
	require.Empty(t, s.Devices[0].OutOfUse)
	require.Contains(t, s.Devices[1].OutOfUse, "no such card")
	require.NoError(t, e.Close())

	c := gpuConfig(t, 0, "0")
	c.CUDA.Library = "/nonexistent/libinterlock_cuda.so"
	_, err = Open(t.Context(), c, t.TempDir(), hclog.NewNullLogger())
	require.ErrorContains(t, err, c.CUDA.Library)
	require.False(t, errors.Is(err, context.Canceled))
}
