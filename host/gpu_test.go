//go:build gpu

package host_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ebitengine/purego"
	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/examples/inputs"
	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/shared"
)

// Faults of a real card, met by the real plugin. The tests need no Go: they run the program that INTERLOCK_PLUGIN names,
// ../bin/interlock-prover without, with the library that INTERLOCK_CUDA_LIBRARY names. The one that `make -C cuda faults`
// makes, in which launches and allocations fail when asked to, lies beside it.
const (
	libraryEnv   = "INTERLOCK_CUDA_LIBRARY"
	pluginEnv    = "INTERLOCK_PLUGIN"
	gpuCyclesEnv = "INTERLOCK_GPU_CYCLES"
	faultEnv     = "INTERLOCK_TEST_FAULT" // for the plugin: the file through which its library is told to fail
	spareEnv     = "SPARE_BYTES"          // for the process that takes the card's memory: what it leaves
)

// gpuRig is what the tests share: parameters that the card made, a request that they serve, and a plugin without a card,
// which verifies.
type gpuRig struct {
	t                        *testing.T
	program, library, params string
	request                  shared.Request
	verifier                 *host.Host
	log                      *os.File
}

func newGPURig(t *testing.T) *gpuRig {
	r := &gpuRig{t: t, program: os.Getenv(pluginEnv), library: os.Getenv(libraryEnv), params: t.TempDir()}
	require.NotEmpty(t, r.library, "set %s to the path of libinterlock_cuda.so", libraryEnv)
	if r.program == "" {
		r.program = filepath.Join("..", "bin", host.PluginProgram)
	}
	sockets, err := os.MkdirTemp("", "gpu") // short enough for a socket's path
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(sockets)) })
	t.Setenv("TMPDIR", sockets)
	r.log, err = os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	t.Cleanup(r.endLog)
	r.request, err = inputs.PoSt("winning-2KiB")
	require.NoError(t, err)
	require.True(t, t.Run("parameters", func(t *testing.T) {
		o := hosttest.Options{Options: r.options(t, r.library, "")}
		circuit := shared.CircuitRequest{Kind: r.request.Kind, SectorSize: r.request.SectorSize}
		_, err := hosttest.Start(t, o).Toolbox().SetupParams(t.Context(), shared.SetupRequest{CircuitRequest: circuit, Dir: r.params}, nil)
		require.NoError(t, err)
	}))
	r.verifier = hosttest.Start(t, hosttest.Options{Options: host.Options{PluginPath: r.program, ParamsDir: r.params, Logger: hclog.NewNullLogger()}})
	_, _ = r.verifier.Toolbox().Verify(t.Context(), r.request, make([]byte, 192)) // both sides open what they keep open
	return r
}

// options are those of a plugin that proves on the first card alone.
func (r *gpuRig) options(t *testing.T, library, more string) host.Options {
	path := filepath.Join(t.TempDir(), "config.hcl")
	library, err := filepath.Abs(library)
	require.NoError(t, err)
	text := fmt.Sprintf("gpu \"0\" {\n  memory_limit = \"16GiB\"\n}\ncuda {\n  library = %q\n%s}\n", library, more)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return host.Options{
		PluginPath: r.program, ParamsDir: r.params, ConfigPath: path,
		Logger: hclog.New(&hclog.LoggerOptions{Output: r.log, Level: hclog.Info}),
	}
}

func (r *gpuRig) supervise(o host.Options) *host.Supervisor {
	s, err := host.Supervise(r.t.Context(), host.SupervisorOptions{
		Options:     o,
		Supervision: host.Supervision{Backoff: time.Millisecond, MaxBackoff: 10 * time.Millisecond},
	})
	require.NoError(r.t, err)
	r.t.Cleanup(func() { require.NoError(r.t, s.Stop(context.Background())) })
	return s
}

// The same on a card as on the CPU: window partitions, one after the other.
func TestGPUWindowSoak(t *testing.T) {
	r := newGPURig(t)
	windowSoak(t, envInt(t, windowPartitionsEnv, 2000), r.options(t, r.library, ""))
}

