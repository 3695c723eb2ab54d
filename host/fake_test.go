package host_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/hosttest"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/sharedtest"
)

// The test's own program is also the plugin and, where a host has to be killed, the host.
const roleEnv = "INTERLOCK_HOST_TEST_ROLE"

func TestMain(m *testing.M) {
	if role := roles[os.Getenv(roleEnv)]; role != nil {
		os.Exit(role())
	}
	goleak.VerifyTestMain(m)
}

// roles are what the program can be, beside the test. They give its exit status.
var roles = map[string]func() int{
	"plugin":                func() int { return shared.Serve(openFake) },
	"scripted":              func() int { return shared.Serve(hosttest.OpenScripted) },
	"journaling host":       runJournalingHost,
	"host on a full disk":   hostOnFullDisk,
	"host with few handles": hostWithFewHandles,
	"host":                  runHost,
	"cards":                 describeCards,
}

// openFake opens a plugin that does what a request's id says.
func openFake(ctx context.Context, env shared.Environment) (shared.Plugin, error) {
	config, err := os.ReadFile(env.ConfigPath)
	if err != nil && env.ConfigPath != "" {
		return nil, err
	}
	switch string(config) {
	case "fault":
		return nil, errors.New("config.hcl:1: the fault in it")
	case "slow":
		time.Sleep(time.Minute)
	}
	return &sharedtest.Mock{
		OnStatus: func(context.Context) (shared.Status, error) {
			return shared.Status{Version: env.ConfigPath + "|" + env.ParamsDir, PID: os.Getpid()}, nil
		},
		OnProve: func(ctx context.Context, r shared.Request, progress func(shared.Progress)) (shared.Result, error) {
			progress(shared.Progress{RequestID: r.ID, Stage: shared.StageDevice})
			switch r.ID {
			case "digest":
				sum := sha256.New()
				for _, v := range r.Vanilla {
					sum.Write(v)
				}
				return shared.Result{RequestID: r.ID, Proof: sum.Sum(nil)}, nil
			case "block":
				<-ctx.Done()
				env.Logger.Info("the request ended", "at", time.Now().UnixNano())
				return shared.Result{}, ctx.Err()
			case "ignore": // what a fault in a driver may do
				select {}
			case "exit":
				env.Logger.Error("the card is gone", "gpu", 3)
				os.Exit(3)
			case "panic":
				go func() { panic("a fault of the prover") }()
				select {}
			case "log":
				env.Logger.Debug("at debug")
				env.Logger.Info("at info", "partition", 7)
				env.Logger.Named("pipeline").Warn("at warn")
				env.Logger.Error("at error")
				fmt.Println("[WARN] printed")
				return shared.Result{}, nil
			case "orphan": // a process of its own that keeps the plugin's pipes and connection open
				cmd := exec.Command("sleep", "3")
				cmd.Stdout, cmd.Stderr = os.NewFile(1, "stdout"), os.NewFile(2, "stderr")
				if err := cmd.Start(); err != nil {
					return shared.Result{}, err
				}
				os.Exit(4)
			}
			return shared.Result{}, &shared.BusyError{Resource: "the queue", RetryAfter: time.Second}
		},
		OnClose: func() error {
			env.Logger.Info("closed")
			if strings.Contains(string(config), "slow end") {
				time.Sleep(time.Minute)
			}
			return nil
		},
	}, nil
}

// fakeOptions make hosttest start this program as a plugin.
func fakeOptions(t testing.TB) hosttest.Options {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The race detector would keep a process for a second before its end.
	return hosttest.Options{Options: host.Options{PluginPath: self, Env: []string{roleEnv + "=plugin", "GORACE=atexit_sleep_ms=0"}}}
}

// runHost is a host that waits to be killed, and says which process its plugin is.
func runHost() int {
	self, err := os.Executable()
	if err != nil {
		return 1
	}
	h, err := host.Start(context.Background(), host.Options{PluginPath: self, Env: []string{roleEnv + "=plugin"}})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	go func() { _, _ = h.Prove(context.Background(), request("block"), nil) }()
	go func() { _, _ = h.Prove(context.Background(), request("ignore"), nil) }()
	fmt.Println(h.PID())
	select {}
}

func request(id string) shared.Request {
	return shared.Request{ID: id, Kind: shared.KindPoRep, SectorSize: shared.SectorSize2KiB, Vanilla: [][]byte{{1}}}
}
