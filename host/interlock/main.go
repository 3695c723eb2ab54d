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
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
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

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, s streams) int {
	root := newRootCommand(s)
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errReported):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintf(s.err, "interlock: %v\nSee '%s --help'.\n", err, command.CommandPath())
		return exitWrongUse
	default:
		fmt.Fprintf(s.err, "interlock: %v\n", err)
		return exitFailed
	}
}
