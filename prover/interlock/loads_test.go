package interlock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// Property: however many ask for a value at the same time, one loads it; once it is
// evicted, the last of its users frees it, once.
func TestLoadsLoadOnceAndFreeLast(t *testing.T) {
	var loaded, freed atomic.Int32
	l := NewLoads[string](func(*int) { freed.Add(1) }, nil)
	users := make([]*Load[string, *int], 20)
	var wg sync.WaitGroup
	for i := range users {
		wg.Go(func() {
			var err error
			users[i], err = l.Get(t.Context(), "key", func() (*int, error) { loaded.Add(1); return new(int), nil })
			require.NoError(t, err)
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, loaded.Load())
	l.Evict("key")
	l.Evict("key")
	for _, u := range users {
		require.Same(t, users[0].Value, u.Value)
		require.Zero(t, freed.Load())
		l.Leave(u)
	}
	require.EqualValues(t, 1, freed.Load())
}

// Property: where the one who loads gives up, the next who waits loads; what it had is
// freed. Any other failure, panics included, is that of all who wait.
func TestLoadsFailures(t *testing.T) {
	var freed []string
	var mu sync.Mutex
	l := NewLoads[int](func(s string) { mu.Lock(); freed = append(freed, s); mu.Unlock() }, nil)

	ctx, cancel := context.WithCancel(t.Context())
	loading := make(chan struct{})
	gaveUp := make(chan error)
	go func() {
		_, err := l.Get(ctx, 1, func() (string, error) { close(loading); <-ctx.Done(); return "half", ctx.Err() })
		gaveUp <- err
	}()
	<-loading
	next := make(chan *Load[int, string])
	go func() {
		e, err := l.Get(context.Background(), 1, func() (string, error) { return "whole", nil })
		require.NoError(t, err)
		next <- e
	}()
	cancel()
	require.ErrorIs(t, <-gaveUp, context.Canceled)
	e := <-next
	require.Equal(t, "whole", e.Value)
	l.Leave(e)
	mu.Lock()
	require.Equal(t, []string{"half"}, freed)
	mu.Unlock()

	broken := errors.New("broken")
	_, err := l.Get(t.Context(), 2, func() (string, error) { return "part", broken })
	require.ErrorIs(t, err, broken)
	_, err = l.Get(t.Context(), 2, func() (string, error) { panic("bug") })
	var panicked *PanicError
	require.ErrorAs(t, err, &panicked)
	require.Equal(t, []string{"half", "part", ""}, freed)
}

// Property: what does not stay goes with its last user; Close does nothing while there
// are users, and frees all that is left otherwise.
func TestLoadsStayAndClose(t *testing.T) {
	var freed []int
	l := NewLoads[int](func(v int) { freed = append(freed, v) }, func(v int) bool { return v%2 == 0 })
	get := func(v int) *Load[int, int] {
		e, err := l.Get(t.Context(), v, func() (int, error) { return v, nil })
		require.NoError(t, err)
		return e
	}
	one, two := get(1), get(2)
	require.Equal(t, 2, l.Close())
	l.Leave(one)
	require.Equal(t, []int{1}, freed)
	l.Leave(two)
	require.Equal(t, []int{1}, freed)
	require.Zero(t, l.Close())
	require.Equal(t, []int{1, 2}, freed)
	_, err := l.Get(t.Context(), 3, func() (int, error) { return 3, nil })
	require.ErrorIs(t, err, ErrLoadsClosed)
}
