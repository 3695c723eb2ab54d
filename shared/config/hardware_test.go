package config

import (
	"fmt"
	"maps"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func file(format string, args ...any) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, format, args...)}
}

// plainMachine has four CPUs of which three may be used (the affinity of a
// machine that could have more CPUs names them too), and 64 GiB.
func plainMachine(more fstest.MapFS) fstest.MapFS {
	machine := fstest.MapFS{
		"proc/self/status":              file("Name:\tinterlock\nCpus_allowed:\tb\nCpus_allowed_list:\t0-1,3-255\n"),
		"sys/devices/system/cpu/online": file("0-3\n"),
		"proc/meminfo":                  file("MemTotal:       67108864 kB\nMemFree:  1000 kB\nMemAvailable:   41943040 kB\n"),
		"proc/self/cgroup":              file("0::/\n"),
	}
	maps.Copy(machine, more)
	return machine
}

func information(pci, uuid, minor, excluded string) *fstest.MapFile {
	// Fields and spacing as driver 580 writes them.
	return file("Model: \t\t NVIDIA H200\nIRQ:   \t\t 41\nGPU UUID: \t %s\nBus Type: \t PCIe\nBus Location: \t %s\nDevice Minor: \t %s\nGPU Excluded:\t %s\n",
		uuid, pci, minor, excluded)
}

func TestDetectHardwareWithoutGPU(t *testing.T) {
	hw, err := detectHardware(plainMachine(nil))
	require.NoError(t, err)
	require.Equal(t, &Hardware{CPUs: CPUSet{0, 1, 3}, MemoryBytes: 64 * GiB, AvailableBytes: 40 * GiB}, hw)
}

