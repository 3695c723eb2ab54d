package config

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/sharedtest/bounded"
)

func load(t *testing.T, text string) *Config {
	t.Helper()
	cfg, diags := parse([]byte(text), "config.hcl")
	require.False(t, diags.HasErrors(), "%v", diags)
	return cfg
}

// settings are a configuration's values without where they are written.
func settings(cfg *Config) Config {
	plain := *cfg
	plain.Path, plain.files, plain.places = "", nil, nil
	if len(plain.GPUs) == 0 {
		plain.GPUs = nil
	}
	return plain
}

func TestEmptyFileIsTheDefault(t *testing.T) {
	require.Equal(t, settings(Default()), settings(load(t, "")))
	require.Equal(t, settings(Default()), settings(load(t, "cuda {\n}\ncpu {\n}\nmemory {\n}\nparameters {\n}\npriority {\n}\nwitness {\n}\ntimeline {\n}\nlog {\n}\nplugin {\n}\nsupervision {\n}\ndeadline {\n}\njournal {\n}\n")))
	byPath, diags := Load("")
	require.Empty(t, diags)
	require.Equal(t, Default(), byPath)
}

func TestShortestUsefulFile(t *testing.T) {
	cfg := load(t, "gpu \"0\" {\n  cpus = \"0-7\"\n}\n")
	require.Equal(t, []GPU{{ID: GPUID{Index: 0}, Workers: 2, CPUs: mustCPUSet("0-7")}}, cfg.GPUs)
	require.False(t, cfg.CPU.Enabled)
	require.Empty(t, cfg.CheckHardware(machine))
}

func TestEverySettingIsDecoded(t *testing.T) {
	cfg := load(t, `
gpu "GPU-2D990430-F243-2137-3CFB-69A61FF03BE6" {
  workers      = 3
  cpus         = "0-3,8"
  memory_limit = "15GiB"
}
gpu "c1:00.0" {
}
cuda {
  library  = "lib/libinterlock_cuda.so"
  fallback = "always"
}
cpu {
  workers = 1
  threads = 4
  cpus    = "4-7"
}
memory {
  budget = "20GiB"
  margin = "5%"
}
parameters {
  dir     = "params"
  preload = ["winning-post:32GiB", "porep:64GiB"]
  verify  = "full"
  manifest = "parameters.json"
}
priority {
  porep        = "low"
  winning-post = "high"
  window-post  = "critical"
  update       = "low"
}
witness {
  workers = 3
  threads = 5
  ahead   = 7
}
timeline {
  events = 0
  file   = "/var/log/timeline.txt"
}
log {
  level  = "trace"
  format = "json"
  file   = "../log/prover.log"
}
plugin {
  start_timeout = "1m30s"
  stop_timeout  = "500ms"
  detach        = true
  detach_idle   = "2h"
  sha256        = "E3B0C44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
}
supervision {
  probe_interval   = "1s"
  probe_timeout    = "2s"
  progress_timeout = "3s"
  backoff          = "4s"
  max_backoff      = "5s"
  crash_limit      = 6
  crash_window     = "7s"
  cool_down        = "8s"
  attempts         = 9
}
deadline {
  refuse_hopeless = true
}
journal {
  dir       = "journal"
  retention = "10h"
}
`)
	require.Equal(t, Config{
		GPUs: []GPU{
			{ID: GPUID{UUID: "GPU-2d990430-f243-2137-3cfb-69a61ff03be6"}, Workers: 3, CPUs: mustCPUSet("0-3,8"), MemoryLimit: 15 * GiB},
			{ID: GPUID{PCIAddress: "0000:c1:00.0"}, Workers: 2},
		},
		CUDA:   CUDA{Library: "lib/libinterlock_cuda.so", Fallback: FallbackAlways},
		CPU:    CPU{Enabled: true, Workers: 1, Threads: 4, CPUs: mustCPUSet("4-7")},
		Memory: Memory{Budget: MemoryShare{Bytes: 20 * GiB}, Margin: MemoryShare{Percent: 5}},
		Parameters: Parameters{
			Dir:     "params",
			Preload: []Preload{{shared.KindWinningPoSt, shared.SectorSize32GiB}, {shared.KindPoRep, shared.SectorSize64GiB}},
			Verify:  CheckFull, Manifest: "parameters.json",
		},
		Priority: Priorities{
			PoRep: shared.PriorityLow, WinningPoSt: shared.PriorityHigh, WindowPoSt: shared.PriorityCritical, Update: shared.PriorityLow,
		},
		Witness:  Witness{Workers: 3, Threads: 5, Ahead: 7},
		Timeline: Timeline{Events: 0, File: "/var/log/timeline.txt"},
		Log:      Log{Level: LogTrace, Format: LogJSON, File: "../log/prover.log"},
		Plugin: Plugin{
			StartTimeout: 90 * time.Second, StopTimeout: 500 * time.Millisecond, Detach: true, DetachIdle: 2 * time.Hour,
			SHA256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		},
		Supervision: Supervision{
			ProbeInterval: 1 * time.Second, ProbeTimeout: 2 * time.Second, ProgressTimeout: 3 * time.Second,
			Backoff: 4 * time.Second, MaxBackoff: 5 * time.Second,
			CrashLimit: 6, CrashWindow: 7 * time.Second, CoolDown: 8 * time.Second, Attempts: 9,
		},
		Deadline: Deadline{RefuseHopeless: true},
		Journal:  Journal{Dir: "journal", Retention: 10 * time.Hour},
	}, settings(cfg))
}

