package params

import "strings"

// Error says what is wrong with a parameter file or key file, and what the user
// can do about it.
type Error struct {
	Path   string
	Reason string // what is wrong
	Remedy string // what to do; may be empty
	Err    error  // underlying error; may be nil
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Path)
	b.WriteString(": ")
	b.WriteString(e.Reason)
	if e.Remedy != "" {
		b.WriteString(" (")
		b.WriteString(e.Remedy)
		b.WriteString(")")
	}
	return b.String()
}

// Unwrap implements errors.Unwrap.
func (e *Error) Unwrap() error { return e.Err }

const remedyReplace = "replace the file: fetch it again, or set it up again if it is a development one"
