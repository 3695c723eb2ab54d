package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"golang.org/x/sys/unix"

	"github.com/interlock-prover/interlock/shared/files"
)

// Check is `interlock config check`: it reads the file at path, compares it
// with the machine unless hw is nil, and writes every message to w. Warnings
// alone are no failure.
func Check(path string, hw *Hardware, w io.Writer, color bool) (ok bool) {
	cfg, diags := Load(path)
	if hw != nil {
		diags = append(diags, cfg.CheckHardware(hw)...)
	}
	sortDiagnostics(diags)
	err := WriteDiagnostics(w, diags, cfg.Files(), color)
	return err == nil && !diags.HasErrors()
}

// Name says for messages where the configuration came from.
func (c *Config) Name() string {
	if c.Path == "" {
		return "the built-in configuration"
	}
	return c.Path
}

// place returns where the value that field points to is written, or nil if it
// is not.
func (c *Config) place(field any) *hcl.Range {
	if place, found := c.places[field]; found {
		return &place
	}
	return nil
}

// check applies the rules between settings that hold on every machine.
func (c *Config) check() hcl.Diagnostics {
	var diags hcl.Diagnostics
	add := func(diag *hcl.Diagnostic) { diags = append(diags, diag) }

	if c.devices() == 0 {
		add(fault(c.place(&c.CPU.Enabled), "No device to prove with",
			`The CPU is switched off and no GPU is named. Name one, as in: gpu "0" {}, or leave enabled out.`))
	}

	for i := range c.GPUs {
		gpu := &c.GPUs[i]
		for j := range i {
			first := &c.GPUs[j]
			if c.place(&gpu.ID) != nil && c.place(&first.ID) != nil && gpu.ID == first.ID {
				add(fault(c.place(&gpu.ID), "Duplicate GPU", "This card is named already at %s.", c.place(&first.ID)))
				break
			}
		}
	}

	owners := c.cpuOwners()
	for i, owner := range owners {
		for _, earlier := range owners[:i] {
			if both := owner.cpus.Intersect(*earlier.cpus); len(both) > 0 {
				add(fault(c.place(owner.cpus), "Overlapping CPU sets", "%s given to %s already, at %s.",
					plural("CPU", both), earlier.name, c.place(earlier.cpus)))
			}
		}
	}

	if c.Witness.Ahead < c.Witness.Workers {
		place := c.place(&c.Witness.Ahead)
		add(fault(place, "Workers without work",
			"With %d ahead, no more than %d of the %d witness workers could ever work. Raise ahead, or lower workers.",
			c.Witness.Ahead, c.Witness.Ahead, c.Witness.Workers))
	}

	if v := &c.Supervision; v.MaxBackoff < v.Backoff {
		place := c.place(&v.MaxBackoff)
		if place == nil {
			place = c.place(&v.Backoff)
		}
		add(fault(place, "Backoff above its limit", "The first wait of %v is longer than the longest, max_backoff, of %v.", v.Backoff, v.MaxBackoff))
	}

	if !c.marginNeedsMachine() {
		diags = append(diags, c.checkMargin(TiB)...)
	}
	return diags
}

// marginNeedsMachine says whether only the size of the machine's memory tells
// if the margin is smaller than the budget.
func (c *Config) marginNeedsMachine() bool {
	return c.Memory.Budget.Percent != 0 && c.Memory.Margin.Percent == 0
}

func (c *Config) checkMargin(machine ByteSize) hcl.Diagnostics {
	budget := c.Memory.BudgetBytes(machine)
	if c.Memory.Margin.Of(budget) < budget {
		return nil
	}
	place := c.place(&c.Memory.Margin)
	if place == nil {
		place = c.place(&c.Memory.Budget)
	}
	budgetText := c.Memory.Budget.String()
	if c.marginNeedsMachine() {
		budgetText += fmt.Sprintf(" (%s)", budget.Approx())
	}
	return hcl.Diagnostics{fault(place, "No memory left to work with",
		"A margin of %s leaves nothing of the budget of %s. The margin must be smaller.", c.Memory.Margin, budgetText)}
}

// cpuOwner is a device with CPUs of its own.
type cpuOwner struct {
	name string
	cpus *CPUSet
}

