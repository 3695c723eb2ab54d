package host_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/shared"
)

// A chaos run is a client, which is the test; hosts with a journal, one after the other; their plugins; and a monkey that
// hits processes at random. The number of requests and the seed can be set.
const (
	chaosRequestsEnv = "INTERLOCK_CHAOS_REQUESTS"
	chaosSeedEnv     = "INTERLOCK_CHAOS_SEED"
	chaosDetachEnv   = "CHAOS_DETACH" // for the hosts: plugins outlive them
	chaosPluginEnv   = "CHAOS_PLUGIN" // for the hosts: the plugin's program instead of a scripted one,
	chaosParamsEnv   = "CHAOS_PARAMS" // its parameter directory
	chaosConfigEnv   = "CHAOS_CONFIG" // and its configuration file
)

// chaosDetachIdle is how long a real plugin that is detached waits for the next host.
const chaosDetachIdle = 20 * time.Second

// Whatever is hit when: every request is answered exactly once, with its proof; none that was answered is proven again;
// none that was accepted has to be sent again; and no process and no file is left.
func TestChaos(t *testing.T) { chaos(t) }

// The same with plugins that outlive their hosts.
func TestChaosDetached(t *testing.T) {
	t.Setenv(chaosDetachEnv, "1")
	chaos(t)
}

func chaos(t *testing.T) {
	n, seed := envInt(t, chaosRequestsEnv, 20), envInt(t, chaosSeedEnv, int(time.Now().UnixNano()&0xffffff))
	t.Logf("%s=%d %s=%d", chaosRequestsEnv, n, chaosSeedEnv, seed)
	random := rand.New(rand.NewPCG(uint64(seed), 0))

	world := newChaosWorld(t)
	requests := make([]shared.Request, n)
	for i := range requests {
		s := hosttest.Script{Work: time.Duration(20+random.IntN(80)) * time.Millisecond, Name: strconv.Itoa(i)}
		if random.IntN(3) == 0 {
			s.Times = 1
			s.Stage = workStages[random.IntN(len(workStages))]
			s.Fault = []hosttest.Fault{
				hosttest.FaultKill, hosttest.FaultAbort, hosttest.FaultExit, hosttest.FaultPanic, hosttest.FaultStop,
			}[random.IntN(5)]
		}
		requests[i] = s.Request(fmt.Sprintf("chaos-%d", i))
	}

	monkey := make(chan struct{})
	go func() {
		defer close(monkey)
		world.monkey(random)
	}()
	var clients sync.WaitGroup
	places := make(chan struct{}, 20) // requests under way at once
	for _, r := range requests {
		places <- struct{}{}
		clients.Go(func() {
			defer func() { <-places }()
			world.client(r)
		})
	}
	clients.Wait()
	close(world.calm)
	<-monkey
	world.finish(requests)
}

// A host is killed while 20 requests run, some of them answered. The next answers all, and proves none again whose proof
// the first had written down.
func TestHostKilled(t *testing.T) {
	world := newChaosWorld(t)
	var clients sync.WaitGroup
	var requests []shared.Request
	for i := range 20 {
		r := hosttest.Script{Work: 150 * time.Millisecond, Name: strconv.Itoa(i)}.Request(fmt.Sprintf("r%d", i))
		requests = append(requests, r)
		clients.Go(func() { world.client(r) })
	}
	answered := func() int {
		world.mu.Lock()
		defer world.mu.Unlock()
		return len(world.answered)
	}
	waitFor(t, func() bool { return answered() >= 6 })
	h := world.host
	world.hit("host killed", h.cmd.Process.Pid, syscall.SIGKILL)
	<-h.ended
	t.Logf("killed after %d answers", answered())
	world.startHost()
	clients.Wait()
	world.finish(requests)
	proofs := 0
	for _, n := range hosttest.Proven(world.state) {
		proofs += n
	}
	require.LessOrEqual(t, proofs, 20+2, "at most what was proven and not yet written down, on the two places of the plugin")
}

