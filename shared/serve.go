package shared

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Plugin is what a plugin process serves.
type Plugin interface {
	Prover
	Toolbox
	// Close ends all jobs and gives back every resource. It is called once, after the last call has returned.
	Close() error
}

// Environment is what the host tells a plugin when it starts it.
type Environment struct {
	ConfigPath string // empty: built-in defaults
	ParamsDir  string // goes before the configuration's; empty: as configured
	NoPreload  bool   // load nothing before it is needed, whatever the configuration says
	Logger     hclog.Logger
}

// ErrHostGone is the cause with which a plugin's context ends when its host went away without stopping it.
var ErrHostGone = errors.New("the host has gone away")

var errTerminated = errors.New("told to terminate by a signal")

// closeTimeout is how long a plugin without a host may take to end.
const closeTimeout = 5 * time.Second

// Serve is the main function of a plugin process: it checks that a host started it, opens the plugin, serves it until
// the host has enough or has gone away, closes it, and gives the exit code.
//
// Until open returns, nothing may be written to standard output: go-plugin's handshake goes there. What is written to
// the logger, to standard error or, later, to standard output reaches the host's log. The context given to open ends
// when the plugin is to end; its cause is [ErrHostGone] if nobody is left to hear of it.
//
// A plugin outlives its host only if it is to, see [EnvDetach]. Else the host holds the other end of the plugin's standard
// input, and the system closes that however the host dies. (The parent-death signal of Linux is bound to the thread that started the process, which
// in a Go program may end long before the program does.)
func Serve(open func(context.Context, Environment) (Plugin, error)) (exitCode int) {
	if os.Getenv(Handshake.MagicCookieKey) != Handshake.MagicCookieValue {
		fmt.Fprintf(os.Stderr, "%s is a plugin that a sealing host starts; to prove from the command line, use \"interlock prove\".\n",
			filepath.Base(os.Args[0]))
		return 1
	}
	// With the host gone, a write to its pipes must be an error, not the end: there is something left to close.
	signal.Ignore(syscall.SIGPIPE)
	level := hclog.LevelFromString(os.Getenv(EnvLogLevel))
	if level == hclog.NoLevel {
		level = hclog.Info
	}
	logger := hclog.New(&hclog.LoggerOptions{Level: level, Output: os.Stderr, JSONFormat: true})

	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	defer watchSignals(end)()
	if os.Getenv(EnvLifeline) == "stdin" {
		watchLifeline(end)
	}

	implementation, err := open(ctx, Environment{
		ConfigPath: os.Getenv(EnvConfig),
		ParamsDir:  os.Getenv(EnvParams),
		NoPreload:  os.Getenv(EnvPreload) == "no",
		Logger:     logger,
	})
	if err != nil {
		logger.Error("the plugin cannot start", "error", err)
		return 1
	}
	defer removeSocketDir()
	var calls callCounter
	if dir := os.Getenv(EnvDetach); dir != "" {
		if err := serveDetached(ctx, end, dir, implementation, &calls, logger); err != nil {
			logger.Error("the plugin cannot serve", "error", err)
			end(err)
		}
		return finish(ctx, end, implementation, &calls, logger)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: Handshake,
		Plugins:         Plugins(implementation),
		Logger:          logger.Named("go-plugin"),
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			server := newServer(append(options, calls.options()...)...)
			context.AfterFunc(ctx, server.Stop)
			return server
		},
	})
	return finish(ctx, end, implementation, &calls, logger)
}

// finish closes a plugin that is not served any more.
func finish(ctx context.Context, end context.CancelCauseFunc, implementation Plugin, calls *callCounter, logger hclog.Logger) (exitCode int) {
	// Serving is over and every call's context has ended: let the calls return before what they use is closed.
	calls.wait()
	if cause := context.Cause(ctx); cause != nil {
		logger.Warn("the plugin ends", "reason", cause)
	}
	end(nil)
	if err := implementation.Close(); err != nil {
		logger.Error("closing the plugin", "error", err)
		return 1
	}
	return 0
}

// removeSocketDir removes the directory that the host made for the socket, in case the host cannot do it any more. It is
// empty by now.
func removeSocketDir() {
	if dir := os.Getenv(plugin.EnvUnixSocketDir); dir != "" {
		_ = os.Remove(dir)
	}
}

// watchSignals ends the plugin in order when it is told to terminate.
func watchSignals(end context.CancelCauseFunc) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	stopped := make(chan struct{})
	go func() {
		select {
		case <-signals:
			end(errTerminated)
		case <-stopped:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(stopped)
	}
}

// watchLifeline ends the plugin when its standard input does. Its goroutine lives as long as the process.
func watchLifeline(end context.CancelCauseFunc) {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // an error is as good as the end
		end(ErrHostGone)
		time.Sleep(closeTimeout)
		removeSocketDir()
		os.Exit(1) // whatever is holding the plugin up, nobody is left to end it
	}()
}

// callCounter knows the calls that have not returned. (gRPC could wait for them itself, but go-plugin stops its server
// from inside a call, which would then wait for itself.)
type callCounter struct {
	mu    sync.Mutex
	calls sync.WaitGroup
	over  bool
}

func (c *callCounter) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.calls.Add(1)
	}
	return !c.over
}

// wait waits for all calls to return, and refuses new ones.
func (c *callCounter) wait() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.calls.Wait()
}

func (c *callCounter) options() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
			if !c.enter() {
				return nil, grpc.ErrServerStopped
			}
			defer c.calls.Done()
			defer recoverCall(info.FullMethod, &err)
			return handler(ctx, request)
		}),
		grpc.ChainStreamInterceptor(func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
			if !c.enter() {
				return grpc.ErrServerStopped
			}
			defer c.calls.Done()
			defer recoverCall(info.FullMethod, &err)
			return handler(server, stream)
		}),
	}
}

// recoverCall, deferred, makes a panic of one call that call's error: the others, and the process, go on.
func recoverCall(method string, err *error) {
	if value := recover(); value != nil {
		*err = status.Errorf(codes.Internal, "%s: a bug in the plugin: panic: %v\n%s", method, value, debug.Stack())
	}
}