func (c *Config) cpuOwners() []cpuOwner {
	var owners []cpuOwner
	for i := range c.GPUs {
		owners = append(owners, cpuOwner{fmt.Sprintf("gpu %q", c.GPUs[i].ID), &c.GPUs[i].CPUs})
	}
	if c.CPU.Enabled {
		owners = append(owners, cpuOwner{"the CPU device", &c.CPU.CPUs})
	}
	return slices.DeleteFunc(owners, func(owner cpuOwner) bool { return len(*owner.cpus) == 0 })
}

// plural says which CPUs are or have something: "CPU 3 is", "CPUs 0-3 are".
func plural(noun string, set CPUSet) string {
	if len(set) == 1 {
		return fmt.Sprintf("%s %s is", noun, set)
	}
	return fmt.Sprintf("%ss %s are", noun, set)
}

// CheckHardware compares the configuration with a machine: cards, CPUs, memory
// and paths. It may follow a [Load] with errors, to show all faults at once.
func (c *Config) CheckHardware(hw *Hardware) hcl.Diagnostics {
	var diags hcl.Diagnostics
	diags = append(diags, c.checkGPUs(hw)...)
	diags = append(diags, c.checkCPUs(hw)...)
	diags = append(diags, c.checkMemory(hw)...)
	diags = append(diags, c.checkPaths()...)
	sortDiagnostics(diags)
	return diags
}

func (c *Config) checkGPUs(hw *Hardware) hcl.Diagnostics {
	var diags hcl.Diagnostics
	named := make(map[string]*GPU) // by PCI address
	for i := range c.GPUs {
		gpu := &c.GPUs[i]
		place := c.place(&gpu.ID)
		if place == nil {
			continue // its name could not be read, which Load has said
		}
		card, found := hw.FindGPU(gpu.ID)
		if !found {
			diags = append(diags, unknownGPU(place, gpu.ID, hw))
			continue
		}
		first := named[card.PCIAddress]
		if first == nil {
			named[card.PCIAddress] = gpu
		} else if first.ID != gpu.ID { // the same name twice is what check reports
			diags = append(diags, fault(place, "Duplicate GPU", "%q is the same card as %q at %s.",
				gpu.ID, first.ID, c.place(&first.ID)))
		}
	}
	return diags
}

func unknownGPU(place *hcl.Range, id GPUID, hw *Hardware) *hcl.Diagnostic {
	if len(hw.GPUs) == 0 {
		return fault(place, "Unknown GPU",
			"No NVIDIA card is visible to this process: either there is none, or the driver is not loaded, or a container was not given it. Without GPUs, leave gpu blocks out: the CPU proves.")
	}
	var cards, ids []string
	isInitialised := true
	for _, card := range hw.GPUs {
		cards = append(cards, card.String())
		ids = append(ids, card.UUID, card.PCIAddress)
		isInitialised = isInitialised && card.UUID != ""
	}
	if id.UUID != "" && !isInitialised {
		return warning(place, "Unknown GPU",
			"The driver has not initialised all cards yet, so that their UUIDs are unknown; %q may be one of them. nvidia-persistenced keeps cards initialised.", id)
	}
	text := fmt.Sprintf("This machine has no card %q.", id)
	if id.UUID != "" || id.PCIAddress != "" {
		if better := suggestion(id.String(), ids); better != "" {
			text += fmt.Sprintf(" Did you mean %q?", better)
		}
	}
	return fault(place, "Unknown GPU", "%s Its cards are:\n  %s", text, strings.Join(cards, "\n  "))
}

func (c *Config) checkCPUs(hw *Hardware) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, owner := range c.cpuOwners() {
		if missing := owner.cpus.Minus(hw.CPUs); len(missing) > 0 {
			diags = append(diags, fault(c.place(owner.cpus), "Unknown CPUs",
				"%s not among those that this process may run on, which are %s.", plural("CPU", missing), hw.CPUs))
		}
	}
	for _, threads := range []*int{&c.CPU.Threads, &c.Witness.Threads} {
		if *threads > len(hw.CPUs) {
			diags = append(diags, warning(c.place(threads), "More threads than CPUs",
				"%d threads share the %d CPUs that this process may run on. That is no faster than %d threads.",
				*threads, len(hw.CPUs), len(hw.CPUs)))
		}
	}
	return diags
}

