package main

import (
	"context"
	"os"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/term"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/shared/config"
)

// session is a plugin that one command holds.
type session struct{ *host.Host }

// startPlugin starts the plugin with the configuration in force. A faulty
// configuration is reported here, where its diagnostics can be shown with the
// lines they are about.
func startPlugin(ctx context.Context, s streams, g *globals) (*session, error) {
	path := config.Find(g.config)
	c, diags := config.Load(path)
	if diags.HasErrors() {
		if err := config.WriteDiagnostics(s.err, diags, c.Files(), isTerminal(s.err)); err != nil {
			return nil, err
		}
		return nil, errReported
	}
	level := hclog.Error
	if g.verbose {
		level = hclog.LevelFromString(string(c.Log.Level))
	}
	h, err := host.Start(ctx, host.Options{
		PluginPath: g.plugin,
		ConfigPath: path,
		ParamsDir:  g.params,
		Logger: hclog.New(&hclog.LoggerOptions{
			Name: "plugin", Level: level, Output: s.err, JSONFormat: c.Log.Format == config.LogJSON,
		}),
		StartTimeout: c.Plugin.StartTimeout,
		StopTimeout:  c.Plugin.StopTimeout,
	})
	if err != nil {
		return nil, err
	}
	return &session{h}, nil
}

// stop ends the plugin. A plugin that had to be killed has said why in its log;
// the command's result stands.
func (s *session) stop() { _ = s.Stop(context.Background()) }

// isTerminal tells whether w is a terminal.
func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
