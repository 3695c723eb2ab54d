package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/timeline"
)

// PluginProgram is the name of the plugin's program.
const PluginProgram = "interlock-prover"

// ErrStopped is what calls fail with that the host's own Stop put an end to, and all calls after it.
var ErrStopped = errors.New("the host has stopped its plugin")

// Options say which plugin to start and how. The zero value starts the plugin that is installed beside the running
// program, or is in the PATH, with its built-in defaults.
type Options struct {
	PluginPath string // the plugin's program; empty: see FindPlugin
	// PluginSHA256 is what the program must have, in hex; another one is not started, which is a [*ChecksumError]. It is
	// checked at each start. Empty: any program is started.
	PluginSHA256 string
	Args         []string // its arguments; to serve, the plugin of this project takes none
	Env          []string // added to this process's environment, as "KEY=value"

	ConfigPath string // the plugin's configuration file; empty: built-in defaults
	ParamsDir  string // parameter directory that goes before the configuration's
	// NoPreload has the plugin load no parameters before they are needed, whatever the configuration says: for a plugin
	// that is used once.
	NoPreload bool

	// Logger gets the plugin's log, each line with its level and fields, as far as the logger's level lets it through.
	// Nil: nothing is logged.
	Logger hclog.Logger

	StartTimeout time.Duration // until the plugin answers; 0: a minute
	StopTimeout  time.Duration // until a plugin that was asked to end is killed; 0: 10 seconds
}

func (o Options) withDefaults() (Options, error) {
	if o.PluginPath == "" {
		path, err := FindPlugin()
		if err != nil {
			return o, err
		}
		o.PluginPath = path
	}
	if info, err := os.Stat(o.PluginPath); errors.Is(err, fs.ErrNotExist) {
		return o, fmt.Errorf("the plugin's program %s does not exist: install %s there, or name where it is", o.PluginPath, PluginProgram)
	} else if err != nil {
		return o, fmt.Errorf("the plugin's program: %w", err)
	} else if info.IsDir() || info.Mode()&0o111 == 0 {
		return o, fmt.Errorf("the plugin's program %s cannot be executed", o.PluginPath)
	}
	if sum, err := hex.DecodeString(o.PluginSHA256); err != nil || len(sum) != sha256.Size && len(sum) != 0 {
		return o, fmt.Errorf("%q is no SHA-256 of the plugin's program, which has %d hex digits", o.PluginSHA256, 2*sha256.Size)
	}
	for _, path := range []*string{&o.PluginPath, &o.ConfigPath, &o.ParamsDir} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return o, err
		}
		*path = absolute
	}
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = time.Minute
	}
	if o.StopTimeout == 0 {
		o.StopTimeout = 10 * time.Second
	}
	return o, nil
}

// environment is how the plugin learns its configuration.
func (o Options) environment() []string {
	preload := "yes"
	if o.NoPreload {
		preload = "no"
	}
	return []string{
		shared.EnvPreload + "=" + preload,
		shared.EnvConfig + "=" + o.ConfigPath,
		shared.EnvParams + "=" + o.ParamsDir,
		shared.EnvLogLevel + "=" + min(o.Logger.GetLevel(), hclog.Warn).String(), // warnings are part of a PluginDiedError
		shared.EnvLifeline + "=stdin",
	}
}

// FindPlugin looks for the plugin's program beside the running one, then in the PATH.
func FindPlugin() (string, error) {
	self, err := os.Executable()
	if err == nil {
		beside := filepath.Join(filepath.Dir(self), PluginProgram)
		if info, err := os.Stat(beside); err == nil && !info.IsDir() {
			return beside, nil
		}
	}
	path, err := exec.LookPath(PluginProgram)
	if err != nil {
		return "", fmt.Errorf("the plugin %s is neither beside this program nor in the PATH: install it there, or name where it is", PluginProgram)
	}
	return path, nil
}

// Host holds a running plugin. It is a [shared.Prover]; its methods may be called from any number of goroutines. When
// the plugin ends, calls in flight fail within a second, later ones at once, with [*shared.PluginDiedError], or with
// [ErrStopped] after Stop. If the connection breaks while the process goes on for more than that, because it takes its
// time to end, they fail with [shared.ErrUnreachable].
type Host struct {
	instance *instance
}

var _ shared.Prover = (*Host)(nil)

// Start starts a plugin and waits until it answers. ctx bounds the start alone. A plugin that ends instead, because its
// configuration is faulty for example, makes Start fail with a [*shared.PluginDiedError] that has what it said.
//
// Every Host needs a Stop, also after its plugin has died.
func Start(ctx context.Context, options Options) (*Host, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	instance, err := startInstance(ctx, options)
	if err != nil {
		return nil, err
	}
	return &Host{instance: instance}, nil
}

// Stop ends the plugin: calls in flight fail with [ErrStopped], the plugin is asked to end, and killed if it has not
// done so when ctx or [Options.StopTimeout] ends. When Stop returns nil, the process is gone and had ended in order or
// on its own; an error says that it had to be killed. Further calls do no harm.
func (h *Host) Stop(ctx context.Context) error { return h.instance.stop(ctx) }

