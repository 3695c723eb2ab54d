// Command testplugin is a plugin for tests that proves nothing: to every request it answers with bytes of a proof's
// length, and it ends when asked to, except when its configuration has the text "hang".
package main

import (
	"context"
	"os"
	"strings"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/sharedtest"
)

func main() { os.Exit(shared.Serve(open)) }

func open(_ context.Context, env shared.Environment) (shared.Plugin, error) {
	var config []byte
	if env.ConfigPath != "" {
		var err error
		if config, err = os.ReadFile(env.ConfigPath); err != nil {
			return nil, err
		}
	}
	return &sharedtest.Mock{
		OnProve: func(_ context.Context, r shared.Request, _ func(shared.Progress)) (shared.Result, error) {
			return shared.Result{RequestID: r.ID, Proof: make([]byte, 192), Partitions: 1}, nil
		},
		OnStatus: func(context.Context) (shared.Status, error) {
			return shared.Status{Version: string(config), PID: os.Getpid()}, nil
		},
		OnClose: func() error {
			if strings.Contains(string(config), "hang") {
				select {}
			}
			return nil
		},
	}, nil
}
