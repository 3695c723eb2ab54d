package host

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

const (
	tailLines     = 20
	tailLineBytes = 1 << 10
)

// tail keeps the lines of a plugin's standard error that tell most about its end: the first of a crash's, else the last.
type tail struct {
	mu      sync.Mutex
	partial []byte
	last    []string
	crash   []string // from the line on that announces a crash
}

// Write takes output piece by piece; it never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range p {
		if c == '\n' {
			t.add(string(t.partial))
			t.partial = t.partial[:0]
		} else if len(t.partial) < tailLineBytes {
			t.partial = append(t.partial, c)
		}
	}
	return len(p), nil
}

func (t *tail) add(line string) {
	text, isLog := readable(line)
	if isLog {
		t.crash = nil // what looked like a crash was survived
	}
	if t.last = append(t.last, text); len(t.last) > tailLines {
		t.last = slices.Delete(t.last, 0, 1)
	}
	if (len(t.crash) > 0 || announcesCrash(line)) && len(t.crash) < tailLines {
		t.crash = append(t.crash, text)
	}
}

// announcesCrash knows the first lines of Go's own reports of a crash.
func announcesCrash(line string) bool {
	for _, prefix := range []string{"panic: ", "fatal error: ", "runtime: ", "SIG", "unexpected fault address"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

// lines gives what was kept, oldest first.
func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.crash) > 0 {
		return slices.Clone(t.crash)
	}
	lines := slices.Clone(t.last)
	if len(t.partial) > 0 {
		lines = append(lines, string(t.partial))
	}
	return lines
}

// readable turns a line of hclog's JSON into the text that hclog would print; other lines stay as they are.
func readable(line string) (text string, isLog bool) {
	var fields map[string]any
	if json.Unmarshal([]byte(line), &fields) != nil || fields["@message"] == nil {
		return line, false
	}
	text = fmt.Sprintf("[%s] ", strings.ToUpper(fmt.Sprint(fields["@level"])))
	if module := fields["@module"]; module != nil {
		text += fmt.Sprint(module, ": ")
	}
	text += fmt.Sprint(fields["@message"])
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !strings.HasPrefix(key, "@") {
			text += fmt.Sprintf(" %s=%v", key, fields[key])
		}
	}
	return text, true
}