// endLog shows the end of the plugins' log if the test has failed.
func (r *gpuRig) endLog() {
	defer r.log.Close()
	if text, err := os.ReadFile(r.log.Name()); err == nil && r.t.Failed() {
		lines := strings.Split(string(text), "\n")
		if n := len(lines); n > 160 {
			lines = slices.Concat(lines[:100], []string{"..."}, lines[n-60:])
		}
		r.t.Logf("the plugins said:\n%s", strings.Join(lines, "\n"))
	}
}

// prove has the request proven and the proof verified. atDevice is called once, when the partition's device phase begins;
// inTime tells whether the phase had not ended by the time that atDevice returned.
func (r *gpuRig) prove(s *host.Supervisor, id string, atDevice func()) (inTime bool) {
	request := r.request
	request.ID = id
	called, judged := false, false
	result, err := s.Prove(r.t.Context(), request, func(p shared.Progress) {
		switch {
		case !called && p.Stage == shared.StageDevice:
			called = true
			atDevice()
		case called && !judged:
			judged, inTime = true, p.Stage == shared.StageQueued || p.Stage == shared.StagePrepare
		}
	})
	if err != nil {
		r.t.Errorf("%s: %v", id, err)
		return false
	}
	valid, err := r.verifier.Toolbox().Verify(r.t.Context(), request, result.Proof)
	if err != nil || !valid {
		r.t.Errorf("%s: the proof is not valid: %v", id, err)
	}
	return inTime
}

// devicePhase is how long one takes, with the parameters loaded.
func (r *gpuRig) devicePhase(s *host.Supervisor) (took time.Duration) {
	for i := range 3 {
		request := r.request
		request.ID = "unharmed-" + strconv.Itoa(i)
		var begun time.Time
		_, err := s.Prove(r.t.Context(), request, func(p shared.Progress) {
			switch p.Stage {
			case shared.StageDevice:
				begun = time.Now()
			case shared.StageFinish:
				took = time.Since(begun)
			}
		})
		require.NoError(r.t, err)
	}
	r.t.Logf("a device phase takes %v", took)
	return took
}

// freeBytes is what the card has free, as a process of its own sees it.
func (r *gpuRig) freeBytes() int64 {
	report, err := host.DescribeCards(r.t.Context(), host.Options{PluginPath: r.program}, r.library)
	require.NoError(r.t, err)
	require.NotEmpty(r.t, report.Cards, report.Fault)
	return int64(report.Cards[0].FreeBytes)
}

// leftovers is what a host could leave in its own process.
type leftovers struct{ goroutines, files, children int }

func (r *gpuRig) leftovers() leftovers {
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(r.t, err)
	l := leftovers{goroutines: runtime.NumGoroutine(), files: len(files)}
	lists, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(r.t, err)
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err == nil { // else the thread has gone
			l.children += len(strings.Fields(string(text)))
		}
	}
	return l
}

// sockets counts the directories of sockets.
func (r *gpuRig) sockets() int {
	list, err := os.ReadDir(filepath.Join(os.TempDir(), "interlock-"+strconv.Itoa(os.Getuid())))
	require.NoError(r.t, err)
	return len(list)
}

// requireNothingLeft waits until the process and the card have what they had.
func (r *gpuRig) requireNothingLeft(before leftovers, sockets int, free int64) {
	var now leftovers
	waitFor(r.t, func() bool {
		now = r.leftovers()
		return now.goroutines <= before.goroutines && now.files <= before.files && now.children <= before.children
	})
	require.Equal(r.t, sockets, r.sockets(), "directories of sockets")
	var left int64
	waitFor(r.t, func() bool { left = r.freeBytes(); return left >= free-32<<20 })
	r.t.Logf("before: %+v, %d bytes free on the card; in the end: %+v, %d bytes free", before, free, now, left)
}

