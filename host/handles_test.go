package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/host/journal"
	"github.com/interlock-prover/interlock/shared"
)

// maxHandles is what many systems let a process have unless told otherwise.
const maxHandles = 1024

// With 1,024 file handles a host serves 500 requests at once. Without a free one it refuses requests with a typed error,
// answers those under way, and takes requests again as soon as there are some, without a restart. It runs in a process
// of its own, whose limit nobody else has.
func TestHostWithFewHandles(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleEnv+"=host with few handles", "JOURNAL="+t.TempDir(), hosttest.EnvState+"="+t.TempDir())
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
}

func hostWithFewHandles() int {
	if err := fewHandles(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func fewHandles() error {
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: maxHandles, Max: maxHandles}); err != nil {
		return fmt.Errorf("limiting the file handles: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := host.Supervise(ctx, host.SupervisorOptions{
		Options: host.Options{
			PluginPath: self,
			Env:        []string{roleEnv + "=scripted", hosttest.EnvState + "=" + os.Getenv(hosttest.EnvState), "GORACE=atexit_sleep_ms=0"},
		},
		Journal: host.Journal{Dir: filepath.Join(os.Getenv("JOURNAL"), "journal")},
	})
	if err != nil {
		return err
	}
	pid := s.State().PID
	faults := make([]error, 500)
	var clients sync.WaitGroup
	for i := range faults {
		clients.Go(func() { faults[i] = proveScripted(ctx, s, hosttest.Script{}.Request(fmt.Sprintf("many-%d", i))) })
	}
	clients.Wait()
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("with %d handles: %w", maxHandles, err)
	}

	slow := hosttest.Script{Work: 700 * time.Millisecond}.Request("slow")
	if _, err := s.Submit(ctx, slow); err != nil {
		return err
	}
	for hosttest.Attempts(os.Getenv(hosttest.EnvState), "slow") == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	var taken []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if errors.Is(err, syscall.EMFILE) {
			break
		} else if err != nil {
			return err
		}
		taken = append(taken, f)
	}
	refused := hosttest.Script{}.Request("refused")
	var fault *journal.Error
	var busy *shared.BusyError
	if _, err := s.Submit(ctx, refused); !errors.As(err, &fault) || !errors.As(err, &busy) || !errors.Is(err, syscall.EMFILE) {
		return fmt.Errorf("without a handle: %w", err)
	}
	if err := proveScripted(ctx, s, slow); err != nil {
		return fmt.Errorf("accepted before: %w", err)
	}
	for _, f := range taken {
		if err := f.Close(); err != nil {
			return err
		}
	}
	if err := proveScripted(ctx, s, refused); err != nil {
		return fmt.Errorf("with handles again: %w", err)
	}
	if now := s.State(); now.PID != pid || now.Restarts != 0 {
		return fmt.Errorf("the plugin was started again: %+v", now)
	}
	return s.Stop(ctx)
}

// proveScripted has a scripted request proven and looks at the proof.
func proveScripted(ctx context.Context, s *host.Supervisor, r shared.Request) error {
	result, err := s.Prove(ctx, r, nil)
	if err == nil && !slices.Equal(result.Proof, hosttest.ScriptedProof(r)) {
		err = errors.New("the proof is another")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.ID, err)
	}
	return nil
}
