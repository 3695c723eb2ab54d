package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"

	"github.com/interlock-prover/interlock/shared"
)

// killTimeout is how long a killed process may take to go. One that a driver holds in the kernel may take for ever.
const killTimeout = 5 * time.Second

// instance is one plugin from its start to its end: its process, the connection to it, and the calls it carries. It
// ends once; what keeps a plugin running beyond that makes a new one.
type instance struct {
	path    string // of the plugin's program
	process *process
	plugin  *plugin.Client // go-plugin's side of it
	client  *shared.Client
	tail    *tail
	sockets *socketDir

	detached *detached // the process if it is a detached one; the four above are nil then

	// life ends with the process or when it is told to stop. Its cause is what calls then fail with:
	// *shared.PluginDiedError or ErrStopped.
	life context.Context
	end  context.CancelCauseFunc

	watching    sync.WaitGroup // for the process's end
	log         hclog.Logger
	stopTimeout time.Duration
	stopOnce    sync.Once
	gone        chan struct{} // closed when the process has ended and nothing of it is left, once stop was called
}

// startInstance starts a plugin and waits until it answers. ctx bounds the start alone.
func startInstance(ctx context.Context, o Options) (*instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cmd := exec.Command(o.PluginPath, o.Args...)
	if o.PluginSHA256 != "" {
		program, err := openProgram(o.PluginPath, o.PluginSHA256)
		if err != nil {
			return nil, err
		}
		defer program.close()
		cmd.Path = program.path()
	}
	process, err := newProcess(cmd)
	if err != nil {
		return nil, err
	}
	sockets, err := newSocketDir()
	if err != nil {
		process.closeFiles()
		return nil, err
	}
	i := &instance{path: o.PluginPath, process: process, tail: &tail{}, sockets: sockets, log: o.Logger, stopTimeout: o.StopTimeout, gone: make(chan struct{})}
	i.life, i.end = context.WithCancelCause(context.Background())

	i.plugin = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  shared.Handshake,
		Plugins:          shared.Plugins(nil),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         true,
		StartTimeout:     o.StartTimeout,
		Logger:           o.Logger,
		Stderr:           i.tail,
		SyncStdout:       logWriter(o.Logger, "stdout"),
		SyncStderr:       logWriter(o.Logger, "stderr"),
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: sockets.path},
		RunnerFunc: func(_ hclog.Logger, spec *exec.Cmd, _ string) (runner.Runner, error) {
			cmd.Env = append(append(spec.Env, o.environment()...), o.Env...)
			return process, nil
		},
	})
	if err := i.connect(ctx); err != nil {
		err = i.startError(ctx, err, o.StartTimeout)
		process.kill()
		_ = i.stop(context.Background())
		return nil, err
	}
	i.watching.Go(i.watch)
	return i, nil
}

// connect starts the process and waits for its first answer, at most until ctx ends.
func (i *instance) connect(ctx context.Context) error {
	stop := context.AfterFunc(ctx, i.process.kill) // go-plugin starts without a context
	err := i.handshake(ctx)
	if !stop() {
		return context.Cause(ctx)
	}
	return err
}

func (i *instance) handshake(ctx context.Context) error {
	protocol, err := i.plugin.Client()
	if err != nil {
		return err
	}
	dispensed, err := protocol.Dispense(shared.PluginName)
	if err != nil {
		return err
	}
	i.client = dispensed.(*shared.Client)
	i.client.SharePayloads(i.notShared)
	return i.client.Ping(ctx)
}

// notShared says that large requests take the slower way to the plugin.
func (i *instance) notShared(err error) {
	i.log.Warn("large requests are streamed to the plugin, as shared memory does not work", "error", err)
}

