package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/host/journal"
	"github.com/interlock-prover/interlock/shared"
)

// scriptedOptions make this program the plugin, with a state directory of its own, and have its faults found soon.
func scriptedOptions(t testing.TB) (o host.SupervisorOptions, stateDir string) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stateDir = t.TempDir()
	o.Options = host.Options{
		PluginPath: self,
		Env:        []string{roleEnv + "=scripted", hosttest.EnvState + "=" + stateDir, "GORACE=atexit_sleep_ms=0"},
	}
	o.Supervision = host.Supervision{
		ProbeInterval: 100 * time.Millisecond, ProbeTimeout: 3 * time.Second, Backoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond,
	}
	return o, stateDir
}

// prove proves a request and checks the proof.
func prove(t testing.TB, p shared.Prover, r shared.Request) {
	result, err := p.Prove(t.Context(), r, nil)
	if err != nil {
		t.Errorf("%s: %v", r.ID, err)
	} else if !slices.Equal(result.Proof, hosttest.ScriptedProof(r)) || result.RequestID != r.ID {
		t.Errorf("%s: the proof is another's", r.ID)
	}
}

var workStages = []shared.Stage{
	shared.StageDecode, shared.StageParams, shared.StageWitness, shared.StagePrepare, shared.StageDevice, shared.StageFinish, shared.StageVerify,
}

// Whatever ends the plugin, and at whichever stage: each request is proven in the end, its neighbours too, and nobody
// hears of it but by a progress message.
func TestPluginFaultAtEveryStage(t *testing.T) {
	for _, fault := range []hosttest.Fault{hosttest.FaultKill, hosttest.FaultAbort, hosttest.FaultPanic, hosttest.FaultExit} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			o, state := scriptedOptions(t)
			s := hosttest.Supervise(t, o)
			for _, stage := range append(workStages, shared.StageQueued) {
				var all sync.WaitGroup
				for i := range 3 {
					all.Go(func() {
						prove(t, s, hosttest.Script{Work: 50 * time.Millisecond}.Request(fmt.Sprintf("%s-%d", stage, i)))
					})
				}
				var messages []string
				r := hosttest.Script{Fault: fault, Stage: stage, Times: 1, Work: 30 * time.Millisecond}.Request(string(stage) + "-faulty")
				result, err := s.Prove(t.Context(), r, func(p shared.Progress) {
					if p.Message != "" {
						messages = append(messages, p.Message)
					}
				})
				require.NoError(t, err)
				require.Equal(t, hosttest.ScriptedProof(r), result.Proof)
				require.NotEmpty(t, messages)
				require.Contains(t, messages[0], "ended")
				all.Wait()
				require.Equal(t, 2, hosttest.Attempts(state, r.ID))
			}
			st, err := s.Status(t.Context())
			require.NoError(t, err)
			require.EqualValues(t, 4*8, st.Completed)
			require.Zero(t, st.Failed)
		})
	}
}

// A plugin that ends itself, as one does that has lost its cards, is followed by another that proves what it had; its
// status and last words are in the log and in what the next caller may ask.
func TestPluginThatEndsItself(t *testing.T) {
	o, state := scriptedOptions(t)
	log := &logRecorder{}
	o.Logger = log.logger(hclog.Debug)
	s := hosttest.Supervise(t, o)
	first := s.State().PID
	r := hosttest.Script{Fault: hosttest.FaultExit, Stage: shared.StageDevice, Times: 1}.Request("r")
	prove(t, s, r)
	require.Equal(t, 2, hosttest.Attempts(state, r.ID))
	require.Equal(t, 1, s.State().Restarts)
	require.NotEqual(t, first, s.State().PID)
	var died *shared.PluginDiedError
	require.ErrorAs(t, s.State().LastEnd, &died)
	require.Equal(t, first, died.PID)
	require.Equal(t, "exit status 3", died.Status)
	require.Contains(t, died.Stderr, "a scripted end")
	require.NotNil(t, log.find("a scripted end"), "as it was written")
	require.Contains(t, log.find("the plugin has ended")["reason"], "exit status 3")
	require.Contains(t, log.find("the plugin has ended")["reason"], "a scripted end")
}

