package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/interlock-prover/interlock/host/gateway"
	"github.com/interlock-prover/interlock/host/gateway/cuzkpb"
	"github.com/interlock-prover/interlock/host/hosttest"
)

// output collects what a command writes while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// find waits for a pattern and gives its group.
func (o *output) find(t *testing.T, pattern string) string {
	t.Helper()
	var found []string
	require.Eventually(t, func() bool {
		found = regexp.MustCompile(pattern).FindStringSubmatch(o.String())
		return found != nil
	}, time.Minute, 10*time.Millisecond, "%s in: %s", pattern, o)
	return found[len(found)-1]
}

func command(t *testing.T, args ...string) (code int, out, errors string) {
	t.Helper()
	var o, e output
	code = run(context.Background(), args, streams{in: strings.NewReader(""), out: &o, err: &e})
	return code, o.String(), e.String()
}

// `interlock serve` serves until it is told to end, reads anew what can change when told to, and `interlock status`
// shows what it does.
func TestServeAndStatus(t *testing.T) {
	plugin := hosttest.Build(t, "github.com/interlock-prover/interlock/host/hosttest/testplugin")
	config := filepath.Join(t.TempDir(), "config.hcl")
	require.NoError(t, os.WriteFile(config, []byte("log {\n  level = \"info\"\n}\n"), 0o600))
	var log output
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"serve", "--plugin", plugin, "--config", config, "--grpc-listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--journal", t.TempDir()},
			streams{in: strings.NewReader(""), out: &log, err: &log})
	}()
	http := log.find(t, `status page: address=(\S+)`)
	conn, err := grpc.NewClient(log.find(t, `serving cuzk.v1: address=(\S+)`), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	health, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "cuzk.v1.ProvingEngine"})
	require.NoError(t, err)
	require.Equal(t, grpc_health_v1.HealthCheckResponse_SERVING, health.GetStatus())

	code, out, _ := command(t, "status", "--http", http)
	require.Equal(t, exitDone, code)
	require.Regexp(t, `(?m)^serving$`, out)
	require.Regexp(t, `(?m)^scripted .* idle$`, out)
	code, out, _ = command(t, "status", "--http", http, "--json")
	require.Equal(t, exitDone, code)
	var snapshot gateway.Snapshot
	require.NoError(t, json.Unmarshal([]byte(out), &snapshot))
	require.Positive(t, snapshot.PID)

	require.NoError(t, os.WriteFile(config, []byte("log {\n  level = \"loud\"\n}\n"), 0o600))
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	log.find(t, `what was in force stays in force`)
	require.NoError(t, os.WriteFile(config, []byte("log {\n  level = \"debug\"\n}\n"), 0o600))
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	log.find(t, `read anew: log level`)

	stop() // as a signal does
	require.Equal(t, exitDone, <-done, log.String())
	require.False(t, hosttest.Running(snapshot.PID))

	code, _, errors := command(t, "status", "--http", http)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errors, "is 'interlock serve' running?")
}

// A request that cannot be done before its deadline is refused only if the configuration says so, which is read anew.
func TestServeRefusesHopelessRequests(t *testing.T) {
	plugin, state := hosttest.Build(t, "github.com/interlock-prover/interlock/host/hosttest/testplugin"), t.TempDir()
	t.Setenv(hosttest.EnvState, state)
	config := filepath.Join(t.TempDir(), "config.hcl")
	configure := func(text string) { require.NoError(t, os.WriteFile(config, []byte(text), 0o600)) }
	configure("deadline {\n  refuse_hopeless = true\n}\n")
	var log output
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"serve", "--plugin", plugin, "--config", config, "--grpc-listen", "127.0.0.1:0", "--http-listen", ""},
			streams{in: strings.NewReader(""), out: &log, err: &log})
	}()
	conn, err := grpc.NewClient(log.find(t, `serving cuzk.v1: address=(\S+)`), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer conn.Close()
	prove := func(id string, within time.Duration) {
		r := hosttest.Script{Work: 600 * time.Millisecond}.Request(id)
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		_, _ = cuzkpb.NewProvingEngineClient(conn).Prove(ctx, &cuzkpb.ProveRequest{Submit: &cuzkpb.SubmitProofRequest{
			RequestId: id, ProofKind: cuzkpb.ProofKind_WINDOW_POST_PARTITION, SectorSize: uint64(r.SectorSize), RegisteredProof: 5,
			Randomness: r.Randomness, VanillaProofs: r.Vanilla,
		}})
	}
	tried := func(id string) bool {
		names, err := filepath.Glob(filepath.Join(state, id+".*.attempts"))
		require.NoError(t, err)
		return len(names) > 0
	}
	prove("first", time.Minute)
	require.Len(t, hosttest.Proven(state), 1)
	prove("hopeless", 400*time.Millisecond)
	log.find(t, `proof failed.*the fastest of its kind and sector size took`)
	require.False(t, tried("hopeless"))

	configure("")
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	log.find(t, `read anew: log level and deadline`)
	prove("tried", 400*time.Millisecond)
	require.True(t, tried("tried"))
	stop()
	require.Equal(t, exitDone, <-done, log.String())
}

func TestServeRefusesWrongUse(t *testing.T) {
	for _, flag := range []string{"--tls-cert", "--tls-key", "--tls-client-ca"} {
		code, _, errors := command(t, "serve", flag, "x")
		require.Equal(t, exitWrongUse, code)
		require.Contains(t, errors, "belong together")
	}
	code, _, errors := command(t, "serve", "--grpc-listen", "nowhere:1:2")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errors, "nowhere:1:2")
}

// The doctor names what is wrong, with what to do, and says so by its exit code.
func TestDoctor(t *testing.T) {
	plugin := hosttest.Build(t, "github.com/interlock-prover/interlock/host/hosttest/testplugin")
	dir, empty := t.TempDir(), t.TempDir()
	t.Chdir(empty) // no config.hcl here
	set := filepath.Join(dir, "v28-stacked-proof-of-replication-x")
	for _, ext := range []string{".params", ".vk", ".insecure"} {
		require.NoError(t, os.WriteFile(set+ext, []byte("x"), 0o600))
	}
	code, out, _ := command(t, "doctor", "--plugin", plugin, "--params", dir)
	require.Equal(t, exitDone, code, out)
	require.Contains(t, out, "ok    device scripted")
	require.Regexp(t, `ok    parameters v28-stacked-proof-of-replication-x.params: 1 B, for porep`, out)
	require.Contains(t, out, "INSECURE")

	require.NoError(t, os.Remove(set+".vk"))
	code, out, _ = command(t, "doctor", "--plugin", plugin, "--params", dir)
	require.Equal(t, exitFailed, code)
	require.Regexp(t, `FAIL  parameters v28-stacked.*\n      Fetch it again`, out)

	code, out, _ = command(t, "doctor", "--plugin", plugin, "--params", empty)
	require.Equal(t, exitFailed, code)
	require.Regexp(t, `FAIL  parameters: .* has none`, out)

	code, out, _ = command(t, "doctor", "--plugin", filepath.Join(empty, "nothing"), "--params", dir)
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, "FAIL  plugin")

	faulty := filepath.Join(empty, "faulty.hcl")
	require.NoError(t, os.WriteFile(faulty, []byte("memory {\n  budget = \"lots\"\n}\n"), 0o600))
	code, out, _ = command(t, "doctor", "--config", faulty)
	require.Equal(t, exitFailed, code)
	require.Contains(t, out, "FAIL  configuration")
}