func (c *Config) checkMemory(hw *Hardware) hcl.Diagnostics {
	var diags hcl.Diagnostics
	budget := c.Memory.BudgetBytes(hw.MemoryBytes)
	place := c.place(&c.Memory.Budget)
	if budget > hw.MemoryBytes {
		diags = append(diags, fault(place, "Budget above the machine's memory",
			"%s is more than the %s that the machine and this process's control group allow.", c.Memory.Budget, hw.MemoryBytes.Approx()))
	} else if c.Memory.Budget.Percent == 0 && budget > hw.AvailableBytes {
		diags = append(diags, warning(place, "Budget above the memory available now",
			"Of the machine's %s, other programs leave %s at present, less than the budget of %s.",
			hw.MemoryBytes.Approx(), hw.AvailableBytes.Approx(), c.Memory.Budget))
	}
	if c.marginNeedsMachine() {
		diags = append(diags, c.checkMargin(hw.MemoryBytes)...)
	}
	return diags
}

func (c *Config) checkPaths() hcl.Diagnostics {
	var diags hcl.Diagnostics
	if dir := &c.Parameters.Dir; *dir != "" {
		info, err := os.Stat(*dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			diags = append(diags, warning(c.place(dir), "Missing folder",
				"The folder %s does not exist. Proofs need parameter files there.", *dir))
		case err != nil:
			diags = append(diags, fault(c.place(dir), "Unusable folder", "%s: %s.", *dir, reason(err)))
		case !info.IsDir():
			diags = append(diags, fault(c.place(dir), "Unusable folder", "%s is a file, not a folder of parameter files.", *dir))
		}
	}
	for _, file := range []struct {
		path    *string
		summary string
	}{{&c.Parameters.Manifest, "Unreadable manifest"}, {&c.CUDA.Library, "Unreadable library"}} {
		if *file.path == "" {
			continue
		}
		if why := unreadable(*file.path); why != "" {
			diags = append(diags, fault(c.place(file.path), file.summary, "%s: %s.", *file.path, why))
		}
	}
	if dir := &c.Journal.Dir; *dir != "" {
		if why := unusableFolder(*dir); why != "" {
			diags = append(diags, fault(c.place(dir), "Unusable folder", "%s.", why))
		}
	}
	for _, file := range []*string{&c.Timeline.File, &c.Log.File} {
		if *file == "" {
			continue
		}
		if why := unwritable(*file); why != "" {
			diags = append(diags, fault(c.place(file), "File cannot be written", "%s.", why))
		}
	}
	return diags
}

// unreadable says why a file could not be read by this process, or "".
func unreadable(path string) string {
	f, _, err := files.OpenRegular(path)
	if err != nil {
		return reason(err)
	}
	f.Close()
	return ""
}

// unwritable says why a file could not be written by this process, or "". It
// changes nothing.
func unwritable(file string) string {
	info, err := os.Stat(file)
	switch {
	case err == nil && info.IsDir():
		return file + " is a folder"
	case err == nil:
		err = unix.Access(file, unix.W_OK)
	case errors.Is(err, fs.ErrNotExist):
		folder := filepath.Dir(file)
		if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
			return fmt.Sprintf("The folder %s does not exist. Create it first", folder)
		}
		// To make a file takes writing and searching its folder.
		if err := unix.Access(folder, unix.W_OK|unix.X_OK); err != nil {
			return fmt.Sprintf("%s: %s", folder, reason(err))
		}
		return ""
	}
	if err != nil {
		return fmt.Sprintf("%s: %s", file, reason(err))
	}
	return ""
}

// unusableFolder says why a folder could not be written to by this process, or
// be made if there is none, or "". It changes nothing.
func unusableFolder(folder string) string {
	info, err := os.Stat(folder)
	if errors.Is(err, fs.ErrNotExist) && folder != filepath.Dir(folder) {
		return unusableFolder(filepath.Dir(folder)) // where it is going to be made
	}
	if err == nil && !info.IsDir() {
		return folder + " is a file, not a folder"
	}
	if err == nil {
		err = unix.Access(folder, unix.W_OK|unix.X_OK)
	}
	if err != nil {
		return fmt.Sprintf("%s: %s", folder, reason(err))
	}
	return ""
}