// HCL's null means "as if it were not written".
func TestNullIsTheDefault(t *testing.T) {
	require.Equal(t, settings(Default()), settings(load(t, `
cpu {
  workers = null
  cpus    = null
}
parameters {
  dir = null
}
log {
  level = null
}
`)))
}

// The CPU proves where it is asked to, and where nothing else would.
func TestWhichDevicesProve(t *testing.T) {
	for _, test := range []struct {
		text string
		gpus int
		cpu  bool
	}{
		{``, 0, true},
		{"cpu {\n}", 0, true},
		{"gpu \"0\" {\n}", 1, false},
		{"gpu \"0\" {\n}\ngpu \"1\" {\n}\ncpu {\n}", 2, true},
		{"gpu \"0\" {\n}\ncpu {\n enabled = false\n}", 1, false},
		{"gpu \"0\" {\n}\ncpu {\n enabled = true\n}", 1, true},
	} {
		cfg := load(t, test.text)
		require.Len(t, cfg.GPUs, test.gpus, test.text)
		require.Equal(t, test.cpu, cfg.CPU.Enabled, test.text)
	}
}

// CPUs of a device that is switched off are free for others.
func TestDisabledCPUDeviceOwnsNoCPUs(t *testing.T) {
	load(t, "gpu \"0\" {\n cpus = \"0-3\"\n}\ncpu {\n enabled = false\n cpus = \"0-3\"\n}")
}

func TestWitnessAheadFollowsDevicesAndWorkers(t *testing.T) {
	require.Equal(t, 2, load(t, "").Witness.Ahead)
	require.Equal(t, 5, load(t, "witness {\n workers = 5\n}").Witness.Ahead)
	require.Equal(t, 4, load(t, "gpu \"0\" {\n}\ngpu \"1\" {\n}\ngpu \"2\" {\n}\ncpu {\n}").Witness.Ahead)
}

func TestMemoryAmounts(t *testing.T) {
	for _, test := range []struct {
		memory             Memory
		budget, reservable ByteSize
	}{
		{Default().Memory, 80 * GiB, 72 * GiB},
		{Memory{Budget: MemoryShare{Bytes: 20 * GiB}, Margin: MemoryShare{Bytes: 2 * GiB}}, 20 * GiB, 18 * GiB},
		{Memory{Budget: MemoryShare{Percent: 50}, Margin: MemoryShare{Bytes: 60 * GiB}}, 50 * GiB, 0},
	} {
		require.Equal(t, test.budget, test.memory.BudgetBytes(100*GiB))
		require.Equal(t, test.reservable, test.memory.ReservableBytes(100*GiB))
	}
}

