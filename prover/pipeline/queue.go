package pipeline

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/interlock-prover/interlock/prover/interlock"
)

// task is one partition of a request on its way. It ends in one call of [Pipeline.leave].
type task struct {
	request  *request
	k        int            // the partition
	avoid    *device        // where it failed before; taken there again only if no other device can
	fallback bool           // it is for the fallback, else for one of the other devices
	forced   bool           // for the fallback whatever the other devices can
	outcomes chan<- outcome // has room for one outcome of each task of the request
	memory   *interlock.Reservation
	witness  Witness
}

// outcome is what became of a task.
type outcome struct {
	k      int
	proof  []byte
	device *device // that made the proof, or failed to; nil if it failed before it came to one; of errRedirected the one to avoid
	err    error
}

// before tells which goes first: by priority, then by the request's arrival, then by partition. The order of two tasks
// never changes, so one that comes back to a queue gets its old place.
func before(a, b *task) int {
	return cmp.Or(
		-cmp.Compare(a.request.Priority, b.request.Priority),
		cmp.Compare(a.request.number, b.request.number),
		cmp.Compare(a.k, b.k),
	)
}

// queue holds tasks in the order they go.
type queue struct {
	mu      sync.Mutex
	tasks   []*task
	changed chan struct{} // closed, and made anew, when those who wait should look again

	waiting   *task // see watch
	accept    func(*task) bool
	interrupt func()
}

func newQueue() *queue {
	return &queue{changed: make(chan struct{})}
}

// push adds a task, unless its request has ended: then it returns false.
func (q *queue) push(t *task) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if t.request.ctx.Err() != nil { // whoever ended it will look through the queue after this, or did before
		return false
	}
	place, _ := slices.BinarySearchFunc(q.tasks, t, before)
	q.tasks = slices.Insert(q.tasks, place, t)
	q.overtake()
	q.wake()
	return true
}

// look has all who wait in pop, and the watch, ask accept anew.
func (q *queue) look() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.overtake()
	q.wake()
}

func (q *queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// pop takes the first task that accept agrees to, waiting for one until ctx ends. accept is called under the queue's
// lock; nil agrees to all.
func (q *queue) pop(ctx context.Context, accept func(*task) bool) (*task, error) {
	for {
		q.mu.Lock()
		if ctx.Err() != nil {
			q.mu.Unlock()
			return nil, context.Cause(ctx)
		}
		for i, t := range q.tasks {
			if accept == nil || accept(t) {
				q.tasks = slices.Delete(q.tasks, i, i+1)
				q.mu.Unlock()
				return t, nil
			}
		}
		changed := q.changed
		q.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// take takes the tasks that are wanted out of the queue.
func (q *queue) take(wanted func(*task) bool) []*task {
	q.mu.Lock()
	defer q.mu.Unlock()
	var taken []*task
	q.tasks = slices.DeleteFunc(q.tasks, func(t *task) bool {
		ok := wanted(t)
		if ok {
			taken = append(taken, t)
		}
		return ok
	})
	return taken
}

// watch has interrupt called when there is a task that accept agrees to, as in pop, and that goes before t, which one
// goroutine at a time took out of the queue and may put back. A nil interrupt ends the watch.
func (q *queue) watch(t *task, accept func(*task) bool, interrupt func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting, q.accept, q.interrupt = t, accept, interrupt
	q.overtake()
}

// overtake calls interrupt if there is reason to, under mu.
func (q *queue) overtake() {
	if q.interrupt == nil {
		return
	}
	for _, t := range q.tasks {
		if before(t, q.waiting) >= 0 {
			return
		}
		if q.accept == nil || q.accept(t) {
			q.interrupt()
			return
		}
	}
}
