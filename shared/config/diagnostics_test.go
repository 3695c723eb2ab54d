package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// machine is the one that the files in testdata are compared with.
var machine = &Hardware{
	CPUs:           mustCPUSet("0-15"),
	MemoryBytes:    64 * GiB,
	AvailableBytes: 40 * GiB,
	GPUs: []HardwareGPU{
		{Index: 0, Model: "NVIDIA H200", PCIAddress: "0000:41:00.0", UUID: "GPU-2d990430-f243-2137-3cfb-69a61ff03be6"},
		{Index: 1, Model: "NVIDIA H200", PCIAddress: "0000:c1:00.0", UUID: "GPU-7a16c3a0-8f5e-4b7c-9d21-0f6f2b1f9e55"},
	},
}

func mustCPUSet(text string) CPUSet {
	set, err := ParseCPUSet(text)
	if err != nil {
		panic(err)
	}
	return set
}

// Every file in testdata/bad has a mistake that operators make; beside it is
// what they are told, word for word. The expected text is read, not recorded: a
// change of it is a decision, so there is no flag that rewrites it.
func TestDiagnostics(t *testing.T) {
	t.Chdir("testdata/bad")
	files, err := filepath.Glob("*.hcl")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			want, err := os.ReadFile(strings.TrimSuffix(file, ".hcl") + ".golden")
			require.NoError(t, err)
			var got bytes.Buffer
			ok := Check(file, machine, &got, false)
			require.Equal(t, string(want), got.String())
			require.Equal(t, !strings.Contains(string(want), "Error: "), ok)
		})
	}
}