// A plugin that stands still is found by the probe, one that only makes no step forward by the progress watchdog.
func TestHungPlugin(t *testing.T) {
	for _, c := range []struct {
		fault hosttest.Fault
		set   func(*host.Supervision)
		says  string
	}{
		{hosttest.FaultStop, func(s *host.Supervision) { s.ProbeTimeout = 300 * time.Millisecond }, "did not answer within 300ms"},
		{hosttest.FaultStall, func(s *host.Supervision) { s.ProgressTimeout = 300 * time.Millisecond }, "a step forward within 300ms"},
	} {
		t.Run(string(c.fault), func(t *testing.T) {
			t.Parallel()
			o, _ := scriptedOptions(t)
			c.set(&o.Supervision)
			s := hosttest.Supervise(t, o)
			pid := s.State().PID
			prove(t, s, hosttest.Script{Fault: c.fault, Stage: shared.StageDevice, Times: 1}.Request("r"))
			require.False(t, hosttest.Running(pid))
			require.ErrorContains(t, s.State().LastEnd, c.says)
		})
	}
}

// A request that brings the plugin down each time is set aside after two deaths alone. Those that were at work beside it
// are proven, and not one of them is blamed.
func TestPoisonedRequestIsSetAside(t *testing.T) {
	for _, fault := range []hosttest.Fault{hosttest.FaultKill, hosttest.FaultStop} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			o, state := scriptedOptions(t)
			o.ProbeTimeout = 300 * time.Millisecond
			o.CrashLimit = 3 // the first death and two alone
			s := hosttest.Supervise(t, o)
			var all sync.WaitGroup
			for i := range 10 {
				all.Go(func() { prove(t, s, hosttest.Script{Work: 70 * time.Millisecond}.Request(fmt.Sprintf("good-%d", i))) })
			}
			poisoned := hosttest.Script{Fault: fault, Stage: shared.StageWitness}.Request("poisoned")
			_, err := s.Prove(t.Context(), poisoned, nil)
			var aside *shared.SetAsideError
			require.ErrorAs(t, err, &aside)
			require.Equal(t, 2, aside.Deaths)
			require.Equal(t, "poisoned", aside.RequestID)
			require.ErrorContains(t, err, "set aside")
			all.Wait()
			require.Equal(t, 3, hosttest.Attempts(state, "poisoned"))
			for i := range 10 {
				require.LessOrEqual(t, hosttest.Attempts(state, fmt.Sprintf("good-%d", i)), 2)
			}

			// Sent again, it is a new request.
			_, err = s.Prove(t.Context(), poisoned, nil)
			require.ErrorAs(t, err, &aside)
		})
	}
}

// Two poisons at once are told apart, and a request that the plugin dies on just as it comes is found too.
func TestSeveralPoisonedRequests(t *testing.T) {
	o, _ := scriptedOptions(t)
	s := hosttest.Supervise(t, o)
	var all sync.WaitGroup
	for i, stage := range []shared.Stage{shared.StageDecode, shared.StageDevice, shared.StageQueued} {
		all.Go(func() {
			_, err := s.Prove(t.Context(), hosttest.Script{Fault: hosttest.FaultExit, Stage: stage}.Request(fmt.Sprintf("poison-%d", i)), nil)
			var aside *shared.SetAsideError
			if !errors.As(err, &aside) {
				t.Errorf("%s: %v", stage, err)
			}
		})
	}
	for i := range 5 {
		all.Go(func() { prove(t, s, hosttest.Script{Work: 70 * time.Millisecond}.Request(fmt.Sprintf("good-%d", i))) })
	}
	all.Wait()
}

// A plugin that ends while a tool is at work in it says nothing about the request beside.
func TestToolsTakeTheBlame(t *testing.T) {
	o, _ := scriptedOptions(t)
	s := hosttest.Supervise(t, o)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		prove(t, s, hosttest.Script{Work: 300 * time.Millisecond}.Request("r"))
	}()
	var died *shared.PluginDiedError
	for range 4 {
		waitFor(t, func() bool {
			st, err := s.Status(t.Context())
			return err == nil && st.PID != 0 && len(st.Jobs) == 1 && st.Jobs[0].Partitions == 1
		})
		require.ErrorAs(t, s.Toolbox().Bench(t.Context(), shared.BenchRequest{Name: string(hosttest.FaultExit)}, func(string) {}), &died)
	}
	<-answered
}

