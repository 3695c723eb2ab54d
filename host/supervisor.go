package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/interlock-prover/interlock/host/journal"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// SupervisorOptions say which plugin a supervisor keeps running, and how.
type SupervisorOptions struct {
	Options
	Supervision
	Journal Journal

	// Detach lets the plugin outlive this host, if it ends in order or otherwise, and the next one with the same journal
	// find it at its work. Without a host, it ends after DetachIdle; 0: an hour. It needs a journal, in whose directory
	// it has its key, socket and log, which is bounded: the Logger gets nothing of it.
	Detach     bool
	DetachIdle time.Duration

	// RefuseHopeless refuses requests whose deadline is nearer than the shortest time that one of the same kind and sector
	// size took in this supervisor. Those whose deadline has passed are refused anyway. Either error is a
	// [context.DeadlineExceeded]. [Supervisor.SetRefuseHopeless] changes it.
	RefuseHopeless bool

	// MaxRequests is how many requests may be under way; more are refused with a [*shared.BusyError]. 0: 1024.
	MaxRequests int
	// KeepAnswers is how many answers are kept for those who ask again; older ones are dropped. 0: 4096.
	KeepAnswers int
}

// Supervision says when a plugin is given up and how soon the next is started. Zero values are the defaults.
type Supervision struct {
	// ProbeInterval is how often the plugin is asked whether it serves, and ProbeTimeout how long it may take to answer
	// before it is taken for hung and killed. 0: 5 and 30 seconds.
	ProbeInterval, ProbeTimeout time.Duration
	// ProgressTimeout is how long a plugin with requests may go without a step forward in any of them before it is taken
	// for hung. It must be longer than the longest step of a partition. 0: 30 minutes.
	ProgressTimeout time.Duration

	// Backoff is how long after a plugin's end the next is started; each further end doubles it, up to MaxBackoff.
	// 0: half a second and a minute.
	Backoff, MaxBackoff time.Duration
	// CrashLimit is how many plugins may end in a row, none having answered a request or lived for CrashWindow. After
	// one more, requests are refused with a [*CrashLoopError], and after CoolDown another plugin is tried. 0: 5 plugins,
	// 5 minutes, 5 minutes.
	CrashLimit            int
	CrashWindow, CoolDown time.Duration
	// Attempts is how many plugins may end while they work on one request alone, before the request is answered with a
	// [*shared.SetAsideError]. 0: 2.
	Attempts int
}

// Journal says where accepted requests are kept, so that they outlive the host.
type Journal struct {
	// Dir is a directory of this host's own. Empty: there is no journal, and what is under way ends with the host.
	Dir string
	// Retention is how long an answer is kept, with a journal or without; after a start, at least an hour whatever the
	// clock says. 0: a day.
	Retention time.Duration
}

func (o SupervisorOptions) withDefaults() (SupervisorOptions, error) {
	options, err := o.Options.withDefaults()
	if err != nil {
		return o, err
	}
	o.Options = options
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&o.ProbeInterval, 5 * time.Second}, {&o.ProbeTimeout, 30 * time.Second}, {&o.ProgressTimeout, 30 * time.Minute},
		{&o.Backoff, 500 * time.Millisecond}, {&o.MaxBackoff, time.Minute},
		{&o.CrashWindow, 5 * time.Minute}, {&o.CoolDown, 5 * time.Minute}, {&o.Journal.Retention, 24 * time.Hour}, {&o.DetachIdle, time.Hour},
	} {
		if *d.value <= 0 {
			*d.value = d.standard
		}
	}
	for _, n := range []struct {
		value    *int
		standard int
	}{{&o.CrashLimit, 5}, {&o.Attempts, 2}, {&o.MaxRequests, 1024}, {&o.KeepAnswers, 4096}} {
		if *n.value <= 0 {
			*n.value = n.standard
		}
	}
	if o.Detach && o.Journal.Dir == "" {
		return o, errors.New("a plugin can outlive its host only with a journal, where the next host finds it: name a folder for one, or do not detach")
	}
	if o.Journal.Dir != "" {
		if o.Journal.Dir, err = filepath.Abs(o.Journal.Dir); err != nil {
			return o, err
		}
	}
	return o, nil
}

