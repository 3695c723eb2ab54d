package gateway

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Rules, dashboard, operating guide and table of metrics name metrics that there are, and the table names all of them.
func TestMonitoringKnowsTheMetrics(t *testing.T) {
	f := busyProver()
	g, _ := serve(t, f, Options{})
	g.service.metrics.answered(&job{kind: 1, due: time.Now()})
	text, err := g.service.metrics.text()
	require.NoError(t, err)
	there := map[string]bool{"interlock_device_kernel_efficiency_ratio": true} // a device without a clock has none
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (interlock_\w+) `).FindAllStringSubmatch(text, -1) {
		there[m[1]] = true
	}
	require.Greater(t, len(there), 20)
	folder := filepath.Join("..", "..", "examples", "monitoring")
	for _, file := range []string{"alerts.yml", "alerts_test.yml", "dashboard.json", "README.md", "../operating/README.md"} {
		data, err := os.ReadFile(filepath.Join(folder, file))
		require.NoError(t, err)
		named := regexp.MustCompile(`\binterlock_\w+`).FindAllString(string(data), -1)
		require.NotEmpty(t, named)
		for _, name := range named {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				name = strings.TrimSuffix(name, suffix)
			}
			require.True(t, there[name], "%s names %s, which is no metric", file, name)
		}
		if file == "README.md" {
			for name := range there {
				require.Contains(t, named, name)
			}
		}
	}
}
