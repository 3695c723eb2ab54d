package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/gateway"
	"github.com/interlock-prover/interlock/shared/config"
)

// Addresses that are listened on, and asked by `interlock status`, if no other is named.
const (
	defaultGRPCAddress = "127.0.0.1:9820"
	defaultHTTPAddress = "127.0.0.1:9821"
)

// payloadGCPercent is how much garbage there may be beside what is in use. With Go's own 100, requests of 50 MB one after
// the other take 208 MB; with this, 157.
const payloadGCPercent = 20

type serveFlags struct {
	grpc, http   string
	tls          gateway.TLSFiles
	journal      string
	drainTimeout time.Duration
}

func newServeCommand(s streams, g *globals) *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "serve sealing software in any language: cuzk.v1 over gRPC, metrics and status page over HTTP",
		Long: `Serves the prover until it is told to end. A plugin process that dies or hangs is
replaced, and what it had not answered goes to the next.

SIGTERM or an interrupt drains: no more requests are taken, those under way are
answered. A second one ends at once. SIGHUP reads the log level, what becomes of
requests with a deadline and the TLS files anew.`,
		Args: cobra.NoArgs,
	}
	flags := c.Flags()
	flags.StringVar(&f.grpc, "grpc-listen", defaultGRPCAddress, "`ADDR` of cuzk.v1: host:port or unix:PATH")
	flags.StringVar(&f.http, "http-listen", defaultHTTPAddress, "`ADDR` of metrics and status page: host:port or unix:PATH; empty for none")
	flags.StringVar(&f.tls.Cert, "tls-cert", "", "certificate `FILE` of cuzk.v1, PEM; without it there is no TLS")
	flags.StringVar(&f.tls.Key, "tls-key", "", "key `FILE` of the certificate, PEM")
	flags.StringVar(&f.tls.ClientCA, "tls-client-ca", "", "`FILE` of authorities, PEM; clients need a certificate of one of them")
	flags.StringVar(&f.journal, "journal", "", "`DIR` that accepted requests and their proofs are kept in, so that they outlive this process (default: the configuration's)")
	flags.DurationVar(&f.drainTimeout, "drain-timeout", 30*time.Minute, "how long requests under way may take once told to end")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if (f.tls.Cert == "") != (f.tls.Key == "") || f.tls.ClientCA != "" && f.tls.Cert == "" {
			return wrongUse("--tls-cert and --tls-key belong together, and --tls-client-ca needs both")
		}
		return serve(c.Context(), s, g, f)
	}
	return c
}

// serve runs the gateway until ctx ends.
func serve(ctx context.Context, s streams, g *globals, f serveFlags) (err error) {
	c, err := loadConfig(s, g)
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		// The heap is little but payloads, which cost nothing to mark and should go as soon as they are handed over.
		debug.SetGCPercent(payloadGCPercent)
	}
	log := newLogger(s, c, "interlock", hclog.LevelFromString(string(c.Log.Level)))
	options := gateway.Options{Logger: log.Named("gateway")}
	if f.tls.Cert != "" {
		if options.TLS, err = gateway.LoadTLS(f.tls); err != nil {
			return err
		}
	}
	// The addresses first: a plugin may take long to start, and fail.
	grpcListener, err := listen("--grpc-listen", f.grpc)
	if err != nil {
		return err
	}
	defer func() { _ = grpcListener.Close() }()
	var httpListener net.Listener
	if f.http != "" {
		if httpListener, err = listen("--http-listen", f.http); err != nil {
			return err
		}
		defer func() { _ = httpListener.Close() }()
	}
	prover, err := host.Supervise(ctx, host.SupervisorOptions{
		Options:     hostOptions(g, c, log.Named("plugin")),
		Supervision: host.Supervision(c.Supervision),
		Journal:     host.Journal{Dir: cmp.Or(f.journal, c.Journal.Dir), Retention: c.Journal.Retention},
		Detach:      c.Plugin.Detach,
		DetachIdle:  c.Plugin.DetachIdle,

		RefuseHopeless: c.Deadline.RefuseHopeless,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, prover.Stop(context.Background())) }()
	for _, damage := range prover.Damage() {
		log.Error("the journal was damaged", "what", damage)
	}

	options.Prover, options.Keeper = prover, prover.Toolbox()
	gw := gateway.New(options)
	failed := make(chan error, 2)
	go func() { failed <- gw.Serve(grpcListener) }()
	log.Info("serving cuzk.v1", "address", grpcListener.Addr(), "tls", options.TLS != nil)
	if httpListener != nil {
		go func() { failed <- gw.ServeWeb(httpListener) }()
		log.Info("serving metrics and status page", "address", httpListener.Addr())
	}

	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	var cause error
	for ended := false; !ended; {
		select {
		case <-reload:
			reloadLive(s, g, log, prover, options.TLS)
			continue
		case <-ctx.Done():
			log.Info("draining: requests under way are answered, no more are taken", "timeout", f.drainTimeout)
		case cause = <-failed:
			log.Error("serving failed", "error", cause)
		}
		ended = true
	}
	return errors.Join(cause, drain(gw, log, f.drainTimeout, cause != nil))
}

// listen opens the address that a flag names.
func listen(flag, address string) (net.Listener, error) {
	l, err := gateway.Listen(address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s %s: another process listens there, perhaps another 'interlock serve': end it, or name another address", flag, address)
	case errors.As(err, new(*net.OpError)):
		return nil, fmt.Errorf("%s %s: %w; an address is host:port of this machine, or unix:PATH", flag, address, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, address, err)
	}
	return l, nil
}

// drain closes the gateway: at once, or when what is under way is answered, the timeout is over or another signal comes.
func drain(gw *gateway.Gateway, log hclog.Logger, timeout time.Duration, atOnce bool) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), timeout, errors.New("requests under way were given up: the drain timeout is over"))
	defer cancel()
	if atOnce {
		cancel()
	}
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(again)
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case <-again:
			log.Warn("told to end a second time: requests under way are given up")
			cancel()
		case <-stopped:
		}
	}()
	err := gw.Close(ctx)
	if atOnce || errors.Is(err, context.Canceled) {
		return nil // it was asked for
	}
	return err
}

// reloadLive reads anew what can change while requests are under way.
func reloadLive(s streams, g *globals, log hclog.Logger, prover *host.Supervisor, tls *gateway.TLS) {
	if c, err := loadConfig(s, g); err != nil { // it is shown on standard error
		log.Error("the configuration is at fault: what was in force stays in force", "file", config.Find(g.config))
	} else {
		log.SetLevel(hclog.LevelFromString(string(c.Log.Level)))
		prover.SetRefuseHopeless(c.Deadline.RefuseHopeless)
		log.Info("read anew: log level and deadline; other settings need a restart", "level", c.Log.Level, "refuse_hopeless", c.Deadline.RefuseHopeless)
	}
	if tls == nil {
		return
	}
	if err := tls.Reload(); err != nil {
		log.Error("the TLS files were not read anew: those that were read before stay in force", "error", err)
		return
	}
	log.Info("read anew: TLS files")
}
