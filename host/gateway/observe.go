package gateway

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

const (
	// lookInterval is how often the prover is asked at most, however many want to know.
	lookInterval = time.Second
	// watchInterval is how often it is asked although nobody wants to know, so that no gap escapes the counters.
	watchInterval = 15 * time.Second
	// window is how much of the timeline is looked at: what the status page shows and efficiency is computed of.
	window = 10 * time.Minute
)

// view is what a prover did and does, as of one look at it.
type view struct {
	status    shared.Status
	recording timeline.Recording // of the window; its start has a reading of the monotonic clock, as of the first look at it
	report    timeline.Report    // of the recording
	err       error              // the prover could not be asked; the rest is older then
}

// observer asks a prover what it does, once for all who want to know.
type observer struct {
	prover shared.Prover
	log    hclog.Logger

	mu        sync.Mutex
	at        time.Time
	last      view
	known     knowledge
	complaint string                   // the latest
	gaps      map[gapKey]time.Duration // idle time of devices between device phases, since the start
	before    time.Time                // start of the recording that seen is about, with a reading of the monotonic clock
	seen      map[string]time.Duration // by device, the end of the latest gap that is counted
}

type gapKey struct {
	device string
	cause  timeline.Cause
}

// knowledge tells whether anything can have been recorded since.
type knowledge struct {
	pid               int
	jobs              int
	completed, failed uint64
}

func newObserver(prover shared.Prover, log hclog.Logger) *observer {
	return &observer{prover: prover, log: log, gaps: map[gapKey]time.Duration{}, seen: map[string]time.Duration{}}
}

// errNoPlugin is why a supervised prover does nothing for the moment.
var errNoPlugin = errors.New("no plugin process is running; the next is being started")

// look gives the present view.
func (o *observer) look(ctx context.Context) view {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.at) < lookInterval {
		return o.last
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status, err := o.prover.Status(ctx)
	if err == nil && status.PID == 0 {
		o.last.status, err = status, errNoPlugin
	}
	if err == nil {
		o.last.status = status
		now := knowledge{status.PID, len(status.Jobs), status.Completed, status.Failed}
		if now.jobs > 0 || now != o.known {
			o.complain(o.lookBack(ctx))
			o.known = now
		}
	}
	if ctx.Err() == context.Canceled {
		return view{status: o.last.status, recording: o.last.recording, report: o.last.report, err: err} // the caller's fault
	}
	o.last.err, o.at = err, time.Now()
	return o.last
}

// complain logs that the timeline cannot be had, once for each reason. All but the waterfall and the efficiency are had
// without it.
func (o *observer) complain(err error) {
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	if reason != o.complaint && reason != "" {
		o.log.Warn("the timeline cannot be had", "error", reason)
	}
	o.complaint = reason
}

// lookBack fetches the timeline, under mu.
func (o *observer) lookBack(ctx context.Context) error {
	recording, err := o.prover.Timeline(ctx)
	if err != nil {
		return err
	}
	if !o.before.Equal(recording.Start) {
		o.before = shared.AsOfNow(recording.Start)
		clear(o.seen)
	}
	recording.Start = o.before
	from := time.Since(recording.Start) - window
	old := slices.IndexFunc(recording.Events, func(e timeline.Event) bool { return e.Time >= from })
	if old < 0 {
		old = len(recording.Events)
	}
	recording.Events = recording.Events[old:]
	recording.Lost += uint64(old)
	o.last.recording, o.last.report = recording, timeline.Analyze(recording.Events)
	o.countGaps()
	return nil
}

// countGaps counts the gaps that ended since the last look, under mu. A gap that has ended does not change any more.
func (o *observer) countGaps() {
	for _, gpu := range o.last.report.GPUs {
		for _, gap := range gpu.Gaps {
			if gap.To <= o.seen[gpu.Name] {
				continue
			}
			o.seen[gpu.Name] = gap.To
			for cause, d := range gap.ByCause {
				o.gaps[gapKey{gpu.Name, timeline.Cause(cause)}] += d
			}
		}
	}
}

// gapsUntilNow gives the idle time of each device by cause.
func (o *observer) gapsUntilNow() map[gapKey]time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := make(map[gapKey]time.Duration, len(o.gaps))
	for k, d := range o.gaps {
		all[k] = d
	}
	return all
}

// watch looks now and then until ctx ends.
func (o *observer) watch(ctx context.Context) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			o.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}