// Critical requests do not wait for suspects of a lower priority.
func TestCriticalGoesBeforeSuspects(t *testing.T) {
	o, state := scriptedOptions(t)
	o.Backoff = 500 * time.Millisecond
	s := hosttest.Supervise(t, o)
	var all sync.WaitGroup
	all.Go(func() {
		prove(t, s, hosttest.Script{Work: time.Second, Fault: hosttest.FaultExit, Stage: shared.StageDevice, Times: 1}.Request("suspect"))
	})
	waitFor(t, func() bool { return s.State().Deaths == 1 })
	critical := hosttest.Script{}.Request("critical")
	critical.Priority = shared.PriorityCritical
	prove(t, s, critical)
	require.Equal(t, 1, hosttest.Attempts(state, "suspect"))
	all.Wait()
}

// Plugins that end one after the other, for no request's fault, are not started for ever. Requests are then refused with
// a typed error; those accepted before are proven when a plugin lives again.
func TestCrashLoop(t *testing.T) {
	o, _ := scriptedOptions(t)
	o.ConfigPath = writeConfig(t, "good")
	o.CrashLimit, o.CoolDown = 2, time.Second
	s := hosttest.Supervise(t, o)
	require.NoError(t, os.WriteFile(o.ConfigPath, []byte("fault"), 0o600))
	killPlugin(t, s, syscall.SIGKILL)
	waitFor(t, func() bool { return s.State().PID == 0 })
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		prove(t, s, hosttest.Script{}.Request("before"))
	}()
	waitFor(t, func() bool { return s.State().Refusing })
	var loop *host.CrashLoopError
	_, err := s.Submit(t.Context(), hosttest.Script{}.Request("during"))
	require.ErrorAs(t, err, &loop)
	require.ErrorIs(t, err, shared.ErrUnreachable)
	require.ErrorContains(t, err, "the configuration has a fault")
	require.GreaterOrEqual(t, loop.Deaths, 3)
	_, err = s.Toolbox().Verify(t.Context(), hosttest.Script{}.Request("r"), []byte("proof"))
	require.ErrorAs(t, err, &loop)
	st, err := s.Status(t.Context())
	require.NoError(t, err, "its status can be asked for meanwhile")
	require.Len(t, st.Jobs, 1)
	require.Equal(t, shared.StageQueued, st.Jobs[0].Stage)
	require.Zero(t, st.PID)

	require.NoError(t, os.WriteFile(o.ConfigPath, []byte("good"), 0o600))
	<-answered
	prove(t, s, hosttest.Script{}.Request("during"))
	require.Zero(t, s.State().Deaths)
}

// Errors that are the plugin's answer are passed on, once, and are no reason to try again.
func TestAnswersThatAreErrors(t *testing.T) {
	o, state := scriptedOptions(t)
	s := hosttest.Supervise(t, o)
	id, err := s.Submit(t.Context(), hosttest.Script{Fault: hosttest.FaultError, Stage: shared.StageDecode}.Request("r"))
	require.NoError(t, err)
	var invalid *shared.InvalidRequestError
	for range 2 {
		_, err = s.Await(t.Context(), id)
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, "vanilla[0]", invalid.Field)
	}
	require.Equal(t, 1, hosttest.Attempts(state, "r"))
	_, err = s.Prove(t.Context(), shared.Request{}, nil)
	require.ErrorAs(t, err, &invalid)
	_, err = s.Await(t.Context(), "nobody's")
	require.ErrorIs(t, err, shared.ErrUnknownJob)
	_, err = s.Cancel(t.Context(), "nobody's")
	require.ErrorIs(t, err, shared.ErrUnknownJob)
}

