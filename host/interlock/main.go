// Command interlock is the operator's tool: it proves, verifies, looks after
// parameters and shows what a run did. It holds no proving code. Whatever needs
// circuits is done by the plugin process, interlock-prover, which it starts
// through the host library.
//
// Exit codes: 0 done, 1 failed, 2 wrong use. Progress goes to standard error,
// results to standard output or to the file named with -o.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/interlock-prover/interlock/shared"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal ends the command in order, the second one at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

// Exit codes, on which scripts depend.
const (
	exitDone     = 0
	exitFailed   = 1
	exitWrongUse = 2
)

// usageError is wrong use: a flag or argument that cannot be.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

func wrongUse(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errReported ends a command that has failed and has said so already.
var errReported = errors.New("reported")

// asUsage makes a fault of a request that stems from the command line wrong use.
// What a file says is not.
func asUsage(err error) error {
	var invalid *shared.InvalidRequestError
	if errors.As(err, &invalid) && !strings.HasPrefix(invalid.Field, "vanilla") {
		return usageError{err}
	}
	return err
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, s streams) int {
	out := &checkedWriter{w: s.out}
	s.out = out
	root := newRootCommand(s)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if err == nil && out.err != nil {
		err = fmt.Errorf("writing the result: %w", out.err)
	}
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errReported):
		return exitFailed
	case errors.As(err, &usage):
		text := err.Error()
		if !strings.HasPrefix(text, "interlock ") { // it names the command already
			text = "interlock: " + text
		}
		fmt.Fprintf(s.err, "%s\nSee '%s --help'.\n", text, command.CommandPath())
		return exitWrongUse
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintf(s.err, "%s was interrupted\n", command.CommandPath())
		return exitFailed
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Fprintf(s.err, "interlock: gave up: %v\n", err)
		return exitFailed
	default:
		fmt.Fprintf(s.err, "interlock: %v\n", err)
		return exitFailed
	}
}

// checkedWriter remembers that a write failed: a command whose result did not
// arrive has failed, whoever looked at the error.
type checkedWriter struct {
	w   io.Writer
	err error
}

func (c *checkedWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if err != nil && c.err == nil {
		c.err = err
	}
	return n, err
}
