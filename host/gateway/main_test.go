package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/sharedtest"
)

// TestMain makes the test's program a plugin when a host starts it, and a gateway when a test does.
func TestMain(m *testing.M) {
	if os.Getenv(shared.Handshake.MagicCookieKey) != "" {
		os.Exit(shared.Serve(func(context.Context, shared.Environment) (shared.Plugin, error) { return swallower(), nil }))
	}
	if mode := os.Getenv(envGateway); mode != "" {
		if err := serveGateway(mode, os.Getenv(envGatewayDir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// swallower is a plugin that takes requests as an engine does, and proves nothing.
func swallower() shared.Plugin {
	result := shared.Result{Proof: make([]byte, 1920), Partitions: 10}
	var accepted sync.Map
	return &sharedtest.Mock{
		OnProve: func(_ context.Context, r shared.Request, progress func(shared.Progress)) (shared.Result, error) {
			progress(shared.Progress{Stage: shared.StageDecode, Partition: -1})
			r.Release() // it is decoded
			return result, nil
		},
		OnSubmit: func(_ context.Context, r shared.Request) (shared.JobID, error) {
			r.Release()
			accepted.Store(shared.JobID(r.ID), true)
			return shared.JobID(r.ID), nil
		},
		OnAwait: func(_ context.Context, id shared.JobID) (shared.Result, error) {
			if _, known := accepted.Load(id); !known {
				return shared.Result{}, shared.ErrUnknownJob
			}
			return result, nil
		},
		OnStatus: func(context.Context) (shared.Status, error) { return shared.Status{PID: os.Getpid()}, nil },
	}
}

// The test's program is a gateway if envGateway names a mode, with its files in the directory of envGatewayDir.
const (
	envGateway    = "INTERLOCK_TEST_GATEWAY"
	envGatewayDir = "INTERLOCK_TEST_GATEWAY_DIR"

	modePlain    = "plain"    // nothing survives the gateway
	modeJournal  = "journal"  // requests do
	modeDetached = "detached" // and so does the plugin
)

// serveGateway is `interlock serve` until its standard input ends. It says where it serves and its plugin's process.
func serveGateway(mode, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	o := host.SupervisorOptions{Options: host.Options{PluginPath: self}, Detach: mode == modeDetached}
	if mode != modePlain {
		o.Journal.Dir = dir
	}
	s, err := host.Supervise(context.Background(), o)
	if err != nil {
		return err
	}
	g := New(Options{Prover: s, Keeper: s.Toolbox()})
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	fmt.Println(l.Addr(), s.State().PID)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return errors.Join(g.Close(context.Background()), <-served, s.Stop(context.Background()))
}
