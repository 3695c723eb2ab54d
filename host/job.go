package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-prover/interlock/host/journal"
	"github.com/interlock-prover/interlock/shared"
)

// job is a request from its acceptance on. What changes is under the supervisor's mu.
type job struct {
	request shared.Request // without its vanilla proofs
	digest  journal.Digest
	number  uint64    // counts up in the order of acceptance
	at      time.Time // of acceptance. It and due have a reading of the monotonic clock: the wall clock may jump
	due     time.Time // the request's deadline; zero: none

	isRecorded bool // in the journal
	key        journal.Key

	recorded chan struct{} // closed when it is accepted, or refused with err
	done     chan struct{} // closed when it is answered
	result   shared.Result // from here: written before one of these is closed
	err      error

	ctx    context.Context // ends when it is cancelled, too late or answered
	cancel context.CancelCauseFunc

	state     jobState
	vanilla   [][]byte // while they are kept in memory
	owners    int      // calls of Prove that wait for it
	isKept    bool     // it goes on without an owner
	listeners []chan shared.Progress
	expires   time.Time // once it is answered

	pluginID       string // its id in a detached plugin, which no other job ever has
	partitionsDone int
	stage          shared.Stage // the last that the plugin reported
	sent           time.Time    // when the latest attempt passed it on; zero: it has not
	isHandedOn     bool         // the plugin may have it
	notBefore      time.Time
	isSuspect      bool // a plugin died that may have been at work on it
	deaths         int  // of plugins that had it alone
	misfortunes    int  // plugins that died while it waited in them
}

type jobState uint8

const (
	jobAccepting jobState = iota // is being written to the journal
	jobWaiting                   // for a plugin
	jobInFlight                  // in the plugin, or on its way
	jobAnswering                 // its answer is being written to the journal
	jobAnswered
)

// maxMisfortunes is how many plugins may die on a request that, as far as was heard, only waited in them, before it comes
// under suspicion: the last report of a plugin may be lost with it.
const maxMisfortunes = 2

// reportsWaiting is how many reports wait for a slow progress function before it misses some.
const reportsWaiting = 64

// accept takes a request, or finds the one that it is the same as. A kept one goes on without an owner.
func (s *Supervisor) accept(r shared.Request, isKept bool) (*job, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	isRecorded := s.journal != nil && (isKept || r.ID != "")
	if r.ID == "" {
		var err error
		if r.ID, err = newID(r.Kind); err != nil {
			return nil, err
		}
	}
	digest, err := journal.DigestOf(&r)
	if err != nil {
		return nil, err
	}
	if !s.enter() {
		return nil, ErrStopped
	}
	defer s.working.Done()
	j, isNew, err := s.enlist(&r, digest, isKept, isRecorded)
	if err != nil {
		return nil, err
	}
	if !isNew {
		<-j.recorded
		return j, s.refusal(j)
	}
	if isRecorded {
		j.key, err = s.journal.Accept(&r, digest)
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		j.err, j.state = err, jobAnswered
		s.drop(j)
		close(j.done)
		close(j.recorded)
		return nil, err
	}
	if over := s.ready(j); over != nil {
		s.answer(j, shared.Result{}, over)
	}
	return j, nil
}

// ready lets the plugin have a job that was accepted. The error is why it is over already.
func (s *Supervisor) ready(j *job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.state = jobWaiting
	close(j.recorded)
	if j.ctx.Err() != nil {
		return context.Cause(j.ctx)
	}
	s.watchDeadline(j)
	s.dispatch()
	if j.state == jobWaiting {
		j.waitOnDisk()
	}
	return nil
}

// refusal is why a joined job was not accepted after all.
func (s *Supervisor) refusal(j *job) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.isRecorded && j.key == 0 {
		return j.err
	}
	return nil
}