// The lowest limit on the way from a process's control group to the root
// holds; a limit above the machine's memory is none. See cgroups(7).
func TestDetectHardwareControlGroups(t *testing.T) {
	for name, test := range map[string]struct {
		files             fstest.MapFS
		memory, available ByteSize
	}{
		"version 2, own group": {fstest.MapFS{
			"proc/self/cgroup":                                        file("0::/system.slice/interlock.service\n"),
			"sys/fs/cgroup/system.slice/memory.max":                   file("max\n"),
			"sys/fs/cgroup/system.slice/interlock.service/memory.max": file("%d\n", 8*GiB),
		}, 8 * GiB, 8 * GiB},
		"version 2, parent group": {fstest.MapFS{
			"proc/self/cgroup":                                        file("0::/system.slice/interlock.service\n"),
			"sys/fs/cgroup/system.slice/memory.max":                   file("%d\n", 50*GiB),
			"sys/fs/cgroup/system.slice/interlock.service/memory.max": file("max\n"),
		}, 50 * GiB, 40 * GiB},
		"version 2, container with the host's path": {fstest.MapFS{
			"proc/self/cgroup":         file("0::/../../kubepods/pod1\n"),
			"sys/fs/cgroup/memory.max": file("%d\n", 12*GiB),
		}, 12 * GiB, 12 * GiB},
		"version 1": {fstest.MapFS{
			"proc/self/cgroup":                                  file("9:name=systemd:/\n4:memory:/jobs/7\n1:cpu,cpuacct:/\n0::/\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":        file("9223372036854771712\n"),
			"sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes": file("%d\n", 16*GiB),
		}, 16 * GiB, 16 * GiB},
		"version 1, no limit": {fstest.MapFS{
			"proc/self/cgroup":                           file("4:hugetlb,memory:/\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n"),
		}, 64 * GiB, 40 * GiB},
	} {
		t.Run(name, func(t *testing.T) {
			hw, err := detectHardware(plainMachine(test.files))
			require.NoError(t, err)
			require.Equal(t, test.memory, hw.MemoryBytes)
			require.Equal(t, test.available, hw.AvailableBytes)
		})
	}
}

// Index is the order on the PCI bus, not that of device files; cards that the
// process cannot open or that the driver leaves out do not count.
func TestDetectHardwareGPUs(t *testing.T) {
	const uuid0, uuid1 = "GPU-2d990430-f243-2137-3cfb-69a61ff03be6", "GPU-11111111-2222-3333-4444-555555555555"
	hw, err := detectHardware(plainMachine(fstest.MapFS{
		"proc/driver/nvidia/gpus/0000:c1:00.0/information": information("0000:c1:00.0", uuid1, "0", "No"),
		"proc/driver/nvidia/gpus/0000:41:00.0/information": information("0000:41:00.0", uuid0, "1", "No"),
		"proc/driver/nvidia/gpus/0000:e1:00.0/information": information("0000:e1:00.0", "GPU-????????-????-????-????-????????????", "2", "No"),
		"proc/driver/nvidia/gpus/0000:21:00.0/information": information("0000:21:00.0", uuid1, "3", "Yes"),
		"proc/driver/nvidia/gpus/0000:01:00.0/information": information("0000:01:00.0", uuid1, "4", "No"),
		"dev/nvidia0": file(""), "dev/nvidia1": file(""), "dev/nvidia2": file(""), "dev/nvidia3": file(""),
	}))
	require.NoError(t, err)
	require.Equal(t, []HardwareGPU{
		{Index: 0, PCIAddress: "0000:41:00.0", UUID: uuid0, Model: "NVIDIA H200"},
		{Index: 1, PCIAddress: "0000:c1:00.0", UUID: uuid1, Model: "NVIDIA H200"},
		{Index: 2, PCIAddress: "0000:e1:00.0", Model: "NVIDIA H200"},
	}, hw.GPUs)
	for _, label := range []string{"1", uuid1, "0000:C1:00.0", "c1:00.0", "00000000:C1:00.0"} {
		id, err := ParseGPUID(label)
		require.NoError(t, err)
		gpu, found := hw.FindGPU(id)
		require.True(t, found, label)
		require.Equal(t, hw.GPUs[1], gpu, label)
	}
	_, found := hw.FindGPU(GPUID{Index: 3})
	require.False(t, found)
}

func TestDetectHardwareSaysWhatIsUnreadable(t *testing.T) {
	for _, name := range []string{"proc/self/status", "proc/meminfo", "sys/devices/system/cpu/online"} {
		machine := plainMachine(nil)
		machine[name] = file("nothing of use\n")
		_, err := detectHardware(machine)
		require.Error(t, err)
		delete(machine, name)
		_, err = detectHardware(machine)
		require.ErrorContains(t, err, name)
	}
}

// This machine has at least what the Go runtime found on it.
func TestDetectHardwareHere(t *testing.T) {
	hw, err := DetectHardware()
	require.NoError(t, err)
	require.Len(t, hw.CPUs, runtime.NumCPU())
	require.Positive(t, hw.MemoryBytes)
	require.LessOrEqual(t, hw.AvailableBytes, hw.MemoryBytes)
}

func TestParseGPUID(t *testing.T) {
	for label, want := range map[string]string{
		"0": "0", "255": "255", "07": "7",
		"GPU-2d990430-f243-2137-3cfb-69a61ff03be6": "GPU-2d990430-f243-2137-3cfb-69a61ff03be6",
		"gpu-2D990430-F243-2137-3CFB-69A61FF03BE6": "GPU-2d990430-f243-2137-3cfb-69a61ff03be6",
		"0000:41:00.0":     "0000:41:00.0",
		"0001:C1:00.0":     "0001:c1:00.0",
		"00000001:c1:00.0": "0001:c1:00.0",
		"41:00.0":          "0000:41:00.0",
	} {
		id, err := ParseGPUID(label)
		require.NoError(t, err, label)
		require.Equal(t, want, id.String())
		again, err := ParseGPUID(id.String())
		require.NoError(t, err, label)
		require.Equal(t, id, again)
	}
	for _, label := range []string{
		"", "-1", "256", "99999999999999999999", "zero", "GPU-", "GPU-2d990430", "GPU-2d990430-f243-2137-3cfb-69a61ff03beg",
		"41:00", "41:00.8", "10000001:41:00.0", "000:41:00.0", " 0",
	} {
		_, err := ParseGPUID(label)
		require.Error(t, err, label)
	}
}
