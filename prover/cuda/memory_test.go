package cuda

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/prover/post"
)

// Keys, circuits (as far as is known, rounded up) and witnesses of the largest
// circuits, a PoRep partition and a window PoSt partition of 32 GiB sectors.
const (
	porepPoints  = 96*(1<<27-1) + 96*130169893 + 96*(129753292+328) + (96+192)*(33112281+1)
	porepCircuit = 250e6
	porepWitness = 32*(1699102+328) + 130169893/8

	windowPoints  = 57 << 30
	windowCircuit = 300e6
	windowWitness = 32*125_800_000 + 130_000_000/8
)

func porepSizes() sizes {
	return sizes{domain: 32 << 27, points: porepPoints, circuit: porepCircuit, witness: porepWitness}
}

func windowSizes() sizes {
	return sizes{domain: 32 << 27, points: windowPoints, circuit: windowCircuit, witness: windowWitness}
}

// Cards of all sizes: what a device phase takes fits what is set aside for it,
// a domain of 2^27 works from 16 GiB on, and keys are resident where they should.
func TestPlans(t *testing.T) {
	const gb = 1_000_000_000
	for _, c := range []struct {
		limit                      int64
		windowLate                 bool
		porepResident, bothAtATime bool
	}{
		{16 << 30, true, false, false},
		{24 * gb, false, false, false},
		{48 * gb, false, false, false},
		{80 * gb, false, true, false},
		{141 * gb, false, true, true},
	} {
		t.Run(fmt.Sprint(c.limit/gb, " GB"), func(t *testing.T) {
			p, err := newPlan(c.limit)
			require.NoError(t, err)
			require.Equal(t, maxLogDomain, p.logDomain)
			requireSound(t, p)

			porep, window := requirePlace(t, p, porepSizes()), requirePlace(t, p, windowSizes())
			require.False(t, porep.late)
			require.Equal(t, c.windowLate, window.late)
			require.Equal(t, c.porepResident, porep.resident)
			if c.bothAtATime {
				require.True(t, window.resident)
				require.LessOrEqual(t, porep.keyBytes+window.keyBytes+2*window.workBytes, p.budgetBytes())
			}
			small := requirePlace(t, p, sizes{domain: 1 << 20, points: 1 << 28, circuit: 1 << 20, witness: 1 << 20})
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

// requirePlace finds a place for a proof, and adds up what it takes there.
func requirePlace(t *testing.T, p plan, s sizes) placement {
	t.Helper()
	require.NoError(t, p.checkSizes(s))
	place, ok := p.place(s)
	require.True(t, ok)
	require.LessOrEqual(t, place.keyBytes+place.workBytes, p.budgetBytes())
	require.Positive(t, place.segment)
	require.Zero(t, place.segment%128)
	if !place.late {
		require.Equal(t, place.resident, place.keyBytes > 0)
		return place
	}
	require.False(t, place.resident)
	require.Equal(t, s.circuit, place.workBytes)
	require.Greater(t, s.circuit+s.witness, p.budgetBytes(), "it need not be late")
	buffers := 2 * 96 * int64(place.segment)
	gathered := 36*int64(place.segment) + int64(place.segment)/4 // scalars, places and packed bits
	for what, bytes := range map[string]int64{
		"evaluation":            2*s.domain + s.witness,
		"transforms":            3 * s.domain,
		"sum over the quotient": s.domain + p.scratchBytes + buffers,
		"sum over a query":      s.witness + gathered + p.scratchBytes + buffers,
	} {
		require.LessOrEqual(t, bytes+tableBytes, p.phaseBytes, what)
	}
	require.LessOrEqual(t, p.phaseBytes+place.workBytes, p.limitBytes)
	return place
}

// A full partition of window PoSt of 32 GiB sectors, as it is, has room on a card of 16 GiB, in segments that are worth
// their calls; a little less than what its quotient takes is refused, with the arithmetic.
func TestWindowPoStOf32GiBOn16GiB(t *testing.T) {
	params, err := post.ParamsFor(post.Window, 32<<30)
	require.NoError(t, err)
	c, err := groth16.NewCircuit(post.NewCircuit(params).System)
	require.NoError(t, err)
	s := sizesOf(c)
	require.Equal(t, int64(32<<27), s.domain)
	require.Less(t, s.witness, int64(windowWitness))
	require.Less(t, s.circuit, int64(windowCircuit))
	require.Less(t, s.points, int64(windowPoints))
	t.Logf("domain %d, points %d, circuit %d, witness %d bytes", s.domain, s.points, s.circuit, s.witness)

	p, err := newPlan(16 << 30)
	require.NoError(t, err)
	requireSound(t, p)
	place := requirePlace(t, p, s)
	require.True(t, place.late)
	require.GreaterOrEqual(t, place.segment, 1<<22)
	t.Logf("segments of %d points, scratch %d bytes", place.segment, p.scratchBytes)

	p, err = newPlan(14e9)
	require.NoError(t, err)
	require.ErrorContains(t, p.check(c), "a domain of 134217728 elements takes three times 4294967296 bytes and 536870912 for tables")
	_, ok := p.place(s)
	require.False(t, ok)
}

// Small limits have smaller domains; those that are too small are refused.
func TestSmallPlans(t *testing.T) {
	for limit := int64(800e6); limit < 40e9; limit += limit / 10 {
		p, err := newPlan(limit)
		require.NoError(t, err)
		requireSound(t, p)
		// A witness as large as the largest domain has its place, too.
		domain := domainBytes(p.logDomain)
		requirePlace(t, p, sizes{domain: domain, points: 50 * limit, circuit: domain / 20, witness: domain + domain/50})
	}
	_, err := newPlan(500e6)
	require.ErrorContains(t, err, "raise memory_limit")
}