// enlist enters a new job, or joins one.
func (s *Supervisor) enlist(r *shared.Request, digest journal.Digest, isKept, isRecorded bool) (_ *job, isNew bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	join := func(j *job) *job {
		if j.isKept = j.isKept || isKept; !isKept {
			j.owners++
		}
		return j
	}
	if old := s.jobs[r.ID]; old != nil {
		switch isSame := old.digest == digest; {
		case isSame && (old.state != jobAnswered || old.err == nil):
			return join(old), false, nil
		case old.state != jobAnswered:
			return nil, false, &shared.InvalidRequestError{Field: "id", Reason: fmt.Sprintf("a request %s with other content is under way", r.ID)}
		}
	}
	if s.loop != nil {
		return nil, false, s.loop
	}
	if len(s.active) >= s.options.MaxRequests {
		return nil, false, &shared.BusyError{Resource: fmt.Sprintf("the queue of %d requests", s.options.MaxRequests)}
	}
	if err := s.isTooLate(r); err != nil {
		return nil, false, err
	}
	j := s.newJob(*r, digest, isRecorded)
	j.vanilla = slices.Clone(r.Vanilla)
	s.jobs[r.ID] = j
	return join(j), true, nil
}

// isTooLate is why a new request is refused for its deadline's sake, or nil, under mu.
func (s *Supervisor) isTooLate(r *shared.Request) error {
	if r.Deadline.IsZero() {
		return nil
	}
	left := time.Until(r.Deadline)
	if left <= 0 {
		return fmt.Errorf("the deadline of request %s passed %v ago: %w", r.ID, (-left).Round(time.Millisecond), context.DeadlineExceeded)
	}
	if fastest := s.fastest[circuitOf(r)]; s.options.RefuseHopeless && left < fastest {
		return fmt.Errorf("request %s is to be proven within %v, and the fastest of its kind and sector size took %v here: %w",
			r.ID, left.Round(time.Millisecond), fastest.Round(time.Millisecond), context.DeadlineExceeded)
	}
	return nil
}

// circuitOf says which requests take about the same time.
func circuitOf(r *shared.Request) shared.CircuitRequest {
	return shared.CircuitRequest{Kind: r.Kind, SectorSize: r.SectorSize}
}

// newJob makes a job that is being accepted, under mu.
func (s *Supervisor) newJob(r shared.Request, digest journal.Digest, isRecorded bool) *job {
	r.Vanilla = nil
	s.accepted++
	j := &job{
		request: r, digest: digest, number: s.accepted, at: time.Now(), due: shared.AsOfNow(r.Deadline), isRecorded: isRecorded,
		recorded: make(chan struct{}), done: make(chan struct{}),
	}
	j.ctx, j.cancel = context.WithCancelCause(s.ctx)
	s.active[j] = true
	return j
}

// restore takes up what the journal has.
func (s *Supervisor) restore(entries []journal.Entry) {
	var superseded []journal.Key
	pending := 0
	s.mu.Lock()
	for _, e := range entries {
		j := s.newJob(e.Request, e.Digest, true)
		j.key, j.isKept, j.at = e.Key, true, j.at.Add(-max(0, j.at.Sub(e.Accepted)))
		close(j.recorded)
		if old := s.jobs[e.Request.ID]; old != nil {
			superseded = append(superseded, old.key)
			s.drop(old)
			s.order = slices.DeleteFunc(s.order, func(j *job) bool { return j == old })
		}
		s.jobs[e.Request.ID] = j
		if e.Answer == nil {
			j.state = jobWaiting
			s.watchDeadline(j)
			pending++
			continue
		}
		delete(s.active, j)
		j.state, j.result, j.err = jobAnswered, e.Answer.Result, e.Answer.Err
		age := time.Since(e.Answer.At)
		j.expires = time.Now().Add(min(max(s.options.Journal.Retention-age, minRetention), s.options.Journal.Retention))
		s.order = append(s.order, j)
		j.cancel(nil)
		close(j.done)
	}
	s.mu.Unlock()
	if len(superseded) > 0 {
		if err := s.journal.Forget(superseded...); err != nil {
			s.log.Warn("the journal", "error", err)
		}
	}
	if len(entries) > 0 {
		s.log.Info("resuming from the journal", "unanswered", pending, "answered", len(entries)-pending)
	}
}

