package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
)

func newDoctorCommand(s streams, g *globals) *cobra.Command {
	var digests bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "check this machine, the configuration, the plugin and the parameters, and say what to do",
		Long: `Checks everything that proving needs. Each line says ok, warn or FAIL; what is
not ok comes with what to do. Exits 1 if anything fails.`,
		Args: cobra.NoArgs,
	}
	c.Flags().BoolVar(&digests, "digests", false, "read every parameter file whole and print its digest; takes minutes for large sets")
	c.RunE = func(c *cobra.Command, _ []string) error {
		d := &doctor{out: s.out}
		d.examine(c.Context(), s, g, digests)
		if d.failed {
			return errReported
		}
		return nil
	}
	return c
}

// doctor writes what it finds, a line each.
type doctor struct {
	out    io.Writer
	failed bool
}

func (d *doctor) ok(format string, args ...any)   { fmt.Fprintf(d.out, "ok    "+format+"\n", args...) }
func (d *doctor) note(format string, args ...any) { fmt.Fprintf(d.out, "      "+format+"\n", args...) }

func (d *doctor) warn(remedy, format string, args ...any) {
	fmt.Fprintf(d.out, "warn  "+format+"\n", args...)
	d.note("%s", remedy)
}

func (d *doctor) fail(remedy, format string, args ...any) {
	d.failed = true
	fmt.Fprintf(d.out, "FAIL  "+format+"\n", args...)
	d.note("%s", remedy)
}

func (d *doctor) examine(ctx context.Context, s streams, g *globals, digests bool) {
	machine, err := config.DetectHardware()
	if err != nil {
		d.fail("Interlock runs on Linux and needs /proc and /sys; in a container, mount them.", "looking at this machine: %v", err)
		return
	}
	c, ok := d.configuration(s, g, machine)
	version, err := os.ReadFile("/proc/driver/nvidia/version")
	if err != nil {
		version = nil // no driver
	}
	d.driver(c, string(version))
	d.idle(c, machine)
	d.memory(c, machine)
	d.limits(c)
	if !ok {
		return
	}
	startable := d.library(ctx, g, c)
	var plugin *session
	if startable {
		if plugin = d.plugin(ctx, g, c); plugin != nil {
			defer plugin.stop()
		}
	}
	d.parameters(ctx, config.ParamsDir(g.params, c), plugin, digests)
}

func (d *doctor) configuration(s streams, g *globals, machine *config.Hardware) (*config.Config, bool) {
	path := config.Find(g.config)
	c, diags := config.Load(path)
	if !diags.HasErrors() {
		diags = append(diags, c.CheckHardware(machine)...)
	}
	if diags.HasErrors() {
		d.fail("Mend what is shown; `interlock config check` looks again.", "configuration %s:", c.Name())
		_ = config.WriteDiagnostics(d.out, diags, c.Files(), isTerminal(s.out)) // as every other line
		return c, false
	}
	if len(diags) > 0 {
		d.warn("See below.", "configuration %s:", c.Name())
		_ = config.WriteDiagnostics(d.out, diags, c.Files(), isTerminal(s.out))
		return c, true
	}
	if path == "" {
		d.ok("configuration: none, built-in defaults")
	} else {
		d.ok("configuration %s", path)
	}
	return c, true
}

// leastDriver is the first of NVIDIA's driver branches that serves CUDA 13, as the kernels need; with it comes 13.0. Older
// ones on cards for data centres can be made to by a package of NVIDIA's, cuda-compat.
const leastDriver = 580

// driverBranch finds the version's first number in what /proc/driver/nvidia/version says, which is like
// "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build".
var driverBranch = regexp.MustCompile(`\s(\d{3,})\.\d+(\.\d+)?\s`)

// driver looks at the driver. version is the text of /proc/driver/nvidia/version, empty if there is none.
func (d *doctor) driver(c *config.Config, version string) {
	const remedy = "Install NVIDIA's driver of branch 580 or later; in a container, run it with the NVIDIA container toolkit."
	line, _, _ := strings.Cut(version, "\n")
	line = strings.TrimSpace(line)
	switch {
	case line == "" && len(c.GPUs) > 0:
		d.fail(remedy, "driver: none is loaded, but the configuration names %d GPU(s)", len(c.GPUs))
	case line == "":
		d.ok("driver: none, and none is needed: the configuration proves on the CPU")
	default:
		branch := driverBranch.FindStringSubmatch(line + " ")
		if branch != nil && len(c.GPUs) > 0 {
			if number, err := strconv.Atoi(branch[1]); err == nil && number < leastDriver {
				d.warn(remedy, "driver: %s: CUDA 13 comes with branch %d and later", line, leastDriver)
				return
			}
		}
		d.ok("driver: %s", line)
	}
}

// idle says what the CPU does alone.
func (d *doctor) idle(c *config.Config, machine *config.Hardware) {
	if len(c.GPUs) > 0 {
		return
	}
	for _, gpu := range machine.GPUs {
		d.ok("GPU %s", gpu)
	}
	if len(machine.GPUs) > 0 {
		d.warn(`To prove on them, write a block such as gpu "0" {} for each.`, "the CPU proves, and %d GPU(s) of this machine are idle", len(machine.GPUs))
	} else {
		d.ok("the CPU proves; no card is idle")
	}
}