// chaosWorld is what a chaos run shares.
type chaosWorld struct {
	t              *testing.T
	dir, journal   string
	state, sockets string
	program        string                  // of the hosts: this one, or another build of it
	env            func(host int) []string // what a host gets besides, by its number from 1 on
	hosts          int                     // started
	calm           chan struct{}           // closed when all is answered
	mu             sync.Mutex
	changed        chan struct{}
	host           *chaosHost
	answered       map[string]string // id to proof
	provenAt       map[string]int    // how often a request had been proven when its answer came
	plugins        map[int]bool      // process ids ever seen
	kills          map[string]int
}

func newChaosWorld(t *testing.T) *chaosWorld {
	self, err := os.Executable()
	require.NoError(t, err)
	return newChaosWorldWith(t, self, func(int) []string { return nil })
}

func newChaosWorldWith(t *testing.T, program string, env func(host int) []string) *chaosWorld {
	dir := t.TempDir()
	sockets, err := os.MkdirTemp("", "chaos") // short enough for a socket's path
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	w := &chaosWorld{
		program: program, env: env,
		t: t, dir: dir, journal: filepath.Join(dir, "journal"), state: filepath.Join(dir, "state"), sockets: sockets,
		calm: make(chan struct{}), changed: make(chan struct{}), answered: map[string]string{}, provenAt: map[string]int{},
		plugins: map[int]bool{}, kills: map[string]int{},
	}
	require.NoError(t, os.Mkdir(w.state, 0o700))
	w.startHost()
	return w
}

// chaosHost is a process of runJournalingHost.
type chaosHost struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended chan struct{}

	mu      sync.Mutex
	waiting map[string]chan chaosReply // by request id
}

type chaosCall struct {
	Request *shared.Request // to be submitted; nil: its answer is awaited
	ID      string
}

type chaosReply struct {
	ID       string
	Accepted bool
	Proof    string
	Error    string
}

// runJournalingHost is a host that does what its standard input says, until that ends.
func runJournalingHost() int {
	dir := os.Getenv("CHAOS_DIR")
	self, err := os.Executable()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	o := host.SupervisorOptions{
		Options: host.Options{
			PluginPath: self, StartTimeout: 5 * time.Second, // the monkey stops starting ones too
			Logger: hclog.New(&hclog.LoggerOptions{Output: log, Level: hclog.Trace}),
			Env:    []string{roleEnv + "=scripted", hosttest.EnvState + "=" + filepath.Join(dir, "state"), "GORACE=atexit_sleep_ms=0"},
		},
		Supervision: host.Supervision{
			ProbeInterval: 100 * time.Millisecond, ProbeTimeout: time.Second, Backoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond,
			Attempts: 10, // the monkey hits those that are alone too, and they are not to blame
		},
		Journal: host.Journal{Dir: filepath.Join(dir, "journal")},
		Detach:  os.Getenv(chaosDetachEnv) != "",
	}
	if program := os.Getenv(chaosPluginEnv); program != "" {
		o.PluginPath, o.ParamsDir, o.ConfigPath, o.Env = program, os.Getenv(chaosParamsEnv), os.Getenv(chaosConfigEnv), nil
		o.StartTimeout, o.ProbeTimeout = time.Minute, 30*time.Second // it needs the CPUs
		o.DetachIdle = chaosDetachIdle
	}
	s, err := host.Supervise(context.Background(), o)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	var mu sync.Mutex
	reply := func(r chaosReply) {
		line, err := json.Marshal(r)
		if err != nil {
			panic(err)
		}
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(string(line))
	}
	reply(chaosReply{})
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var call chaosCall
		if err := json.Unmarshal(lines.Bytes(), &call); err != nil {
			fmt.Println(err)
			return 1
		}
		go func() {
			if call.Request != nil {
				if _, err := s.Submit(context.Background(), *call.Request); err != nil {
					reply(chaosReply{ID: call.ID, Error: err.Error()})
				} else {
					reply(chaosReply{ID: call.ID, Accepted: true})
				}
				return
			}
			result, err := s.Await(context.Background(), shared.JobID(call.ID))
			if err != nil {
				reply(chaosReply{ID: call.ID, Error: err.Error()})
			} else {
				reply(chaosReply{ID: call.ID, Proof: hex.EncodeToString(result.Proof)})
			}
		}()
	}
	if err := s.Stop(context.Background()); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// startHost starts the next host and waits until it is ready.
