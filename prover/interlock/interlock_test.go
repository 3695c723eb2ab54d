package interlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// schedules is how many random schedules each of the tests below runs.
const schedules = 10_000

// eachSchedule runs fn in bubbles of fake time, in which a hang is a panic at once: many with times that tie, so that
// what happens at the same moment is raced for.
func eachSchedule(t *testing.T, fn func(t *testing.T, rng *rand.Rand)) {
	for seed := range uint64(schedules) {
		synctest.Test(t, func(t *testing.T) { fn(t, rand.New(rand.NewPCG(seed, 1))) })
		if t.Failed() {
			t.Fatalf("schedule %d", seed)
		}
	}
}

// pause is nothing, a yield, or up to three ticks of the fake clock.
func pause(n int) {
	switch n {
	case 0:
	case 1:
		runtime.Gosched()
	default:
		time.Sleep(time.Duration(n-1) * time.Millisecond)
	}
}

var errDevice = errors.New("device failed")

// Whatever workers do under the lock (return, fail, panic, leave their goroutine) and whichever waiters give up: it is
// held by one at a time, it is never lost, nobody hangs, and a waiter that gave up has run nothing.
func TestLockRandomSchedules(t *testing.T) {
	eachSchedule(t, func(t *testing.T, rng *rand.Rand) {
		lock := NewLock()
		var holders atomic.Int32
		var wg sync.WaitGroup
		for range 2 + rng.IntN(3) {
			type turn struct{ before, inside, giveUp, ending int }
			turns := make([]turn, 1+rng.IntN(3))
			for i := range turns {
				turns[i] = turn{rng.IntN(4), rng.IntN(4), rng.IntN(12), rng.IntN(6)}
			}
			wg.Go(func() {
				for _, turn := range turns {
					pause(turn.before)
					ctx, cancel := context.WithCancel(context.Background())
					if turn.giveUp < 4 {
						stop := time.AfterFunc(time.Duration(turn.giveUp)*time.Millisecond, cancel)
						defer stop.Stop()
					}
					ran := false
					one := func() error {
						return lock.Do(ctx, func() error {
							ran = true
							if n := holders.Add(1); n != 1 {
								t.Errorf("%d hold the lock", n)
							}
							pause(turn.inside)
							holders.Add(-1)
							switch turn.ending {
							case 0:
								return errDevice
							case 1:
								panic("kernel fault")
							case 2:
								runtime.Goexit()
							}
							return nil
						})
					}
					var err error
					if turn.ending == 2 {
						exited := make(chan struct{})
						go func() { defer close(exited); err = one() }()
						<-exited
					} else {
						err = one()
					}
					var panicked *PanicError
					switch {
					case !ran && !errors.Is(err, context.Canceled):
						t.Errorf("did not run and returned %v", err)
					case ran && turn.ending == 0 && err != errDevice:
						t.Errorf("failed and returned %v", err)
					case ran && turn.ending == 1 && !errors.As(err, &panicked):
						t.Errorf("panicked and returned %v", err)
					case ran && turn.ending > 1 && err != nil:
						t.Errorf("ran and returned %v", err)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		if free, waiting := lock.gate.state(); free != 1 || waiting != 0 {
			t.Errorf("in the end %d free, %d waiting", free, waiting)
		}
	})
}

// Signals are as many waits, whichever comes first, and a waiter that gives up takes none.
func TestSemaphoreRandomSchedules(t *testing.T) {
	eachSchedule(t, func(t *testing.T, rng *rand.Rand) {
		early, late := rng.IntN(3), rng.IntN(4)
		s := NewSemaphore(early)
		var taken atomic.Int32
		var wg sync.WaitGroup
		for range late {
			before := rng.IntN(5)
			wg.Go(func() {
				pause(before)
				s.Signal()
			})
		}
		for range rng.IntN(4) { // waiters that give up, or are in time
			before, patience := rng.IntN(5), rng.IntN(4)
			wg.Go(func() {
				pause(before)
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(patience)*time.Millisecond)
				defer cancel()
				if s.Wait(ctx) == nil {
					taken.Add(1)
				}
			})
		}
		wg.Wait()
		// What they left is there to be taken, and not one more.
		for range early + late - int(taken.Load()) {
			if err := s.Wait(context.Background()); err != nil {
				t.Error(err)
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		if err := s.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a signal that nobody sent: %v", err)
		}
	})
}

// The sum of reservations never exceeds the budget, everybody who waits is served or gives up, and all comes back.
func TestBudgetRandomSchedules(t *testing.T) {
	eachSchedule(t, func(t *testing.T, rng *rand.Rand) {
		const capacity = 10
		b := NewBudget("test memory", capacity)
		var used atomic.Int64
		var wg sync.WaitGroup
		for range 2 + rng.IntN(4) {
			bytes, before, inside, patience := rng.Int64N(capacity+1), rng.IntN(4), rng.IntN(4), rng.IntN(8)
			wg.Go(func() {
				pause(before)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				if patience < 4 {
					defer time.AfterFunc(time.Duration(patience)*time.Millisecond, cancel).Stop()
				}
				r, err := b.Reserve(ctx, Claim{Bytes: bytes})
				if err != nil {
					if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
					return
				}
				if sum := used.Add(bytes); sum > capacity {
					t.Errorf("%d bytes reserved of %d", sum, capacity)
				}
				pause(inside)
				used.Add(-bytes)
				r.Release()
				r.Release() // the second does nothing
			})
		}
		wg.Wait()
		if b.Used() != 0 {
			t.Errorf("%d bytes still reserved", b.Used())
		}
	})
}

// Who comes first is served first, and who has just held the lock waits behind those who were waiting.
func TestLockIsHandedOverInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lock := NewLock()
		var order []int
		var wg sync.WaitGroup
		for worker := range 3 {
			wg.Go(func() {
				time.Sleep(time.Duration(worker) * time.Millisecond)
				for range 4 {
					require.NoError(t, lock.Do(t.Context(), func() error {
						order = append(order, worker)
						time.Sleep(time.Second)
						return nil
					}))
				}
			})
		}
		synctest.Wait()
		time.Sleep(10 * time.Millisecond)
		require.Equal(t, 2, lock.Waiting())
		wg.Wait()
		require.Equal(t, []int{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2}, order)
	})
}

// A context that has ended takes nothing, even where nothing would have to be waited for; its cause is the error.
func TestEndedContextTakesNothing(t *testing.T) {
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	lock, signals, budget := NewLock(), NewSemaphore(1), NewBudget("test memory", 1)
	require.ErrorIs(t, lock.Do(ctx, func() error { t.Error("ran"); return nil }), why)
	require.ErrorIs(t, signals.Wait(ctx), why)
	_, err := budget.Reserve(ctx, Claim{Bytes: 1})
	require.ErrorIs(t, err, why)
	require.NoError(t, lock.Do(t.Context(), func() error { return nil }))
	require.NoError(t, signals.Wait(t.Context()))
	require.Zero(t, budget.Used())
}

// A large reservation is not starved by small ones that would fit, and those go on once it gives up.
func TestBudgetIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget("test memory", 10)
		small, err := b.Reserve(t.Context(), Claim{Bytes: 4})
		require.NoError(t, err)
		ctx, giveUp := context.WithCancel(t.Context())
		var got []string
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := b.Reserve(ctx, Claim{Bytes: 8})
			require.ErrorIs(t, err, context.Canceled)
		})
		synctest.Wait()
		wg.Go(func() {
			_, err := b.Reserve(t.Context(), Claim{Bytes: 1})
			require.NoError(t, err)
			got = append(got, "one")
		})
		synctest.Wait()
		_, ok := b.TryReserve(Claim{Bytes: 1})
		require.False(t, ok, "one more byte is free, but others wait")
		require.Empty(t, got)
		giveUp()
		wg.Wait()
		require.Equal(t, []string{"one"}, got)
		require.EqualValues(t, 5, b.Used())
		small.Release()
		require.EqualValues(t, 1, b.Used())
	})
}

