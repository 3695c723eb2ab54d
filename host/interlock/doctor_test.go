package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
)

// diagnosis is what a doctor says, and whether anything failed.
func diagnosis(look func(d *doctor)) (text string, failed bool) {
	var out bytes.Buffer
	d := &doctor{out: &out}
	look(d)
	return out.String(), d.failed
}

func naming(t *testing.T, labels ...string) *config.Config {
	t.Helper()
	c := config.Default()
	for _, label := range labels {
		id, err := config.ParseGPUID(label)
		require.NoError(t, err)
		c.GPUs = append(c.GPUs, config.GPU{ID: id, Workers: 2})
	}
	return c
}

func TestDoctorOnDrivers(t *testing.T) {
	const (
		open   = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder@U22)\nGCC version:  gcc version 12.3.0\n"
		closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\nGCC version:\n"
	)
	for _, c := range []struct {
		version string
		gpus    []string
		says    string
		fails   bool
	}{
		{open, []string{"0"}, "ok    driver: NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06", false},
		{closed, []string{"0"}, "CUDA 13 comes with branch 580 and later\n      Install NVIDIA's driver", false},
		{closed, nil, "ok    driver: NVRM", false},
		{"", []string{"0", "1"}, "FAIL  driver: none is loaded, but the configuration names 2 GPU(s)", true},
		{"", nil, "ok    driver: none, and none is needed", false},
		{"NVRM version: something new\n", []string{"0"}, "ok    driver: NVRM version: something new", false},
	} {
		text, failed := diagnosis(func(d *doctor) { d.driver(naming(t, c.gpus...), c.version) })
		require.Contains(t, text, c.says)
		require.Equal(t, c.fails, failed)
	}
}

func TestDoctorOnIdleCards(t *testing.T) {
	machine := &config.Hardware{GPUs: []config.HardwareGPU{{Model: "NVIDIA H200", PCIAddress: "0000:41:00.0"}}}
	text, failed := diagnosis(func(d *doctor) { d.idle(naming(t), machine) })
	require.False(t, failed)
	require.Contains(t, text, "ok    GPU 0: NVIDIA H200, 0000:41:00.0")
	require.Contains(t, text, "warn  the CPU proves, and 1 GPU(s) of this machine are idle\n      To prove on them")
	text, _ = diagnosis(func(d *doctor) { d.idle(naming(t), &config.Hardware{}) })
	require.Equal(t, "ok    the CPU proves; no card is idle\n", text)
	text, _ = diagnosis(func(d *doctor) { d.idle(naming(t, "0"), machine) })
	require.Empty(t, text, "cards that are named are looked at with the library")
}

// Cards are found by number, UUID and address, whatever order CUDA has them in.
func TestDoctorOnCards(t *testing.T) {
	report := shared.CardsReport{
		Library: "/opt/libinterlock_cuda.so", LibraryVersion: 2, DriverCUDA: 13020,
		Cards: []shared.Card{
			{Model: "Hot", UUID: "GPU-22222222-2222-2222-2222-222222222222", PCIAddress: "0000:c1:00.0", MemoryBytes: 24 << 30, FreeBytes: 8 << 30, TemperatureCelsius: 91},
			{Model: "Cool", UUID: "GPU-11111111-1111-1111-1111-111111111111", PCIAddress: "0000:41:00.0", MemoryBytes: 24 << 30, FreeBytes: 23 << 30},
		},
	}
	text, failed := diagnosis(func(d *doctor) {
		d.cards(naming(t, "0", "GPU-22222222-2222-2222-2222-222222222222"), report)
	})
	require.False(t, failed)
	for _, says := range []string{
		"ok    library: /opt/libinterlock_cuda.so, interface version 2\n",
		"ok    driver: serves CUDA 13.2\n",
		"ok    GPU 0: Cool, 23.0 GiB of 24.0 GiB free\n",
		"warn  GPU GPU-22222222-2222-2222-2222-222222222222: Hot, 8.0 GiB of 24.0 GiB free, 91 °C: something else uses it\n      End what else",
		"warn  GPU GPU-22222222-2222-2222-2222-222222222222: 91 °C\n      Cards slow down",
	} {
		require.Contains(t, text, says)
	}

	limited := naming(t, "0000:c1:00.0", "0000:41:00.0")
	limited.GPUs[0].MemoryLimit, limited.GPUs[1].MemoryLimit = 16*config.GiB, 40*config.GiB
	text, failed = diagnosis(func(d *doctor) { d.cards(limited, report) })
	require.False(t, failed)
	require.Contains(t, text, "warn  GPU 0000:c1:00.0: Hot, 8.0 GiB of 24.0 GiB free, 91 °C; its memory_limit is 16GiB\n")
	require.Contains(t, text, "warn  GPU 0000:41:00.0: Cool, 23.0 GiB of 24.0 GiB free; its memory_limit of 40GiB is more than it has\n")
	limited.GPUs[0].MemoryLimit = 7 * config.GiB
	text, _ = diagnosis(func(d *doctor) { d.cards(limited, report) })
	require.Contains(t, text, "ok    GPU 0000:c1:00.0: Hot")

	text, failed = diagnosis(func(d *doctor) { d.cards(naming(t, "2"), report) })
	require.True(t, failed)
	require.Contains(t, text, "FAIL  GPU 2: it is not among the 2 that CUDA shows\n      `nvidia-smi -L`")
}

