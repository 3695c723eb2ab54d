package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/examples/inputs"
	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/shared"
)

const pluginPackage = "github.com/interlock-prover/interlock/plugin"

// world is what the tests share: the real plugin, and a folder with development
// parameters of winning PoSt 2 KiB and its input.
type world struct {
	plugin, params, vanilla string
	request                 shared.Request
}

var (
	worldOnce sync.Once
	theWorld  world
)

// newWorld builds the plugin and makes parameters through the tool itself.
func newWorld(t *testing.T) world {
	t.Helper()
	plugin := hosttest.Build(t, pluginPackage)
	worldOnce.Do(func() {
		dir, err := os.MkdirTemp("", "interlock-tool-")
		require.NoError(t, err)
		w := world{plugin: plugin, params: filepath.Join(dir, "params")}
		w.request, err = inputs.PoSt("winning-2KiB")
		require.NoError(t, err)
		w.vanilla = filepath.Join(dir, "vanilla.bin")
		require.NoError(t, os.WriteFile(w.vanilla, w.request.Vanilla[0], 0o600))
		r := tool("--plugin", plugin, "params", "setup", "winning-post", "2KiB", "--insecure-dev", "--dir", w.params)
		require.Equal(t, exitDone, r.code, r.err)
		require.Contains(t, r.err, "INSECURE")
		theWorld = w
	})
	require.NotEmpty(t, theWorld.params, "the parameters could not be made")
	w := theWorld
	w.plugin = plugin
	return w
}

func TestMain(m *testing.M) {
	code := m.Run()
	if theWorld.params != "" {
		os.RemoveAll(filepath.Dir(theWorld.params))
	}
	os.Exit(code)
}

type outcome struct {
	code     int
	out, err string
}

// tool runs one command line in this process.
func tool(args ...string) outcome {
	var out, errs bytes.Buffer
	code := run(context.Background(), args, streams{in: strings.NewReader(""), out: &out, err: &errs})
	return outcome{code, out.String(), errs.String()}
}

// flags are those that describe the winning PoSt.
func (w world) flags() []string {
	return []string{
		"--plugin", w.plugin, "--params", w.params, "--sector-size", "2KiB", "--miner-id", "138228",
		"--randomness", hex.EncodeToString(w.request.Randomness),
	}
}

// The tool proves through a real plugin process, the proof verifies, its timeline
// can be read, and a changed proof is invalid: what is printed and the exit codes
// are those that scripts depend on.
func TestProveVerifyTimeline(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	proof, events := filepath.Join(dir, "proof.bin"), filepath.Join(dir, "run.timeline")
	r := tool(append([]string{"prove", "winning-post", w.vanilla, "-o", proof, "--timeline", events, "--deadline", "1h"}, w.flags()...)...)
	require.Equal(t, exitDone, r.code, r.err)
	require.Empty(t, r.out)
	require.Contains(t, r.err, "efficiency of cpu")
	require.Regexp(t, `  59m\d+\.?\d*s before the deadline\n`, r.err)
	require.Contains(t, r.err, "INSECURE")

	verify := append([]string{"verify", "winning-post", w.vanilla, "--proof", proof}, w.flags()...)
	r = tool(verify...)
	require.Equal(t, outcome{exitDone, "valid\n", ""}, r)

	r = tool("timeline", events, "--trace", filepath.Join(dir, "trace.json"))
	require.Equal(t, exitDone, r.code, r.err)
	require.Contains(t, r.out, "GPU efficiency")
	trace, err := os.ReadFile(filepath.Join(dir, "trace.json"))
	require.NoError(t, err)
	require.True(t, json.Valid(trace))

	data, err := os.ReadFile(proof)
	require.NoError(t, err)
	require.Len(t, data, 192)
	data[100] ^= 1
	require.NoError(t, os.WriteFile(proof, data, 0o600))
	r = tool(verify...)
	require.Equal(t, exitFailed, r.code)
	require.Equal(t, "invalid\n", r.out)
}

