package pipeline

import (
	"context"
	"sync"

	"github.com/interlock-prover/interlock/prover/interlock"
)

// releaser gives memory back on a goroutine of its own: freeing 10 GiB takes longer than a kernel, so no worker waits
// for it. What waits to be freed is bounded by the budgets, which it counts against until then.
type releaser struct {
	signals *interlock.Semaphore // one for each entry of queue

	mu    sync.Mutex
	queue []func() // nil ends the releaser
}

func newReleaser() *releaser {
	return &releaser{signals: interlock.NewSemaphore(0)}
}

// add has release called after those added before. It does not block.
func (r *releaser) add(release func()) {
	r.mu.Lock()
	r.queue = append(r.queue, release)
	r.mu.Unlock()
	r.signals.Signal()
}

// run calls what is added until close was called and all is done.
func (r *releaser) run() {
	for {
		if err := r.signals.Wait(context.Background()); err != nil {
			return
		}
		r.mu.Lock()
		release := r.queue[0]
		r.queue = r.queue[1:]
		r.mu.Unlock()
		if release == nil {
			return
		}
		release()
	}
}

func (r *releaser) close() { r.add(nil) }

// leave gives back what a task holds of the host, once nothing uses it any more. It may take long.
func (p *Pipeline) leave(t *task) {
	if t.witness != nil {
		p.cleanUp(t.request, "releasing a witness", t.witness.Release)
		t.witness = nil
	}
	t.memory.Release()
	t.request.tasks.Done()
}

// cleanUp calls fn, whose failure could only be a panic and changes nothing for the request: it is logged.
func (p *Pipeline) cleanUp(r *request, what string, fn func()) {
	if err := interlock.Protect(func() error { fn(); return nil }); err != nil {
		p.log.Error(what+" failed", "request", r.ID, "error", err)
	}
}