// minRetention is how long answers are kept at least after a start, as the clock may have jumped meanwhile.
const minRetention = time.Hour

// watchDeadline ends a waiting job when its deadline has passed, under mu.
func (s *Supervisor) watchDeadline(j *job) {
	if j.due.IsZero() {
		return
	}
	timer := time.AfterFunc(time.Until(j.due), func() { s.cancel(j, shared.ErrLate) })
	context.AfterFunc(j.ctx, func() { timer.Stop() })
}

// drop forgets a job, under mu.
func (s *Supervisor) drop(j *job) {
	delete(s.active, j)
	j.cancel(nil)
	if s.jobs[j.request.ID] == j {
		delete(s.jobs, j.request.ID)
	}
}

// cancel ends a job for a cause, and tells whether that is what ended it.
func (s *Supervisor) cancel(j *job, cause error) bool {
	if !s.enter() {
		return false
	}
	defer s.working.Done()
	s.mu.Lock()
	if j.state >= jobAnswering || j.ctx.Err() != nil {
		s.mu.Unlock()
		return false
	}
	j.cancel(cause)
	isWaiting := j.state == jobWaiting
	s.mu.Unlock()
	if isWaiting { // else whoever has it in hand sees that its context has ended
		s.answer(j, shared.Result{}, cause)
	}
	return true
}

// dispatch passes to the plugin what may go there now, under mu.
func (s *Supervisor) dispatch() {
	if s.host == nil || s.host.Err() != nil || s.stopping || s.alone != nil {
		return
	}
	var ready []*job
	var suspect *job
	for j := range s.active {
		if j.state != jobWaiting {
			continue
		}
		if wait := time.Until(j.notBefore); wait > 0 {
			continue // putBack has a timer for it
		}
		if !j.isSuspect {
			ready = append(ready, j)
		} else if suspect == nil || isBefore(j, suspect) {
			suspect = j
		}
	}
	slices.SortFunc(ready, func(a, b *job) int {
		if isBefore(a, b) {
			return -1
		}
		return 1
	})
	for _, j := range ready {
		if suspect == nil || j.request.Priority.OrNormal() > suspect.request.Priority.OrNormal() {
			s.send(j)
		}
	}
	if suspect != nil && s.inFlight == 0 {
		s.alone, s.isAlone = suspect, s.tools == 0
		s.send(suspect)
	}
}

func isBefore(a, b *job) bool {
	return cmp.Or(-cmp.Compare(a.request.Priority.OrNormal(), b.request.Priority.OrNormal()), cmp.Compare(a.number, b.number)) < 0
}

// send begins an attempt, under mu.
func (s *Supervisor) send(j *job) {
	j.state, j.stage, j.partitionsDone, j.isHandedOn, j.sent = jobInFlight, "", 0, false, time.Time{}
	if j.pluginID == "" {
		j.pluginID = s.pluginID(j)
	}
	s.inFlight++
	s.progress = time.Now()
	h := s.host
	s.returned.Add(1)
	go func() {
		defer s.returned.Done()
		result, err := s.try(h, j)
		s.settle(h, j, result, err)
	}()
}

// pluginID makes a job's id for a detached plugin, which may know another request of the same name. The job has it again
// when the journal gives it back.
func (s *Supervisor) pluginID(j *job) string {
	suffix := fmt.Sprintf(".%x", uint64(j.key))
	if !j.isRecorded {
		suffix = fmt.Sprintf(".%x-%x", s.began.UnixNano(), j.number)
	}
	name := j.request.ID[:min(len(j.request.ID), shared.MaxRequestIDBytes-len(suffix))]
	return strings.ToValidUTF8(name, "") + suffix
}