const (
	// cardsTimeout is how long the plugin's program may take to look at cards: the driver may have to initialise each.
	cardsTimeout = time.Minute
	// hotCelsius is from where on cards slow down to protect themselves.
	hotCelsius = 85
)

// library has the plugin's program load the library and look at the cards that the configuration names. It tells whether
// there is a use in starting the plugin, which needs them.
func (d *doctor) library(ctx context.Context, g *globals, c *config.Config) (startable bool) {
	if len(c.GPUs) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cardsTimeout, fmt.Errorf("no answer within %v: the driver may hang, see dmesg", cardsTimeout))
	defer cancel()
	report, err := host.DescribeCards(ctx, hostOptions(g, c, hclog.NewNullLogger()), c.CUDA.Library)
	if err != nil {
		d.fail("The message says why; `make build` or the package installs both programs side by side.", "cards: %v", err)
		return false
	}
	d.cards(c, report)
	return report.Fault == ""
}

// cards compares what the configuration names with what CUDA shows.
func (d *doctor) cards(c *config.Config, report shared.CardsReport) {
	if report.Fault != "" {
		remedy := report.Remedy
		if remedy == "" {
			remedy = "See dmesg and nvidia-smi; a card that was lost needs the machine to be started anew."
		}
		d.fail(sentence(remedy), "cards: %s", report.Fault)
		return
	}
	d.ok("library: %s, interface version %d", report.Library, report.LibraryVersion)
	if report.DriverCUDA > 0 {
		d.ok("driver: serves CUDA %d.%d", report.DriverCUDA/1000, report.DriverCUDA%1000/10)
	}
	// Numbered as the configuration does, by PCI address.
	shown := &config.Hardware{}
	cards := slices.SortedFunc(slices.Values(report.Cards), func(a, b shared.Card) int { return cmp.Compare(a.PCIAddress, b.PCIAddress) })
	for i, card := range cards {
		shown.GPUs = append(shown.GPUs, config.HardwareGPU{Index: i, UUID: card.UUID, PCIAddress: card.PCIAddress, Model: card.Model})
	}
	for _, gpu := range c.GPUs {
		found, isThere := shown.FindGPU(gpu.ID)
		if !isThere {
			d.fail("`nvidia-smi -L` lists cards; CUDA_VISIBLE_DEVICES, or what the container was given, may hide some.",
				"GPU %s: it is not among the %d that CUDA shows", gpu.ID, len(cards))
			continue
		}
		d.card(gpu, cards[found.Index])
	}
}

// card looks at one card that the configuration names.
func (d *doctor) card(gpu config.GPU, card shared.Card) {
	about := fmt.Sprintf("GPU %s: %s, %s of %s free", gpu.ID, card.Model, size(card.FreeBytes), size(card.MemoryBytes))
	if card.TemperatureCelsius != 0 {
		about += fmt.Sprintf(", %d °C", card.TemperatureCelsius)
	}
	limit := uint64(gpu.MemoryLimit)
	const others = "End what else uses the card (nvidia-smi lists it, this prover among it if it is serving), or lower memory_limit."
	switch {
	case limit > card.MemoryBytes:
		d.warn("Lower memory_limit, or leave it out.", "%s; its memory_limit of %s is more than it has", about, gpu.MemoryLimit)
	case limit > card.FreeBytes:
		d.warn(others, "%s; its memory_limit is %s", about, gpu.MemoryLimit)
	case limit == 0 && card.FreeBytes < card.MemoryBytes/10*9:
		d.warn(others, "%s: something else uses it", about)
	default:
		d.ok("%s", about)
	}
	if card.TemperatureCelsius > hotCelsius {
		d.warn("Cards slow down at about this temperature. Look at fans, filters and the air that comes in.", "GPU %s: %d °C", gpu.ID, card.TemperatureCelsius)
	}
}

