package gateway

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/net/netutil"
)

// maxConnections bounds the clients of one address. Further ones wait until one of these goes.
const maxConnections = 512

// Listen opens an address: host:port, or unix:PATH for a socket that the user alone may use. A socket that a process
// left behind is replaced; one that somebody listens on is not.
func Listen(address string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(address, "unix:")
	if !isUnix {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, err
		}
		return netutil.LimitListener(l, maxConnections), nil
	}
	path = strings.TrimPrefix(path, "//") // unix:///PATH means the same
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return netutil.LimitListener(l, maxConnections), nil
}

// removeStale removes a socket that nobody listens on.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&os.ModeSocket == 0:
		return fmt.Errorf("%s exists and is no socket", path)
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		return errors.Join(fmt.Errorf("another process listens on %s", path), conn.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}

// TLSFiles names the files of a server that speaks TLS.
type TLSFiles struct {
	Cert, Key string // of the server, PEM
	ClientCA  string // clients need a certificate of one of these authorities, PEM; empty: clients need none
}

// TLS is the TLS of a server. Its files can be read anew while it runs.
type TLS struct {
	files   TLSFiles
	current atomic.Pointer[tls.Config]
}

// LoadTLS reads the files.
func LoadTLS(files TLSFiles) (*TLS, error) {
	t := &TLS{files: files}
	return t, t.Reload()
}

// Reload reads the files again, for connections from now on. If that fails, nothing changes.
func (t *TLS) Reload() error {
	cert, err := tls.LoadX509KeyPair(t.files.Cert, t.files.Key)
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", t.files.Cert, t.files.Key, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2"}}
	if t.files.ClientCA != "" {
		pem, err := os.ReadFile(t.files.ClientCA)
		if err != nil {
			return err
		}
		c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !c.ClientCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s has no certificate", t.files.ClientCA)
		}
	}
	t.current.Store(c)
	return nil
}

func (t *TLS) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.current.Load(), nil },
	}
}
