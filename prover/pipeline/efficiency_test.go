package pipeline

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/shared/timeline"
)

// efficiency is what the timeline says of a run of many partitions on a device whose prepare and finish together take
// half as long as its device phase. Time is the bubble's: what is measured is the order of things, not the machine.
func efficiency(t *testing.T, workers int) (r timeline.GPUReport) {
	synctest.Test(t, func(t *testing.T) {
		const partitions = 200
		d := newFakeDevice(t, "gpu")
		d.prepare, d.execute, d.finish = 500*time.Millisecond, 2*time.Second, 500*time.Millisecond
		d.release = 5 * time.Second / 2 // longer than the device phase, and in nobody's way
		recorder := timeline.NewRecorder(0)
		p := newPipeline(t, Config{Devices: []DeviceConfig{{Device: d, Workers: workers}}, WitnessWorkers: 2, Timeline: recorder})
		mustProve(t, p, &fakeJob{id: "r", partitions: partitions, witnessTime: time.Second})
		closeEmpty(t, p)
		r = timeline.Analyze(recorder.Recording().Events).GPUs[0]
		require.Equal(t, partitions, r.Partitions)
		requireTurns(t, recorder.Recording().Events, workers)
	})
	return r
}

// requireTurns checks that workers who always have work take turns: none gets the interlock twice past another.
func requireTurns(t *testing.T, events []timeline.Event, workers int) {
	last := int32(timeline.None)
	for _, e := range events {
		if e.Kind == timeline.GPUStart {
			if workers > 1 {
				require.NotEqual(t, last, e.Worker)
			}
			last = e.Worker
		}
	}
}

// Two workers hide all of prepare and finish behind each other's device phases; one cannot, and is busy two thirds of
// the time.
func TestTwoWorkersKeepTheDeviceBusy(t *testing.T) {
	one, two := efficiency(t, 1), efficiency(t, 2)
	t.Logf("one worker %.4f, two workers %.4f; kernels %.4f and %.4f", one.Device.Efficiency(), two.Device.Efficiency(),
		one.Kernel.Efficiency(), two.Kernel.Efficiency())
	require.InDelta(t, 0.67, one.Device.Efficiency(), 0.01)
	require.GreaterOrEqual(t, two.Device.Efficiency(), 0.97)
	require.Greater(t, two.Kernel.Efficiency(), 0.97)
	for _, gap := range one.Gaps {
		require.Equal(t, timeline.HandOver, gap.Cause(), "witnesses were ready all the time")
	}
}

// The same by the machine's clock, with a device phase of 100 ms, as the metric "efficiency".
func BenchmarkEfficiency(b *testing.B) {
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			var last float64
			for b.Loop() {
				d := newFakeDevice(b, "gpu")
				d.prepare, d.execute, d.finish = 25*time.Millisecond, 100*time.Millisecond, 25*time.Millisecond
				recorder := timeline.NewRecorder(0)
				p := newPipeline(b, Config{Devices: []DeviceConfig{{Device: d, Workers: workers}}, Timeline: recorder})
				mustProve(b, p, &fakeJob{id: "r", partitions: 20})
				closeEmpty(b, p)
				last = timeline.Analyze(recorder.Recording().Events).GPUs[0].Device.Efficiency()
			}
			b.ReportMetric(last, "efficiency")
		})
	}
}

// What the pipeline itself costs for a partition, when nothing takes any time.
func BenchmarkPartition(b *testing.B) {
	d := newFakeDevice(b, "gpu")
	d.prepare, d.execute, d.finish = 0, 0, 0
	p := newPipeline(b, Config{Devices: onDevices(d), Timeline: timeline.NewRecorder(0)})
	const partitions = 100
	for b.Loop() {
		mustProve(b, p, &fakeJob{id: "r", partitions: partitions})
	}
	closeEmpty(b, p)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*partitions), "ns/partition")
}
