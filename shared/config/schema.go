package config

import (
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// Config is a whole configuration with every default filled in.
type Config struct {
	// Path is the file that it came from; empty for the built-in defaults.
	Path string

	GPUs        []GPU
	CUDA        CUDA
	CPU         CPU
	Memory      Memory
	Parameters  Parameters
	Priority    Priorities
	Witness     Witness
	Timeline    Timeline
	Log         Log
	Plugin      Plugin
	Supervision Supervision
	Deadline    Deadline
	Journal     Journal

	files  map[string]*hcl.File
	places map[any]hcl.Range // where the value that a pointer leads to is written; without those left out
}

// GPU is one card that proves: `gpu "0" { … }`. The label is an index, a UUID
// or a PCI address, see [ParseGPUID].
type GPU struct {
	ID GPUID
	// Workers is how many partitions the card carries at once, of which one at
	// a time runs kernels. Used by the pipeline.
	Workers int
	// CPUs that the card's workers run on, best those of its NUMA node; empty
	// for all. Used by the pipeline.
	CPUs CPUSet
	// MemoryLimit is how much of the card's memory may be used; 0 for all.
	// Used by the GPU device.
	MemoryLimit ByteSize
}

// CUDA says how the cards are reached, and what becomes of their work if they
// fail: `cuda { … }`. Used by the engine where a GPU is named.
type CUDA struct {
	// Library is the file of the library with the kernels, libinterlock_cuda.so.
	// Empty for the one beside the plugin's program, or else the one that the
	// dynamic loader finds.
	Library string
	// Fallback says whose partitions the CPU proves when no card can.
	Fallback Fallback
}

// Fallback is a policy for partitions that no card can prove at present.
type Fallback string

// Policies for partitions that no card can prove at present.
const (
	// FallbackNever lets them wait for a card.
	FallbackNever Fallback = "never"
	// FallbackCriticalOnly has the CPU prove those of critical priority, by
	// default winning PoSt, which are worthless if they wait.
	FallbackCriticalOnly Fallback = "critical-only"
	// FallbackAlways has the CPU prove all of them.
	FallbackAlways Fallback = "always"
)

// Allows says whether the CPU may prove partitions of requests of this priority
// when no card can.
func (f Fallback) Allows(p shared.Priority) bool {
	return f == FallbackAlways || f == FallbackCriticalOnly && p.OrNormal() == shared.PriorityCritical
}

// CPU is the device that proves without a GPU: `cpu { … }`.
type CPU struct {
	// Enabled by writing the block, and where no GPU is named.
	Enabled bool
	// Workers is how many partitions the device carries at once, of which one
	// at a time is in its device phase. Used by the pipeline.
	Workers int
	// Threads that the device phase computes with; 0 for one on each of CPUs.
	// Used by the CPU device.
	Threads int
	// CPUs that the device runs on; empty for all. Used by the pipeline.
	CPUs CPUSet
}

// Memory bounds what the plugin uses of the host's memory: `memory { … }`.
// Used by the pipeline when it admits partitions.
type Memory struct {
	// Budget is what the plugin may use altogether. A percentage is of the
	// memory that the machine and the control group allow.
	Budget MemoryShare
	// Margin is the part of the budget that partitions and parameters may not
	// reserve: room for what is not counted. A percentage is of the budget.
	Margin MemoryShare
}

// BudgetBytes is the budget on a machine with that much memory.
func (m *Memory) BudgetBytes(machine ByteSize) ByteSize { return m.Budget.Of(machine) }

// ReservableBytes is the budget less the margin, on a machine with that much
// memory.
func (m *Memory) ReservableBytes(machine ByteSize) ByteSize {
	budget := m.BudgetBytes(machine)
	return budget - min(budget, m.Margin.Of(budget))
}

// Parameters says where proving keys are and when they are loaded:
// `parameters { … }`.
type Parameters struct {
	// Dir is the folder of parameter files; empty if the file names none, see
	// [ParamsDir]. Used by whatever opens parameters.
	Dir string
	// Preload lists the parameters that the engine loads as it starts, in this
	// order, rather than at the first request.
	Preload []Preload
	// Verify is how closely a parameter file is checked as it is loaded. Used
	// by the engine.
	Verify ParametersCheck
	// Manifest is a file that lists the digests of parameter files, in the
	// format of the original proofs library's parameters.json; empty for none.
	// Used by the engine.
	Manifest string
}

// Preload names the parameters of one circuit: "winning-post:32GiB".
type Preload struct {
	Kind       shared.Kind
	SectorSize shared.SectorSize
}

// String writes the circuit as a configuration does.
func (p Preload) String() string { return p.Kind.String() + ":" + p.SectorSize.String() }

// ParametersCheck is a depth of checking parameter files.
type ParametersCheck string

// Depths of checking parameter files.
const (
	// CheckStructure compares lengths and counts with the circuit's.
	// Milliseconds.
	CheckStructure ParametersCheck = "structure"
	// CheckFull also checks every point: on its curve and in the subgroup.
	// Minutes for the large circuits, once for each version of a file.
	CheckFull ParametersCheck = "full"
)

// Priorities are those of requests that name none, by kind: `priority { … }`.
// Used by the engine.
type Priorities struct {
	PoRep, WinningPoSt, WindowPoSt, Update shared.Priority
}

// Of is the priority of a request of this kind that names none.
func (p *Priorities) Of(kind shared.Kind) shared.Priority {
	switch kind {
	case shared.KindPoRep:
		return p.PoRep
	case shared.KindWinningPoSt:
		return p.WinningPoSt
	case shared.KindWindowPoSt:
		return p.WindowPoSt
	case shared.KindUpdate:
		return p.Update
	default:
		return shared.PriorityNormal
	}
}

// Witness is the CPU pool that computes witnesses: `witness { … }`. Used by the
// pipeline.
type Witness struct {
	// Workers is how many partitions the pool works on at once.
	Workers int
	// Threads that the workers share; 0 for one on each CPU.
	Threads int
	// Ahead is how many partitions may be in the pool, or through it and still
	// waiting for a device; it bounds the memory that witnesses take.
	Ahead int
}

// Timeline is the record of who did what when: `timeline { … }`. Used by the
// engine.
type Timeline struct {
	// Events is how many of the latest are kept in memory, of about 64 bytes
	// each; 0 switches the timeline off.
	Events int
	// File that the events are written to as text when the plugin ends, for
	// `interlock timeline FILE`; empty for none.
	File string
}

// Log says what is logged and how: `log { … }`.
type Log struct {
	// Level from which messages are logged. Used by host and plugin.
	Level LogLevel
	// Format of messages on standard error and in File. Used by host and
	// plugin.
	Format LogFormat
	// File that the plugin appends its messages to, besides handing them to
	// the host; empty for none.
	File string
}

// LogLevel is the least important kind of message that is logged.
type LogLevel string

// LogFormat is how a message is written.
type LogFormat string

// Log levels, as hclog names them, and formats.
const (
	LogTrace LogLevel = "trace"
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"

	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

// Plugin says which program may be the plugin, and bounds how long the host
// waits for its process: `plugin { … }`. Used by the host library.
type Plugin struct {
	// SHA256 is what the plugin's program must have, in hex; empty for any.
	SHA256 string
	// Detach lets the plugin outlive its host, which needs a journal. Without
	// a host it ends after DetachIdle.
	Detach     bool
	DetachIdle time.Duration
	// StartTimeout is how long the plugin may take until it answers, loading
	// what is preloaded included.
	StartTimeout time.Duration
	// StopTimeout is how long it may take to end its work when it is stopped;
	// after that it is killed.
	StopTimeout time.Duration
}

// Supervision says when a plugin is given up and how soon the next is started:
// `supervision { … }`. Used by the host library's supervisor.
type Supervision struct {
	// ProbeInterval is how often the plugin is asked whether it serves.
	ProbeInterval time.Duration
	// ProbeTimeout is how long it may take to answer before it counts as hung.
	ProbeTimeout time.Duration
	// ProgressTimeout is how long a plugin with requests may go without a step
	// forward in any of them before it counts as hung.
	ProgressTimeout time.Duration
	// Backoff is how long after a plugin's end the next is started; each
	// further end doubles it, up to MaxBackoff.
	Backoff, MaxBackoff time.Duration
	// CrashLimit is how many plugins may end in a row, none having answered a
	// request or lived for CrashWindow, before requests are refused for
	// CoolDown.
	CrashLimit  int
	CrashWindow time.Duration
	CoolDown    time.Duration
	// Attempts is how many plugins may end while they work on one request
	// alone, before that is set aside.
	Attempts int
}

// Deadline says what becomes of requests that have one: `deadline { … }`. Used
// by the host library's supervisor.
type Deadline struct {
	// RefuseHopeless refuses a request whose deadline is nearer than the
	// shortest time that one of the same kind and sector size took.
	RefuseHopeless bool
}

// Journal keeps accepted requests and their answers on disk: `journal { … }`.
// Used by the host library's supervisor.
type Journal struct {
	// Dir is the journal's folder; empty for no journal.
	Dir string
	// Retention is how long an answer is kept.
	Retention time.Duration
}

const (
	defaultDeviceWorkers  = 2
	defaultWitnessWorkers = 2
)

// Default is the configuration of an empty file: the CPU proves, with most of
// the machine's memory.
func Default() *Config {
	cfg := &Config{
		CUDA:       CUDA{Fallback: FallbackCriticalOnly},
		CPU:        CPU{Workers: defaultDeviceWorkers},
		Memory:     Memory{Budget: MemoryShare{Percent: 80}, Margin: MemoryShare{Percent: 10}},
		Parameters: Parameters{Verify: CheckStructure},
		Priority: Priorities{
			PoRep:       shared.PriorityNormal,
			WinningPoSt: shared.PriorityCritical, // due within its epoch, 30 seconds
			WindowPoSt:  shared.PriorityHigh,     // due within its deadline, 30 minutes
			Update:      shared.PriorityNormal,
		},
		Witness:  Witness{Workers: defaultWitnessWorkers},
		Timeline: Timeline{Events: timeline.DefaultCapacity},
		Log:      Log{Level: LogInfo, Format: LogText},
		Plugin:   Plugin{StartTimeout: time.Minute, StopTimeout: 30 * time.Second, DetachIdle: time.Hour},
		Supervision: Supervision{
			ProbeInterval: 5 * time.Second, ProbeTimeout: 30 * time.Second, ProgressTimeout: 30 * time.Minute,
			Backoff: 500 * time.Millisecond, MaxBackoff: time.Minute,
			CrashLimit: 5, CrashWindow: 5 * time.Minute, CoolDown: 5 * time.Minute, Attempts: 2,
		},
		Journal: Journal{Retention: 24 * time.Hour},
	}
	cfg.fillIn(&fileSchema{})
	return cfg
}

// fillIn sets the defaults that depend on other settings.
func (c *Config) fillIn(written *fileSchema) {
	if written.CPU == nil || written.CPU.Enabled == nil {
		c.CPU.Enabled = written.CPU != nil || len(written.GPUs) == 0
	}
	if written.Witness == nil || written.Witness.Ahead == nil {
		// Enough for every worker of the pool, and for one waiting at every device.
		c.Witness.Ahead = max(c.Witness.Workers, c.devices())
	}
}

// devices is how many devices prove.
func (c *Config) devices() int {
	n := len(c.GPUs)
	if c.CPU.Enabled {
		n++
	}
	return n
}

// What follows is how a file spells the settings above. Attributes are kept as
// written, so that load.go can say where a fault is; all are optional. Names
// that are in none of these end up in Rest, where unknownNames finds them.

type fileSchema struct {
	GPUs        []*gpuSchema       `hcl:"gpu,block"`
	CUDA        *cudaSchema        `hcl:"cuda,block"`
	CPU         *cpuSchema         `hcl:"cpu,block"`
	Memory      *memorySchema      `hcl:"memory,block"`
	Parameters  *parametersSchema  `hcl:"parameters,block"`
	Priority    *prioritySchema    `hcl:"priority,block"`
	Witness     *witnessSchema     `hcl:"witness,block"`
	Timeline    *timelineSchema    `hcl:"timeline,block"`
	Log         *logSchema         `hcl:"log,block"`
	Plugin      *pluginSchema      `hcl:"plugin,block"`
	Supervision *supervisionSchema `hcl:"supervision,block"`
	Deadline    *deadlineSchema    `hcl:"deadline,block"`
	Journal     *journalSchema     `hcl:"journal,block"`
	Rest        hcl.Body           `hcl:",remain"`
}

type gpuSchema struct {
	Device      string         `hcl:"device,label"`
	DeviceRange hcl.Range      `hcl:"device,label_range"`
	Workers     *hcl.Attribute `hcl:"workers,optional"`
	CPUs        *hcl.Attribute `hcl:"cpus,optional"`
	MemoryLimit *hcl.Attribute `hcl:"memory_limit,optional"`
	Rest        hcl.Body       `hcl:",remain"`
}

type cudaSchema struct {
	Library  *hcl.Attribute `hcl:"library,optional"`
	Fallback *hcl.Attribute `hcl:"fallback,optional"`
	Rest     hcl.Body       `hcl:",remain"`
}

type cpuSchema struct {
	Enabled *hcl.Attribute `hcl:"enabled,optional"`
	Workers *hcl.Attribute `hcl:"workers,optional"`
	Threads *hcl.Attribute `hcl:"threads,optional"`
	CPUs    *hcl.Attribute `hcl:"cpus,optional"`
	Rest    hcl.Body       `hcl:",remain"`
}

type memorySchema struct {
	Budget *hcl.Attribute `hcl:"budget,optional"`
	Margin *hcl.Attribute `hcl:"margin,optional"`
	Rest   hcl.Body       `hcl:",remain"`
}

type parametersSchema struct {
	Dir      *hcl.Attribute `hcl:"dir,optional"`
	Preload  *hcl.Attribute `hcl:"preload,optional"`
	Verify   *hcl.Attribute `hcl:"verify,optional"`
	Manifest *hcl.Attribute `hcl:"manifest,optional"`
	Rest     hcl.Body       `hcl:",remain"`
}

// prioritySchema has the names of kinds of proof as they are everywhere else.
type prioritySchema struct {
	PoRep       *hcl.Attribute `hcl:"porep,optional"`
	WinningPoSt *hcl.Attribute `hcl:"winning-post,optional"`
	WindowPoSt  *hcl.Attribute `hcl:"window-post,optional"`
	Update      *hcl.Attribute `hcl:"update,optional"`
	Rest        hcl.Body       `hcl:",remain"`
}

type witnessSchema struct {
	Workers *hcl.Attribute `hcl:"workers,optional"`
	Threads *hcl.Attribute `hcl:"threads,optional"`
	Ahead   *hcl.Attribute `hcl:"ahead,optional"`
	Rest    hcl.Body       `hcl:",remain"`
}

type timelineSchema struct {
	Events *hcl.Attribute `hcl:"events,optional"`
	File   *hcl.Attribute `hcl:"file,optional"`
	Rest   hcl.Body       `hcl:",remain"`
}

type logSchema struct {
	Level  *hcl.Attribute `hcl:"level,optional"`
	Format *hcl.Attribute `hcl:"format,optional"`
	File   *hcl.Attribute `hcl:"file,optional"`
	Rest   hcl.Body       `hcl:",remain"`
}

type pluginSchema struct {
	Detach       *hcl.Attribute `hcl:"detach,optional"`
	DetachIdle   *hcl.Attribute `hcl:"detach_idle,optional"`
	SHA256       *hcl.Attribute `hcl:"sha256,optional"`
	StartTimeout *hcl.Attribute `hcl:"start_timeout,optional"`
	StopTimeout  *hcl.Attribute `hcl:"stop_timeout,optional"`
	Rest         hcl.Body       `hcl:",remain"`
}

type supervisionSchema struct {
	ProbeInterval   *hcl.Attribute `hcl:"probe_interval,optional"`
	ProbeTimeout    *hcl.Attribute `hcl:"probe_timeout,optional"`
	ProgressTimeout *hcl.Attribute `hcl:"progress_timeout,optional"`
	Backoff         *hcl.Attribute `hcl:"backoff,optional"`
	MaxBackoff      *hcl.Attribute `hcl:"max_backoff,optional"`
	CrashLimit      *hcl.Attribute `hcl:"crash_limit,optional"`
	CrashWindow     *hcl.Attribute `hcl:"crash_window,optional"`
	CoolDown        *hcl.Attribute `hcl:"cool_down,optional"`
	Attempts        *hcl.Attribute `hcl:"attempts,optional"`
	Rest            hcl.Body       `hcl:",remain"`
}

type deadlineSchema struct {
	RefuseHopeless *hcl.Attribute `hcl:"refuse_hopeless,optional"`
	Rest           hcl.Body       `hcl:",remain"`
}

type journalSchema struct {
	Dir       *hcl.Attribute `hcl:"dir,optional"`
	Retention *hcl.Attribute `hcl:"retention,optional"`
	Rest      hcl.Body       `hcl:",remain"`
}
