package interlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// memory counts what claims and residents really take.
type memory struct {
	mu     sync.Mutex
	used   int64
	loaded map[string]bool
	users  map[string]int
}

func (m *memory) add(n int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used += n
	return m.used
}

// Whatever work needs which residents in whatever order, gives up, or has residents dropped: all that could fit is
// served or gives up, what is loaded never exceeds the budget, and nothing is evicted while it is used. A hang is a
// panic of the bubble. Many of the claims exclude each other: two residents and one's own bytes seldom fit.
func TestResidentsRandomSchedules(t *testing.T) {
	eachSchedule(t, func(t *testing.T, rng *rand.Rand) {
		const capacity = 20
		b := NewBudget("test memory", capacity)
		m := &memory{loaded: map[string]bool{}, users: map[string]int{}}
		var residents []*Resident
		for i := range 1 + rng.IntN(4) {
			name, bytes, slow := string(rune('a'+i)), 1+rng.Int64N(14), rng.IntN(4)
			residents = append(residents, b.NewResident(name, bytes, func() {
				pause(slow)
				m.mu.Lock()
				defer m.mu.Unlock()
				if m.users[name] != 0 {
					t.Errorf("%s was evicted while %d use it", name, m.users[name])
				}
				if m.loaded[name] {
					m.loaded[name], m.used = false, m.used-bytes
				}
			}))
			if rng.IntN(3) == 0 {
				residents[i].Pin()
			}
		}
		load := func(r *Resident) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.users[r.name]++
			if !m.loaded[r.name] {
				m.loaded[r.name], m.used = true, m.used+r.bytes
			}
			if m.used > capacity {
				t.Errorf("%d of %d bytes are used", m.used, capacity)
			}
		}
		unload := func(r *Resident) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.users[r.name]--
		}
		var wg sync.WaitGroup
		for range 2 + rng.IntN(5) {
			var c Claim
			if c.Bytes = rng.Int64N(8); rng.IntN(4) != 0 {
				c.With = residents[rng.IntN(len(residents))]
			}
			before, inside, patience, drop := rng.IntN(4), rng.IntN(4), rng.IntN(12), rng.IntN(8) == 0
			wg.Go(func() {
				pause(before)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if patience < 4 {
					defer time.AfterFunc(time.Duration(patience)*time.Millisecond, cancel).Stop()
				}
				reservation, err := b.Reserve(ctx, c)
				if err != nil {
					var tooLarge *TooLargeError
					if !errors.Is(err, context.Canceled) && !errors.As(err, &tooLarge) {
						t.Error(err)
					}
					return
				}
				if c.With != nil {
					load(c.With)
				}
				if sum := m.add(c.Bytes); sum > capacity {
					t.Errorf("%d of %d bytes are used", sum, capacity)
				}
				pause(inside)
				m.add(-c.Bytes)
				if c.With != nil {
					unload(c.With)
				}
				reservation.Release()
				if drop {
					c.With.Drop()
				}
			})
		}
		wg.Wait()
		for _, r := range residents {
			if !r.Drop() {
				t.Errorf("%s is still in use", r.name)
			}
		}
		if b.Used() != 0 || m.used != 0 {
			t.Errorf("%d bytes still reserved, %d still used", b.Used(), m.used)
		}
	})
}

// Two pieces of work whose residents exclude each other run one after the other.
func TestResidentsThatExcludeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("test memory", 10)
		var evicted []string
		resident := func(name string) *Resident {
			return b.NewResident(name, 6, func() { evicted = append(evicted, name) })
		}
		first, second := resident("first"), resident("second")
		one, err := b.Reserve(t.Context(), Claim{Bytes: 2, With: first})
		require.NoError(t, err)
		again, err := b.Reserve(t.Context(), Claim{Bytes: 2, With: first})
		require.NoError(t, err, "it shares what is there")
		require.EqualValues(t, 10, b.Used())

		var other *Reservation
		done := make(chan struct{})
		go func() {
			defer close(done)
			other, err = b.Reserve(t.Context(), Claim{Bytes: 2, With: second})
		}()
		synctest.Wait()
		one.Release()
		synctest.Wait()
		require.Empty(t, evicted, "the first is still in use")
		again.Release()
		<-done
		require.NoError(t, err)
		require.Equal(t, []string{"first"}, evicted)
		require.EqualValues(t, 8, b.Used())
		require.False(t, second.Drop())
		other.Release()
		users, counted := second.Users()
		require.True(t, users == 0 && counted)
		require.EqualValues(t, 6, b.Used(), "it stays for the next")
	})
}

// The least recently used goes first, a pinned one last, and none where that would not be enough.
func TestWhichResidentGoes(t *testing.T) {
	b := NewBudget("test memory", 10)
	var evicted []string
	all := map[string]*Resident{}
	for _, name := range []string{"pinned", "old", "new"} {
		all[name] = b.NewResident(name, 2, func() { evicted = append(evicted, name) })
	}
	all["pinned"].Pin()
	for _, name := range []string{"pinned", "new", "old", "new"} {
		r, err := b.Reserve(t.Context(), Claim{With: all[name]})
		require.NoError(t, err)
		r.Release()
	}
	busy, err := b.Reserve(t.Context(), Claim{Bytes: 4})
	require.NoError(t, err)
	require.Empty(t, evicted)

	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = b.Reserve(ctx, Claim{Bytes: 7})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Empty(t, evicted, "evicting all would not have been enough")

	for i, want := range []string{"old", "new", "pinned"} {
		_, err = b.Reserve(t.Context(), Claim{Bytes: 2})
		require.NoError(t, err)
		require.Equal(t, want, evicted[i])
		require.Len(t, evicted, i+1)
	}
	busy.Release()
}

// What can never fit beside the resident it needs is refused, with both in the arithmetic.
func TestResidentThatCanNeverFit(t *testing.T) {
	b := NewBudget("host memory", 3<<30)
	key := b.NewResident("parameters P", 2<<30, func() {})
	_, err := b.Reserve(t.Context(), Claim{Bytes: 3 << 29, With: key})
	require.EqualError(t, err, "host memory: 3758096384 bytes (3.50 GiB) are needed, which are 1610612736 bytes (1.50 GiB) "+
		"and 2147483648 bytes (2.00 GiB) for parameters P, 3221225472 bytes (3.00 GiB) are all there is: 536870912 bytes (512.00 MiB) too few")
	_, ok := b.TryReserve(Claim{Bytes: 3 << 29, With: key})
	require.False(t, ok)
}

// A resident of no budget is nothing.
func TestNilResident(t *testing.T) {
	var none *Budget
	r := none.NewResident("nothing", 1, func() { t.Error("evicted") })
	r.Pin()
	require.True(t, r.Drop())
	users, counted := r.Users()
	require.True(t, users == 0 && !counted)
	reservation, err := none.Reserve(t.Context(), Claim{Bytes: 1, With: r})
	require.NoError(t, err)
	reservation.Release()
}
