package bounded_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/shared/sharedtest/bounded"
)

// recorder notes a failure.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Fatalf(string, ...any) { r.failed = true }

func TestAllocation(t *testing.T) {
	allocate := func(n int) func() {
		return func() { runtime.KeepAlive(make([]byte, n)) }
	}
	for _, c := range []struct {
		input, allocated int
		fails            bool
	}{
		{0, 60 << 20, false},
		{0, 65 << 20, true},
		{32 << 20, 120 << 20, false},
		{32 << 20, 129 << 20, true},
	} {
		r := &recorder{TB: t}
		bounded.Allocation(r, c.input, allocate(c.allocated))
		require.Equal(t, c.fails, r.failed, "%+v", c)
	}
}