// Plugins are killed while their kernels run, over and over, by four hosts on one card. Every request is answered by the
// next plugin, and in the end nothing is left: no process, file, socket or goroutine, nor any of the card's memory.
func TestGPUPluginKilled(t *testing.T) {
	const hosts = 4
	cycles := envInt(t, gpuCyclesEnv, 200)
	r := newGPURig(t)
	o := r.options(t, r.library, "")
	free := r.freeBytes()
	sockets, before := r.sockets(), r.leftovers()

	t.Run("cycles", func(t *testing.T) { // whose hosts end with it
		rig := *r
		rig.t = t
		pids := map[int]bool{}
		t.Cleanup(func() { // when the hosts have ended
			for pid := range pids {
				require.False(t, hosttest.Running(pid), pid)
			}
		})
		phase := time.Duration(0)
		supervisors := make([]*host.Supervisor, hosts)
		for i := range supervisors {
			supervisors[i] = rig.supervise(o)
			phase = rig.devicePhase(supervisors[i])
		}
		var next, inTime atomic.Int64
		var mu sync.Mutex
		var took []time.Duration
		start := time.Now()
		var all sync.WaitGroup
		for i, s := range supervisors {
			all.Go(func() {
				for n := next.Add(1); n <= int64(cycles) && !t.Failed(); n = next.Add(1) {
					began := time.Now()
					if rig.prove(s, fmt.Sprintf("killed-%d-%d", i, n), func() {
						time.Sleep(rand.N(max(phase*3/4, time.Millisecond)))
						pid := s.State().PID
						mu.Lock()
						pids[pid] = true
						mu.Unlock()
						if pid <= 0 {
							t.Error("a partition is at a device, and there is no plugin")
						} else if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
							t.Errorf("killing plugin %d: %v", pid, err)
						}
					}) {
						inTime.Add(1)
					}
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
				}
			})
		}
		all.Wait()
		t.Logf("%d plugins killed in %v, %d of them certainly in the device phase; request, kill and retry: median %v",
			len(took), time.Since(start).Round(time.Second), inTime.Load(), slices.Sorted(slices.Values(took))[len(took)/2].Round(time.Millisecond))
		require.Len(t, took, cycles)
		require.Len(t, pids, cycles, "every cycle has its own plugin")
		require.GreaterOrEqual(t, inTime.Load(), int64(cycles)*3/4)
		restarts := 0
		for _, s := range supervisors {
			restarts += s.State().Restarts
			st, err := s.Status(t.Context())
			require.NoError(t, err)
			require.Zero(t, st.Failed)
			pids[st.PID] = true
		}
		require.Equal(t, cycles, restarts)
	})
	r.requireNothingLeft(before, sockets, free)
}

// Launches fail in the middle of device phases, over and over.
func TestGPULaunchFails(t *testing.T) { deviceFails(t, "launch") }

// Allocations fail in the middle of device phases, over and over, since the card has no memory left for a moment.
func TestGPUAllocationFails(t *testing.T) { deviceFails(t, "memory") }

// deviceFails has a card fail during proofs. The plugin goes on, the request is tried again and answered, and the plugin's
// files and the card's memory stay what they are.
func deviceFails(t *testing.T, how string) {
	cycles := envInt(t, gpuCyclesEnv, 200)
	r := newGPURig(t)
	s, fail := r.superviseFaults()
	phase := r.devicePhase(s)
	pid := s.State().PID
	status := func() shared.DeviceStatus {
		st, err := s.Status(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, st.Devices) // the CPU stands in after the card
		return st.Devices[0]
	}
	hits := 0
	cycle := func(n int) {
		r.prove(s, fmt.Sprintf("%s-%d", how, n), func() {
			time.Sleep(rand.N(max(phase/2, time.Millisecond)))
			fail(how)
		})
		if os.Remove(r.faultFile()) != nil { // a call took it
			hits++
		}
	}
	for n := range 10 {
		cycle(n)
	}
	files, before, card, free := filesOf(t, pid), r.leftovers(), status(), r.freeBytes()
	start := time.Now()
	for n := range cycles {
		cycle(10 + n)
	}
	st, err := s.Status(t.Context())
	require.NoError(t, err)
	t.Logf("%d cycles in %v: %d times it was to fail, %d times it did, %d partitions were tried again",
		cycles, time.Since(start).Round(time.Second), hits, st.Devices[0].Faults, st.Retries)
	require.GreaterOrEqual(t, st.Devices[0].Faults, uint64(cycles)*3/4)
	require.LessOrEqual(t, st.Devices[0].Faults, uint64(hits))
	require.Equal(t, st.Devices[0].Faults, st.Retries)
	require.Zero(t, st.Failed)
	require.Empty(t, st.Devices[0].OutOfUse)
	require.Equal(t, pid, st.PID, "the plugin goes on")
	waitFor(t, func() bool { return status().MemoryFreeBytes >= card.MemoryFreeBytes })
	require.LessOrEqual(t, filesOf(t, pid), files)
	waitFor(t, func() bool {
		now := r.leftovers()
		return now.goroutines <= before.goroutines && now.files <= before.files
	})
	require.GreaterOrEqual(t, r.freeBytes(), free-64<<20)
}

