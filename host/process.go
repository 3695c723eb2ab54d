package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"
)

// process is the process of a plugin, in the form that go-plugin wants ([runner.Runner]). It is go-plugin's own runner
// but for three things: the process's standard input is a lifeline that ends with the host, its exit is known at once
// and not only after the last writer to its pipes has gone, and a kill can be put off.
type process struct {
	cmd      *exec.Cmd
	stdout   *os.File
	stderr   *os.File
	lifeline *os.File   // the host's end; never written to
	theirs   []*os.File // the process's ends, closed here once it has them

	drained chan struct{} // closed when standard error has been read to its end
	exited  chan struct{} // closed when the process has ended
	exitErr error         // set before exited is closed

	mu      sync.Mutex
	pid     int // 0 until there is a process
	killed  bool
	patient bool // go-plugin's Kill is to wait for the end that it asked for
}

var _ runner.Runner = (*process)(nil)

// pipeGrace is how long after a process's end its pipes are read. They end with the process unless something that it
// started keeps them open.
const pipeGrace = 200 * time.Millisecond

// newProcess prepares the process of cmd, which has its program, arguments and environment, and nothing else.
func newProcess(cmd *exec.Cmd) (p *process, err error) {
	p = &process{cmd: cmd, drained: make(chan struct{}), exited: make(chan struct{})}
	defer func() {
		if err != nil {
			p.closeFiles()
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	var stdin, stdout, stderr *os.File
	stdin, p.lifeline = pipe()
	p.stdout, stdout = pipe()
	p.stderr, stderr = pipe()
	p.theirs = []*os.File{stdin, stdout, stderr}
	if err != nil {
		return nil, fmt.Errorf("pipes for the plugin process: %w", err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	// A process that stands still cannot see its lifeline end. The signal, which comes at the latest with the host's end,
	// has it go on; to any other it means nothing.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGCONT}
	return p, nil
}

// Start starts the process and the goroutine that waits for its end.
func (p *process) Start(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := errors.New("killed before it was started")
	if !p.killed {
		err = p.cmd.Start()
	}
	if err != nil {
		p.closeFiles()
		return err
	}
	p.pid = p.cmd.Process.Pid
	for _, f := range p.theirs {
		_ = f.Close()
	}
	go func() {
		p.exitErr = p.cmd.Wait()
		close(p.exited)
		deadline := time.Now().Add(pipeGrace)
		_ = p.stdout.SetReadDeadline(deadline)
		_ = p.stderr.SetReadDeadline(deadline)
		_ = p.lifeline.Close()
	}()
	return nil
}

func (p *process) closeFiles() {
	for _, f := range append(p.theirs, p.lifeline, p.stdout, p.stderr) {
		_ = f.Close() // a nil file says so, which is as good
	}
}

// id is the process id, 0 if there never was a process.
func (p *process) id() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pid
}

// kill ends the process at once, or keeps it from starting.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed = true
	if p.pid != 0 {
		_ = p.cmd.Process.Kill() // fails only if the process has ended
	}
}

// bePatient makes Kill wait.
func (p *process) bePatient() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.patient = true
}

// Kill is called by go-plugin: when a start failed, and two seconds after it asked a plugin to end. How long a plugin
// may take for that is for the instance to say, which then kills it itself.
func (p *process) Kill(context.Context) error {
	p.mu.Lock()
	patient := p.patient
	p.mu.Unlock()
	if patient {
		<-p.exited
	} else {
		p.kill()
	}
	return nil
}

// status says how the process ended.
func (p *process) status() string {
	<-p.exited
	return p.cmd.ProcessState.String()
}

// wasKilled tells whether it was this host that ended the process.
func (p *process) wasKilled() bool {
	<-p.exited
	p.mu.Lock()
	defer p.mu.Unlock()
	status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return p.killed && ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// Wait waits for the process's end.
func (p *process) Wait(context.Context) error {
	<-p.exited
	return p.exitErr
}

// Stdout is read by go-plugin, for the handshake.
func (p *process) Stdout() io.ReadCloser { return quietReader{p.stdout, func() {}} }

// Stderr is read by go-plugin, for the log.
func (p *process) Stderr() io.ReadCloser {
	return quietReader{p.stderr, sync.OnceFunc(func() { close(p.drained) })}
}

// Name is how go-plugin names the plugin's logger.
func (p *process) Name() string { return p.cmd.Args[0] }

// ID is the process id.
func (p *process) ID() string {
	if pid := p.id(); pid != 0 {
		return strconv.Itoa(pid)
	}
	return ""
}

// Diagnose adds nothing: how the process ended and what it wrote says more than go-plugin's guesses.
func (p *process) Diagnose(context.Context) string { return "" }

// PluginToHost leaves addresses as they are, as host and plugin share one machine.
func (p *process) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin leaves addresses as they are.
func (p *process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// quietReader closes a pipe at its end, and takes the deadline of one that outlives its process for the end.
type quietReader struct {
	*os.File
	atEnd func()
}

func (r quietReader) Read(b []byte) (int, error) {
	n, err := r.File.Read(b)
	if err != nil {
		_ = r.Close()
		r.atEnd()
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, os.ErrClosed) {
			err = io.EOF
		}
	}
	return n, err
}
