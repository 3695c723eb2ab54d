package timeline

import (
	"bufio"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Text lines are TIMELINE,<ms>,<event>,<request>,<detail>: milliseconds since the recorder's start with three decimals,
// and a detail of key=value pairs between spaces. Requests and values are percent-encoded as in URL paths, so that none
// holds a comma, a space or a line break. The first line says when the recorder was started:
//
//	TIMELINE,0.000,RECORDER_START,,wall=2026-03-01T12:00:00.5Z lost=0
//	TIMELINE,12.340,GPU_START,sector-7,partition=3 gpu=H200 worker=1
const (
	linePrefix    = "TIMELINE,"
	recorderStart = "RECORDER_START"
)

// WriteText writes the recording as text lines. Times are cut to microseconds.
func (r Recording) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%s0.000,%s,,", linePrefix, recorderStart)
	if !r.Start.IsZero() {
		fmt.Fprintf(out, "wall=%s ", r.Start.UTC().Format(time.RFC3339Nano))
	}
	fmt.Fprintf(out, "lost=%d\n", r.Lost)
	for _, e := range r.Events {
		micros := e.Time.Microseconds()
		fmt.Fprintf(out, "%s%d.%03d,%s,%s,%s\n", linePrefix, micros/1000, micros%1000, e.Kind, url.PathEscape(e.Request), e.detail())
	}
	return out.Flush()
}

func (e Event) detail() string {
	var pairs []string
	if e.Partition != None {
		pairs = append(pairs, "partition="+strconv.Itoa(int(e.Partition)))
	}
	if e.GPU != "" {
		pairs = append(pairs, "gpu="+url.PathEscape(e.GPU))
	}
	if e.Worker != None {
		pairs = append(pairs, "worker="+strconv.Itoa(int(e.Worker)))
	}
	return strings.Join(pairs, " ")
}

// Parse reads text lines, as WriteText writes them, out of a file that may hold other lines too, such as a log. A
// line that begins with TIMELINE, and cannot be read is an error that names the line's number.
func Parse(r io.Reader) (Recording, error) {
	var rec Recording
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	number := 1
	for ; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if !strings.HasPrefix(line, linePrefix) {
			continue
		}
		if err := rec.parseLine(line); err != nil {
			return Recording{}, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return Recording{}, fmt.Errorf("line %d: reading timeline: %w", number, err)
	}
	return rec, nil
}

func (r *Recording) parseLine(line string) error {
	fields := strings.SplitN(line, ",", 5)
	if len(fields) != 5 {
		return fmt.Errorf("%d fields in %q, want TIMELINE,<ms>,<event>,<request>,<detail>", len(fields), line)
	}
	at, err := parseMillis(fields[1])
	if err != nil {
		return err
	}
	request, err := url.PathUnescape(fields[3])
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if fields[2] == recorderStart {
		return r.parseHeader(fields[4])
	}
	e := Event{Time: at, Request: request, Partition: None, Worker: None}
	if e.Kind, err = ParseKind(fields[2]); err != nil {
		return err
	}
	err = eachPair(fields[4], func(key, value string) (err error) {
		switch key {
		case "partition":
			e.Partition, err = parseNumber(value)
		case "worker":
			e.Worker, err = parseNumber(value)
		case "gpu":
			e.GPU, err = url.PathUnescape(value)
		}
		return err
	})
	if err != nil {
		return err
	}
	r.Events = append(r.Events, e)
	return nil
}

func (r *Recording) parseHeader(detail string) error {
	return eachPair(detail, func(key, value string) (err error) {
		switch key {
		case "wall":
			r.Start, err = time.Parse(time.RFC3339Nano, value)
		case "lost":
			r.Lost, err = strconv.ParseUint(value, 10, 64)
		}
		return err
	})
}

// eachPair calls visit for each key=value of detail; an unknown key is for visit to pass over, so that later versions
// may add some.
func eachPair(detail string, visit func(key, value string) error) error {
	for _, pair := range strings.Fields(detail) {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return fmt.Errorf("detail %q: want key=value", pair)
		}
		if err := visit(key, value); err != nil {
			return fmt.Errorf("detail %q: %w", pair, err)
		}
	}
	return nil
}

func parseNumber(s string) (int32, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0, err
	}
	if n < 0 {
		return 0, fmt.Errorf("%d is negative", n)
	}
	return int32(n), nil
}

// maxMillis keeps every time within a time.Duration: 200 years.
const maxMillis = 200 * 365 * 24 * 3600 * 1000

func parseMillis(s string) (time.Duration, error) {
	ms, err := strconv.ParseFloat(s, 64)
	if err != nil || !(ms >= 0 && ms <= maxMillis) {
		return 0, fmt.Errorf("time %q: want milliseconds since the recorder's start", s)
	}
	return time.Duration(ms*1000+0.5) * time.Microsecond, nil
}