func TestPrioritiesOfKinds(t *testing.T) {
	p := Default().Priority
	require.Equal(t, shared.PriorityCritical, p.Of(shared.KindWinningPoSt))
	require.Equal(t, shared.PriorityHigh, p.Of(shared.KindWindowPoSt))
	require.Equal(t, shared.PriorityNormal, p.Of(shared.KindPoRep))
	require.Equal(t, shared.PriorityNormal, p.Of(shared.KindUpdate))
}

// A partition that the CPU may not prove waits for a card, so each policy is
// spelled out for every priority.
func TestFallbackByPriority(t *testing.T) {
	require.Equal(t, FallbackCriticalOnly, Default().CUDA.Fallback)
	for _, test := range []struct {
		priority                shared.Priority
		never, critical, always bool
	}{
		{shared.PriorityUnspecified, false, false, true},
		{shared.PriorityLow, false, false, true},
		{shared.PriorityNormal, false, false, true},
		{shared.PriorityHigh, false, false, true},
		{shared.PriorityCritical, false, true, true},
	} {
		require.Equal(t, test.never, FallbackNever.Allows(test.priority), test.priority)
		require.Equal(t, test.critical, FallbackCriticalOnly.Allows(test.priority), test.priority)
		require.Equal(t, test.always, FallbackAlways.Allows(test.priority), test.priority)
	}
}

// Paths mean the same from whatever folder a program is started.
func TestPathsAreRelativeToTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.hcl")
	require.NoError(t, os.WriteFile(path, []byte("parameters {\n dir = \"p\"\n}\ncuda {\n library = \"../lib/c.so\"\n}\nlog {\n file = \"/l\"\n}\n"), 0o600))
	cfg, diags := Load(path)
	require.Empty(t, diags)
	require.Equal(t, path, cfg.Path)
	require.Equal(t, filepath.Join(dir, "p"), cfg.Parameters.Dir)
	require.Equal(t, filepath.Join(filepath.Dir(dir), "lib/c.so"), cfg.CUDA.Library)
	require.Equal(t, "/l", cfg.Log.File)
}

// The search order that commands document.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	etc := filepath.Join(dir, "etc.hcl")
	defer func(old []string) { SearchPath = old }(SearchPath)
	require.Equal(t, []string{"config.hcl", "/etc/interlock/config.hcl"}, SearchPath)
	SearchPath = []string{"config.hcl", etc}

	require.Equal(t, "", Find(""))
	require.Equal(t, "absent.hcl", Find("absent.hcl"), "an explicit file is never passed over")
	require.NoError(t, os.WriteFile(etc, nil, 0o600))
	require.Equal(t, etc, Find(""))
	require.NoError(t, os.WriteFile("config.hcl", nil, 0o600))
	require.Equal(t, "config.hcl", Find(""))
	require.Equal(t, etc, Find(etc))

	require.NoError(t, os.Remove("config.hcl"))
	require.NoError(t, os.Symlink("gone.hcl", "config.hcl"))
	require.Equal(t, "config.hcl", Find(""), "a link that leads nowhere is a fault, not a file left out")
	_, diags := Load(Find(""))
	require.True(t, diags.HasErrors())
}

func TestParamsDir(t *testing.T) {
	t.Setenv("FIL_PROOFS_PARAMETER_CACHE", "")
	configured := &Config{Parameters: Parameters{Dir: "/configured"}}
	require.Equal(t, "/var/tmp/filecoin-proof-parameters", ParamsDir("", nil))
	require.Equal(t, "/var/tmp/filecoin-proof-parameters", ParamsDir("", Default()))
	t.Setenv("FIL_PROOFS_PARAMETER_CACHE", "/environment")
	require.Equal(t, "/environment", ParamsDir("", Default()))
	require.Equal(t, "/configured", ParamsDir("", configured))
	require.Equal(t, "/flag", ParamsDir("/flag", configured))
}