// A kernel writes where no memory is: no call works in that process any more. The plugin ends in order, and the next one
// answers the request.
func TestGPULost(t *testing.T) {
	r := newGPURig(t)
	before, sockets, free := r.leftovers(), r.sockets(), r.freeBytes()
	t.Run("cycles", func(t *testing.T) {
		rig := *r
		rig.t = t
		s, fail := rig.superviseFaults()
		phase := rig.devicePhase(s)
		for n := range 10 {
			pid, deaths := s.State().PID, s.State().Restarts
			rig.prove(s, fmt.Sprintf("lost-%d", n), func() {
				time.Sleep(rand.N(max(phase/2, time.Millisecond)))
				fail("address")
			})
			if os.Remove(rig.faultFile()) == nil {
				continue // the phase had ended
			}
			waitFor(t, func() bool { now := s.State(); return now.PID != 0 && now.PID != pid && now.Restarts == deaths+1 })
			require.ErrorContains(t, s.State().LastEnd, "exit status 3")
			require.False(t, hosttest.Running(pid))
		}
		require.GreaterOrEqual(t, s.State().Restarts, 7)
	})
	r.requireNothingLeft(before, sockets, free)
}

// Another process takes all of the card's memory and keeps it, and the CPU must not stand in: the request fails, with an
// error that says what was wanted, or waits. With its memory back the card proves.
func TestGPUOutOfMemory(t *testing.T) {
	r := newGPURig(t)
	s := r.supervise(r.options(t, r.library, "  fallback = \"never\"\n"))
	pid := s.State().PID
	device := func() shared.DeviceStatus {
		st, err := s.Status(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, st.Devices) // the CPU stands in after the card
		return st.Devices[0]
	}
	end := r.takeMemory(0)
	request := r.request
	request.ID = "no memory"
	_, err := s.Submit(t.Context(), request)
	require.NoError(t, err)
	waitFor(t, func() bool { return device().Faults > 0 })
	time.Sleep(time.Second)
	t.Logf("%d faults; out of use: %q", device().Faults, device().OutOfUse)
	end()
	result, err := s.Await(t.Context(), "no memory")
	if err != nil {
		t.Log(err)
		require.ErrorContains(t, err, "out of memory")
	} else {
		valid, err := r.verifier.Toolbox().Verify(t.Context(), request, result.Proof)
		require.NoError(t, err)
		require.True(t, valid)
	}
	waitFor(t, func() bool { return device().OutOfUse == "" })
	faults := device().Faults
	r.prove(s, "memory again", func() {})
	require.Equal(t, faults, device().Faults)
	require.Equal(t, pid, s.State().PID, "the plugin goes on")
}

// Another process leaves the card some memory, so that it runs out in the middle of the work: the CPU stands in for the
// card, which is back in use when its memory is.
func TestGPUOutOfMemoryInTheMiddle(t *testing.T) {
	r := newGPURig(t)
	var faults, fallbacks uint64
	for _, spare := range []int64{16 << 20, 64 << 20, 256 << 20, 512 << 20} {
		s := r.supervise(r.options(t, r.library, "  fallback = \"always\"\n"))
		pid := s.State().PID
		end := r.takeMemory(spare)
		r.prove(s, fmt.Sprintf("%d bytes", spare), func() {})
		st, err := s.Status(t.Context())
		require.NoError(t, err)
		t.Logf("%d bytes left: %d faults, %d retries, %d by the CPU; out of use: %q", spare, st.Devices[0].Faults, st.Retries, st.Fallbacks, st.Devices[0].OutOfUse)
		faults, fallbacks = faults+st.Devices[0].Faults, fallbacks+st.Fallbacks
		end()
		var after shared.Status
		waitFor(t, func() bool {
			after, err = s.Status(t.Context())
			return err == nil && after.Devices[0].OutOfUse == ""
		})
		r.prove(s, "memory again", func() {})
		st, err = s.Status(t.Context())
		require.NoError(t, err)
		require.Equal(t, after.Devices[0].Faults, st.Devices[0].Faults, "with its memory back the card proves")
		require.Equal(t, after.Fallbacks, st.Fallbacks)
		require.Equal(t, pid, st.PID, "the plugin goes on")
		require.NoError(t, s.Stop(t.Context()))
	}
	require.Positive(t, faults)
	require.Positive(t, fallbacks)
}

