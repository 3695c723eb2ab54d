//go:build soak || conformance

package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/examples/inputs"
	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/host/hosttest/ownfs"
	"github.com/interlock-prover/interlock/shared"
)

func init() { roles["host with read-only parameters"] = hostWithReadOnlyParams }

// With a parameter directory that cannot be written to, every point is checked and proofs are made; that the check could
// not be noted is said once. A setup there is refused at once, with what to do. It runs in a process with a file system
// of its own.
func TestConformanceReadOnlyParameters(t *testing.T) {
	program := hosttest.Build(t, "github.com/interlock-prover/interlock/plugin")
	out := ownfs.Run(t, roleEnv+"=host with read-only parameters", "JOURNAL="+t.TempDir(), "PLUGIN="+program)
	t.Logf("%s", out)
	const note = "a parameter file will be checked again"
	require.Equal(t, 1, strings.Count(out, note), out)
	for line := range strings.Lines(out) {
		if strings.Contains(line, note) {
			require.Contains(t, line, "cannot be written: read-only file system (make its directory writable")
		}
	}
	require.Contains(t, out, "checked every point of a parameter file")
}

func hostWithReadOnlyParams() int {
	return ownfs.Main("64m", readOnlyParams)
}

func readOnlyParams(dir string) error {
	ctx := context.Background()
	request, err := inputs.PoSt("winning-2KiB")
	if err != nil {
		return err
	}
	config := filepath.Join(os.Getenv("JOURNAL"), "config.hcl")
	if err := os.WriteFile(config, []byte(`parameters { verify = "full" }`), 0o600); err != nil {
		return err
	}
	s, err := host.Supervise(ctx, host.SupervisorOptions{
		Options: host.Options{
			PluginPath: os.Getenv("PLUGIN"), ParamsDir: dir, ConfigPath: config,
			Logger: hclog.New(&hclog.LoggerOptions{Output: os.Stdout, Level: hclog.Info}),
		},
		Journal: host.Journal{Dir: filepath.Join(os.Getenv("JOURNAL"), "journal")},
	})
	if err != nil {
		return err
	}
	setup := shared.SetupRequest{CircuitRequest: shared.CircuitRequest{Kind: request.Kind, SectorSize: request.SectorSize}, Dir: dir}
	if _, err := s.Toolbox().SetupParams(ctx, setup, nil); err != nil {
		return err
	}
	if err := syscall.Mount("none", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("making the parameter directory read-only: %w", err)
	}

	for i := range 3 {
		request.ID = fmt.Sprint("r", i)
		result, err := s.Prove(ctx, request, nil)
		if err != nil {
			return fmt.Errorf("proof %d: %w", i, err)
		}
		if valid, err := s.Toolbox().Verify(ctx, request, result.Proof); err != nil || !valid {
			return fmt.Errorf("proof %d is valid: %t, %w", i, valid, err)
		}
	}
	var fault *shared.ParamsError
	_, err = s.Toolbox().SetupParams(ctx, setup, nil)
	if !errors.As(err, &fault) || !strings.Contains(err.Error(), "read-only file system") || fault.Remedy == "" {
		return fmt.Errorf("a setup on a read-only file system: %w", err)
	}
	if state := s.State(); state.Restarts != 0 {
		return fmt.Errorf("the plugin was started again: %+v", state)
	}
	return s.Stop(ctx)
}