// A file that cannot be read is named with the reason, and nothing is run with
// the defaults in its place.
func TestUnreadableFiles(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.hcl")
	require.NoError(t, os.WriteFile(large, bytes.Repeat([]byte("#\n"), maxFileBytes/2+1), 0o600))
	for path, reason := range map[string]string{
		filepath.Join(dir, "absent.hcl"): "no such file or directory",
		dir:                              "is a directory",
		large:                            "larger than 64KiB",
	} {
		var out bytes.Buffer
		require.False(t, Check(path, nil, &out, false))
		require.Contains(t, strings.ReplaceAll(out.String(), "\n", " "), reason)
		require.Contains(t, out.String(), filepath.Base(path))
	}
}

// Nothing that a file can nest overflows the parser's stack, which would end
// the program. The largest file is full of each.
func TestDeeplyNestedFiles(t *testing.T) {
	for _, text := range []string{"[", "{a=", "(", "f(", `"${`, "!", "-", "1?1:", "1+", "a {\n", "a[", "a.b", "[for a in "} {
		line := "cpu {\n workers = "
		if strings.HasSuffix(text, "\n") {
			line = ""
		}
		_, diags := parse([]byte(line+strings.Repeat(text, (maxFileBytes-len(line))/len(text))), "config.hcl")
		require.True(t, diags.HasErrors(), text)
	}
}

// What takes a line to write and forever to calculate is not calculated.
func TestEndlessCalculations(t *testing.T) {
	for _, value := range []string{
		`1e999999999`, `"1e999999999"`, `-1e999999999`, `"${1e999999999}"`, `1e999999999 % 3`, `1e-999999999`,
		`[for a in [1e999999999]: "${a}"]`, `true ? "${1e999999999}" : ""`,
	} {
		for _, setting := range []string{"workers", "enabled", "cpus"} {
			_, diags := parse([]byte("cpu {\n "+setting+" = "+value+"\n}"), "config.hcl")
			require.True(t, diags.HasErrors(), setting+" = "+value)
		}
	}
}

// A file that is no text gets a few messages, not one for every byte.
func TestBinaryFile(t *testing.T) {
	_, diags := parse(bytes.Repeat([]byte{0x16}, maxFileBytes), "config.hcl")
	require.Len(t, diags, maxSyntaxErrors)
	_, diags = parse([]byte("\x7fELF\x00\x01"), "a.out")
	require.Len(t, diags, 1)
	require.Equal(t, "a.out is no text but binary data.", diags[0].Detail)
}

func TestCheckWithoutHardware(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.hcl")
	require.NoError(t, os.WriteFile(path, []byte("gpu \"7\" {\n cpus = \"900-999\"\n}\nmemory {\n budget = \"4000TiB\"\n}\nlog {\n file = \"absent/log\"\n}\n"), 0o600))
	var out bytes.Buffer
	require.True(t, Check(path, nil, &out, false))
	require.Empty(t, out.String())
	require.False(t, Check(path, machine, &out, false))
}

func TestCheckOfTheBuiltInConfiguration(t *testing.T) {
	var out bytes.Buffer
	require.True(t, Check("", machine, &out, false))
	require.Empty(t, out.String())
}

// With color the caret stays where it is, and escapes are balanced.
func TestColor(t *testing.T) {
	t.Chdir("testdata/bad")
	var plain, color bytes.Buffer
	Check("unknown-argument.hcl", machine, &plain, false)
	Check("unknown-argument.hcl", machine, &color, true)
	require.Contains(t, color.String(), "\x1b[31mError\x1b[0m")
	require.Equal(t, plain.String(), regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(color.String(), ""))
}

// A card whose UUID the driver does not know yet is not called missing.
func TestUninitialisedCardsAreAWarning(t *testing.T) {
	cfg := load(t, "gpu \"GPU-2d990430-f243-2137-3cfb-69a61ff03be6\" {\n}\n")
	hw := &Hardware{CPUs: mustCPUSet("0-3"), MemoryBytes: 8 * GiB, AvailableBytes: 8 * GiB,
		GPUs: []HardwareGPU{{Index: 0, Model: "NVIDIA H200", PCIAddress: "0000:41:00.0"}}}
	diags := cfg.CheckHardware(hw)
	require.Len(t, diags, 1)
	require.Equal(t, hcl.DiagWarning, diags[0].Severity)
	hw.GPUs = nil
	diags = cfg.CheckHardware(hw)
	require.Len(t, diags, 1)
	require.Contains(t, diags[0].Detail, "No NVIDIA card is visible")
}

