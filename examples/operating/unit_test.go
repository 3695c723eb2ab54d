package operating_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/host/hosttest"
)

// Where the unit says that things are installed, and what they are here.
var installed = map[string]string{
	"/usr/libexec/interlock/in-group":        "in-group",
	"/usr/libexec/interlock/prover-in-group": "prover-in-group",
	"/usr/bin/interlock":                     "", // built
	"/usr/bin/interlock-prover":              "",
}

// settings are a unit's, by section and name; those that may be given several times have several values.
func settings(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("interlock.service")
	require.NoError(t, err)
	all, section := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		name, value, isSetting := strings.Cut(line, "=")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		default:
			require.True(t, isSetting, line)
			all[section+"."+name] = append(all[section+"."+name], value)
		}
	}
	return all
}

// one is the only value of a setting.
func one(t *testing.T, all map[string][]string, name string) string {
	t.Helper()
	require.Len(t, all[name], 1, name)
	return all[name][0]
}

// accepts has the program read arguments; it does nothing but show its help then.
func accepts(t *testing.T, program string, arguments ...string) string {
	t.Helper()
	help, err := exec.Command(program, append(slices.Clone(arguments), "--help")...).CombinedOutput()
	require.NoError(t, err, "%v: %s", arguments, help)
	return string(help)
}

// What the unit, the container and the guide start exists, and takes the flags that they give it.
func TestWhatIsStartedTakesItsFlags(t *testing.T) {
	program := hosttest.Build(t, "github.com/interlock-prover/interlock/host/interlock")
	require.Error(t, exec.Command(program, "serve", "--no-such-flag", "--help").Run(), "else this test tells nothing")

	unit := settings(t)
	start := strings.Fields(one(t, unit, "Service.ExecStart"))
	require.Equal(t, []string{"/usr/libexec/interlock/in-group", "gateway", "/usr/bin/interlock", "serve"}, start[:4])
	serve := accepts(t, program, start[3:]...)
	for _, path := range regexp.MustCompile(`/usr/\S+`).FindAllString(one(t, unit, "Service.ExecStart"), -1) {
		require.Contains(t, installed, path)
	}
	value := func(flag string) string { return start[slices.Index(start, flag)+1] }
	require.Equal(t, "/usr/libexec/interlock/prover-in-group", value("--plugin"))
	require.Equal(t, "/etc/"+one(t, unit, "Service.ConfigurationDirectory")+"/config.hcl", value("--config"), "where systemd makes it readable")
	require.Equal(t, "/var/lib/"+one(t, unit, "Service.StateDirectory")+"/journal", value("--journal"), "where systemd makes it writable")

	wrapper, err := os.ReadFile("prover-in-group")
	require.NoError(t, err)
	require.Contains(t, string(wrapper), `exec /usr/libexec/interlock/in-group plugin /usr/bin/interlock-prover "$@"`)
	for path, file := range installed {
		if file != "" {
			info, err := os.Stat(file)
			require.NoError(t, err, path)
			require.NotZero(t, info.Mode()&0o111, "%s is to be run", file)
		}
	}

	// systemd kills what is left after TimeoutStopSec, and docker after --stop-timeout: later than the gateway gives up.
	drain := regexp.MustCompile(`--drain-timeout duration .*\(default (\S+)\)`).FindStringSubmatch(serve)
	require.NotNil(t, drain, serve)
	patience, err := time.ParseDuration(drain[1])
	require.NoError(t, err)
	stop, err := time.ParseDuration(strings.ReplaceAll(one(t, unit, "Service.TimeoutStopSec"), "min", "m"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, stop, patience+30*time.Second)

	container, err := os.ReadFile("Containerfile")
	require.NoError(t, err)
	docker := regexp.MustCompile(`--stop-timeout (\d+)`).FindSubmatch(container)
	require.NotNil(t, docker)
	seconds, err := time.ParseDuration(string(docker[1]) + "s")
	require.NoError(t, err)
	require.GreaterOrEqual(t, seconds, patience+30*time.Second)
	for _, name := range []string{"CMD", "HEALTHCHECK .* CMD"} {
		found := regexp.MustCompile(`(?m)^` + name + ` (\[.*\])$`).FindSubmatch(container)
		require.NotNil(t, found, name)
		var words []string
		require.NoError(t, json.Unmarshal(found[1], &words))
		if words[0] == "interlock" {
			words = words[1:]
		}
		accepts(t, program, words...)
	}

	guide, err := os.ReadFile("README.md")
	require.NoError(t, err)
	known := serve + accepts(t, program, "status") + accepts(t, program, "doctor")
	for _, flag := range regexp.MustCompile("[` ](--[a-z][a-z-]*)").FindAllSubmatch(guide, -1) {
		require.Contains(t, known, string(flag[1])+" ", "the guide's flags")
	}
}

// systemd reads the unit without a complaint. Where it is not installed, nothing else can tell.
func TestUnitIsGoodForSystemd(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	root := t.TempDir()
	write := func(path, text string, mode os.FileMode) {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
	}
	for _, target := range []string{"sysinit", "basic", "shutdown", "network-online", "multi-user"} {
		write("usr/lib/systemd/system/"+target+".target", "[Unit]\nDescription=a target\n", 0o644)
	}
	for path := range installed {
		write(path, "", 0o755)
	}
	write("bin/kill", "", 0o755) // of the system
	text, err := os.ReadFile("interlock.service")
	require.NoError(t, err)
	verify := func(text string) string {
		write("etc/systemd/system/interlock.service", text, 0o644)
		said, err := exec.Command(analyze, "--root="+root, "verify", "interlock.service").CombinedOutput()
		if err != nil {
			said = append(said, err.Error()...)
		}
		return string(said)
	}
	require.Empty(t, verify(string(text)))
	require.Contains(t, verify(strings.Replace(string(text), "Type=exec", "Type=exek", 1)), "exek")
	require.Contains(t, verify(strings.Replace(string(text), "/usr/libexec/interlock/in-group", "/usr/libexec/interlock/nowhere", 1)), "nowhere")
}
