package hosttest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/sharedtest"
)

// Script is what a scripted plugin does with one request, see [OpenScripted].
type Script struct {
	Work  time.Duration // that the request takes, once it has its turn
	Fault Fault         // what happens meanwhile; empty: nothing
	Stage shared.Stage  // at which it happens
	Times int           // at so many first attempts; 0: at all
	Name  string        // makes requests differ
}

// Fault is something that goes wrong.
type Fault string

// What can go wrong.
const (
	FaultKill  Fault = "kill"  // the plugin is killed, as by the system when memory runs out
	FaultAbort Fault = "abort" // it aborts, as a driver does
	FaultPanic Fault = "panic" // a goroutine panics
	FaultExit  Fault = "exit"  // it says that it ends, and exits with status 3
	FaultStop  Fault = "stop"  // all of it stands still
	FaultStall Fault = "stall" // the request alone stands still
	FaultError Fault = "error" // the request is refused
)

// EnvState names the environment variable with a scripted plugin's directory. Plugins of the same host share it: attempts
// are counted there, and proofs noted, see [Attempts] and [Proven].
const EnvState = "INTERLOCK_TEST_STATE"

// Request makes a window PoSt request that a scripted plugin does as the script says.
func (s Script) Request(id string) shared.Request {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // a Script has nothing that JSON cannot have
	}
	return shared.Request{
		ID: id, Kind: shared.KindWindowPoSt, SectorSize: shared.SectorSize2KiB, Randomness: make([]byte, 32), Vanilla: [][]byte{text},
	}
}

// ScriptedProof is the only proof of a request that counts as valid: 192 bytes that depend on all its vanilla proofs.
func ScriptedProof(r shared.Request) []byte {
	var proof []byte
	for i := byte(0); len(proof) < 192; i++ {
		sum := sha256.New()
		sum.Write([]byte{i})
		for _, v := range r.Vanilla {
			sum.Write(v)
		}
		proof = sum.Sum(proof)
	}
	return proof
}

// Attempts tells how often plugins with a state directory began to work on a request.
func Attempts(stateDir, id string) int {
	data, err := os.ReadFile(filepath.Join(stateDir, id+".attempts"))
	if err != nil {
		return 0
	}
	return len(data)
}

// Proven tells how often plugins with a state directory proved each request.
func Proven(stateDir string) map[string]int {
	counts := map[string]int{}
	data, err := os.ReadFile(filepath.Join(stateDir, "proven"))
	if err != nil {
		return counts
	}
	for id := range strings.FieldsSeq(string(data)) {
		counts[id]++
	}
	return counts
}

// OpenScripted opens a plugin that proves nothing, in the way of a real one: requests go through all stages, two at a
// time from the witness on, and what goes wrong is what their [Script] says. It ends when asked to, except when its
// configuration has the text "hang".
func OpenScripted(_ context.Context, env shared.Environment) (shared.Plugin, error) {
	var config []byte
	if env.ConfigPath != "" {
		var err error
		if config, err = os.ReadFile(env.ConfigPath); err != nil {
			return nil, err
		}
	}
	if strings.Contains(string(config), "fault") {
		return nil, errors.New("the configuration has a fault")
	}
	p := &scripted{state: os.Getenv(EnvState), turns: make(chan struct{}, 2), jobs: map[string]shared.JobStatus{}, submitted: map[shared.JobID]*submission{}}
	return &sharedtest.Mock{
		OnProve:  p.prove,
		OnSubmit: p.submit,
		OnAwait:  p.await,
		OnCancel: p.cancel,
		OnStatus: func(context.Context) (shared.Status, error) { return p.status(string(config)), nil },
		OnVerify: func(_ context.Context, r shared.Request, proof []byte) (bool, error) {
			return bytes.Equal(proof, ScriptedProof(r)), nil
		},
		OnBench: func(_ context.Context, r shared.BenchRequest, _ func(string)) error {
			return happen(context.Background(), Fault(r.Name))
		},
		OnClose: func() error {
			if strings.Contains(string(config), "hang") {
				select {}
			}
			return nil
		},
	}, nil
}

type scripted struct {
	state string // directory; empty: none
	turns chan struct{}

	mu        sync.Mutex
	jobs      map[string]shared.JobStatus
	submitted map[shared.JobID]*submission
}

// submission is a request that was submitted.
type submission struct {
	cancel context.CancelFunc
	done   chan struct{}
	result shared.Result // from here: written before done is closed
	err    error
}

func (p *scripted) submit(_ context.Context, r shared.Request) (shared.JobID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := shared.JobID(r.ID)
	if old := p.submitted[id]; old != nil {
		return "", &shared.InvalidRequestError{Field: "id", Reason: "a request " + r.ID + " is already there"}
	}
	ctx, cancel := context.WithCancel(context.Background())
	j := &submission{cancel: cancel, done: make(chan struct{})}
	p.submitted[id] = j
	go func() {
		defer close(j.done)
		j.result, j.err = p.prove(ctx, r, func(progress shared.Progress) {
			p.mu.Lock()
			defer p.mu.Unlock()
			status := p.jobs[r.ID]
			status.Stage = progress.Stage
			p.jobs[r.ID] = status
		})
	}()
	return id, nil
}