// Permission to write is found out as the user that runs the program, without
// touching the file.
func TestUnwritableFiles(t *testing.T) {
	dir := t.TempDir()
	readOnly, file := filepath.Join(dir, "readonly"), filepath.Join(dir, "file")
	require.NoError(t, os.Mkdir(readOnly, 0o555))
	require.NoError(t, os.WriteFile(file, []byte("kept"), 0o444))
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))

	require.Empty(t, unwritable(filepath.Join(dir, "new.log")))
	require.NoFileExists(t, filepath.Join(dir, "new.log"))

	results := make(chan string, 3)
	go func() {
		if os.Geteuid() == 0 {
			// Root may write anywhere. Only this thread becomes somebody else,
			// and it ends with the goroutine, for it stays locked.
			runtime.LockOSThread()
			const nobody = 65534
			if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
				results <- errno.Error()
			}
		}
		results <- unwritable(filepath.Join(readOnly, "new.log"))
		results <- unwritable(file)
		results <- unwritable(filepath.Join(file, "below.log"))
	}()
	require.Equal(t, readOnly+": permission denied", <-results)
	require.Equal(t, file+": permission denied", <-results)
	require.Equal(t, filepath.Join(file, "below.log")+": not a directory", <-results)
}

// The file in the repository works on a machine without a GPU, the examples on
// the machines that they are for.
func TestRepositoryFilesAreValid(t *testing.T) {
	rig := func(cpus string, memory ByteSize, gpus ...HardwareGPU) *Hardware {
		return &Hardware{CPUs: mustCPUSet(cpus), MemoryBytes: memory, AvailableBytes: memory, GPUs: gpus}
	}
	cards := func(n int) []HardwareGPU {
		var cards []HardwareGPU
		for i := range n {
			cards = append(cards, HardwareGPU{Index: i, PCIAddress: fmt.Sprintf("0000:%02x:00.0", 0x41+i)})
		}
		return cards
	}
	rigs := map[string]*Hardware{
		"../../config.hcl":                           rig("0-1", 4*GiB),
		"../../examples/cpu-only.hcl":                rig("0-3", 16*GiB),
		"../../examples/one-24gb-card.hcl":           rig("0-15", 128*GiB, cards(1)...),
		"../../examples/one-h200.hcl":                rig("0-15", 128*GiB, cards(1)...),
		"../../examples/dual-socket-eight-cards.hcl": rig("0-255", 1024*GiB, cards(8)...),
		"../../examples/two-16gb-cards.hcl": rig("0-31", 128*GiB,
			HardwareGPU{Index: 0, PCIAddress: "0000:01:00.0", UUID: "GPU-11111111-2222-3333-4444-555555555555"},
			HardwareGPU{Index: 1, PCIAddress: "0000:02:00.0", UUID: "GPU-5c8f1b0e-62d5-9d3e-1f0a-7b1b6a0f3c21"}),
	}
	examples, err := filepath.Glob("../../examples/*.hcl")
	require.NoError(t, err)
	require.Len(t, rigs, len(examples)+1, "every example has a machine here")
	for _, path := range append(examples, "../../config.hcl") {
		var out bytes.Buffer
		require.Contains(t, rigs, path)
		require.True(t, Check(path, rigs[path], &out, false), out.String())
		require.Empty(t, out.String(), "not even a warning")
	}
}