// CrashLoopError says that plugins end one after the other, so that requests are refused for a while. Those accepted
// before wait.
type CrashLoopError struct {
	Deaths  int       // in a row
	RetryAt time.Time // when another plugin is started
	Last    error     // why the latest ended, or could not be started
}

func (e *CrashLoopError) Error() string {
	return fmt.Sprintf("%d plugins ended one after the other, and the next is not started before %s; the last time: %v",
		e.Deaths, e.RetryAt.Format(time.TimeOnly), e.Last)
}

// Unwrap gives the reason, and that the plugin cannot be reached for now.
func (e *CrashLoopError) Unwrap() []error { return []error{e.Last, shared.ErrUnreachable} }

// Supervisor keeps a plugin running. It is a [shared.Prover] that answers every request it has accepted exactly once,
// whatever becomes of the plugin: one that dies or hangs is replaced, and what it had not answered goes to the next. With
// a journal that holds beyond the host's own end.
//
// Requests that a dead plugin was working on are under suspicion, and are tried again one at a time, with no other
// request in the plugin; the rest goes on after them, or before if it has a higher priority. Only a request that brings
// down a plugin that has no other is blamed for it, and after [Supervision.Attempts] such deaths set aside. While a
// request is retried, its Prove reports that it is queued again and why.
//
// A request with the id and the content of one that is under way or has its proof is that one: it joins it, or gets the
// proof. While one is under way, its id with other content is refused.
//
// Vanilla proofs given to Submit or Prove are used until the answer is there, and must not be changed before.
type Supervisor struct {
	options SupervisorOptions
	log     hclog.Logger
	began   time.Time
	journal *journal.Journal // nil: none

	ctx      context.Context // ends with Stop, for the cause ErrStopped
	end      context.CancelCauseFunc
	working  sync.WaitGroup // goroutines and calls that use the journal or a plugin
	returned sync.WaitGroup // what was passed to the plugin and has not come back
	uploads  chan struct{}  // places for payloads on their way to a plugin

	mu       sync.Mutex
	stopping bool
	stopCtx  context.Context // of the first Stop
	stopErr  error
	changed  chan struct{} // closed, and made anew, whenever one of the next two changes
	host     *Host         // nil while there is none
	loop     *CrashLoopError
	keeper   keeperState

	accepted uint64
	jobs     map[string]*job // by id: the latest of each
	active   map[*job]bool   // not answered
	alone    *job            // in flight without any other
	isAlone  bool            // and no call of the toolbox has been under way since
	tools    int             // calls of the toolbox under way
	inFlight int
	progress time.Time // of the latest step forward of any job in flight
	order    []*job    // answered, oldest first
	unsaved  []*job    // answered, which the journal does not know yet
	counts   struct{ completed, failed uint64 }
	fastest  map[shared.CircuitRequest]time.Duration // proof, from its last attempt's begin on
}

var _ shared.Prover = (*Supervisor)(nil)

// uploadsAtOnce is how many payloads go to the plugin at once: one crosses the socket while the next is read.
const uploadsAtOnce = 2

// Supervise starts a plugin, as [Start] does, and keeps one running from then on. Requests that the journal has
// unanswered are under way again when it returns.
//
// Every Supervisor needs a Stop.
func Supervise(ctx context.Context, options SupervisorOptions) (*Supervisor, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Supervisor{
		options: options, log: options.Logger, uploads: make(chan struct{}, uploadsAtOnce), changed: make(chan struct{}),
		jobs: map[string]*job{}, active: map[*job]bool{}, fastest: map[shared.CircuitRequest]time.Duration{}, began: time.Now(),
	}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	if options.Journal.Dir != "" {
		var entries []journal.Entry
		if s.journal, entries, err = journal.Open(options.Journal.Dir, options.Logger); err != nil {
			return nil, err
		}
		s.restore(entries)
	}
	h, err := s.start(ctx)
	if err != nil {
		s.mu.Lock()
		s.stopping = true
		s.mu.Unlock()
		s.abandonAll()
		return nil, errors.Join(err, s.close())
	}
	s.working.Add(2)
	s.up(h)
	go s.keep(h)
	go s.maintain()
	return s, nil
}