// The same request is one job; the same id with other content is refused while it is under way, and another job after.
func TestSameRequestIsOneJob(t *testing.T) {
	o, state := scriptedOptions(t)
	s := hosttest.Supervise(t, o)
	r := hosttest.Script{Work: 300 * time.Millisecond}.Request("r")
	other := hosttest.Script{Name: "other"}.Request("r")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { prove(t, s, r) })
		all.Go(func() {
			if _, err := s.Submit(t.Context(), r); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, func() bool { return hosttest.Attempts(state, "r") == 1 })
	var invalid *shared.InvalidRequestError
	_, err := s.Submit(t.Context(), other)
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "id", invalid.Field)
	all.Wait()
	prove(t, s, r)
	require.Equal(t, 1, hosttest.Attempts(state, "r"))
	prove(t, s, other)
	require.Equal(t, 2, hosttest.Attempts(state, "r"))
}

// A job ends with the context of the last Prove that waits for it, unless it was submitted too.
func TestCancellation(t *testing.T) {
	o, state := scriptedOptions(t)
	s := hosttest.Supervise(t, o)
	r := hosttest.Script{Fault: hosttest.FaultStall, Stage: shared.StageDevice}.Request("r")
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := s.Prove(ctx, r, nil)
			failed <- err
		}()
	}
	waitFor(t, func() bool { return hosttest.Attempts(state, "r") == 1 })
	cancel()
	require.ErrorIs(t, <-failed, shared.ErrCancelled)
	require.ErrorIs(t, <-failed, shared.ErrCancelled)
	waitFor(t, func() bool { st, err := s.Status(t.Context()); return err == nil && len(st.Jobs) == 0 })
	_, err := s.Await(t.Context(), "r")
	require.ErrorIs(t, err, shared.ErrCancelled)

	r.ID = "kept"
	ctx, cancel = context.WithCancel(t.Context())
	_, err = s.Submit(t.Context(), r)
	require.NoError(t, err)
	go func() {
		_, err := s.Prove(ctx, r, nil)
		failed <- err
	}()
	waitFor(t, func() bool { return hosttest.Attempts(state, "kept") == 1 })
	cancel()
	require.ErrorIs(t, <-failed, shared.ErrCancelled)
	wasRunning, err := s.Cancel(t.Context(), "kept")
	require.NoError(t, err)
	require.True(t, wasRunning)
	_, err = s.Await(t.Context(), "kept")
	require.ErrorIs(t, err, shared.ErrCancelled)
	wasRunning, err = s.Cancel(t.Context(), "kept")
	require.NoError(t, err)
	require.False(t, wasRunning)
}