// startError says why a start failed.
func (i *instance) startError(ctx context.Context, err error, timeout time.Duration) error {
	if ctx.Err() != nil {
		return fmt.Errorf("starting the plugin %s: %w", i.path, context.Cause(ctx))
	}
	if i.process.id() != 0 {
		select {
		case <-i.process.exited:
			if died := i.died(); !i.process.wasKilled() {
				return fmt.Errorf("starting the plugin: %w", died)
			}
		case <-time.After(pipeGrace):
		}
	}
	if lines := i.tail.lines(); len(lines) > 0 {
		err = fmt.Errorf("%w; it last wrote:\n\t%s", err, strings.Join(lines, "\n\t"))
	}
	return fmt.Errorf("starting the plugin %s, which has %v for it (start_timeout): %w", i.path, timeout, err)
}

// pid is the number of the process.
func (i *instance) pid() int {
	if i.detached != nil {
		return i.detached.pid
	}
	return i.process.id()
}

// kill ends the process at once.
func (i *instance) kill() {
	if i.detached != nil {
		i.detached.signal(syscall.SIGKILL)
		return
	}
	i.process.kill()
}

// detach ends the instance, and leaves the process as it is.
func (i *instance) detach() {
	i.end(ErrStopped)
	i.detached.close()
	i.watching.Wait()
}

// watch ends the instance's life when its process ends.
func (i *instance) watch() {
	<-i.process.exited
	i.end(i.died())
}

// died describes the end of the process, which has ended.
func (i *instance) died() *shared.PluginDiedError {
	if d := i.detached; d != nil {
		return &shared.PluginDiedError{Path: i.path, PID: d.pid, Status: d.status, Stderr: d.lines()}
	}
	select {
	case <-i.process.drained:
	case <-time.After(2 * pipeGrace):
	}
	return &shared.PluginDiedError{
		Path:   i.path,
		PID:    i.process.id(),
		Status: i.process.status(),
		Stderr: i.tail.lines(),
	}
}

// call passes a call to the plugin. If the plugin ends meanwhile, the call fails with the reason of that.
func (i *instance) call(ctx context.Context, call func(context.Context, *shared.Client) error) error {
	if i.life.Err() != nil {
		return context.Cause(i.life)
	}
	callCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(i.life, cancel)()
	err := call(callCtx, i.client)
	if err == nil {
		return nil
	}
	if errors.Is(err, shared.ErrUnreachable) {
		// A broken connection is often seen before the end of the process that broke it.
		select {
		case <-i.life.Done():
		case <-ctx.Done():
		case <-time.After(4 * pipeGrace):
		}
	} else if !errors.Is(err, context.Canceled) {
		return err // the plugin's own answer
	}
	if i.life.Err() != nil && ctx.Err() == nil {
		return context.Cause(i.life)
	}
	return err
}

// stop ends the plugin and waits until nothing of it is left. It gives the plugin time until ctx or stopTimeout ends,
// whichever is first, then kills it.
func (i *instance) stop(ctx context.Context) error {
	i.end(ErrStopped)
	i.stopOnce.Do(func() {
		if i.detached != nil {
			go func() {
				defer close(i.gone)
				i.detached.signal(syscall.SIGTERM)
				<-i.detached.exited
				i.detached.close()
				i.watching.Wait()
			}()
			return
		}
		i.process.bePatient()
		go func() {
			defer close(i.gone)
			i.plugin.Kill() // which asks first
			i.watching.Wait()
			i.sockets.remove()
		}()
	})
	timeout := time.NewTimer(i.stopTimeout)
	defer timeout.Stop()
	select {
	case <-i.gone:
		return nil
	case <-ctx.Done():
	case <-timeout.C:
	}
	i.kill()
	select {
	case <-i.gone:
		return fmt.Errorf("the plugin process %d did not end in time and was killed", i.pid())
	case <-time.After(killTimeout):
		return fmt.Errorf("the plugin process %d was killed but has not ended: the system holds it", i.pid())
	}
}

// logWriter brings home what the plugin prints without its logger.
func logWriter(logger hclog.Logger, name string) io.Writer {
	return logger.Named(name).StandardWriter(&hclog.StandardLoggerOptions{InferLevels: true})
}