// What is wrong with the library comes with its remedy.
func TestDoctorOnAMissingLibrary(t *testing.T) {
	text, failed := diagnosis(func(d *doctor) {
		d.cards(naming(t, "0"), shared.CardsReport{Fault: "/opt/x.so: it cannot be loaded", Remedy: "install it with the program"})
	})
	require.True(t, failed)
	require.Equal(t, "FAIL  cards: /opt/x.so: it cannot be loaded\n      Install it with the program.\n", text)
	text, failed = diagnosis(func(d *doctor) {
		d.cards(naming(t, "0"), shared.CardsReport{Fault: "card 0: describing it: the device failed"})
	})
	require.True(t, failed)
	require.Contains(t, text, "      See dmesg")
}

func TestDoctorOnDevices(t *testing.T) {
	c := naming(t, "0", "1")
	c.CPU.Enabled = false
	text, failed := diagnosis(func(d *doctor) {
		d.devices(c, shared.Status{Devices: []shared.DeviceStatus{
			{Name: "gpu 0", Model: "NVIDIA H200", Workers: 2}, {Name: "gpu 1", OutOfUse: "it is lost"}, {Name: "cpu", Model: "CPU", Workers: 2},
		}})
	})
	require.True(t, failed)
	require.Equal(t, "ok    device gpu 0: NVIDIA H200, 2 workers\nFAIL  device gpu 1: it is lost\n      Its log says more.\n"+
		"ok    device cpu: stands in when no card can prove, as cuda { fallback = \"critical-only\" } says\n", text)
	c.CPU.Enabled = true
	text, _ = diagnosis(func(d *doctor) {
		d.devices(c, shared.Status{Devices: []shared.DeviceStatus{{Name: "cpu", Model: "CPU", Workers: 2}}})
	})
	require.Equal(t, "ok    device cpu: CPU, 2 workers\n", text)
}

// A plugin that ends at its start has said why, which no other advice hides.
func TestDoctorOnAPluginThatEnds(t *testing.T) {
	plugin := hosttest.Build(t, "github.com/interlock-prover/interlock/host/hosttest/testplugin")
	c := config.Default()
	c.Path = filepath.Join(t.TempDir(), "config.hcl")
	require.NoError(t, os.WriteFile(c.Path, []byte("fault"), 0o600))
	text, failed := diagnosis(func(d *doctor) { require.Nil(t, d.plugin(t.Context(), &globals{plugin: plugin}, c)) })
	require.True(t, failed)
	require.Contains(t, text, "the configuration has a fault")
	require.Contains(t, text, "\n      What it last wrote says why.\n")
	require.NotContains(t, text, "make build")
}

// The real plugin's program is asked, and says what is missing on a machine
// where something is.
func TestDoctorAsksThePlugin(t *testing.T) {
	plugin := newWorld(t).plugin
	c := naming(t, "0")
	c.CUDA.Library = "/nowhere/libinterlock_cuda.so"
	text, failed := diagnosis(func(d *doctor) { require.False(t, d.library(t.Context(), &globals{plugin: plugin}, c)) })
	require.True(t, failed)
	require.Contains(t, text, "FAIL  cards: /nowhere/libinterlock_cuda.so: it cannot be loaded")
	require.Contains(t, text, "\n      Install it with the program")

	text, failed = diagnosis(func(d *doctor) { require.True(t, d.library(t.Context(), &globals{plugin: plugin}, naming(t))) })
	require.False(t, failed)
	require.Empty(t, text, "no card is touched where none is named")
}
