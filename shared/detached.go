package shared

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// A detached plugin outlives its host. It serves on a socket of a directory that only its user can enter, to whoever has
// the key that lies there; the same key pair is both sides'. (go-plugin makes keys for each process, which the next host
// could not have.)
const (
	EnvDetach     = "INTERLOCK_DETACH"      // the directory; unset or empty: not detached
	EnvDetachIdle = "INTERLOCK_DETACH_IDLE" // how long it waits for a host before it ends, such as "1h"

	detachedCert   = "cert.pem"
	detachedKey    = "key.pem"
	detachedSocket = "socket"

	// DetachedName is the name in a detached plugin's certificate.
	DetachedName = "interlock-prover"
)

// DetachedFiles are the paths of a detached plugin's certificate, key and socket.
func DetachedFiles(dir string) (cert, key, socket string) {
	return filepath.Join(dir, detachedCert), filepath.Join(dir, detachedKey), filepath.Join(dir, detachedSocket)
}

// DetachedTLS is what both sides of a detached plugin's connection use: they accept nobody but who has the same key.
func DetachedTLS(dir string) (*tls.Config, error) {
	certPath, keyPath, _ := DetachedFiles(dir)
	pair, err := tls.LoadX509KeyPair(certPath, keyPath)
	if err != nil {
		return nil, fmt.Errorf("the key of a detached plugin: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(pair.Leaf)
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13, ServerName: DetachedName,
		RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}, nil
}

// DialDetached makes a client of a detached plugin. Nothing is sent before its first call.
func DialDetached(dir string) (*Client, *grpc.ClientConn, error) {
	config, err := DetachedTLS(dir)
	if err != nil {
		return nil, nil, err
	}
	_, _, socket := DetachedFiles(dir)
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(credentials.NewTLS(config)), grpc.WithAuthority(DetachedName),
		// The socket comes soon, or not at all.
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: time.Second}}))
	if err != nil {
		return nil, nil, err
	}
	return NewClient(conn), conn, nil
}

var errNoHost = errors.New("no host has come for a long time")

// serveDetached serves a plugin until ctx ends, or until no host has called for the time that the environment says.
func serveDetached(ctx context.Context, end context.CancelCauseFunc, dir string, implementation Plugin, calls *callCounter, log hclog.Logger) error {
	idle, err := time.ParseDuration(os.Getenv(EnvDetachIdle))
	if err != nil || idle <= 0 {
		return fmt.Errorf("%s is %q, not how long to wait for a host", EnvDetachIdle, os.Getenv(EnvDetachIdle))
	}
	config, err := DetachedTLS(dir)
	if err != nil {
		return err
	}
	_, _, socket := DetachedFiles(dir)
	_ = os.Remove(socket) // of one that was killed
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return err
	}
	logPath, older := DetachedLog(dir)
	isLogStuck := false
	listener.SetUnlinkOnClose(false) // it may be a later plugin's by then
	began := time.Now()
	var latest atomic.Int64 // call, as a [time.Duration] since began: the wall clock may jump
	touch := func() { latest.Store(int64(time.Since(began))) }
	options := append(calls.options(), grpc.Creds(credentials.NewTLS(config)),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			touch()
			return handler(ctx, request)
		}))
	server := newServer(options...)
	register(server, implementation, implementation)
	healthy := health.NewServer()
	healthy.SetServingStatus(healthService, grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(server, healthy)
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()

	// Hosts ask for the plugin's health all the time.
	tick := time.NewTicker(idle / 10)
	defer tick.Stop()
	lookAtLog := time.NewTicker(time.Second)
	defer lookAtLog.Stop()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	log.Info("serving detached", "socket", socket, "idle", idle)
	for {
		select {
		case err := <-served:
			if ctx.Err() != nil || errors.Is(err, grpc.ErrServerStopped) {
				return nil
			}
			return err
		case <-lookAtLog.C:
			err := rotate(logPath, older, DetachedLogBytes, unix.Stdout, unix.Stderr)
			if err != nil && !isLogStuck {
				log.Warn("the log grows on", "error", err)
			}
			isLogStuck = err != nil
		case <-tick.C:
			if time.Since(began)-time.Duration(latest.Load()) > idle {
				end(errNoHost)
			}
		}
	}
}
