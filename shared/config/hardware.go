package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Hardware is what a configuration is checked against: a machine as one
// process sees it. [DetectHardware] describes the machine it runs on; a test
// describes any other.
type Hardware struct {
	// CPUs that this process may run on.
	CPUs CPUSet
	// MemoryBytes is what this process may use at most: the machine's memory
	// or a control group's limit, whichever is lower.
	MemoryBytes ByteSize
	// AvailableBytes is how much of the machine's memory programs could take
	// now without swapping, as the kernel estimates it.
	AvailableBytes ByteSize
	// GPUs in the order of their index.
	GPUs []HardwareGPU
}

// HardwareGPU is one NVIDIA card.
type HardwareGPU struct {
	Index      int    // position in PCI bus order, as nvidia-smi numbers cards
	UUID       string // "GPU-…"; empty while the driver has not initialised the card
	PCIAddress string // domain:bus:device.function, "0000:41:00.0"
	Model      string // "NVIDIA H200"
}

// String writes the card as a line of a list: "0: NVIDIA H200, 0000:41:00.0, GPU-…".
func (g HardwareGPU) String() string {
	text := fmt.Sprintf("%d: %s, %s", g.Index, g.Model, g.PCIAddress)
	if g.UUID != "" {
		text += ", " + g.UUID
	}
	return text
}

// FindGPU returns the card that id names.
func (h *Hardware) FindGPU(id GPUID) (HardwareGPU, bool) {
	i := slices.IndexFunc(h.GPUs, func(gpu HardwareGPU) bool {
		switch {
		case id.UUID != "":
			return gpu.UUID == id.UUID
		case id.PCIAddress != "":
			return gpu.PCIAddress == id.PCIAddress
		default:
			return gpu.Index == id.Index
		}
	})
	if i < 0 {
		return HardwareGPU{}, false
	}
	return h.GPUs[i], true
}

// GPUID is how a configuration names a card. One way of three is used: UUID or
// PCIAddress if not empty, else Index.
type GPUID struct {
	Index      int
	UUID       string
	PCIAddress string
}

var (
	uuidForm = regexp.MustCompile(`^(?i:gpu)-([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$`)
	pciForm  = regexp.MustCompile(`^(?:(?:0000)?([0-9a-fA-F]{4}):)?([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])$`)
)

// ParseGPUID reads the label of a gpu block: an index ("0"), a UUID
// ("GPU-2d990430-f243-2137-3cfb-69a61ff03be6") or a PCI address, with or
// without its domain ("0000:41:00.0", "41:00.0", and "00000000:41:00.0" as
// nvidia-smi writes it).
func ParseGPUID(label string) (GPUID, error) {
	if isDigits(label) {
		if index, err := strconv.Atoi(label); err == nil && index <= maxGPUIndex {
			return GPUID{Index: index}, nil
		}
		return GPUID{}, fmt.Errorf("%q is above the largest GPU index, %d", label, maxGPUIndex)
	}
	if match := uuidForm.FindStringSubmatch(label); match != nil {
		return GPUID{UUID: "GPU-" + strings.ToLower(match[1])}, nil
	}
	if match := pciForm.FindStringSubmatch(label); match != nil {
		domain := cmp.Or(match[1], "0000")
		return GPUID{PCIAddress: strings.ToLower(domain + ":" + match[2])}, nil
	}
	return GPUID{}, fmt.Errorf(`%q is neither an index ("0"), a UUID ("GPU-2d990430-f243-2137-3cfb-69a61ff03be6") nor a PCI address ("0000:41:00.0")`, label)
}

// maxGPUIndex bounds what a configuration may name; no driver numbers higher.
const maxGPUIndex = 255

// String writes the name as [ParseGPUID] reads it.
func (id GPUID) String() string {
	return cmp.Or(id.UUID, id.PCIAddress, strconv.Itoa(id.Index))
}

// DetectHardware describes the Linux machine that it runs on from what the
// kernel and the NVIDIA driver show in /proc, /sys and /dev. It needs no CUDA.
func DetectHardware() (*Hardware, error) {
	return detectHardware(os.DirFS("/"))
}

func detectHardware(root fs.FS) (*Hardware, error) {
	cpus, err := allowedCPUs(root)
	if err != nil {
		return nil, fmt.Errorf("finding out which CPUs this process may use: %w", err)
	}
	total, available, err := machineMemory(root)
	if err != nil {
		return nil, fmt.Errorf("finding out how much memory this machine has: %w", err)
	}
	gpus, err := nvidiaGPUs(root)
	if err != nil {
		return nil, fmt.Errorf("finding out which GPUs this machine has: %w", err)
	}
	limit := controlGroupLimit(root)
	return &Hardware{
		CPUs:           cpus,
		MemoryBytes:    min(total, limit),
		AvailableBytes: min(available, limit),
		GPUs:           gpus,
	}, nil
}