// sentence gives a text a capital letter and a full stop.
func sentence(text string) string {
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

func (d *doctor) memory(c *config.Config, machine *config.Hardware) {
	reservable := c.Memory.ReservableBytes(machine.MemoryBytes)
	switch {
	case reservable == 0:
		d.fail("Raise memory { budget } or lower its margin.", "memory: the budget leaves nothing to partitions and parameters")
	case reservable > machine.AvailableBytes:
		d.warn("End other programs, or lower memory { budget }: beyond what is free, the kernel swaps or kills.",
			"memory: %s may be reserved, but only %s are free now", size(uint64(reservable)), size(uint64(machine.AvailableBytes)))
	default:
		d.ok("memory: %s may be reserved of %s; %s are free now", size(uint64(reservable)), size(uint64(machine.MemoryBytes)), size(uint64(machine.AvailableBytes)))
	}
}

// What a process needs of its limits: sockets and parameter files by the hundred; pinned buffers by the gibibyte.
const (
	wantedFiles  = 4096
	wantedLocked = 8 << 30
)

func (d *doctor) limits(c *config.Config) {
	var files, locked unix.Rlimit
	if err := errors.Join(unix.Getrlimit(unix.RLIMIT_NOFILE, &files), unix.Getrlimit(unix.RLIMIT_MEMLOCK, &locked)); err != nil {
		d.fail("", "limits: %v", err)
		return
	}
	if files.Max < wantedFiles {
		d.warn("Raise it: LimitNOFILE= of the systemd unit, or /etc/security/limits.conf.", "limits: %d file handles; %d are better", files.Max, wantedFiles)
	} else {
		d.ok("limits: %d file handles", files.Max)
	}
	switch {
	case locked.Max == unix.RLIM_INFINITY:
		d.ok("limits: locked memory without bound")
	case locked.Max < wantedLocked && len(c.GPUs) > 0:
		d.warn("Raise it: LimitMEMLOCK=infinity in the systemd unit; pinned transfers fall back to slower ones without.", "limits: %s of locked memory", size(locked.Max))
	default:
		d.ok("limits: %s of locked memory", size(locked.Max))
	}
}

// plugin starts the plugin and asks what it is.
func (d *doctor) plugin(ctx context.Context, g *globals, c *config.Config) *session {
	h, err := host.Start(ctx, hostOptions(g, c, hclog.NewNullLogger()))
	if err != nil {
		remedy := "The message says why; `make build` or the package installs both programs side by side."
		if errors.As(err, new(*shared.PluginDiedError)) {
			remedy = "What it last wrote says why."
		}
		d.fail(remedy, "plugin: %v", err)
		return nil
	}
	plugin := &session{h, ctx}
	st, err := plugin.Status(ctx)
	switch {
	case err != nil:
		d.fail("Start it again with --verbose and see its log.", "plugin: it started but does not say what it does: %v", err)
	case st.Version != shared.Version:
		d.warn("Install both programs of one version.", "plugin: version %s beside %s of this program", st.Version, shared.Version)
	default:
		d.ok("plugin: version %s starts and answers", st.Version)
	}
	d.devices(c, st)
	return plugin
}

// devices says what the plugin proves with.
func (d *doctor) devices(c *config.Config, st shared.Status) {
	for _, device := range st.Devices {
		switch {
		case device.OutOfUse != "":
			d.fail("Its log says more.", "device %s: %s", device.Name, device.OutOfUse)
		case device.Model == "CPU" && !c.CPU.Enabled:
			d.ok("device %s: stands in when no card can prove, as cuda { fallback = %q } says", device.Name, c.CUDA.Fallback)
		default:
			d.ok("device %s: %s, %d workers", device.Name, device.Model, device.Workers)
		}
	}
}

// servedBy says which kinds a parameter set is for, by its name as the originals form it.
var servedBy = []struct{ prefix, kinds string }{
	{"stacked-proof-of-replication-", "porep"},
	{"proof-of-spacetime-fallback-", "winning-post or window-post"},
	{"empty-sector-update-", "update"},
}

func (d *doctor) parameters(ctx context.Context, dir string, plugin *session, digests bool) {
	const remedy = "Fetch the parameters of your sector size with the tool of the proofs library, or name their folder with --params or parameters { dir }."
	files, err := filepath.Glob(filepath.Join(dir, "v28-*.params"))
	if err == nil {
		_, err = os.Stat(dir)
	}
	switch {
	case err != nil:
		d.fail(remedy, "parameters: %v", err)
		return
	case len(files) == 0:
		d.fail(remedy, "parameters: %s has none (v28-*.params)", dir)
		return
	}
	for _, file := range files {
		d.parameterSet(ctx, file, plugin, digests)
	}
}

func (d *doctor) parameterSet(ctx context.Context, file string, plugin *session, digests bool) {
	base := strings.TrimSuffix(file, ".params")
	name := strings.TrimPrefix(filepath.Base(base), "v28-")
	kinds := "an unknown kind"
	for _, s := range servedBy {
		if strings.HasPrefix(name, s.prefix) {
			kinds = s.kinds
		}
	}
	info, err := os.Stat(file)
	if err != nil {
		d.fail("Make it readable for the user that proves.", "parameters: %v", err)
		return
	}
	if _, err := os.Stat(base + ".vk"); err != nil {
		d.fail("Fetch it again: without its verifying key a set cannot be used.", "parameters %s: %v", filepath.Base(file), err)
		return
	}
	d.ok("parameters %s: %s, for %s", filepath.Base(file), size(uint64(info.Size())), kinds)
	if _, err := os.Stat(base + ".insecure"); err == nil {
		d.warn("Never use it but for tests.", "parameters %s: INSECURE, made for development", filepath.Base(file))
	}
	if !digests || plugin == nil {
		return
	}
	report, err := plugin.Toolbox().CheckParams(ctx, file, nil)
	if err != nil {
		d.fail("Fetch the file again.", "%v", err)
		return
	}
	d.note("structure and points are right; blake2b %s, sha256 %s", report.Blake2b, report.SHA256)
	for _, left := range report.Leftovers {
		d.warn("Remove it, or let the next setup in that folder do it.", "parameters %s: a setup that was killed left %s", filepath.Base(file), left)
	}
}
