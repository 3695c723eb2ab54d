//go:build soak || conformance

package host_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/host"
)

// buildChanged builds the plugin and this test with source files in the place of some, or besides, so that their clock
// and their secrets are the test's. As all tests build the same, it takes long once.
func buildChanged(t *testing.T) (plugin, self string) {
	files := jumpyFiles(t)
	maps.Copy(files, tellingFiles(t))
	dir := t.TempDir()
	replaced := map[string]string{}
	for path, text := range files {
		replaced[path] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replaced)))
		require.NoError(t, os.WriteFile(replaced[path], []byte(text), 0o600))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	overlayPath := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlayPath, overlay, 0o600))
	plugin, self = filepath.Join(dir, host.PluginProgram), filepath.Join(dir, "host.test")
	goTool(t, "build", "-overlay", overlayPath, "-o", plugin, "github.com/interlock-prover/interlock/plugin")
	goTool(t, "test", "-c", "-overlay", overlayPath, "-o", self, ".")
	return plugin, self
}

// edited gives the text of a source file with a part of it, which is there once, replaced.
func edited(t *testing.T, path, part, by string) string {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), part), "%s is not what it was", path)
	return strings.Replace(string(text), part, by, 1)
}

func goTool(t *testing.T, args ...string) string {
	out, err := exec.Command("go", args...).CombinedOutput()
	require.NoError(t, err, "go %v: %s", args, out)
	return strings.TrimSpace(string(out))
}
