package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/shared"
)

// A line about a step says how long the rest takes once a partition tells.
func TestProgressTellsTheTimeLeft(t *testing.T) {
	p := shared.Progress{Stage: shared.StageDevice, Partition: 5, PartitionsDone: 4, Partitions: 10, Elapsed: 40 * time.Second}
	require.Equal(t, "device of partition 5, 4 of 10 done, about 1m0s left (40s)", describe(p))
	p.PartitionsDone = 0
	require.Equal(t, "device of partition 5, 0 of 10 done (40s)", describe(p))
	p.PartitionsDone = 10
	require.Equal(t, "device of partition 5, 10 of 10 done (40s)", describe(p))
}