// A deadline holds without a plugin too.
func TestDeadlineWithoutAPlugin(t *testing.T) {
	o, _ := scriptedOptions(t)
	o.Backoff, o.MaxBackoff = time.Hour, time.Hour
	s := hosttest.Supervise(t, o)
	killPlugin(t, s, syscall.SIGKILL)
	waitFor(t, func() bool { return s.State().PID == 0 })
	r := hosttest.Script{}.Request("r")
	r.Deadline = time.Now().Add(200 * time.Millisecond)
	_, err := s.Prove(t.Context(), r, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Toolbox().Verify(ctx, r, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	waiting := hosttest.Script{}.Request("waiting")
	waiting.Deadline = time.Now().Add(time.Hour)
	id, err := s.Submit(t.Context(), waiting)
	require.NoError(t, err)
	st, err := s.Status(t.Context())
	require.NoError(t, err)
	require.WithinDuration(t, waiting.Deadline, st.Jobs[0].Deadline, 0, "it is shown without a plugin too")
	wasRunning, err := s.Cancel(t.Context(), id)
	require.NoError(t, err)
	require.True(t, wasRunning)
	_, err = s.Await(t.Context(), id)
	require.ErrorIs(t, err, shared.ErrCancelled)
}

func TestTooManyRequests(t *testing.T) {
	o, _ := scriptedOptions(t)
	o.MaxRequests = 2
	s := hosttest.Supervise(t, o)
	stalled := hosttest.Script{Fault: hosttest.FaultStall, Stage: shared.StageDevice}
	for _, id := range []string{"a", "b"} {
		_, err := s.Submit(t.Context(), stalled.Request(id))
		require.NoError(t, err)
	}
	var busy *shared.BusyError
	_, err := s.Submit(t.Context(), stalled.Request("c"))
	require.ErrorAs(t, err, &busy)
	_, err = s.Cancel(t.Context(), "a")
	require.NoError(t, err)
	waitFor(t, func() bool { _, err := s.Submit(t.Context(), hosttest.Script{}.Request("c")); return err == nil })
}

// Stopping the supervisor ends every call with ErrStopped, in whatever state its request is.
func TestStopOfASupervisor(t *testing.T) {
	o, state := scriptedOptions(t)
	s := hosttest.Supervise(t, o)
	failed := make(chan error, 20)
	for i := range cap(failed) {
		go func() {
			_, err := s.Prove(context.Background(), hosttest.Script{Fault: hosttest.FaultStall, Stage: workStages[i%7]}.Request(fmt.Sprint(i)), nil)
			failed <- err
		}()
	}
	waitFor(t, func() bool { return hosttest.Attempts(state, "0") > 0 })
	require.NoError(t, s.Stop(t.Context()))
	for range cap(failed) {
		require.ErrorIs(t, <-failed, host.ErrStopped)
	}
	_, err := s.Submit(t.Context(), hosttest.Script{}.Request("late"))
	require.ErrorIs(t, err, host.ErrStopped)
	_, err = s.Status(t.Context())
	require.ErrorIs(t, err, host.ErrStopped)
	_, err = s.Timeline(t.Context())
	require.ErrorIs(t, err, host.ErrStopped)
	require.NoError(t, s.Stop(t.Context()))
}

// A supervisor whose first plugin does not start is none, and leaves nothing.
func TestSuperviseFails(t *testing.T) {
	o, _ := scriptedOptions(t)
	o.ConfigPath = writeConfig(t, "fault")
	o.Journal.Dir = t.TempDir()
	_, err := host.Supervise(t.Context(), o)
	require.ErrorContains(t, err, "the configuration has a fault")
	require.NoError(t, os.WriteFile(o.ConfigPath, nil, 0o600))
	s := hosttest.Supervise(t, o)
	second, _ := scriptedOptions(t)
	second.Journal.Dir = o.Journal.Dir
	_, err = host.Supervise(t.Context(), second)
	require.ErrorIs(t, err, journal.ErrInUse)
	require.NoError(t, s.Stop(t.Context()))
}

// With a journal, what a stopped supervisor had not answered is answered by the next, without a second proof of what was
// done; answers are there for those who ask again, until they are too old.
func TestJournalOutlivesTheSupervisor(t *testing.T) {
	o, state := scriptedOptions(t)
	o.Journal.Dir = t.TempDir()
	s := hosttest.Supervise(t, o)
	done := hosttest.Script{Name: "done"}.Request("done")
	prove(t, s, done)
	refused := hosttest.Script{Fault: hosttest.FaultError, Stage: shared.StageDecode}.Request("refused")
	_, err := s.Prove(t.Context(), refused, nil)
	require.Error(t, err)
	stalled := hosttest.Script{Fault: hosttest.FaultStall, Stage: shared.StageDevice, Times: 1}
	failed := make(chan error)
	go func() {
		_, err := s.Prove(t.Context(), stalled.Request("proving"), nil)
		failed <- err
	}()
	_, err = s.Submit(t.Context(), stalled.Request("submitted"))
	require.NoError(t, err)
	nameless := stalled.Request("")
	go func() {
		_, err := s.Prove(t.Context(), nameless, nil)
		failed <- err
	}()
	waitFor(t, func() bool {
		st, err := s.Status(t.Context())
		return err == nil && len(st.Jobs) == 3 && hosttest.Attempts(state, "submitted") == 1 && hosttest.Attempts(state, "proving") == 1
	})
	require.NoError(t, s.Stop(t.Context()))
	require.ErrorIs(t, <-failed, host.ErrStopped)
	require.ErrorIs(t, <-failed, host.ErrStopped)

	s = hosttest.Supervise(t, o)
	require.Empty(t, s.Damage())
	for _, id := range []string{"proving", "submitted"} {
		result, err := s.Await(t.Context(), shared.JobID(id))
		require.NoError(t, err)
		require.Equal(t, hosttest.ScriptedProof(stalled.Request(id)), result.Proof)
	}
	prove(t, s, done)
	require.Equal(t, 1, hosttest.Attempts(state, "done"))
	var invalid *shared.InvalidRequestError
	_, err = s.Await(t.Context(), "refused")
	require.ErrorAs(t, err, &invalid)
	st, err := s.Status(t.Context())
	require.NoError(t, err)
	require.Empty(t, st.Jobs, "what has no name is not kept")
	require.NoError(t, s.Stop(t.Context()))
	left, err := os.ReadDir(o.Journal.Dir + "/requests")
	require.NoError(t, err)
	require.Empty(t, left)
}

// Answers are kept as long as was asked for, and as many; what is dropped is dropped from the journal too.
func TestRetention(t *testing.T) {
	o, state := scriptedOptions(t)
	o.Journal = host.Journal{Dir: t.TempDir(), Retention: 300 * time.Millisecond}
	s := hosttest.Supervise(t, o)
	r := hosttest.Script{}.Request("r")
	prove(t, s, r)
	prove(t, s, r)
	require.Equal(t, 1, hosttest.Attempts(state, "r"))
	isForgotten := func(id shared.JobID) bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := s.Await(ctx, id)
		return errors.Is(err, shared.ErrUnknownJob)
	}
	waitFor(t, func() bool { return isForgotten("r") })
	require.NoError(t, s.Stop(t.Context()))
	s = hosttest.Supervise(t, o)
	require.True(t, isForgotten("r"))
	require.NoError(t, s.Stop(t.Context()))

	o.Journal.Retention, o.KeepAnswers = time.Second, 2
	s = hosttest.Supervise(t, o)
	for i := range 4 {
		prove(t, s, hosttest.Script{}.Request(fmt.Sprint(i)))
	}
	waitFor(t, func() bool { return isForgotten("1") })
	require.NoError(t, s.Stop(t.Context()))
}

// A clock that has jumped while the host was away does not drop an answer that nobody has asked for yet.
func TestClockJump(t *testing.T) {
	o, state := scriptedOptions(t)
	o.Journal = host.Journal{Dir: t.TempDir(), Retention: 2 * time.Hour}
	j, _, err := journal.Open(o.Journal.Dir, hosttest.Logger(t))
	require.NoError(t, err)
	for i, at := range []time.Time{time.Now().AddDate(0, 0, -1), time.Now().AddDate(0, 0, 1)} {
		r := hosttest.Script{}.Request(fmt.Sprint(i))
		digest, err := journal.DigestOf(&r)
		require.NoError(t, err)
		key, err := j.Accept(&r, digest)
		require.NoError(t, err)
		answer := journal.Answer{Result: shared.Result{RequestID: r.ID, Proof: hosttest.ScriptedProof(r)}, At: at}
		require.NoError(t, j.Finish(journal.Entry{Key: key, Request: r, Digest: digest}, answer))
	}
	require.NoError(t, j.Close())
	s := hosttest.Supervise(t, o)
	for i := range 2 {
		prove(t, s, hosttest.Script{}.Request(fmt.Sprint(i)))
		require.Zero(t, hosttest.Attempts(state, fmt.Sprint(i)))
	}
}

// A request that is too late when it comes is refused, and not written down; one that cannot make it, only if the host is
// told to. Who asks again for a proof that is there gets it, however late.
func TestTooLate(t *testing.T) {
	o, state := scriptedOptions(t)
	o.Journal.Dir = t.TempDir()
	s := supervise(t, o)
	late := hosttest.Script{}.Request("late")
	late.Deadline = time.Now().Add(-time.Minute)
	_, err := s.Submit(t.Context(), late)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "the deadline of request late passed 1m0")
	_, err = s.Await(t.Context(), "late")
	require.ErrorIs(t, err, shared.ErrUnknownJob)

	slow := hosttest.Script{Work: 300 * time.Millisecond}.Request("slow")
	prove(t, s, slow)
	slow.Deadline = time.Now().Add(-time.Minute)
	prove(t, s, slow)
	require.Equal(t, 1, hosttest.Attempts(state, "slow"))
	hopeless := hosttest.Script{Work: 300 * time.Millisecond}.Request("hopeless")
	hopeless.Deadline = time.Now().Add(100 * time.Millisecond)
	_, err = s.Prove(t.Context(), hopeless, nil)
	require.EqualError(t, err, shared.ErrLate.Error())
	require.Equal(t, 1, hosttest.Attempts(state, "hopeless"), "it was tried")
	require.NoError(t, s.Stop(t.Context()))

	o.Journal.Dir, o.RefuseHopeless = t.TempDir(), true
	s = supervise(t, o)
	hopeless.ID, hopeless.Deadline = "untold", time.Now().Add(100*time.Millisecond)
	_, err = s.Prove(t.Context(), hopeless, nil)
	require.EqualError(t, err, shared.ErrLate.Error(), "nobody knows yet how long they take")
	slow.ID, slow.Deadline = "slow-again", time.Now().Add(time.Minute)
	prove(t, s, slow)
	hopeless.ID, hopeless.Deadline = "refused", time.Now().Add(100*time.Millisecond)
	_, err = s.Prove(t.Context(), hopeless, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "the fastest of its kind and sector size took")
	require.Zero(t, hosttest.Attempts(state, "refused"))
	s.SetRefuseHopeless(false)
	hopeless.ID, hopeless.Deadline = "tried", time.Now().Add(100*time.Millisecond)
	_, err = s.Prove(t.Context(), hopeless, nil)
	require.EqualError(t, err, shared.ErrLate.Error())
	require.Equal(t, 1, hosttest.Attempts(state, "tried"))
	left, err := os.ReadDir(o.Journal.Dir + "/requests")
	require.NoError(t, err)
	require.Empty(t, left)
}

