// Command interlock-prover is the plugin: the process that proves. A host starts
// it and talks to it over gRPC; it proves until the host has enough or is gone.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/hcl/v2"

	"github.com/interlock-prover/interlock/prover"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/config"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == shared.CardsCommand {
		os.Exit(reportCards(os.Args[2], os.Stdout))
	}
	os.Exit(shared.Serve(open))
}

// open starts the engine as the host's environment and the configuration say.
func open(ctx context.Context, env shared.Environment) (shared.Plugin, error) {
	c, err := load(env.ConfigPath)
	if err != nil {
		return nil, err
	}
	if env.NoPreload {
		c.Parameters.Preload = nil
	}
	log, closeLog, err := newLogger(env.Logger, &c.Log)
	if err != nil {
		return nil, err
	}
	engine, err := prover.Open(ctx, c, config.ParamsDir(env.ParamsDir, c), log)
	if err != nil {
		return nil, fmt.Errorf("starting the engine: %w", err)
	}
	p := &plugin{Engine: engine, closeLog: closeLog, closing: make(chan struct{})}
	p.watching.Go(func() { endWithCards(engine.Lost(), p.closing, log, os.Exit) })
	return p, nil
}

// load reads the configuration and compares it with the machine.
func load(path string) (*config.Config, error) {
	c, diags := config.Load(path)
	if !diags.HasErrors() {
		machine, err := config.DetectHardware()
		if err != nil {
			return nil, fmt.Errorf("looking at this machine: %w", err)
		}
		diags = append(diags, c.CheckHardware(machine)...)
	}
	if diags.HasErrors() {
		return nil, fmt.Errorf("the configuration cannot be used:\n%s", text(diags, c.Files()))
	}
	return c, nil
}

func text(diags hcl.Diagnostics, files map[string]*hcl.File) string {
	var b strings.Builder
	if err := config.WriteDiagnostics(&b, diags, files, false); err != nil {
		return diags.Error()
	}
	return b.String()
}

// exitCardsLost is the status that the process ends with when its last card is
// lost.
const exitCardsLost = 3

// endWithCards ends the process when the last card is lost, until closing is
// closed: CUDA gives a process no card back, but the next one, and the host starts
// that. Nothing is answered, so that the host proves it anew.
func endWithCards(lost <-chan error, closing <-chan struct{}, log hclog.Logger, exit func(int)) {
	select {
	case err := <-lost:
		log.Error("every card is lost; ending, so that a new process can take them up again", "error", err)
		exit(exitCardsLost)
	case <-closing:
	}
}

// plugin is the engine with the log file that it writes to.
type plugin struct {
	*prover.Engine
	closeLog func() error

	closing  chan struct{} // closed by Close
	watching sync.WaitGroup
}

// Close implements shared.Plugin.
func (p *plugin) Close() error {
	close(p.closing)
	p.watching.Wait()
	err := p.Engine.Close()
	if logErr := p.closeLog(); err == nil {
		err = logErr
	}
	return err
}