// What can never fit is refused at once, with the arithmetic.
func TestBudgetRefusesWhatCanNeverFit(t *testing.T) {
	b := NewBudget("memory of GPU 0", 3<<30)
	_, err := b.Reserve(t.Context(), Claim{Bytes: 4<<30 + 512<<20})
	var tooLarge *TooLargeError
	require.ErrorAs(t, err, &tooLarge)
	require.Equal(t, &TooLargeError{Budget: "memory of GPU 0", WantBytes: 4<<30 + 512<<20, BudgetBytes: 3 << 30}, tooLarge)
	require.EqualError(t, err, "memory of GPU 0: 4831838208 bytes (4.50 GiB) are needed, "+
		"3221225472 bytes (3.00 GiB) are all there is: 1610612736 bytes (1.50 GiB) too few")
	_, ok := b.TryReserve(Claim{Bytes: 3<<30 + 1})
	require.False(t, ok)
	require.Panics(t, func() { _ = b.Check(Claim{Bytes: -1}) })
	all, ok := b.TryReserve(Claim{Bytes: 3 << 30})
	require.True(t, ok)
	all.Release()
}

// No budget admits all.
func TestNilBudget(t *testing.T) {
	var none *Budget
	r, err := none.Reserve(t.Context(), Claim{Bytes: 1 << 60})
	require.NoError(t, err)
	r.Release()
	require.Zero(t, none.Capacity()+none.Used())
}

// The value and the place of a panic are kept, and an error thrown by panic is still found.
func TestProtect(t *testing.T) {
	err := Protect(func() error { panic(errDevice) })
	var panicked *PanicError
	require.ErrorAs(t, err, &panicked)
	require.ErrorIs(t, err, errDevice)
	require.Contains(t, string(panicked.Stack), "TestProtect")
	require.ErrorContains(t, err, "device failed")
	require.NoError(t, Protect(func() error { return nil }))
	require.ErrorIs(t, Protect(func() error { return errDevice }), errDevice)
}

// A call that returns in time gives what it gives, a panic included; one that hangs is given up at the limit, not before.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, Within(time.Second, func() error { time.Sleep(time.Second - 1); return nil }))
		require.Equal(t, errDevice, Within(time.Second, func() error { return errDevice }))
		require.ErrorAs(t, Within(time.Second, func() error { panic(errDevice) }), new(*PanicError))

		hung, start := make(chan struct{}), time.Now()
		require.ErrorIs(t, Within(time.Second, func() error { <-hung; return nil }), ErrHangs)
		require.Equal(t, time.Second, time.Since(start))
		close(hung)
	})
}

func BenchmarkLock(b *testing.B) {
	lock := NewLock()
	for b.Loop() {
		_ = lock.Do(context.Background(), func() error { return nil })
	}
}

func BenchmarkLockHandOver(b *testing.B) {
	lock := NewLock()
	b.SetParallelism(1)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_ = lock.Do(context.Background(), func() error { return nil })
		}
	})
}