// Stop ends the plugin as [Host.Stop] does, and the supervisor. Calls in flight fail with [ErrStopped]; with a journal,
// their requests go on when the next supervisor is started with it. Further calls do no harm.
func (s *Supervisor) Stop(ctx context.Context) error {
	s.mu.Lock()
	isFirst := !s.stopping
	if isFirst {
		s.stopping, s.stopCtx = true, ctx
		s.notify()
	}
	s.mu.Unlock()
	s.end(ErrStopped)
	s.working.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if isFirst {
		s.stopErr = errors.Join(s.stopErr, s.close())
	}
	return s.stopErr
}

// close closes what New opened beside the plugin.
func (s *Supervisor) close() error {
	s.end(ErrStopped)
	if s.journal == nil {
		return nil
	}
	return s.journal.Close()
}

// enter tells whether there is still work to begin. Who enters calls s.working.Done in the end.
func (s *Supervisor) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.working.Add(1)
	return true
}

// notify wakes those who wait for a plugin, under mu.
func (s *Supervisor) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Prove implements [shared.Prover]. A request without an id is not written to the journal, as nobody could ask for its
// answer. The end of ctx cancels the request unless someone else has given it too.
func (s *Supervisor) Prove(ctx context.Context, request shared.Request, progress func(shared.Progress)) (shared.Result, error) {
	if ctx.Err() != nil {
		return shared.Result{}, whyEnded(ctx)
	}
	j, err := s.accept(request, false)
	if err != nil {
		return shared.Result{}, err
	}
	reports := make(chan shared.Progress, reportsWaiting)
	if progress != nil {
		s.listen(j, reports)
	}
	defer s.leave(j, reports)
	for {
		select {
		case p := <-reports:
			progress(p)
		case <-ctx.Done():
			return shared.Result{}, whyEnded(ctx)
		case <-j.done:
			for len(reports) > 0 && ctx.Err() == nil {
				progress(<-reports)
			}
			return j.result, j.err
		}
	}
}

// whyEnded says why a caller's context has ended, as the plugin would.
func whyEnded(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	return shared.ErrCancelled
}

// Submit implements [shared.Prover]. With a journal, the request is written to it before Submit returns.
func (s *Supervisor) Submit(_ context.Context, request shared.Request) (shared.JobID, error) {
	j, err := s.accept(request, true)
	if err != nil {
		return "", err
	}
	return shared.JobID(j.request.ID), nil
}

// Await implements [shared.Prover].
func (s *Supervisor) Await(ctx context.Context, id shared.JobID) (shared.Result, error) {
	s.mu.Lock()
	j := s.jobs[string(id)]
	s.mu.Unlock()
	if j == nil {
		return shared.Result{}, shared.ErrUnknownJob
	}
	select {
	case <-j.done:
		return j.result, j.err
	case <-ctx.Done():
		return shared.Result{}, ctx.Err()
	}
}

// Cancel implements [shared.Prover].
func (s *Supervisor) Cancel(_ context.Context, id shared.JobID) (wasRunning bool, err error) {
	s.mu.Lock()
	j := s.jobs[string(id)]
	s.mu.Unlock()
	if j == nil {
		return false, shared.ErrUnknownJob
	}
	return s.cancel(j, shared.ErrCancelled), nil
}