// try has a plugin prove a job.
func (s *Supervisor) try(h *Host, j *job) (shared.Result, error) {
	if h.instance.detached != nil {
		return s.proveDetached(h, j)
	}
	if err := s.takePlace(h, j); err != nil {
		return shared.Result{}, err
	}
	isUploading := true
	uploaded := func() {
		if isUploading {
			isUploading = false
			<-s.uploads
		}
	}
	defer uploaded()
	vanilla, err := s.payload(j)
	if err != nil {
		return shared.Result{}, err
	}
	return h.Prove(j.ctx, s.passOn(j, vanilla), func(p shared.Progress) {
		if isUploading { // not any more, since the plugin reports
			uploaded()
			clear(vanilla) // this frees them, whoever still holds the slice
		}
		s.report(j, p)
	})
}

// passOn is the request as the plugin gets it. It is told the deadline by the wall clock of this moment.
func (s *Supervisor) passOn(j *job, vanilla [][]byte) shared.Request {
	r, now := j.request, time.Now()
	r.Vanilla = vanilla
	r.Deadline = shared.AsOfNow(j.due)
	s.mu.Lock()
	defer s.mu.Unlock()
	j.sent = now
	return r
}

// takePlace waits for a place for a job's payload on its way to the plugin.
func (s *Supervisor) takePlace(h *Host, j *job) error {
	select {
	case s.uploads <- struct{}{}:
		return nil
	default:
		s.mu.Lock()
		j.waitOnDisk()
		s.mu.Unlock()
	}
	select {
	case s.uploads <- struct{}{}:
		return nil
	case <-j.ctx.Done():
		return context.Cause(j.ctx)
	case <-h.Done():
		return h.Err()
	}
}

// waitOnDisk drops the vanilla proofs from memory that the journal has, under mu: nobody knows how long they wait. Those
// of a call of Prove are the caller's, and in memory anyway.
func (j *job) waitOnDisk() {
	if j.isRecorded && j.isKept {
		j.vanilla = nil
	}
}

// payload gives a job's vanilla proofs, in a slice of the caller's own.
func (s *Supervisor) payload(j *job) ([][]byte, error) {
	s.mu.Lock()
	j.isHandedOn = true
	vanilla := slices.Clone(j.vanilla)
	s.mu.Unlock()
	if vanilla != nil {
		return vanilla, nil
	}
	return s.journal.Payload(j.key)
}

// report passes on what the plugin reports of a job.
func (s *Supervisor) report(j *job, p shared.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.stage = p.Stage
	s.progress = time.Now()
	if j.isRecorded {
		j.vanilla = nil // the plugin has them, and the journal for the next one
	}
	s.publish(j, p)
}

// publish passes a report to all who listen, under mu. Who is slow misses the oldest.
func (s *Supervisor) publish(j *job, p shared.Progress) {
	p.RequestID, p.Elapsed = j.request.ID, time.Since(j.at)
	for _, listener := range j.listeners {
		for isSent := false; !isSent; {
			select {
			case listener <- p:
				isSent = true
			default:
				select {
				case <-listener:
				default:
				}
			}
		}
	}
}

func (s *Supervisor) listen(j *job, reports chan shared.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j.listeners = append(j.listeners, reports)
}

// leave ends a call of Prove. The last one takes the job with it unless it is kept.
func (s *Supervisor) leave(j *job, reports chan shared.Progress) {
	s.mu.Lock()
	j.listeners = slices.DeleteFunc(j.listeners, func(c chan shared.Progress) bool { return c == reports })
	j.owners--
	isOrphan := j.owners == 0 && !j.isKept && j.state < jobAnswering
	s.mu.Unlock()
	if isOrphan {
		s.cancel(j, shared.ErrCancelled)
	}
}

// retryPause is how long a request waits that the plugin had no room for, or that could not be read.
const retryPause = time.Second

