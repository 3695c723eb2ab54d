package pipeline

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-prover/interlock/shared"
)

func queuedRequest(priority shared.Priority, number uint64) *request {
	return newRequest(Request{Priority: priority}, number, nil)
}

// Whatever the order of pushes, tasks come out by priority, then by their request's arrival, then by partition; a task
// that is put back gets its old place.
func TestQueueOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue()
		pushed := 0
		for number := range rapid.Uint64Range(1, 5).Draw(t, "requests") {
			r := queuedRequest(shared.Priority(rapid.IntRange(0, 4).Draw(t, "priority")), number)
			for _, k := range rapid.Permutation([]int{0, 1, 2}).Draw(t, "partitions") {
				require.True(t, q.push(&task{request: r, k: k}))
				pushed++
				if rapid.Bool().Draw(t, "put back") {
					first, err := q.pop(context.Background(), nil)
					require.NoError(t, err)
					require.True(t, q.push(first))
				}
			}
		}
		var last *task
		for range pushed {
			next, err := q.pop(context.Background(), nil)
			require.NoError(t, err)
			if last != nil {
				a, b := last.request, next.request
				require.True(t, a.Priority > b.Priority || a.Priority == b.Priority && (a.number < b.number || a == b && last.k < next.k))
			}
			last = next
		}
	})
}

// A watch reports what goes before the watched task, also if it came before the watch, and nothing else.
func TestQueueWatch(t *testing.T) {
	low, normal, high := queuedRequest(shared.PriorityLow, 1), queuedRequest(shared.PriorityNormal, 2), queuedRequest(shared.PriorityHigh, 3)
	q := newQueue()
	interrupts := 0
	watched := &task{request: normal}
	q.watch(watched, nil, func() { interrupts++ })
	require.True(t, q.push(&task{request: low}))
	require.Equal(t, 0, interrupts)
	require.True(t, q.push(&task{request: high}))
	require.Equal(t, 1, interrupts)
	q.watch(nil, nil, nil)
	require.True(t, q.push(&task{request: high, k: 1}))
	require.Equal(t, 1, interrupts)
	q.watch(watched, nil, func() { interrupts++ })
	require.Equal(t, 2, interrupts)

	// What cannot begin now does not count, until it can.
	mayBegin := false
	q.watch(watched, func(t *task) bool { return t.request == high && mayBegin }, func() { interrupts++ })
	require.True(t, q.push(&task{request: high, k: 2}))
	q.look()
	require.Equal(t, 2, interrupts)
	mayBegin = true
	q.look()
	require.Equal(t, 3, interrupts)
}

// A queue takes no tasks of a request that has ended, so that none is left in it once it was searched for them.
func TestQueueRefusesEndedRequests(t *testing.T) {
	q := newQueue()
	r := queuedRequest(shared.PriorityNormal, 1)
	require.True(t, q.push(&task{request: r}))
	r.cancel(shared.ErrCancelled)
	require.False(t, q.push(&task{request: r, k: 1}))
	require.Len(t, q.take(func(t *task) bool { return t.request == r }), 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := q.pop(ctx, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
