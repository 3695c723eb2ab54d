package gateway

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/interlock-prover/interlock/host/gateway/cuzkpb"
)

// authority signs certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	dir  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.make(t, "ca", "authority", nil)
	return a
}

// make writes NAME.pem and NAME.key. parent nil signs with the certificate's own key.
func (a *authority) make(t testing.TB, name, subject string, parent *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: subject},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: parent == nil,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signer, signerKey := template, key
	if parent != nil {
		signer, signerKey = parent.cert, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, &key.PublicKey, signerKey)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(a.path(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(a.path(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return cert, key
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// call asks a server with TLS for its status, with a client certificate of that name if there is one. It gives the
// subject of the server's certificate.
func (a *authority) call(t *testing.T, address, clientCert string) (server string, err error) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	c := &tls.Config{RootCAs: pool, VerifyConnection: func(s tls.ConnectionState) error {
		server = s.PeerCertificates[0].Subject.CommonName
		return nil
	}}
	if clientCert != "" {
		cert, err := tls.LoadX509KeyPair(a.path(clientCert+".pem"), a.path(clientCert+".key"))
		require.NoError(t, err)
		c.Certificates = []tls.Certificate{cert}
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(c)))
	require.NoError(t, err)
	defer conn.Close()
	_, err = cuzkpb.NewProvingEngineClient(conn).GetStatus(testContext(t), &cuzkpb.GetStatusRequest{})
	return server, err
}

// With TLS and an authority for clients, only those with its certificate get in; certificates are renewed while the
// server runs, and a fault in the new files changes nothing.
func TestTLSWithClientCertificates(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	a.make(t, "server", "server 1", a)
	a.make(t, "client", "client", a)
	stranger.make(t, "client", "client", stranger)
	for _, ext := range []string{".pem", ".key"} {
		data, err := os.ReadFile(stranger.path("client" + ext))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(a.path("stranger"+ext), data, 0o600))
	}
	files := TLSFiles{Cert: a.path("server.pem"), Key: a.path("server.key"), ClientCA: a.path("ca.pem")}
	config, err := LoadTLS(files)
	require.NoError(t, err)
	_, address := serve(t, newFakeProver(), Options{TLS: config})

	server, err := a.call(t, address, "client")
	require.NoError(t, err)
	require.Equal(t, "server 1", server)
	for _, bad := range []string{"", "stranger"} {
		_, err = a.call(t, address, bad)
		require.Equal(t, codes.Unavailable, status.Code(err), bad)
	}
	_, err = dial(t, address).GetStatus(testContext(t), &cuzkpb.GetStatusRequest{}) // without TLS
	require.Equal(t, codes.Unavailable, status.Code(err))

	a.make(t, "server", "server 2", a)
	require.NoError(t, config.Reload())
	server, err = a.call(t, address, "client")
	require.NoError(t, err)
	require.Equal(t, "server 2", server)

	require.NoError(t, os.WriteFile(files.Cert, []byte("no certificate"), 0o600))
	require.ErrorContains(t, config.Reload(), files.Cert)
	_, err = a.call(t, address, "client")
	require.NoError(t, err)

	files.ClientCA = a.path("server.key")
	_, err = LoadTLS(files)
	require.Error(t, err)
}

// A unix socket is the user's own, replaces one that was left behind, and neither one in use nor another file.
func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen("unix:" + path)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	_, err = Listen("unix://" + path)
	require.ErrorContains(t, err, "another process listens")
	require.NoError(t, l.Close())

	stale, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", path)
	require.NoError(t, err)
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, stale.Close())
	l, err = Listen("unix:" + path)
	require.NoError(t, err)
	require.NoError(t, l.Close())

	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = Listen("unix:" + file)
	require.ErrorContains(t, err, "no socket")
}