// settle decides what becomes of a job after an attempt.
func (s *Supervisor) settle(h *Host, j *job, result shared.Result, err error) {
	var busy *shared.BusyError
	var aside *shared.SetAsideError
	s.mu.Lock()
	isAlone := s.alone == j
	if isAlone {
		s.alone = nil
	}
	s.inFlight--
	end := h.Err()
	switch {
	case err != nil && j.ctx.Err() != nil:
		err = context.Cause(j.ctx)
	case errors.Is(err, shared.ErrUnreachable) || end != nil && errors.Is(err, end):
		h.instance.end(err) // if it has not ended yet, its connection has
		if aside = s.survive(j, isAlone, h.Err()); aside == nil {
			s.putBack(j, 0, fmt.Sprintf("%v; the request is tried again", h.Err()))
			s.mu.Unlock()
			return
		}
		err = aside
		s.keeper.deaths = 0 // the reason is known, and gone
	case errors.As(err, &busy):
		s.putBack(j, cmp.Or(busy.RetryAfter, retryPause), err.Error()+"; the request waits")
		s.mu.Unlock()
		return
	case errors.Is(err, context.Canceled): // by a plugin that is ending, nobody else
		s.putBack(j, retryPause, "the plugin gave the request up; it is tried again")
		s.mu.Unlock()
		return
	}
	if err == nil {
		s.keeper.deaths = 0 // it was good for something
		s.noteTime(j)
	}
	s.mu.Unlock()
	s.answer(j, result, err)
}

// noteTime notes how long a proof took, under mu. Of one that a detached plugin had from an earlier host nobody knows.
func (s *Supervisor) noteTime(j *job) {
	if j.sent.IsZero() {
		return
	}
	circuit, took := circuitOf(&j.request), time.Since(j.sent)
	if fastest, isKnown := s.fastest[circuit]; !isKnown || took < fastest {
		s.fastest[circuit] = took
	}
}

// survive notes that the plugin died that a job was in, under mu. It gives an error if the job has brought down too many.
func (s *Supervisor) survive(j *job, wasAlone bool, why error) *shared.SetAsideError {
	switch {
	case !j.isHandedOn:
	case wasAlone:
		if s.isAlone {
			j.deaths++
		}
	case j.stage != shared.StageQueued:
		j.isSuspect = true
	default:
		j.misfortunes++
		j.isSuspect = j.misfortunes > maxMisfortunes
	}
	if j.deaths < s.options.Attempts {
		return nil
	}
	return &shared.SetAsideError{RequestID: j.request.ID, Deaths: j.deaths, Last: why.Error()}
}

// putBack has a job wait for the next attempt, under mu.
func (s *Supervisor) putBack(j *job, pause time.Duration, why string) {
	j.state, j.notBefore = jobWaiting, time.Now().Add(pause)
	s.publish(j, shared.Progress{Stage: shared.StageQueued, Partition: -1, Message: why})
	if pause > 0 {
		timer := time.AfterFunc(pause, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.dispatch()
		})
		context.AfterFunc(j.ctx, func() { timer.Stop() })
	}
	s.dispatch()
}

// answer ends a job. Only the first answer counts; with a journal, it is written there before anybody hears of it.
func (s *Supervisor) answer(j *job, result shared.Result, err error) {
	s.mu.Lock()
	if j.state >= jobAnswering {
		s.mu.Unlock()
		return
	}
	j.state = jobAnswering
	result.RequestID = j.request.ID
	j.result, j.err = result, err
	s.mu.Unlock()

	isSaved := s.save(j)

	s.mu.Lock()
	defer s.mu.Unlock()
	j.state, j.vanilla, j.expires = jobAnswered, nil, time.Now().Add(s.options.Journal.Retention)
	delete(s.active, j)
	j.cancel(nil)
	s.order = append(s.order, j)
	if !isSaved {
		s.unsaved = append(s.unsaved, j)
	}
	switch {
	case err == nil:
		s.counts.completed++
	case !errors.Is(err, shared.ErrCancelled) && !errors.Is(err, ErrStopped):
		s.counts.failed++
	}
	close(j.done)
	s.dispatch()
}