func (w *chaosWorld) startHost() {
	h := &chaosHost{cmd: exec.Command(w.program), ended: make(chan struct{}), waiting: map[string]chan chaosReply{}}
	w.hosts++
	h.cmd.Env = append(append(os.Environ(), roleEnv+"=journaling host", "CHAOS_DIR="+w.dir, "TMPDIR="+w.sockets), w.env(w.hosts)...)
	var stderr bytes.Buffer
	h.cmd.Stderr = &stderr
	var err error
	h.in, err = h.cmd.StdinPipe()
	require.NoError(w.t, err)
	out, err := h.cmd.StdoutPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, h.cmd.Start())
	ready := make(chan struct{})
	go func() {
		defer close(h.ended)
		isReady := false
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var reply chaosReply
			if err := json.Unmarshal(lines.Bytes(), &reply); err != nil {
				w.t.Errorf("the host said: %s", lines.Text())
				continue
			}
			if !isReady {
				isReady = true
				close(ready)
				continue
			}
			h.mu.Lock()
			if waiting := h.waiting[reply.ID]; waiting != nil {
				waiting <- reply
			}
			h.mu.Unlock()
		}
		if _ = h.cmd.Wait(); stderr.Len() > 0 {
			w.t.Errorf("the host complained: %s", stderr.String())
		}
	}()
	select {
	case <-ready:
	case <-h.ended:
		w.t.Error("a host did not start")
	}
	w.mu.Lock()
	w.host = h
	close(w.changed)
	w.changed = make(chan struct{})
	w.mu.Unlock()
}

// call calls a host. It fails if the host ends meanwhile.
func (h *chaosHost) call(c chaosCall) (chaosReply, bool) {
	waiting := make(chan chaosReply, 1)
	h.mu.Lock()
	h.waiting[c.ID] = waiting
	line, err := json.Marshal(c)
	if err == nil {
		_, err = h.in.Write(append(line, '\n'))
	}
	h.mu.Unlock()
	if err == nil {
		select {
		case reply := <-waiting:
			return reply, true
		case <-h.ended:
		}
	}
	select {
	case reply := <-waiting:
		return reply, true
	default:
		return chaosReply{}, false
	}
}

// client sends a request until it is accepted, and then only asks for its answer.
func (w *chaosWorld) client(r shared.Request) {
	isAccepted := false
	for {
		w.mu.Lock()
		h, changed := w.host, w.changed
		w.mu.Unlock()
		c := chaosCall{ID: r.ID}
		if !isAccepted {
			c.Request = &r
		}
		reply, ok := h.call(c)
		switch {
		case !ok:
			<-changed // for the next host
		case reply.Error != "":
			w.t.Errorf("%s: %s", r.ID, reply.Error)
			return
		case reply.Accepted:
			isAccepted = true
		default:
			w.mu.Lock()
			if w.answered[r.ID] != "" {
				w.t.Errorf("%s was answered twice", r.ID)
			}
			w.answered[r.ID] = reply.Proof
			w.provenAt[r.ID] = w.proven(r.ID)
			w.mu.Unlock()
			return
		}
	}
}