// config.hcl shows every setting of every block once, no others, and the
// default of those that have one.
func TestExampleShowsEverySetting(t *testing.T) {
	text, err := os.ReadFile("../../config.hcl")
	require.NoError(t, err)
	// Prose is behind "# ", settings to uncomment are behind "#" alone.
	full := regexp.MustCompile(`(?m)^( *)#([^ \n])`).ReplaceAll(text, []byte("$1$2"))
	file, diags := hclsyntax.ParseConfig(full, "config.hcl", hcl.InitialPos)
	require.False(t, diags.HasErrors(), "%v", diags)

	var shown []string
	for _, block := range file.Body.(*hclsyntax.Body).Blocks {
		for name := range block.Body.Attributes {
			shown = append(shown, block.Type+"."+name)
		}
	}
	var existing []string
	root, _ := gohcl.ImpliedBodySchema(&fileSchema{})
	require.Empty(t, root.Attributes)
	for _, block := range root.Blocks {
		implied, _ := gohcl.ImpliedBodySchema(blockSchema(&fileSchema{}, block.Type))
		for _, attribute := range implied.Attributes {
			existing = append(existing, block.Type+"."+attribute.Name)
		}
	}
	guide, err := os.ReadFile("../../examples/operating/README.md")
	require.NoError(t, err)
	for _, name := range existing {
		require.Contains(t, string(guide), "`"+name+"`", "the operating guide has it too")
	}
	slices.Sort(shown)
	slices.Sort(existing)
	require.Equal(t, existing, shown)

	cfg, diags := parse(full, "config.hcl")
	require.Empty(t, diags)
	got, want := settings(cfg), settings(Default())
	require.Len(t, got.GPUs, 1)
	require.Equal(t, defaultDeviceWorkers, got.GPUs[0].Workers)
	// These have no default that could be written.
	require.Equal(t, DefaultParamsDir, got.Parameters.Dir)
	got.GPUs, got.CPU.Threads, got.CPU.CPUs, got.Witness.Threads = nil, 0, nil, 0
	got.Parameters.Dir, got.Parameters.Preload, got.Parameters.Manifest, got.Timeline.File, got.Log.File = "", nil, "", "", ""
	got.Plugin.SHA256, got.Journal.Dir, got.CUDA.Library = "", "", ""
	require.Equal(t, want, got)
}

// Each field of a schema is decoded into some field of the configuration: a
// setting that is written and then dropped would be the worst kind of default.
func TestEverySchemaFieldHasAPlace(t *testing.T) {
	text, err := os.ReadFile("../../config.hcl")
	require.NoError(t, err)
	full := regexp.MustCompile(`(?m)^( *)#([^ \n])`).ReplaceAll(text, []byte("$1$2"))
	cfg, diags := parse(full, "config.hcl")
	require.Empty(t, diags)
	count := 1 // the label of the gpu block
	schema := reflect.TypeFor[fileSchema]()
	for i := range schema.NumField() {
		block, isBlock := strings.CutSuffix(schema.Field(i).Tag.Get("hcl"), ",block")
		if !isBlock {
			continue
		}
		implied, _ := gohcl.ImpliedBodySchema(blockSchema(&fileSchema{}, block))
		count += len(implied.Attributes)
	}
	require.Len(t, cfg.places, count)
}

// Whatever is in a file, reading it ends with a configuration, with messages
// that can be written, and without a panic.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.hcl", "../../examples/*.hcl", "../../config.hcl"} {
		files, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > maxFileBytes {
			return
		}
		var cfg *Config
		var diags hcl.Diagnostics
		bounded.Allocation(t, len(text), func() { cfg, diags = parse(text, "config.hcl") })
		diags = append(diags, cfg.checkGPUs(machine)...)
		diags = append(diags, cfg.checkCPUs(machine)...)
		diags = append(diags, cfg.checkMemory(machine)...)
		var out bytes.Buffer
		require.NoError(t, WriteDiagnostics(&out, diags, cfg.Files(), true))
		for _, diag := range diags {
			if diag.Subject != nil {
				require.LessOrEqual(t, diag.Subject.End.Byte, len(text)+1)
			}
		}
		if !diags.HasErrors() {
			require.Positive(t, cfg.devices())
			require.Positive(t, cfg.Memory.ReservableBytes(machine.MemoryBytes))
		}
	})
}