// save writes a job's answer to the journal. One that only says that the host stops is none: the job goes on later.
func (s *Supervisor) save(j *job) bool {
	if !j.isRecorded || errors.Is(j.err, ErrStopped) {
		return true
	}
	entry := journal.Entry{Key: j.key, Request: j.request, Digest: j.digest, Accepted: j.at}
	err := s.journal.Finish(entry, journal.Answer{Result: j.result, Err: j.err, At: time.Now()})
	if err != nil {
		s.log.Error("an answer could not be written and is kept in memory until it can", "error", err)
	}
	return err == nil
}

// abandonAll answers all jobs that are left when the supervisor stops.
func (s *Supervisor) abandonAll() {
	s.mu.Lock()
	var left []*job
	for j := range s.active {
		if j.state == jobWaiting {
			left = append(left, j)
		}
	}
	s.mu.Unlock()
	for _, j := range left {
		s.answer(j, shared.Result{}, ErrStopped)
	}
}

// maintenanceInterval is how often answers are looked through, at least.
const maintenanceInterval = 5 * time.Second

// maintain is the goroutine that writes down what could not be written before, and forgets what is old.
func (s *Supervisor) maintain() {
	defer s.working.Done()
	tick := time.NewTicker(min(maintenanceInterval, s.options.Journal.Retention))
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			s.saveUnsaved()
			return
		case <-tick.C:
			s.saveUnsaved()
			s.forgetOld()
		}
	}
}

func (s *Supervisor) saveUnsaved() {
	s.mu.Lock()
	unsaved := s.unsaved
	s.unsaved = nil
	s.mu.Unlock()
	for i, j := range unsaved {
		if !s.save(j) {
			s.mu.Lock()
			s.unsaved = append(s.unsaved, unsaved[i:]...)
			s.mu.Unlock()
			return
		}
	}
}

// forgetOld drops answers that nobody will ask for any more.
func (s *Supervisor) forgetOld() {
	s.mu.Lock()
	var keys []journal.Key
	n := 0
	for n < len(s.order) && (len(s.order)-n > s.options.KeepAnswers || time.Now().After(s.order[n].expires)) {
		j := s.order[n]
		s.drop(j)
		if j.isRecorded {
			keys = append(keys, j.key)
		}
		n++
	}
	s.order = slices.Delete(s.order, 0, n)
	s.mu.Unlock()
	if len(keys) > 0 {
		if err := s.journal.Forget(keys...); err != nil {
			s.log.Warn("old answers stay in the journal until the next start", "error", err)
		}
	}
}

// addJobs adds to a plugin's status what the plugin does not have, under mu.
func (s *Supervisor) addJobs(st *shared.Status) {
	inPlugin := make(map[string]int, len(st.Jobs))
	for i, p := range st.Jobs {
		inPlugin[p.RequestID] = i
	}
	jobs := make([]*job, 0, len(s.active))
	for j := range s.active {
		jobs = append(jobs, j)
	}
	slices.SortFunc(jobs, func(a, b *job) int { return cmp.Compare(a.number, b.number) })
	var all []shared.JobStatus
	for _, j := range jobs {
		p := shared.JobStatus{
			Kind: j.request.Kind, SectorSize: j.request.SectorSize, Priority: j.request.Priority.OrNormal(), Stage: shared.StageQueued,
		}
		if i, ok := inPlugin[j.request.ID]; ok {
			p = st.Jobs[i]
		} else {
			addPending(st, j.request.Kind)
		}
		p.ID, p.RequestID, p.Elapsed, p.Deadline = shared.JobID(j.request.ID), j.request.ID, time.Since(j.at), j.due
		all = append(all, p)
	}
	st.Jobs = all
}

// addPending counts a request that has not been split into partitions yet as one.
func addPending(st *shared.Status, kind shared.Kind) {
	for i := range st.Queues {
		if st.Queues[i].Kind == kind {
			st.Queues[i].Pending++
			return
		}
	}
	st.Queues = append(st.Queues, shared.QueueStatus{Kind: kind, Pending: 1})
}