// monkey hits processes until all is answered. Between two hits it leaves time for at least one answer.
func (w *chaosWorld) monkey(random *rand.Rand) {
	before := -1
	for {
		select {
		case <-w.calm:
			return
		case <-time.After(time.Duration(20+random.IntN(200)) * time.Millisecond):
		}
		w.mu.Lock()
		h, answered := w.host, len(w.answered)
		w.mu.Unlock()
		plugin := w.plugin(h)
		if plugin != 0 {
			w.mu.Lock()
			w.plugins[plugin] = true
			w.mu.Unlock()
		}
		if answered == before {
			continue
		}
		before = answered
		switch random.IntN(5) {
		case 4:
			w.hit("plugin terminated", plugin, syscall.SIGTERM)
		case 0:
			w.hit("plugin killed", plugin, syscall.SIGKILL)
		case 1:
			w.hit("plugin stopped", plugin, syscall.SIGSTOP)
		case 2:
			w.hit("plugin stopped, then host killed", plugin, syscall.SIGSTOP)
			fallthrough
		case 3:
			w.hit("host killed", h.cmd.Process.Pid, syscall.SIGKILL)
			<-h.ended
			w.startHost()
		}
	}
}

// plugin gives the running plugin, or 0.
func (w *chaosWorld) plugin(h *chaosHost) int {
	if os.Getenv(chaosDetachEnv) == "" {
		return childOf(h.cmd.Process.Pid)
	}
	if pid := detachedPID(w.journal); pid > 0 && hosttest.Running(pid) {
		return pid
	}
	return 0
}

// proven tells how often a request was proven, by whatever name the plugin knew it.
func (w *chaosWorld) proven(id string) int {
	n := 0
	for name, times := range hosttest.Proven(w.state) {
		if name == id || strings.HasPrefix(name, id+".") {
			n += times
		}
	}
	return n
}

func (w *chaosWorld) hit(what string, pid int, signal syscall.Signal) {
	if pid > 0 && syscall.Kill(pid, signal) == nil {
		w.kills[what]++
	}
}

// finish stops the last host and looks at what is left.
func (w *chaosWorld) finish(requests []shared.Request) {
	t := w.t
	w.stop()
	again := 0
	for _, r := range requests {
		require.Equal(t, hex.EncodeToString(hosttest.ScriptedProof(r)), w.answered[r.ID], r.ID)
		require.Equal(t, w.provenAt[r.ID], w.proven(r.ID), "%s was proven again after its answer", r.ID)
		again += w.proven(r.ID) - 1
	}
	t.Logf("%d proofs for %d answers", len(requests)+again, len(requests))
}

// stop ends the last host, and the plugin that outlives it, in order. Nothing may be left of any process.
func (w *chaosWorld) stop() {
	t := w.t
	t.Logf("hits: %v", w.kills)
	require.NoError(t, w.host.in.Close())
	<-w.host.ended
	require.True(t, w.host.cmd.ProcessState.Success(), w.host.cmd.ProcessState.String())
	if pid := detachedPID(w.journal); pid > 0 && hosttest.Running(pid) {
		w.plugins[pid] = true
		require.NoError(t, syscall.Kill(pid, syscall.SIGTERM))
		require.NoError(t, syscall.Kill(pid, syscall.SIGCONT)) // the last hit may have been a stop
	}
	waitFor(t, func() bool {
		for pid := range w.plugins {
			if hosttest.Running(pid) {
				return false
			}
		}
		return true
	})
	left, err := os.ReadDir(filepath.Join(w.journal, "requests"))
	require.NoError(t, err)
	require.Empty(t, left, "payloads")
	if os.Getenv(chaosDetachEnv) != "" {
		return
	}
	left, err = os.ReadDir(filepath.Join(w.sockets, fmt.Sprintf("interlock-%d", os.Getuid())))
	require.NoError(t, err)
	require.Empty(t, left, "directories of sockets")
}

// childOf gives a child of a process, or 0 if it has none.
func childOf(pid int) int {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return 0
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has gone
		}
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil && hosttest.Running(child) {
				return child
			}
		}
	}
	return 0
}

func envInt(t *testing.T, name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}
