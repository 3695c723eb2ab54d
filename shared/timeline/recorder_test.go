package timeline

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Every kind has its own name, and the name leads back to it: text exports lose nothing.
func TestKindNamesAreUniqueAndInvertible(t *testing.T) {
	for k := RequestStart; k <= GPUPickup; k++ {
		back, err := ParseKind(k.String())
		require.NoError(t, err)
		require.Equal(t, k, back)
	}
	_, err := ParseKind("GPU_STRAT")
	require.ErrorContains(t, err, "GPU_STRAT")
	require.Equal(t, "KIND_0", Kind(0).String())
}

// Starts and ends alternate, so that the end of a phase is its start plus one.
func TestPhasesComeInPairs(t *testing.T) {
	for k := RequestStart; k <= VerifyEnd; k += 2 {
		require.True(t, k.isStart())
		require.True(t, (k + 1).isEnd())
		start, end := k.String(), (k + 1).String()
		require.Equal(t, start[:len(start)-len("START")], end[:len(end)-len("END")])
	}
	require.False(t, GPUQueue.isStart() || GPUQueue.isEnd() || GPUPickup.isStart() || GPUPickup.isEnd())
}

// The ring keeps the latest events in order and says how many it lost.
func TestRecorderKeepsTheLatest(t *testing.T) {
	r := NewRecorder(8)
	for i := range int32(5) {
		r.Record(Event{Kind: GPUQueue, Partition: i})
	}
	got := r.Recording()
	require.Len(t, got.Events, 5)
	require.Zero(t, got.Lost)
	for i := range int32(20) {
		r.Record(Event{Kind: GPUQueue, Partition: 5 + i})
	}
	got = r.Recording()
	require.EqualValues(t, 17, got.Lost)
	require.Len(t, got.Events, 8)
	for i, e := range got.Events {
		require.EqualValues(t, 17+i, e.Partition)
		if i > 0 {
			require.GreaterOrEqual(t, e.Time, got.Events[i-1].Time)
		}
	}
	require.WithinDuration(t, time.Now(), got.Start, time.Minute)
}

// Nothing recorded by many goroutines is lost or torn, and each one's events stay in order.
func TestRecorderIsSafeForConcurrentUse(t *testing.T) {
	const writers, each = 8, 500
	r := NewRecorder(writers * each)
	var wg sync.WaitGroup
	for w := range int32(writers) {
		wg.Go(func() {
			for i := range int32(each) {
				r.Record(Event{Kind: SynthStart, Worker: w, Partition: i})
			}
		})
	}
	for range 10 {
		r.Recording()
	}
	wg.Wait()
	next := make([]int32, writers)
	for _, e := range r.Recording().Events {
		require.Equal(t, next[e.Worker], e.Partition)
		next[e.Worker]++
	}
	for _, n := range next {
		require.EqualValues(t, each, n)
	}
}

// Recording an event allocates nothing, and a nil recorder takes events and forgets them.
func TestRecordAllocatesNothing(t *testing.T) {
	r := NewRecorder(64)
	e := Event{Kind: GPUStart, Request: "request", GPU: "gpu", Partition: 3, Worker: 1}
	require.Zero(t, testing.AllocsPerRun(1000, func() { r.Record(e) }))
	var off *Recorder
	off.Record(e)
	off.RecordAt(e)
	require.Zero(t, off.Now())
	require.Empty(t, off.Recording().Events)
}

func BenchmarkRecord(b *testing.B) {
	r := NewRecorder(DefaultCapacity)
	e := Event{Kind: GPUStart, Request: "request", GPU: "gpu", Partition: 3, Worker: 1}
	b.ReportAllocs()
	for b.Loop() {
		r.Record(e)
	}
}

func BenchmarkRecordContended(b *testing.B) {
	r := NewRecorder(DefaultCapacity)
	e := Event{Kind: GPUStart, Request: "request", GPU: "gpu", Partition: 3, Worker: 1}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r.Record(e)
		}
	})
}
