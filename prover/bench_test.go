package prover

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/shared"
)

// Property: a device's benchmark proves, verifies, and says how long each phase
// took; here the device is the CPU.
func TestBenchOfADevice(t *testing.T) {
	dir, err := paramsDir()
	require.NoError(t, err)
	e := newEngine(t, dir, randomBlinding)
	var lines []string
	err = e.Bench(context.Background(), shared.BenchRequest{
		Name: "gpu-winning-2KiB", Args: []string{"device=cpu", "runs=2", "json=true", "dir=" + dir},
	}, func(line string) { lines = append(lines, line) })
	require.NoError(t, err)
	require.Len(t, lines, 1)
	var row gpuRow
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &row))
	require.True(t, row.Verified)
	require.Equal(t, 1, row.Partitions)
	require.Len(t, row.WallSeconds, 2)
	require.Zero(t, row.SetupSeconds, "the parameters were there")
	require.Positive(t, row.ParamsBytes)
	require.Positive(t, row.DevicePhase)
	require.Positive(t, row.Witness)
	require.Less(t, row.DevicePhase, slices.Max(row.WallSeconds))
}

// Property: arguments that are wrong are refused by name, before any work.
func TestBenchArguments(t *testing.T) {
	e := newEngine(t, t.TempDir(), randomBlinding)
	for argument, field := range map[string]string{
		"runs=0": "runs", "runs=x": "runs", "memory-limit=much": "memory-limit", "json=perhaps": "json",
		"device=first": "device", "what=ever": "args",
	} {
		err := e.Bench(context.Background(), shared.BenchRequest{Name: "gpu-winning-2KiB", Args: []string{argument}}, func(string) {})
		var invalid *shared.InvalidRequestError
		require.True(t, errors.As(err, &invalid), "%s: %v", argument, err)
		require.Equal(t, field, invalid.Field)
	}
}
