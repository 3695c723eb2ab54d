package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/interlock-prover/interlock/shared"
)

// progress shows how far a long task is: a bar on a terminal, a line for each
// step elsewhere.
type progress struct {
	title string
	out   io.Writer
	tty   bool

	mu    sync.Mutex
	last  shared.Progress
	bars  *mpb.Progress
	bar   *mpb.Bar
	lines time.Time // when the last line was written
}

// lineInterval bounds how often a line is written for the same stage.
const lineInterval = 2 * time.Second

func newProgress(out io.Writer, title string) *progress {
	return &progress{title: title, out: out, tty: isTerminal(out)}
}

// report is a progress function for the prover.
func (p *progress) report(now shared.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.last
	p.last = now
	if p.tty {
		p.draw(now)
		return
	}
	if now.Stage == before.Stage && now.PartitionsDone == before.PartitionsDone && time.Since(p.lines) < lineInterval {
		return
	}
	p.lines = time.Now()
	fmt.Fprintf(p.out, "%s: %s\n", p.title, describe(now))
}

// describe is one line about a step.
func describe(now shared.Progress) string {
	text := string(now.Stage)
	if now.Partition >= 0 && now.Partitions > 1 {
		text += fmt.Sprintf(" of partition %d", now.Partition)
	}
	if now.Partitions > 0 {
		text += fmt.Sprintf(", %d of %d done", now.PartitionsDone, now.Partitions)
	}
	if now.Message != "" {
		text += ", " + now.Message
	}
	if left, known := timeLeft(now); known {
		text += fmt.Sprintf(", about %s left", round(left))
	}
	return fmt.Sprintf("%s (%s)", text, round(now.Elapsed))
}

// timeLeft guesses from the partitions done how long the others take.
func timeLeft(now shared.Progress) (left time.Duration, known bool) {
	if now.PartitionsDone == 0 || now.PartitionsDone >= now.Partitions {
		return 0, false
	}
	return now.Elapsed / time.Duration(now.PartitionsDone) * time.Duration(now.Partitions-now.PartitionsDone), true
}

func (p *progress) draw(now shared.Progress) {
	if p.bar == nil {
		p.bars = mpb.New(mpb.WithOutput(p.out), mpb.WithWidth(40))
		p.bar = p.bars.AddBar(0,
			mpb.PrependDecorators(decor.Name(p.title+" ")),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
				p.mu.Lock()
				defer p.mu.Unlock()
				return describe(p.last)
			})),
			mpb.BarRemoveOnComplete(),
		)
	}
	p.bar.SetTotal(int64(max(now.Partitions, 1)), false)
	p.bar.SetCurrent(int64(now.PartitionsDone))
}

// close ends the display; the bar goes away, whatever became of the task.
func (p *progress) close() {
	p.mu.Lock()
	bars, bar := p.bars, p.bar
	p.mu.Unlock()
	if bar == nil {
		return
	}
	bar.Abort(true)
	bars.Wait()
}
