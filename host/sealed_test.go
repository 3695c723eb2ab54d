package host_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/shared"
)

// Large requests reach a detached plugin as any other, in memory files, from a later host too, and after one that it
// refused.
func TestDetachedPluginSharesLargeRequests(t *testing.T) {
	var log bytes.Buffer
	var lines sync.Mutex
	o, _ := detachedOptions(t)
	o.Logger = hclog.New(&hclog.LoggerOptions{Output: &log, Mutex: &lines, Level: hclog.Debug})
	large := func(s hosttest.Script, id string) shared.Request {
		r := s.Request(id)
		for range 4 {
			r.Vanilla = append(r.Vanilla, bytes.Repeat([]byte{7}, shared.MaxPoStProofBytes))
		}
		return r
	}

	s := supervise(t, o)
	pid := s.State().PID
	prove(t, s, large(hosttest.Script{}, "first"))
	_, err := s.Prove(t.Context(), large(hosttest.Script{Fault: hosttest.FaultError, Stage: shared.StageDecode}, "refused"), nil)
	require.Error(t, err)
	require.NoError(t, s.Stop(t.Context()))

	s = supervise(t, o)
	require.Equal(t, pid, s.State().PID)
	prove(t, s, large(hosttest.Script{}, "second"))
	lines.Lock()
	defer lines.Unlock()
	require.NotContains(t, log.String(), "streamed")
}
