//go:build conformance

package porep

import "testing"

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