// Wrong use is exit code 2 with a message that names what is wrong; a failure is
// exit code 1.
func TestExitCodes(t *testing.T) {
	w := newWorld(t)
	missing := filepath.Join(t.TempDir(), "none")
	badConfig := filepath.Join(t.TempDir(), "bad.hcl")
	require.NoError(t, os.WriteFile(badConfig, []byte("memry {\n}\n"), 0o600))
	// A program that is no plugin: it ends at once.
	notPlugin := filepath.Join(t.TempDir(), "no-plugin")
	require.NoError(t, os.WriteFile(notPlugin, []byte("#!/bin/sh\necho I am no plugin >&2\nexit 3\n"), 0o700))
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	large := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, 1<<30))
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no command":          {nil, exitWrongUse, "needs one of"},
		"unknown command":     {[]string{"provr"}, exitWrongUse, `did you mean "prove"`},
		"unknown kind":        {[]string{"prove", "winning"}, exitWrongUse, "winning"},
		"unknown flag":        {[]string{"prove", "--nope"}, exitWrongUse, "--nope"},
		"missing flag":        {[]string{"prove", "winning-post", w.vanilla}, exitWrongUse, "needs --miner-id and --randomness and --sector-size too"},
		"no file":             {append([]string{"prove", "winning-post"}, w.flags()...), exitWrongUse, "takes VANILLA.bin, and there is none"},
		"bad size":            {append([]string{"prove", "winning-post", w.vanilla}, append(w.flags(), "--sector-size", "3KiB")...), exitWrongUse, "3KiB"},
		"bad randomness":      {append([]string{"prove", "winning-post", w.vanilla}, append(w.flags(), "--randomness", "xy")...), exitWrongUse, "hexadecimal"},
		"bad priority":        {append([]string{"prove", "winning-post", w.vanilla, "--priority", "urgent"}, w.flags()...), exitWrongUse, "urgent"},
		"setup unconfirmed":   {[]string{"params", "setup", "winning-post", "2KiB", "--dir", missing}, exitWrongUse, "--insecure-dev"},
		"bad circuit":         {[]string{"circuit", "digest", "winning-post", "5KiB"}, exitWrongUse, "5KiB"},
		"missing vanilla":     {append([]string{"prove", "winning-post", missing}, w.flags()...), exitFailed, "there is no file"},
		"missing parameters":  {append([]string{"prove", "winning-post", w.vanilla}, append(w.flags(), "--params", missing)...), exitFailed, "interlock params setup winning-post 2KiB --insecure-dev"},
		"missing config":      {append([]string{"--config", missing, "prove", "winning-post", w.vanilla}, w.flags()...), exitFailed, missing},
		"bad config":          {append([]string{"--config", badConfig, "prove", "winning-post", w.vanilla}, w.flags()...), exitFailed, `"memory"`},
		"bad config, checked": {[]string{"config", "check", badConfig}, exitFailed, "^"},
		"missing plugin":      {append([]string{"prove", "winning-post", w.vanilla}, append(w.flags(), "--plugin", missing)...), exitFailed, missing},
		"not a plugin":        {append([]string{"prove", "winning-post", w.vanilla}, append(w.flags(), "--plugin", notPlugin)...), exitFailed, "I am no plugin"},
		"output unwritable":   {append([]string{"prove", "winning-post", w.vanilla, "-o", missing + "/x"}, w.flags()...), exitFailed, "cannot be written"},
		"timeline unwritable": {append([]string{"prove", "winning-post", w.vanilla, "--timeline", missing + "/x"}, w.flags()...), exitFailed, "cannot be written"},
		"vanilla is a pipe":   {append([]string{"prove", "winning-post", pipe}, w.flags()...), exitFailed, "not a regular file"},
		"vanilla is a folder": {append([]string{"prove", "winning-post", filepath.Dir(pipe)}, w.flags()...), exitFailed, "is a directory"},
		"vanilla is too long": {append([]string{"prove", "winning-post", large}, w.flags()...), exitFailed, "more than the 1048576"},
		"no web, bad address": {[]string{"serve", "--http-listen", "", "--grpc-listen", "nowhere"}, exitFailed, "nowhere"},
		"config is a pipe":    {append([]string{"prove", "winning-post", w.vanilla}, append(w.flags(), "--config", pipe)...), exitFailed, "not a regular file"},
		"proof is a pipe":     {append([]string{"verify", "winning-post", w.vanilla, "--proof", pipe}, w.flags()...), exitFailed, "not a regular file"},
		"timeline is a pipe":  {[]string{"timeline", pipe}, exitFailed, "not a regular file"},
		"miner zero":          {[]string{"prove", "porep", w.vanilla, "--miner-id", "0"}, exitWrongUse, "0 is no miner"},
		"empty flag":          {[]string{"params", "setup", "winning-post", "2KiB", "--insecure-dev", "--dir", ""}, exitWrongUse, "--dir is empty"},
		"too many files":      {append([]string{"prove", "winning-post", w.vanilla, "x"}, w.flags()...), exitWrongUse, "takes VANILLA.bin, and there are 2"},
		"no arguments":        {[]string{"doctor", "x"}, exitWrongUse, "takes no argument, and there are 1: x"},
		"bad number":          {append([]string{"prove", "winning-post", w.vanilla}, append(w.flags(), "--miner-id", "f01000")...), exitWrongUse, `--miner-id: "f01000" is not a whole number`},
		"bad duration":        {append([]string{"prove", "winning-post", w.vanilla, "--deadline", "25"}, w.flags()...), exitWrongUse, `--deadline: "25" is not a duration`},
		"deadline too short":  {append([]string{"prove", "winning-post", w.vanilla, "--deadline", "1ms"}, w.flags()...), exitFailed, "gave up: the deadline passed before the proof was done"},
		"address, which flag": {[]string{"serve", "--http-listen", "nowhere"}, exitFailed, "--http-listen nowhere"},
		"output's directory":  {append([]string{"prove", "winning-post", w.vanilla, "-o", missing + "/x"}, w.flags()...), exitFailed, "there is no directory " + missing},
		"unknown version":     {append([]string{"prove", "window-post", w.vanilla, "--api-version", "9"}, w.flags()...), exitWrongUse, "api_version"},
		"unknown benchmark":   {[]string{"--plugin", w.plugin, "bench", "nope"}, exitWrongUse, "nope"},
		"unknown partitions":  {[]string{"--plugin", w.plugin, "circuit", "digest", "porep", "2KiB", "--partitions", "3"}, exitWrongUse, "partitions"},
		"setup unwritable":    {[]string{"--plugin", w.plugin, "params", "setup", "winning-post", "2KiB", "--insecure-dev", "--dir", "/proc/none"}, exitFailed, "a directory that can be written to"},
		"no sparse sector":    {[]string{"--plugin", w.plugin, "bench", "make-c1", "2KiB", "--partitions", "13", "-o", missing}, exitWrongUse, "non-interactive"},
		"not JSON":            {[]string{"--plugin", w.plugin, "--params", w.params, "prove", "porep", w.vanilla}, exitFailed, "vanilla[0] is " + w.vanilla + ", read as a phase-1 output"},
		"no timeline":         {[]string{"timeline", w.vanilla}, exitFailed, "holds no timeline"},
		"wrong randomness": {append([]string{"prove", "winning-post", w.vanilla}, append(w.flags(), "--randomness",
			strings.Repeat("00", 32))...), exitFailed, "vanilla[0].inclusion_proofs[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := tool(c.args...)
			require.Equal(t, c.code, r.code, r.err)
			require.Contains(t, r.err, c.says)
			require.Empty(t, r.out)
		})
	}
}

