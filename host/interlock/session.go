package main

import (
	"context"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/term"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/shared/config"
)

// session is a plugin that one command holds.
type session struct {
	*host.Host
	ctx context.Context // the command's
}

// loadConfig reads the configuration in force. A faulty one is reported here, where its diagnostics can be shown with
// the lines they are about.
func loadConfig(s streams, g *globals) (*config.Config, error) {
	c, diags := config.Load(config.Find(g.config))
	if diags.HasErrors() {
		if err := config.WriteDiagnostics(s.err, diags, c.Files(), isTerminal(s.err)); err != nil {
			return nil, err
		}
		return nil, errReported
	}
	return c, nil
}

// startPlugin starts the plugin for a command that ends with it.
func startPlugin(ctx context.Context, s streams, g *globals) (*session, error) {
	c, err := loadConfig(s, g)
	if err != nil {
		return nil, err
	}
	level := hclog.Error
	if g.verbose {
		level = hclog.LevelFromString(string(c.Log.Level))
	}
	options := hostOptions(g, c, newLogger(s, c, "plugin", level))
	options.NoPreload = true // one command needs one set, or none, and may be about to make the set that is missing
	h, err := host.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	return &session{h, ctx}, nil
}

// hostOptions start the plugin with a configuration that is in order.
func hostOptions(g *globals, c *config.Config, log hclog.Logger) host.Options {
	return host.Options{
		PluginPath:   g.plugin,
		PluginSHA256: c.Plugin.SHA256,
		ConfigPath:   c.Path,
		ParamsDir:    g.params,
		Logger:       log,
		StartTimeout: c.Plugin.StartTimeout,
		StopTimeout:  c.Plugin.StopTimeout,
	}
}

// newLogger logs to standard error in the configuration's format.
func newLogger(s streams, c *config.Config, name string, level hclog.Level) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Name: name, Level: level, Output: s.err, JSONFormat: c.Log.Format == config.LogJSON,
	})
}

// interruptedGrace is how long an interrupted command's plugin may take to end.
const interruptedGrace = 2 * time.Second

// stop ends the plugin. A plugin that had to be killed has said why in its log;
// the command's result stands.
func (s *session) stop() {
	ctx := context.Background()
	if s.ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, interruptedGrace)
		defer cancel()
	}
	_ = s.Stop(ctx)
}

// isTerminal tells whether w is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