// Status implements [shared.Prover]. It counts all requests of this supervisor, and works without a plugin too: then it
// names no devices and has the process id 0.
func (s *Supervisor) Status(ctx context.Context) (shared.Status, error) {
	s.mu.Lock()
	h := s.host
	s.mu.Unlock()
	var st shared.Status
	if h != nil {
		var err error
		if st, err = h.Status(ctx); err != nil && ctx.Err() != nil {
			return st, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return shared.Status{}, ErrStopped
	}
	if h != nil && h.instance.detached != nil {
		s.useOwnIDs(&st)
	}
	st.Completed, st.Failed = s.counts.completed, s.counts.failed
	s.addJobs(&st)
	return st, nil
}

// useOwnIDs puts the callers' names of requests in the place of those that a detached plugin knows, under mu.
func (s *Supervisor) useOwnIDs(st *shared.Status) {
	own := make(map[string]string, len(s.active))
	for j := range s.active {
		own[j.pluginID] = j.request.ID
	}
	for i := range st.Jobs {
		st.Jobs[i].RequestID = cmp.Or(own[st.Jobs[i].RequestID], st.Jobs[i].RequestID)
	}
	for i := range st.Devices {
		st.Devices[i].RequestID = cmp.Or(own[st.Devices[i].RequestID], st.Devices[i].RequestID)
	}
}

// Timeline implements [shared.Prover]. It has the events of the running plugin alone.
func (s *Supervisor) Timeline(ctx context.Context) (timeline.Recording, error) {
	return through(ctx, s, func(ctx context.Context, c *shared.Client) (timeline.Recording, error) {
		return c.Timeline(ctx)
	})
}

// Toolbox gives what the plugin does beside proofs. A call waits for a plugin if there is none, and fails with the plugin
// that it was passed to.
func (s *Supervisor) Toolbox() shared.Toolbox { return toolbox{tools{s}} }

// tools passes calls of the toolbox, which take away the certainty that it is a request that brings the plugin down.
type tools struct{ *Supervisor }

func (t tools) call(ctx context.Context, call func(context.Context, *shared.Client) error) error {
	return t.Supervisor.call(ctx, func(ctx context.Context, c *shared.Client) error {
		t.countTools(1)
		defer t.countTools(-1)
		return call(ctx, c)
	})
}

func (s *Supervisor) countTools(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools += n
	s.isAlone = false
}

// State is how it goes with the plugin.
type State struct {
	PID      int       // of the plugin; 0 while there is none
	Restarts int       // plugins started after the first
	Deaths   int       // in a row, see [Supervision.CrashLimit]
	LastEnd  error     // why the latest plugin that ended did; nil if none has
	NextTry  time.Time // when the next plugin is started; zero while there is one
	Refusing bool      // requests are refused with a CrashLoopError
}

// State tells how it goes with the plugin.
func (s *Supervisor) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := State{Restarts: s.keeper.restarts, Deaths: s.keeper.deaths, LastEnd: s.keeper.lastEnd, NextTry: s.keeper.nextTry, Refusing: s.loop != nil}
	if s.host != nil {
		state.PID = s.host.PID()
	}
	return state
}

// SetRefuseHopeless changes [SupervisorOptions.RefuseHopeless] for the requests that come from now on.
func (s *Supervisor) SetRefuseHopeless(refuse bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options.RefuseHopeless = refuse
}

// Damage says what of the journal was found damaged at the start, and where it was put.
func (s *Supervisor) Damage() []string {
	if s.journal == nil {
		return nil
	}
	return s.journal.Damage()
}

// call passes a call to the running plugin, for which it waits.
func (s *Supervisor) call(ctx context.Context, call func(context.Context, *shared.Client) error) error {
	if !s.enter() {
		return ErrStopped
	}
	defer s.working.Done()
	h, err := s.running(ctx)
	if err != nil {
		return err
	}
	return h.instance.call(ctx, call)
}

// running gives the running plugin, for which it waits.
func (s *Supervisor) running(ctx context.Context) (*Host, error) {
	for {
		s.mu.Lock()
		h, loop, stopping, changed := s.host, s.loop, s.stopping, s.changed
		s.mu.Unlock()
		switch {
		case stopping:
			return nil, ErrStopped
		case h != nil:
			return h, nil
		case loop != nil:
			return nil, loop
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// newID makes an id for a request that has none.
func newID(kind shared.Kind) (string, error) {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", err
	}
	return kind.String() + "-" + hex.EncodeToString(random[:]), nil
}
