package shared

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The errors below keep their type across the plugin boundary: errors.As and errors.Is find them on the host's side as
// they do in the plugin. So do [context.Canceled] and [context.DeadlineExceeded]. Any other error keeps its text alone.

// InvalidRequestError says what is wrong with one field of a request. A request with several faults is refused with all
// of them at once: errors.As finds the first, [Faults] all.
type InvalidRequestError struct {
	Field  string // as the request names it, such as "randomness" or "vanilla[3].comm_r"
	Reason string
}

func (e *InvalidRequestError) Error() string {
	return "invalid request: " + e.fault()
}

func (e *InvalidRequestError) fault() string { return e.Field + ": " + e.Reason }

// maxFaults bounds how many faults are reported of one request.
const maxFaults = 32

// Faults collects what is wrong with a request. The zero value is ready for use.
type Faults []*InvalidRequestError

// Add notes a fault of a field. Beyond a bound that nobody reads to the end of, faults are dropped.
func (f *Faults) Add(field, format string, args ...any) {
	if len(*f) < maxFaults {
		*f = append(*f, &InvalidRequestError{Field: field, Reason: fmt.Sprintf(format, args...)})
	}
}

// Err is nil if there is no fault, the [*InvalidRequestError] if there is one, else the faults together.
func (f Faults) Err() error {
	switch len(f) {
	case 0:
		return nil
	case 1:
		return f[0]
	}
	return f
}

func (f Faults) Error() string {
	texts := make([]string, len(f))
	for i, e := range f {
		texts[i] = e.fault()
	}
	return "invalid request: " + strings.Join(texts, "; ")
}

// Unwrap gives each fault.
func (f Faults) Unwrap() []error {
	all := make([]error, len(f))
	for i, e := range f {
		all[i] = e
	}
	return all
}

// ParamsError says that a parameter file or verifying key is missing or wrong, and what the operator can do.
type ParamsError struct {
	Path   string
	Reason string
	Remedy string // a whole sentence; may be empty
}

func (e *ParamsError) Error() string {
	text := fmt.Sprintf("parameters %s: %s", e.Path, e.Reason)
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// ProofInvalidError says that a proof was made but does not verify, so it was withheld. The fault is the prover's or the
// hardware's, never the request's.
type ProofInvalidError struct {
	RequestID  string
	Partitions []int  // that do not verify, if it could be told which
	Detail     string // what is needed to reproduce it
}

func (e *ProofInvalidError) Error() string {
	text := "the proof made for request " + e.RequestID + " does not verify and was withheld"
	if len(e.Partitions) > 0 {
		text += fmt.Sprintf(" (partitions %v)", e.Partitions)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// BusyError says that a request was refused because something is used up: try again later.
type BusyError struct {
	Resource   string        // what is used up, such as "the queue"
	RetryAfter time.Duration // a guess; zero if there is none
}

func (e *BusyError) Error() string {
	text := "busy: " + e.Resource + " is used up"
	if e.RetryAfter > 0 {
		text += fmt.Sprintf("; try again in %v", e.RetryAfter)
	}
	return text
}

// TooLargeError says that a request was refused because it can never fit into the memory the prover may use, however
// long it waits: try again with a larger budget, or on another machine.
type TooLargeError struct {
	WantBytes   uint64
	BudgetBytes uint64
	Detail      string // the arithmetic in words, and what to do; may be empty
}

func (e *TooLargeError) Error() string {
	if e.Detail != "" {
		return "too large: " + e.Detail
	}
	return fmt.Sprintf("too large: %d bytes are needed, %d bytes are all that may be used", e.WantBytes, e.BudgetBytes)
}

// PluginDiedError says that the plugin process ended while, or before, it was needed.
type PluginDiedError struct {
	Path   string // of the plugin's program
	PID    int
	Status string   // how it ended, such as "exit status 2" or "signal: killed"
	Stderr []string // the lines that tell most of what it wrote last, oldest first
}

func (e *PluginDiedError) Error() string {
	text := fmt.Sprintf("the plugin process %s (pid %d) ended: %s", e.Path, e.PID, e.Status)
	if n := len(e.Stderr); n > 0 {
		text += "; it last wrote:\n\t" + strings.Join(e.Stderr, "\n\t")
	}
	return text
}

// SetAsideError says that a request was given up because the plugin ended, or hung, each time it worked on that request
// alone. It is kept from the plugin for the sake of the others; sent again, it is tried again.
type SetAsideError struct {
	RequestID string
	Deaths    int    // of plugins that had no other request
	Last      string // how the latest of them ended
}

func (e *SetAsideError) Error() string {
	return fmt.Sprintf("request %s was set aside: the plugin ended %d times while it worked on this request alone; the last time: %s",
		e.RequestID, e.Deaths, e.Last)
}

// ErrCancelled says that a request was cancelled, by its context or by [Prover.Cancel]. It is also a
// [context.Canceled].
var ErrCancelled = fmt.Errorf("cancelled: %w", context.Canceled)

// ErrLate says that a request was given up at its deadline. It is also a [context.DeadlineExceeded], which is what the
// other side of the boundary knows it as, with this text.
var ErrLate = fmt.Errorf("the deadline passed before the proof was done: %w", context.DeadlineExceeded)

// ErrUnreachable says that the connection to a plugin broke although its process may live.
var ErrUnreachable = errors.New("the plugin cannot be reached")

// ErrUnknownJob says that there is no such job: it never was, or its result is no longer kept.
var ErrUnknownJob = errors.New("unknown job")