// superviseFaults starts a plugin whose library fails as it is told.
func (r *gpuRig) superviseFaults() (s *host.Supervisor, fail func(how string)) {
	o := r.options(r.t, filepath.Join(filepath.Dir(r.library), "libinterlock_cuda_faults.so"), "")
	o.Env = []string{faultEnv + "=" + r.faultFile()}
	return r.supervise(o), func(how string) {
		if err := os.WriteFile(r.faultFile()+".new", []byte(how), 0o600); err != nil {
			r.t.Error(err)
		}
		if err := os.Rename(r.faultFile()+".new", r.faultFile()); err != nil {
			r.t.Error(err)
		}
	}
}

func (r *gpuRig) faultFile() string { return r.log.Name() + ".fault" }

func filesOf(t *testing.T, pid int) int {
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	return len(list)
}

// takeMemory has another process take the card's memory but for so many bytes. end gives it back.
func (r *gpuRig) takeMemory(spare int64) (end func()) {
	self, err := os.Executable()
	require.NoError(r.t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleEnv+"=taker of memory", spareEnv+"="+strconv.FormatInt(spare, 10))
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	in, err := cmd.StdinPipe()
	require.NoError(r.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(r.t, err)
	require.NoError(r.t, cmd.Start())
	end = sync.OnceFunc(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			r.t.Errorf("the process with the card's memory: %v %s", err, complaints.String())
		}
	})
	r.t.Cleanup(end)
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(r.t, err, "%s", complaints.String())
	r.t.Log(strings.TrimSpace(line))
	return end
}

func init() { roles["taker of memory"] = takeCardMemory }

// takeCardMemory takes the card's memory through the library, until its standard input ends.
func takeCardMemory() int {
	if err := takeCardMemoryBut(os.Getenv(spareEnv)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func takeCardMemoryBut(spare string) error {
	leave, err := strconv.ParseUint(spare, 10, 64)
	if err != nil {
		return err
	}
	so, err := purego.Dlopen(os.Getenv(libraryEnv), purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return err
	}
	// The struct of interlock_cuda.h, of which only the text of an error matters.
	fault, free := new([512]byte), new(uint64)
	var freeMemory func(index int32, free *uint64, fault *[512]byte) int32
	var open func(index int32, memory, scratch uint64, device *uintptr, fault *[512]byte) int32
	var create func(device uintptr, context *uintptr, fault *[512]byte) int32
	var alloc func(context uintptr, bytes uint64, memory *uintptr, fault *[512]byte) int32
	purego.RegisterLibFunc(&freeMemory, so, "interlock_free_memory")
	purego.RegisterLibFunc(&open, so, "interlock_device_open")
	purego.RegisterLibFunc(&create, so, "interlock_context_create")
	purego.RegisterLibFunc(&alloc, so, "interlock_device_alloc")
	device, cuda := new(uintptr), new(uintptr)
	if open(0, 0, 64<<20, device, fault) != 0 || create(*device, cuda, fault) != 0 {
		return fmt.Errorf("opening the card: %s", fault[24:280])
	}
	var taken uint64
	memory := new(uintptr)
	const least = 2 << 20
	for size := uint64(1 << 30); size >= least; {
		if freeMemory(0, free, fault) != 0 {
			return fmt.Errorf("asking for free memory: %s", fault[24:280])
		}
		if leave > 0 && *free < leave+size || alloc(*cuda, size, memory, fault) != 0 {
			size /= 2
			continue
		}
		taken += size
	}
	if freeMemory(0, free, fault) != 0 {
		return fmt.Errorf("asking for free memory: %s", fault[24:280])
	}
	fmt.Printf("took %d bytes of the card, and left %d\n", taken, *free)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
