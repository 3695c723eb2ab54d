package cuda

import (
	"fmt"
	"strings"
)

// Kind is what sort of fault the library reports, by the numbers of
// interlock_cuda.h.
type Kind int

// The kinds of faults.
const (
	BadArgument  Kind = 1 // refused before any work: a damaged point of a key, or a bug
	OutOfMemory  Kind = 2 // of the card's memory, or of page-locked host memory
	NoDevice     Kind = 3 // no driver, a driver too old, or no such device
	DeviceFailed Kind = 4 // a launch or a copy failed; the device works on
	DeviceLost   Kind = 5 // nothing works on the device until the process is started anew
)

// String returns the words used in error messages.
func (k Kind) String() string {
	switch k {
	case BadArgument:
		return "refused"
	case OutOfMemory:
		return "out of memory"
	case NoDevice:
		return "no device"
	case DeviceFailed:
		return "the device failed"
	case DeviceLost:
		return "the device is lost until the process is started anew"
	}
	return fmt.Sprintf("unknown fault %d", int(k))
}

// Error is a fault of a device.
type Error struct {
	Kind     Kind
	Device   string // as the configuration names it
	Doing    string // what was being done, to what
	CUDACode int    // cudaError_t; 0 if the fault came from elsewhere
	Message  string // the library's

	// Of OutOfMemory, where it is known: what was wanted and what was there.
	BytesAsked, BytesFree int64
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	if e.Device != "" {
		fmt.Fprintf(&b, "%s: ", e.Device)
	}
	if e.Doing != "" {
		fmt.Fprintf(&b, "%s: ", e.Doing)
	}
	b.WriteString(e.Kind.String())
	if e.Kind == OutOfMemory && e.BytesAsked > 0 {
		fmt.Fprintf(&b, ": %d bytes wanted", e.BytesAsked)
		if e.BytesFree > 0 { // else it is not known
			fmt.Fprintf(&b, ", %d free", e.BytesFree)
		}
	}
	if e.Message != "" {
		fmt.Fprintf(&b, ": %s", e.Message)
	}
	if e.CUDACode != 0 {
		fmt.Fprintf(&b, " (CUDA error %d)", e.CUDACode)
	}
	return b.String()
}

// Problem is why the library cannot be used.
type Problem int

// The problems of a library.
const (
	LibraryMissing      Problem = iota + 1 // there is none, or the loader refuses it
	LibraryOtherVersion                    // it is not the version that this program was built for
	DriverMissing                          // it found no driver, or one that is too old
)

// LibraryError says why the library cannot be used and what to do about it.
type LibraryError struct {
	Problem Problem
	Path    string // the file, or the name by which the loader was asked for it
	Reason  string
	Remedy  string
	Err     error // nil if there is none beneath
}

// Error implements error.
func (e *LibraryError) Error() string {
	return fmt.Sprintf("%s: %s (%s)", e.Path, e.Reason, e.Remedy)
}

// Unwrap returns the error beneath.
func (e *LibraryError) Unwrap() error { return e.Err }
