//go:build conformance

package porep

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The larger circuits; mainnet's have 130 million constraints each.
func TestConformanceCircuits(t *testing.T) {
	for _, name := range []string{
		"porep-11layers-2KiB", "porep-8MiB", "porep-512MiB", "porep-32GiB", "porep-64GiB",
	} {
		t.Run(name, func(t *testing.T) { requireShape(t, name) })
	}
}

// All partitions of all cases.
func TestConformanceWitnesses(t *testing.T) {
	for _, name := range caseNames {
		t.Run(name, func(t *testing.T) {
			ref, s := decode(t, name)
			c := NewCircuit(s.Params)
			for k, inputs := range ref.PublicInputs {
				requireSatisfied(t, c, s, k, inputs)
			}
		})
	}
}

// Mainnet's circuits are satisfied, by sparse sectors that the checks accept.
func TestConformanceMainnetWitness(t *testing.T) {
	for _, size := range []uint64{32 << 30, 64 << 30} {
		_, req := sparse(t, Sparse{SectorSize: size, Variant: V1_1, Seed: 1, MinerID: 1000, SectorNumber: 7})
		s, err := decodeAndCheck(req)
		require.NoError(t, err)
		c := NewCircuit(s.Params)
		for _, k := range []int{0, len(s.Partitions) - 1} {
			requireSatisfied(t, c, s, k, hexInputs(s.PublicInputs(k)))
		}
	}
}
