package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/host/gateway"
)

// What cards suffer is in the tables, and what the CPU does in their place above
// them.
func TestStatusOfCards(t *testing.T) {
	snapshot := gateway.Snapshot{
		Version: "v1", Retries: 4,
		Devices: []gateway.DeviceSnapshot{
			{Name: "gpu 0", Model: "NVIDIA H200", Workers: 2, MemoryTotalBytes: 16 << 30, MemoryFreeBytes: 4 << 30, Partition: -1, Faults: 3, Temperature: 71},
			{Name: "gpu 1", Partition: -1, OutOfUse: "there is no such card"},
			{Name: "cpu", Model: "CPU", Workers: 2, Partition: -1},
		},
	}
	write := func() string {
		var out bytes.Buffer
		require.NoError(t, writeStatus(&out, snapshot))
		return out.String()
	}
	text := write()
	require.Contains(t, text, "0 withheld, 4 partitions retried;")
	require.Regexp(t, `(?m)^gpu 0 +NVIDIA H200 +2 +4.0 GiB of 16.0 GiB +- +3 +71 °C +idle$`, text)
	require.Regexp(t, `(?m)^gpu 1 .* 0 +- +OUT OF USE: there is no such card$`, text)
	require.NotContains(t, text, "CPU PROVED")
	require.NotContains(t, text, "NO CARD")

	snapshot.Fallbacks, snapshot.Devices[0].OutOfUse = 2, "it is lost"
	text = write()
	require.Contains(t, text, "\nNO CARD IS IN USE\nTHE CPU PROVED 2 PARTITION(S) BECAUSE NO CARD COULD\n\nKIND")

	snapshot.Devices = snapshot.Devices[2:] // a machine without cards
	require.NotContains(t, write(), "NO CARD IS")
}
