package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// keeperState is what a supervisor knows of its plugins, under its mu.
type keeperState struct {
	restarts int
	deaths   int // in a row
	lastEnd  error
	nextTry  time.Time
}

// keep is the goroutine that keeps a plugin running, beginning with h, which is up, until the supervisor stops.
func (s *Supervisor) keep(h *Host) {
	defer s.working.Done()
	for h != nil {
		began := time.Now()
		why := s.watch(h)
		s.down(h, why, time.Since(began) >= s.options.CrashWindow)
		if h = s.next(); h != nil {
			s.up(h)
		}
	}
	s.abandonAll()
}

// start starts a plugin, or finds a detached one.
func (s *Supervisor) start(ctx context.Context) (*Host, error) {
	if s.options.Detach {
		i, err := attachOrStart(ctx, s.options.Options, filepath.Join(s.options.Journal.Dir, "plugin"), s.options.DetachIdle)
		if err != nil {
			return nil, err
		}
		return &Host{instance: i}, nil
	}
	ctx, cancel := answerWithin(ctx, s.options.StartTimeout)
	defer cancel()
	return Start(ctx, s.options.Options)
}

// answerWithin is a context in which a plugin must answer.
func answerWithin(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v (start_timeout): %w", timeout, context.DeadlineExceeded))
}

// up makes a plugin the one that requests go to.
func (s *Supervisor) up(h *Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host, s.loop, s.keeper.nextTry, s.progress = h, nil, time.Time{}, time.Now()
	s.notify()
	s.dispatch()
}

// watch waits for the end of a plugin, or for a reason to make one. It gives that reason.
func (s *Supervisor) watch(h *Host) error {
	tick := time.NewTicker(s.options.ProbeInterval)
	defer tick.Stop()
	var looks <-chan time.Time
	if h.instance.detached != nil {
		look := time.NewTicker(lookInterval)
		defer look.Stop()
		looks = look.C
	}
	for {
		select {
		case <-s.ctx.Done():
			return ErrStopped
		case <-h.Done():
			return h.Err()
		case <-looks:
			s.look(h)
			continue
		case <-tick.C:
		}
		if err := s.probe(h); err != nil {
			return err
		}
	}
}

// probe says what is wrong with a plugin, or nil.
func (s *Supervisor) probe(h *Host) error {
	ctx, cancel := context.WithTimeout(s.ctx, s.options.ProbeTimeout)
	defer cancel()
	err := h.Health(ctx)
	switch {
	case s.ctx.Err() != nil:
		return ErrStopped
	case h.Err() != nil:
		return h.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the plugin (pid %d) hung: it did not answer within %v and was killed", h.PID(), s.options.ProbeTimeout)
	case err != nil:
		return fmt.Errorf("the plugin (pid %d) was killed: %w", h.PID(), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if still := time.Since(s.progress); s.inFlight > 0 && still > s.options.ProgressTimeout {
		return fmt.Errorf("the plugin (pid %d) hung: none of its %d requests made a step forward within %v, and it was killed",
			h.PID(), s.inFlight, s.options.ProgressTimeout)
	}
	return nil
}

// down ends a plugin for good and waits until everything passed to it has come back.
//
// The process is a child of this one, and its number belongs to it until it has been waited for: what is killed here can
// be no other process. (os.Process holds on to it by a pidfd besides, where the system has those.)
func (s *Supervisor) down(h *Host, why error, wasStable bool) {
	s.mu.Lock()
	s.host = nil
	isStop, ctx := s.stopping, s.stopCtx
	s.mu.Unlock()
	if !isStop {
		h.instance.end(why)
		h.instance.kill()
		ctx = context.Background()
	}
	var err error
	if isStop && h.instance.detached != nil {
		s.returned.Wait()
		h.instance.detach()
	} else {
		err = h.Stop(ctx) // which also reaps a process that has ended
		s.returned.Wait()
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if isStop {
		s.stopErr = err
		return
	}
	if wasStable {
		s.keeper.deaths = 0
	}
	s.died(why)
}

// died counts an end, under mu.
func (s *Supervisor) died(why error) {
	s.keeper.deaths++
	s.keeper.lastEnd = why
	s.log.Error("the plugin has ended", "reason", why, "in a row", s.keeper.deaths)
}

// next starts the next plugin when it is time, and tries until it succeeds. It gives nil if the supervisor stops first.
func (s *Supervisor) next() *Host {
	for {
		s.mu.Lock()
		wait := s.pause()
		s.keeper.nextTry = time.Now().Add(wait)
		s.mu.Unlock()
		select {
		case <-s.ctx.Done():
			return nil
		case <-time.After(wait):
		}
		h, err := s.start(s.ctx)
		if s.ctx.Err() != nil {
			if h != nil {
				s.mu.Lock()
				ctx := s.stopCtx
				s.mu.Unlock()
				_ = h.Stop(ctx)
			}
			return nil
		}
		s.mu.Lock()
		if err == nil {
			s.keeper.restarts++
			s.mu.Unlock()
			s.log.Warn("the plugin was started again", "pid", h.PID())
			return h
		}
		s.died(err)
		s.mu.Unlock()
	}
}

// pause is how long to wait for the next plugin; beyond the limit it begins a crash loop. It is called under mu.
func (s *Supervisor) pause() time.Duration {
	o, k := &s.options, &s.keeper
	if k.deaths <= o.CrashLimit {
		wait := o.Backoff
		for range k.deaths - 1 {
			wait = min(2*wait, o.MaxBackoff)
		}
		return wait
	}
	s.loop = &CrashLoopError{Deaths: k.deaths, RetryAt: time.Now().Add(o.CoolDown), Last: k.lastEnd}
	s.notify()
	s.log.Error("requests are refused for a while", "error", s.loop)
	return o.CoolDown
}
