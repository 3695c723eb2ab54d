//go:build conformance

package update

import "testing"

// The larger circuits; mainnet's have 81 million constraints each.
func TestConformanceCircuits(t *testing.T) {
	for _, name := range []string{"update-512MiB", "update-32GiB", "update-64GiB"} {
		t.Run(name, func(t *testing.T) { requireShape(t, name) })
	}
}

// Updates of sectors of these sizes pass all checks and satisfy the circuit.
func TestConformanceSectors(t *testing.T) {
	for _, size := range []uint64{512 << 20, 32 << 30, 64 << 30} {
		requireSectorProvable(t, size)
	}
}