// allowedCPUs are those of the CPU affinity that taskset, a container or
// systemd left to this process, which may name more than the machine has
// switched on.
func allowedCPUs(root fs.FS) (CPUSet, error) {
	status, err := readFields(root, "proc/self/status")
	if err != nil {
		return nil, err
	}
	allowed, err := ParseCPUSet(status["Cpus_allowed_list"])
	if err != nil {
		return nil, fmt.Errorf("/proc/self/status: Cpus_allowed_list: %w", err)
	}
	text, err := fs.ReadFile(root, "sys/devices/system/cpu/online")
	if err != nil {
		return nil, err
	}
	online, err := ParseCPUSet(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("/sys/devices/system/cpu/online: %w", err)
	}
	return allowed.Intersect(online), nil
}

func machineMemory(root fs.FS) (total, available ByteSize, err error) {
	meminfo, err := readFields(root, "proc/meminfo")
	if err != nil {
		return 0, 0, err
	}
	amount := func(field string) (ByteSize, error) {
		// The kernel's "kB" are KiB.
		number, _ := strings.CutSuffix(meminfo[field], " kB")
		n, err := strconv.ParseUint(number, 10, 44)
		if err != nil {
			return 0, fmt.Errorf("/proc/meminfo: %s is %q", field, meminfo[field])
		}
		return ByteSize(n) * KiB, nil
	}
	if total, err = amount("MemTotal"); err != nil {
		return 0, 0, err
	}
	available, err = amount("MemAvailable")
	return total, available, err
}

// controlGroupLimit is the lowest memory limit of the control groups that this
// process is in, from its own up to the root; without any, the largest size.
// Version 1 and 2 hierarchies are where systemd and containers mount them.
func controlGroupLimit(root fs.FS) ByteSize {
	limit := ^ByteSize(0)
	// Lines are "hierarchy:controllers:path"; version 2 is hierarchy 0 without
	// controllers. See cgroups(7).
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(groups)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 {
			continue
		}
		mount, file := "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		if part[1] == "" {
			mount, file = "sys/fs/cgroup", "memory.max"
		} else if !slices.Contains(strings.Split(part[1], ","), "memory") {
			continue
		}
		// Inside a container the path may be the host's, which is not below
		// the mount point here: levels that are not there set no limit.
		for group := path.Clean("/" + part[2]); ; group = path.Dir(group) {
			text, err := fs.ReadFile(root, path.Join(mount, group, file))
			if err == nil {
				// "max" (version 2) is no number, and no limit.
				if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil {
					limit = min(limit, ByteSize(n))
				}
			}
			if group == "/" {
				break
			}
		}
	}
	return limit
}

// nvidiaGPUs lists the cards whose device file this process can see, from
// /proc/driver/nvidia/gpus/PCI-ADDRESS/information. Without the driver there
// are none.
func nvidiaGPUs(root fs.FS) ([]HardwareGPU, error) {
	const folder = "proc/driver/nvidia/gpus"
	entries, err := fs.ReadDir(root, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var gpus []HardwareGPU
	for _, entry := range entries {
		information, err := readFields(root, path.Join(folder, entry.Name(), "information"))
		if err != nil {
			return nil, err
		}
		// A container may see the information of cards that it was not given.
		if _, err := fs.Stat(root, "dev/nvidia"+information["Device Minor"]); err != nil || information["GPU Excluded"] == "Yes" {
			continue
		}
		id, err := ParseGPUID(information["Bus Location"])
		if err != nil {
			return nil, fmt.Errorf("%s: bus location: %w", entry.Name(), err)
		}
		gpu := HardwareGPU{PCIAddress: id.PCIAddress, Model: information["Model"]}
		// The driver writes question marks until it has initialised the card.
		if id, err := ParseGPUID(information["GPU UUID"]); err == nil {
			gpu.UUID = id.UUID
		}
		gpus = append(gpus, gpu)
	}
	slices.SortFunc(gpus, func(a, b HardwareGPU) int { return cmp.Compare(a.PCIAddress, b.PCIAddress) })
	for i := range gpus {
		gpus[i].Index = i
	}
	return gpus, nil
}

// readFields reads a file of lines "name: value", as the kernel likes them.
func readFields(root fs.FS, file string) (map[string]string, error) {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return nil, err
	}
	fields := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(line, ":"); found {
			fields[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return fields, nil
}