// Property: a proof whose place fails after all is not lost, and a result that
// cannot be printed is a failure.
func TestNoProofIsLost(t *testing.T) {
	w := newWorld(t)
	var errs bytes.Buffer
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	code := run(context.Background(), append([]string{"prove", "winning-post", w.vanilla}, w.flags()...),
		streams{in: strings.NewReader(""), out: full, err: &errs})
	require.Equal(t, exitFailed, code)
	_, text, found := strings.Cut(errs.String(), "the proof is ")
	require.True(t, found, errs.String())
	data, err := hex.DecodeString(strings.TrimSpace(text))
	require.NoError(t, err)
	proof := filepath.Join(t.TempDir(), "proof.bin")
	require.NoError(t, os.WriteFile(proof, data, 0o600))
	verify := append([]string{"verify", "winning-post", w.vanilla, "--proof", proof}, w.flags()...)
	require.Equal(t, exitDone, tool(verify...).code)
	require.Equal(t, exitFailed, run(context.Background(), verify, streams{in: strings.NewReader(""), out: full, err: &errs}))
}

// A set of parameters that the configuration preloads and that is missing keeps no command from what does not need it,
// such as making it. The doctor, who starts the plugin as it will serve, says what is missing.
func TestNothingIsPreloadedForOneCommand(t *testing.T) {
	w := newWorld(t)
	config := filepath.Join(t.TempDir(), "config.hcl")
	require.NoError(t, os.WriteFile(config, []byte(`parameters { preload = ["porep:2KiB"] }`+"\n"), 0o600))
	r := tool("--plugin", w.plugin, "--config", config, "--params", w.params, "circuit", "digest", "winning-post", "2KiB")
	require.Equal(t, exitDone, r.code, r.err)
	r = tool("--plugin", w.plugin, "--config", config, "--params", w.params, "doctor")
	require.Equal(t, exitFailed, r.code)
	require.Regexp(t, `(?s)FAIL  plugin: .*preloading porep:2KiB: .*does not exist`, r.out)
}

