//go:build conformance

package post

import "testing"

// The mainnet window circuits, 125 million constraints each.
func TestConformanceWindowCircuits(t *testing.T) {
	for _, name := range []string{"window-32GiB", "window-64GiB"} {
		t.Run(name, func(t *testing.T) { requireShape(t, name) })
	}
}
