package timeline

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// phaseLetters are the phases that a waterfall shows.
var phaseLetters = map[Kind]byte{
	SynthStart: 's', MemoryWaitStart: 'm', ParamsStart: 'w', PrepareStart: 'p', GPUStart: '#', FinishStart: 'f', VerifyStart: 'v',
}

const waterfallLegend = "s synthesis  m waiting for memory  w waiting for parameters  p prepare  # device phase  f finish  v verify"

// WriteWaterfall draws the recording for a terminal: time to the right in columns characters, a line for each GPU
// that shows how much of a column it was busy ('#' nearly all, '+' half or more, '.' less), then a line for each of its
// workers, and those of the CPU, with the phase that took most of the column.
func (r Recording) WriteWaterfall(w io.Writer, columns int) error {
	events := byTime(r.Events)
	if len(events) == 0 || columns < 1 {
		_, err := fmt.Fprintln(w, "no events")
		return err
	}
	from, to := events[0].Time, events[len(events)-1].Time
	rows := map[waterfallRow][]interval{}
	for _, i := range intervals(events) {
		e := i.event
		if phaseLetters[e.Kind] == 0 {
			continue
		}
		row := waterfallRow{e.GPU, e.Worker}
		rows[row] = append(rows[row], i)
		if e.Kind == GPUStart {
			whole := waterfallRow{e.GPU, None}
			rows[whole] = append(rows[whole], i)
		}
	}
	width := 0
	order := make([]waterfallRow, 0, len(rows))
	for row := range rows {
		order = append(order, row)
		width = max(width, len(row.name()))
	}
	slices.SortFunc(order, func(a, b waterfallRow) int {
		return cmp.Or(cmp.Compare(a.gpu, b.gpu), cmp.Compare(a.worker, b.worker))
	})
	out := bufio.NewWriter(w)
	for _, row := range order {
		fmt.Fprintf(out, "%-*s |%s|\n", width, row.name(), row.draw(rows[row], from, to, columns))
	}
	length := seconds(to - from)
	fmt.Fprintf(out, "%*s  0%*s\n%s\n", width, "", max(columns-1, len(length)+1), length, waterfallLegend)
	return out.Flush()
}

// waterfallRow is a worker, or a whole GPU where worker is None.
type waterfallRow struct {
	gpu    string
	worker int32
}

func (row waterfallRow) name() string {
	switch {
	case row.gpu == "" && row.worker == None:
		return "requests"
	case row.gpu == "":
		return fmt.Sprintf("cpu %d", row.worker)
	case row.worker == None:
		return row.gpu
	}
	return fmt.Sprintf("%s worker %d", row.gpu, row.worker)
}

func (row waterfallRow) draw(all []interval, from, to time.Duration, columns int) string {
	var line strings.Builder
	for c := range columns {
		a := from + (to-from)*time.Duration(c)/time.Duration(columns)
		b := from + (to-from)*time.Duration(c+1)/time.Duration(columns)
		line.WriteByte(row.letter(share(all, a, b), b-a))
	}
	return line.String()
}

// share says how much of the time from a to b each kind of phase took.
func share(all []interval, a, b time.Duration) map[Kind]time.Duration {
	took := map[Kind]time.Duration{}
	for _, i := range all {
		if d := min(i.to, b) - max(i.from, a); d > 0 {
			took[i.event.Kind] += d
		}
	}
	return took
}

func (row waterfallRow) letter(took map[Kind]time.Duration, column time.Duration) byte {
	if row.gpu != "" && row.worker == None {
		switch busy := took[GPUStart]; {
		case busy >= column*9/10 && busy > 0:
			return '#'
		case busy*2 >= column && busy > 0:
			return '+'
		case busy > 0:
			return '.'
		}
		return ' '
	}
	letter, longest := byte(' '), time.Duration(0)
	for k := RequestStart; k.isStart(); k += 2 { // in a fixed order, so that a tie is always drawn alike
		if took[k] > longest {
			letter, longest = phaseLetters[k], took[k]
		}
	}
	return letter
}
