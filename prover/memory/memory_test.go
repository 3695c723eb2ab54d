package memory

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// A block is zero, can be written from end to end, and takes from the heap's limit what it holds until it is freed.
func TestBlocksAndHeapShareTheBudget(t *testing.T) {
	const budget, size = 1 << 30, 1 << 28
	SetBudget(budget)
	defer SetBudget(0)
	goLimit := func() int64 { return debug.SetMemoryLimit(-1) }
	before := Outside()
	require.EqualValues(t, budget-before, goLimit())
	block, err := Alloc[uint64](size / 8)
	require.NoError(t, err)
	require.Zero(t, block[len(block)-1])
	block[0], block[len(block)-1] = 1, 2
	require.EqualValues(t, size, Outside()-before)
	require.EqualValues(t, budget-size-before, goLimit())
	large, err := Alloc[byte](budget)
	require.NoError(t, err)
	require.EqualValues(t, budget/16, goLimit(), "the heap keeps a share")
	Free(large)
	Free(block)
	require.Equal(t, before, Outside())
	require.EqualValues(t, budget-before, goLimit())
	SetBudget(0)
	require.EqualValues(t, math.MaxInt64, goLimit())
}

// Nothing is a block too; what cannot be had is an error.
func TestNoBlock(t *testing.T) {
	none, err := Alloc[uint64](0)
	require.NoError(t, err)
	Free(none)
	_, err = Alloc[byte](1 << 60)
	require.ErrorContains(t, err, "allocating 1152921504606846976 bytes of memory")
}
