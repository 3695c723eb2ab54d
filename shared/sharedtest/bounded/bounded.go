// Package bounded measures, for fuzz targets, that what reads foreign input allocates no more than that input warrants.
package bounded

import (
	"runtime/metrics"
	"testing"
)

// allowance is what reading may allocate beside twice its input, in bytes.
const allowance = 64 << 20

// Allocation calls read, which reads inputBytes of foreign input, and fails the test if all that was allocated meanwhile,
// freed or not, is more than twice the input and 64 MiB.
func Allocation(t testing.TB, inputBytes int, read func()) {
	t.Helper()
	before := allocated()
	read()
	if got, most := allocated()-before, uint64(2*inputBytes+allowance); got > most {
		t.Fatalf("%d bytes were allocated for an input of %d bytes; at most %d may be", got, inputBytes, most)
	}
}

// allocated is what the program has ever allocated on Go's heap, in bytes.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