// Done is closed when the plugin has ended or is being stopped; Err then says why.
func (h *Host) Done() <-chan struct{} { return h.instance.life.Done() }

// Err is nil while the plugin lives, then what calls fail with.
func (h *Host) Err() error { return context.Cause(h.instance.life) }

// PID is the plugin's process id.
func (h *Host) PID() int { return h.instance.pid() }

// Health asks the plugin whether it serves. A plugin that hangs makes Health wait until ctx ends.
func (h *Host) Health(ctx context.Context) error {
	return h.instance.call(ctx, func(ctx context.Context, c *shared.Client) error { return c.Ping(ctx) })
}

// caller passes calls to a plugin.
type caller interface {
	call(ctx context.Context, call func(context.Context, *shared.Client) error) error
}

// through passes a call that has a result to the plugin.
func through[R any](ctx context.Context, to caller, call func(context.Context, *shared.Client) (R, error)) (R, error) {
	var result R
	err := to.call(ctx, func(ctx context.Context, c *shared.Client) (err error) {
		result, err = call(ctx, c)
		return err
	})
	return result, err
}

// Prove implements [shared.Prover].
func (h *Host) Prove(ctx context.Context, request shared.Request, progress func(shared.Progress)) (shared.Result, error) {
	return through(ctx, h.instance, func(ctx context.Context, c *shared.Client) (shared.Result, error) {
		return c.Prove(ctx, request, progress)
	})
}

// Submit implements [shared.Prover].
func (h *Host) Submit(ctx context.Context, request shared.Request) (shared.JobID, error) {
	return through(ctx, h.instance, func(ctx context.Context, c *shared.Client) (shared.JobID, error) {
		return c.Submit(ctx, request)
	})
}

// Await implements [shared.Prover].
func (h *Host) Await(ctx context.Context, job shared.JobID) (shared.Result, error) {
	return through(ctx, h.instance, func(ctx context.Context, c *shared.Client) (shared.Result, error) {
		return c.Await(ctx, job)
	})
}

// Cancel implements [shared.Prover].
func (h *Host) Cancel(ctx context.Context, job shared.JobID) (wasRunning bool, err error) {
	return through(ctx, h.instance, func(ctx context.Context, c *shared.Client) (bool, error) {
		return c.Cancel(ctx, job)
	})
}

// Status implements [shared.Prover].
func (h *Host) Status(ctx context.Context) (shared.Status, error) {
	return through(ctx, h.instance, func(ctx context.Context, c *shared.Client) (shared.Status, error) {
		return c.Status(ctx)
	})
}

// Timeline implements [shared.Prover].
func (h *Host) Timeline(ctx context.Context) (timeline.Recording, error) {
	return through(ctx, h.instance, func(ctx context.Context, c *shared.Client) (timeline.Recording, error) {
		return c.Timeline(ctx)
	})
}

// Toolbox gives what the plugin does beside proofs. It ends with the host.
func (h *Host) Toolbox() shared.Toolbox { return toolbox{h.instance} }

type toolbox struct{ caller }

func (t toolbox) Verify(ctx context.Context, request shared.Request, proof []byte) (bool, error) {
	return through(ctx, t, func(ctx context.Context, c *shared.Client) (bool, error) {
		return c.Verify(ctx, request, proof)
	})
}

func (t toolbox) SetupParams(ctx context.Context, request shared.SetupRequest, progress func(shared.Progress)) (shared.SetupResult, error) {
	return through(ctx, t, func(ctx context.Context, c *shared.Client) (shared.SetupResult, error) {
		return c.SetupParams(ctx, request, progress)
	})
}

func (t toolbox) CheckParams(ctx context.Context, path string, progress func(shared.Progress)) (shared.ParamsReport, error) {
	return through(ctx, t, func(ctx context.Context, c *shared.Client) (shared.ParamsReport, error) {
		return c.CheckParams(ctx, path, progress)
	})
}

func (t toolbox) CircuitDigest(ctx context.Context, request shared.CircuitRequest, progress func(shared.Progress)) (shared.CircuitDigest, error) {
	return through(ctx, t, func(ctx context.Context, c *shared.Client) (shared.CircuitDigest, error) {
		return c.CircuitDigest(ctx, request, progress)
	})
}

func (t toolbox) Preload(ctx context.Context, request shared.CircuitRequest) (shared.PreloadResult, error) {
	return through(ctx, t, func(ctx context.Context, c *shared.Client) (shared.PreloadResult, error) {
		return c.Preload(ctx, request)
	})
}

func (t toolbox) Evict(ctx context.Context, request shared.CircuitRequest) (shared.EvictResult, error) {
	return through(ctx, t, func(ctx context.Context, c *shared.Client) (shared.EvictResult, error) {
		return c.Evict(ctx, request)
	})
}

func (t toolbox) Bench(ctx context.Context, request shared.BenchRequest, out func(line string)) error {
	return t.call(ctx, func(ctx context.Context, c *shared.Client) error {
		return c.Bench(ctx, request, out)
	})
}
