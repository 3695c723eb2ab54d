package timeline

import (
	"cmp"
	"slices"
	"time"
)

// interval is a phase that began and ended.
type interval struct {
	from, to time.Duration
	event    Event // of the start
}

// byTime gives the events in the order of their times; those of one time stay in the order they were recorded.
func byTime(events []Event) []Event {
	sorted := slices.Clone(events)
	slices.SortStableFunc(sorted, func(a, b Event) int { return cmp.Compare(a.Time, b.Time) })
	return sorted
}

// intervals pairs starts with their ends in events, which are in order. What had begun before the recording, or has not
// ended in it, is left out. The result is ordered by end.
func intervals(events []Event) []interval {
	open := map[Event][]time.Duration{}
	var done []interval
	for _, e := range events {
		key := e
		key.Time = 0
		switch {
		case e.Kind.isStart():
			open[key] = append(open[key], e.Time)
		case e.Kind.isEnd():
			key.Kind--
			starts := open[key]
			if len(starts) == 0 {
				continue
			}
			last := len(starts) - 1
			open[key] = starts[:last]
			done = append(done, interval{from: starts[last], to: e.Time, event: key})
		}
	}
	return done
}

// union merges intervals that touch or overlap.
func union(all []interval) []interval {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	var merged []interval
	for _, i := range all {
		if last := len(merged) - 1; last >= 0 && i.from <= merged[last].to {
			merged[last].to = max(merged[last].to, i.to)
			continue
		}
		merged = append(merged, i)
	}
	return merged
}

// usage says how much of a span of time was used.
func usage(all []interval) Usage {
	merged := union(all)
	if len(merged) == 0 {
		return Usage{}
	}
	u := Usage{Span: merged[len(merged)-1].to - merged[0].from}
	for _, i := range merged {
		u.Busy += i.to - i.from
	}
	return u
}

func filter(all []interval, kind Kind, gpu string) []interval {
	var some []interval
	for _, i := range all {
		if i.event.Kind == kind && i.event.GPU == gpu {
			some = append(some, i)
		}
	}
	return some
}
