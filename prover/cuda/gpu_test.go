//go:build gpu

package cuda

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// gpu opens the first card, with the library that INTERLOCK_CUDA_LIBRARY names.
func gpu(t *testing.T, limitBytes int64) *Device {
	t.Helper()
	path := os.Getenv("INTERLOCK_CUDA_LIBRARY")
	require.NotEmpty(t, path, "set INTERLOCK_CUDA_LIBRARY to the path of libinterlock_cuda.so")
	l, err := Load(path)
	require.NoError(t, err)
	d, err := l.Open(Config{Name: "gpu 0", Workers: 2, MemoryLimitBytes: limitBytes})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func TestGPUDescribed(t *testing.T) {
	l, err := Load(os.Getenv("INTERLOCK_CUDA_LIBRARY"))
	require.NoError(t, err)
	infos, err := l.Devices()
	require.NoError(t, err)
	require.NotEmpty(t, infos)
	for _, i := range infos {
		t.Logf("%+v", i)
		require.NotEmpty(t, i.Name)
		require.Contains(t, i.UUID, "GPU-")
		free, err := l.FreeBytes(i.Index)
		require.NoError(t, err)
		require.Positive(t, free)
		require.LessOrEqual(t, free, i.MemoryBytes)
		require.GreaterOrEqual(t, i.DriverCUDA, 13000)
	}
}

// The card's temperature is what any card in use has.
func TestGPUTemperature(t *testing.T) {
	d := gpu(t, 4e9)
	require.Eventually(t, func() bool { _, known := d.TemperatureCelsius(); return known }, 10*time.Second, 100*time.Millisecond)
	celsius, _ := d.TemperatureCelsius()
	t.Logf("%d degrees Celsius", celsius)
	require.Greater(t, celsius, 10)
	require.Less(t, celsius, 110)
}

func TestGPUProbe(t *testing.T) { require.NoError(t, gpu(t, 0).Probe(t.Context())) }

// makeRoom leaves a card room, beside device phases, for what a kind of proof takes there: "resident" with the key,
// "streamed" without it, "late" without the witness either.
func (k *testCase) makeRoom(d *Device, kind string) {
	s := sizesOf(k.circuit)
	switch kind {
	case "streamed":
		d.plan.limitBytes = d.plan.phaseBytes + s.circuit + s.witness
	case "late":
		d.plan.limitBytes = d.plan.phaseBytes + s.circuit
	}
}

var kindsOfProofs = []string{"resident", "streamed", "late"}

// Proofs are the CPU's, with the key on the card and with it streamed in small
// segments, with the witness there all the time and late, and the limit is kept.
func TestGPUProofsAreTheCPUs(t *testing.T) {
	for seed, rows := range []int{60, 300, 3000} {
		k := newCase(t, uint64(seed), rows)
		for _, kind := range kindsOfProofs {
			d := gpu(t, 4e9)
			d.plan.segment, d.plan.streamed, d.plan.pinnedBytes = 1024, 1024, 100*192
			k.makeRoom(d, kind)
			require.Equal(t, kind == "resident", d.Footprint(k.key, k.circuit).KeyBytes > 0)
			require.Equal(t, kind == "late", d.Footprint(k.key, k.circuit).WorkBytes == sizesOf(k.circuit).circuit)
			k.requireProof(t, d)
			k.requireProof(t, d)
			work, err := d.Prepare(t.Context(), k.key, k.circuit, k.witness)
			require.NoError(t, err)
			require.NoError(t, work.Execute(t.Context()))
			require.NotEmpty(t, work.(*Work).Spans())
			t.Logf("%d rows, %s: device phase %v", rows, kind, work.(*Work).Spans()[len(work.(*Work).Spans())-1].To)
			work.Release()
			_, peak := d.MemoryUsed()
			require.Positive(t, peak)
			require.LessOrEqual(t, peak, int64(4e9))
		}
	}
}

// Circuits take no more of the card than is counted for them.
func TestGPUFootprint(t *testing.T) {
	k := newCase(t, 1, 3000)
	d := gpu(t, 4e9)
	empty, _ := d.MemoryUsed()
	require.NoError(t, d.Preload(t.Context(), k.key, k.circuit))
	loaded, _ := d.MemoryUsed()
	f := d.Footprint(k.key, k.circuit)
	require.LessOrEqual(t, loaded-empty, f.KeyBytes)
	work, err := d.Prepare(t.Context(), k.key, k.circuit, k.witness)
	require.NoError(t, err)
	prepared, _ := d.MemoryUsed()
	require.LessOrEqual(t, prepared-loaded, f.WorkBytes)
	work.Release()
	d.Evict(k.key)
	left, _ := d.MemoryUsed()
	require.LessOrEqual(t, left, empty)
}

// Proving over and over leaves nothing on the card, nor does opening it.
func TestGPUCycles(t *testing.T) {
	k := newCase(t, 2, 300)
	l, err := Load(os.Getenv("INTERLOCK_CUDA_LIBRARY"))
	require.NoError(t, err)
	free := func() int64 {
		bytes, err := l.FreeBytes(0)
		require.NoError(t, err)
		return bytes
	}
	var before, used int64
	for n := range 200 {
		d, err := l.Open(Config{Name: "gpu 0", Workers: 2, MemoryLimitBytes: 2e9})
		require.NoError(t, err)
		k.requireProof(t, d)
		d.Evict(k.key)
		now, _ := d.MemoryUsed()
		require.NoError(t, d.Close())
		switch n {
		case 10: // the driver has what it keeps for itself
			before, used = free(), now
		case 199:
			require.LessOrEqual(t, now, used)
			require.GreaterOrEqual(t, free(), before-64<<20, "memory of the card is lost")
		}
	}
}

// Out of memory is told as what it is, and does not spoil the card.
func TestGPUOutOfMemory(t *testing.T) {
	k := newCase(t, 3, 3000)
	d := gpu(t, 1e9)
	h, err := d.take(t.Context(), d.uploads)
	require.NoError(t, err)
	var taken []handle
	for {
		b, err := d.api.createBases(h, groupG1, 1<<18, 1)
		if err != nil {
			break
		}
		taken = append(taken, b)
		require.Less(t, len(taken), 100, "the limit of the pool")
	}
	for { // the rest, in small parts
		b, err := d.api.createBases(h, groupG1, 1<<9, 1)
		if err != nil {
			break
		}
		taken = append(taken, b)
	}
	d.put(d.uploads, h)
	_, err = k.prove(t.Context(), d)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, OutOfMemory, e.Kind)
	require.Positive(t, e.BytesAsked)
	t.Log(err)
	for _, b := range taken {
		d.api.destroyBases(b)
	}
	k.requireProof(t, d)
	require.NoError(t, d.Probe(t.Context()))
}
