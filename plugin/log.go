package main

import (
	"fmt"
	"os"

	"github.com/hashicorp/go-hclog"

	"github.com/interlock-prover/interlock/shared/config"
)

// newLogger returns the logger that the engine writes to: the host's, and the
// configured file too, which still tells what happened when the host is gone.
func newLogger(toHost hclog.Logger, c *config.Log) (log hclog.Logger, closeFile func() error, err error) {
	if c.File == "" {
		return toHost, func() error { return nil }, nil
	}
	f, err := os.OpenFile(c.File, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the log file: %w", err)
	}
	level := hclog.LevelFromString(string(c.Level))
	both := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: toHost.GetLevel(), Output: os.Stderr, JSONFormat: true})
	both.RegisterSink(hclog.NewSinkAdapter(&hclog.LoggerOptions{
		Level: level, Output: f, JSONFormat: c.Format == config.LogJSON,
	}))
	return both, f.Close, nil
}