// A request whose deadline passed while the host was away is answered with that.
func TestDeadlinePassesWhileTheHostIsAway(t *testing.T) {
	o, state := scriptedOptions(t)
	o.Journal.Dir = t.TempDir()
	j, _, err := journal.Open(o.Journal.Dir, hosttest.Logger(t))
	require.NoError(t, err)
	r := hosttest.Script{}.Request("r")
	r.Deadline = time.Now().Add(-time.Minute)
	_, err = j.Accept(&r, journal.Digest{})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	s := hosttest.Supervise(t, o)
	_, err = s.Await(t.Context(), "r")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Zero(t, hosttest.Attempts(state, "r"))
}

// A damaged payload fails its request alone, by name.
func TestDamagedPayloadIsReported(t *testing.T) {
	o, state := scriptedOptions(t)
	o.Journal.Dir = t.TempDir()
	s := hosttest.Supervise(t, o)
	r := hosttest.Script{Fault: hosttest.FaultStall, Stage: shared.StageDevice, Times: 1}
	for _, id := range []string{"a", "b"} {
		_, err := s.Submit(t.Context(), r.Request(id))
		require.NoError(t, err)
	}
	waitFor(t, func() bool { return hosttest.Attempts(state, "a") == 1 && hosttest.Attempts(state, "b") == 1 })
	require.NoError(t, s.Stop(t.Context()))
	require.NoError(t, os.Truncate(o.Journal.Dir+"/requests/0000000000000001", 50))
	s = hosttest.Supervise(t, o)
	_, err := s.Await(t.Context(), "a")
	require.ErrorContains(t, err, "damaged")
	_, err = s.Await(t.Context(), "b")
	require.NoError(t, err)
}

// killPlugin sends a signal to the running plugin. (Process id 0 would be this test itself.)
func killPlugin(t testing.TB, s *host.Supervisor, signal syscall.Signal) {
	pid := s.State().PID
	require.Positive(t, pid)
	require.NoError(t, syscall.Kill(pid, signal))
}

func waitFor(t testing.TB, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
		time.Sleep(5 * time.Millisecond)
	}
}