func (p *scripted) await(ctx context.Context, id shared.JobID) (shared.Result, error) {
	p.mu.Lock()
	j := p.submitted[id]
	p.mu.Unlock()
	if j == nil {
		return shared.Result{}, shared.ErrUnknownJob
	}
	select {
	case <-j.done:
		return j.result, j.err
	case <-ctx.Done():
		return shared.Result{}, ctx.Err()
	}
}

func (p *scripted) cancel(_ context.Context, id shared.JobID) (bool, error) {
	p.mu.Lock()
	j := p.submitted[id]
	p.mu.Unlock()
	if j == nil {
		return false, shared.ErrUnknownJob
	}
	select {
	case <-j.done:
		return false, nil
	default:
		j.cancel()
		return true, nil
	}
}

func (p *scripted) status(version string) shared.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := shared.Status{Version: version, PID: os.Getpid(), Devices: []shared.DeviceStatus{{Name: "scripted", Partition: -1}}}
	for _, j := range p.jobs {
		st.Jobs = append(st.Jobs, j)
	}
	return st
}

func (p *scripted) prove(ctx context.Context, r shared.Request, progress func(shared.Progress)) (shared.Result, error) {
	p.mu.Lock()
	_, isDuplicate := p.jobs[r.ID]
	if !isDuplicate {
		p.jobs[r.ID] = shared.JobStatus{ID: shared.JobID(r.ID), RequestID: r.ID, Kind: r.Kind, Stage: shared.StageDecode, Partitions: 1}
	}
	p.mu.Unlock()
	if isDuplicate {
		return shared.Result{}, &shared.InvalidRequestError{Field: "id", Reason: "a request " + r.ID + " is already under way"}
	}
	defer func() {
		p.mu.Lock()
		delete(p.jobs, r.ID)
		p.mu.Unlock()
	}()
	attempt, err := p.note(r.ID+".attempts", ".")
	if err != nil {
		return shared.Result{}, err
	}
	var script Script // what is no script has no fault
	_ = json.Unmarshal(r.Vanilla[0], &script)
	if script.Times > 0 && attempt > script.Times {
		script.Fault = ""
	}
	stages := []shared.Stage{
		shared.StageDecode, shared.StageParams, shared.StageQueued, shared.StageWitness, shared.StagePrepare, shared.StageDevice,
		shared.StageFinish, shared.StageVerify,
	}
	for _, stage := range stages {
		progress(shared.Progress{RequestID: r.ID, Stage: stage, Partitions: 1})
		if stage == script.Stage {
			if err := happen(ctx, script.Fault); err != nil {
				return shared.Result{}, err
			}
		}
		if stage == shared.StageQueued {
			select {
			case p.turns <- struct{}{}:
				defer func() { <-p.turns }()
			case <-ctx.Done():
				return shared.Result{}, shared.ErrCancelled
			}
			continue
		}
		select {
		case <-time.After(script.Work / 7):
		case <-ctx.Done():
			return shared.Result{}, shared.ErrCancelled
		}
	}
	if _, err := p.note("proven", r.ID+"\n"); err != nil {
		return shared.Result{}, err
	}
	return shared.Result{RequestID: r.ID, Proof: ScriptedProof(r), Partitions: 1}, nil
}

// note adds a text to a file of the state directory, and gives the file's length then.
func (p *scripted) note(name, text string) (length int, err error) {
	if p.state == "" {
		return 1, nil
	}
	f, err := os.OpenFile(filepath.Join(p.state, name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	_, err = f.WriteString(text)
	info, statErr := f.Stat()
	if err := errors.Join(err, statErr, f.Close()); err != nil {
		return 0, err
	}
	return int(info.Size()), nil
}

// happen lets a fault happen. It returns if that leaves something to return to.
func happen(ctx context.Context, f Fault) error {
	self := func(s syscall.Signal) error { return syscall.Kill(os.Getpid(), s) }
	switch f {
	case "":
		return nil
	case FaultKill:
		_ = self(syscall.SIGKILL)
		select {}
	case FaultAbort:
		_ = self(syscall.SIGABRT)
		select {}
	case FaultExit:
		_, _ = syscall.Write(syscall.Stderr, []byte("a scripted end\n")) // os.Stderr is a pipe of go-plugin's, and lost
		os.Exit(3)
	case FaultPanic:
		go func() { panic("a scripted panic") }()
		select {}
	case FaultStop:
		_ = self(syscall.SIGSTOP) // which may take a moment
		<-ctx.Done()
		return shared.ErrCancelled
	case FaultStall:
		<-ctx.Done()
		return shared.ErrCancelled
	case FaultError:
		return &shared.InvalidRequestError{Field: "vanilla[0]", Reason: "is scripted to be refused"}
	}
	return fmt.Errorf("no fault %q is known", f)
}