// The digest is printed as the reference data has it, field for field.
func TestCircuitDigest(t *testing.T) {
	w := newWorld(t)
	r := tool("--plugin", w.plugin, "circuit", "digest", "window-post", "32KiB")
	require.Equal(t, exitDone, r.code, r.err)
	reference, err := os.ReadFile("../../prover/post/testdata/shapes/window-32KiB.json")
	require.NoError(t, err)
	require.JSONEq(t, string(reference), r.out)
}

// Parameter files are checked point by point, and a changed one is refused.
func TestParamsVerify(t *testing.T) {
	w := newWorld(t)
	files, err := filepath.Glob(filepath.Join(w.params, "*.params"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	r := tool("--plugin", w.plugin, "params", "verify", files[0])
	require.Equal(t, exitDone, r.code, r.err)
	require.Contains(t, r.out, "INSECURE")
	// The reference data's digest of this file.
	require.Contains(t, r.out, "77ec01452a2b2e95aeb72899d6a5b4d62fc435e11d6e1371360b7b686f87d371")

	data, err := os.ReadFile(files[0])
	require.NoError(t, err)
	data[len(data)/2] ^= 1
	broken := filepath.Join(t.TempDir(), filepath.Base(files[0]))
	require.NoError(t, os.WriteFile(broken, data, 0o600))
	r = tool("--plugin", w.plugin, "params", "verify", broken)
	require.Equal(t, exitFailed, r.code)
	require.Contains(t, r.err, broken)
}

// What a killed setup left beside parameters is shown by a check of them, and by the doctor.
func TestLeftoversAreShown(t *testing.T) {
	w, dir := newWorld(t), t.TempDir()
	files, err := filepath.Glob(filepath.Join(w.params, "v28-*"))
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(file)), data, 0o600))
	}
	files, err = filepath.Glob(filepath.Join(dir, "*.params"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	left := filepath.Join(dir, "."+filepath.Base(files[0])+".1.tmp")
	require.NoError(t, os.WriteFile(left, nil, 0o600))
	r := tool("--plugin", w.plugin, "params", "verify", files[0])
	require.Equal(t, exitDone, r.code, r.err)
	require.Regexp(t, `(?m)^left by a setup that was killed; .* `+regexp.QuoteMeta(left)+`$`, r.out)
	r = tool("--plugin", w.plugin, "--params", dir, "doctor", "--digests")
	require.Equal(t, exitDone, r.code, r.out)
	require.Regexp(t, `warn  parameters .*: a setup that was killed left `+regexp.QuoteMeta(left)+"\n      Remove it", r.out)
}

// Killing the plugin in mid-proof: the host lives, its caller gets a typed error
// within a second, and a new host proves the same request.
func TestPluginKilledInMidProof(t *testing.T) {
	w := newWorld(t)
	options := hosttest.Options{Options: host.Options{PluginPath: w.plugin, ParamsDir: w.params}}
	h := hosttest.Start(t, options)
	inDevice := make(chan struct{})
	var once sync.Once
	failed := make(chan error, 1)
	go func() {
		_, err := h.Prove(context.Background(), w.request, func(p shared.Progress) {
			if p.Stage == shared.StageDevice {
				once.Do(func() { close(inDevice) })
			}
		})
		failed <- err
	}()
	<-inDevice
	killed := time.Now()
	require.NoError(t, syscall.Kill(h.PID(), syscall.SIGKILL))
	var died *shared.PluginDiedError
	err := <-failed
	require.True(t, errors.As(err, &died), "%v", err)
	require.Contains(t, died.Status, "killed")
	require.Less(t, time.Since(killed), time.Second)

	result, err := hosttest.Start(t, options).Prove(context.Background(), w.request, nil)
	require.NoError(t, err)
	require.Len(t, result.Proof, 192)
}
