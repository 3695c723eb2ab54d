package cuda

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Keys, circuits (as far as is known, rounded up) and witnesses of the largest
// circuits, a PoRep partition and a window PoSt partition of 32 GiB sectors.
const (
	porepPoints  = 96*(1<<27-1) + 96*130169893 + 96*(129753292+328) + (96+192)*(33112281+1)
	porepCircuit = 250e6
	porepWitness = 32*(1699102+328) + 130169893/8

	windowPoints  = 57 << 30
	windowCircuit = 300e6
	windowWitness = 32*125_700_000 + 130_000_000/8
)

// Cards of all sizes: what a device phase takes fits what is set aside for it,
// a domain of 2^27 works from 16 GiB on, and keys are resident where they should.
func TestPlans(t *testing.T) {
	const gb = 1_000_000_000
	for _, c := range []struct {
		limit                      int64
		porep, window              bool // has room for one partition
		porepResident, bothAtATime bool
	}{
		{16 << 30, true, false, false, false},
		{24 * gb, true, true, false, false},
		{48 * gb, true, true, false, false},
		{80 * gb, true, true, true, false},
		{141 * gb, true, true, true, true},
	} {
		t.Run(fmt.Sprint(c.limit/gb, " GB"), func(t *testing.T) {
			p, err := newPlan(c.limit)
			require.NoError(t, err)
			require.Equal(t, maxLogDomain, p.logDomain)
			requireSound(t, p)

			porep := p.placeBytes(porepPoints, porepCircuit, porepWitness)
			window := p.placeBytes(windowPoints, windowCircuit, windowWitness)
			require.Equal(t, c.porep, porep.keyBytes+porep.workBytes <= p.budgetBytes())
			require.Equal(t, c.window, window.keyBytes+window.workBytes <= p.budgetBytes())
			require.Equal(t, c.porepResident, porep.resident)
			if c.bothAtATime {
				require.True(t, window.resident)
				require.LessOrEqual(t, porep.keyBytes+window.keyBytes+2*window.workBytes, p.budgetBytes())
			}
			small := p.placeBytes(1<<28, 1<<20, 1<<20)
			require.Equal(t, keyMultiples, small.multiples)
		})
	}
}

// requireSound adds up what the phases of a proof take beside each other.
func requireSound(t *testing.T, p plan) {
	t.Helper()
	domain := int64(32) << p.logDomain
	buffers := 2 * 96 * int64(p.streamed)
	gathered := 36*int64(p.segment) + int64(p.segment)/8
	require.LessOrEqual(t, 3*domain+tableBytes, p.phaseBytes, "quotient")
	require.LessOrEqual(t, domain+p.scratchBytes+buffers+tableBytes, p.phaseBytes, "sum over the quotient")
	require.LessOrEqual(t, gathered+p.scratchBytes+buffers+tableBytes, p.phaseBytes, "sum over a query")
	require.LessOrEqual(t, 100*int64(p.segment), p.scratchBytes)
	require.GreaterOrEqual(t, p.scratchBytes, int64(64<<20))
	require.GreaterOrEqual(t, p.segment, 128)
	require.Zero(t, p.segment%128, "halves of segments begin at multiples of 64")
	require.Zero(t, p.streamed%128)
	require.Less(t, p.phaseBytes, p.limitBytes)
}

// Small limits have smaller domains; those that are too small are refused.
func TestSmallPlans(t *testing.T) {
	for limit := int64(800e6); limit < 40e9; limit += limit / 10 {
		p, err := newPlan(limit)
		require.NoError(t, err)
		requireSound(t, p)
	}
	_, err := newPlan(500e6)
	require.ErrorContains(t, err, "raise memory_limit")
}
