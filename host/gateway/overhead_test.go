package gateway

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/gateway/cuzkpb"
)

// c1Bytes is the size of a C1 of 32 GiB.
const c1Bytes = 50 << 20

// BenchmarkOverhead times a C1's way from a client through the gateway into a plugin process, with the digest that tells
// requests apart, beside a bare relay of the same bytes through grpc-go: TCP to a process, from there in chunks of 1 MiB
// over a unix socket with mutual TLS. Both take turns, so that the machine's load is the same to both.
func BenchmarkOverhead(b *testing.B) {
	payload := make([]byte, c1Bytes)
	_, _ = rand.Read(payload)
	viaGateway, viaRelay := gatewayCall(b, payload), relayCall(b, payload)
	var ours, bare []time.Duration
	for b.Loop() {
		for _, turn := range []struct {
			call  func() error
			times *[]time.Duration
		}{{viaGateway, &ours}, {viaRelay, &bare}} {
			start := time.Now()
			if err := turn.call(); err != nil {
				b.Fatal(err)
			}
			*turn.times = append(*turn.times, time.Since(start))
		}
	}
	median := func(times []time.Duration) float64 {
		slices.Sort(times)
		return times[len(times)/2].Seconds() * 1000
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(ours), "ms-gateway")
	b.ReportMetric(median(bare), "ms-relay")
	b.ReportMetric(median(ours)/median(bare), "ratio")
}

func gatewayCall(b *testing.B, payload []byte) func() error {
	self, err := os.Executable()
	require.NoError(b, err)
	h, err := host.Start(b.Context(), host.Options{PluginPath: self})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, h.Stop(context.Background())) })
	g := New(Options{Prover: h, Keeper: h.Toolbox()})
	l, err := Listen("127.0.0.1:0")
	require.NoError(b, err)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	b.Cleanup(func() {
		require.NoError(b, g.Close(context.Background()))
		require.NoError(b, <-served)
	})
	client := dial(b, l.Addr().String())
	return func() error {
		_, err := client.Prove(context.Background(), &cuzkpb.ProveRequest{Submit: &cuzkpb.SubmitProofRequest{
			ProofKind: cuzkpb.ProofKind_POREP_SEAL_COMMIT, SectorSize: 32 << 30, RegisteredProof: 8, VanillaProof: payload,
		}})
		return err
	}
}

// relayCall is the bare relay. Its messages are protobuf's bytes.
func relayCall(b *testing.B, payload []byte) func() error {
	sink := grpc.NewServer(grpc.Creds(credentials.NewTLS(mutualTLS(b))))
	sink.RegisterService(&grpc.ServiceDesc{ServiceName: "sink", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{{
		StreamName: "Take", ClientStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
			var all []byte
			for {
				var chunk wrapperspb.BytesValue
				if err := stream.RecvMsg(&chunk); err == io.EOF {
					return stream.SendMsg(wrapperspb.Bytes(all[:1]))
				} else if err != nil {
					return err
				}
				all = append(all, chunk.Value...)
			}
		},
	}}}, new(any))
	socket := filepath.Join(b.TempDir(), "s")
	serveBare(b, sink, "unix:"+socket)
	toSink, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(credentials.NewTLS(mutualTLS(b))))
	require.NoError(b, err)
	b.Cleanup(func() { _ = toSink.Close() })

	relay := grpc.NewServer(grpc.MaxRecvMsgSize(MaxMessageBytes))
	relay.RegisterService(&grpc.ServiceDesc{ServiceName: "relay", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{{
		StreamName: "Pass", ClientStreams: true, Handler: func(_ any, stream grpc.ServerStream) error {
			var whole wrapperspb.BytesValue
			if err := stream.RecvMsg(&whole); err != nil {
				return err
			}
			out, err := toSink.NewStream(stream.Context(), &grpc.StreamDesc{ClientStreams: true}, "/sink/Take")
			if err != nil {
				return err
			}
			for chunk := range slices.Chunk(whole.Value, 1<<20-64) {
				if err := out.SendMsg(&wrapperspb.BytesValue{Value: chunk}); err != nil {
					return err
				}
			}
			if err := out.CloseSend(); err != nil {
				return err
			}
			var reply wrapperspb.BytesValue
			if err := out.RecvMsg(&reply); err != nil {
				return err
			}
			return stream.SendMsg(&reply)
		},
	}}}, new(any))
	conn := connect(b, serveBare(b, relay, "127.0.0.1:0"))
	return func() error {
		return conn.Invoke(context.Background(), "/relay/Pass", &wrapperspb.BytesValue{Value: payload}, &wrapperspb.BytesValue{})
	}
}

func serveBare(b *testing.B, server *grpc.Server, address string) string {
	l, err := Listen(address)
	require.NoError(b, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	b.Cleanup(func() { server.Stop(); require.NoError(b, <-served) })
	return l.Addr().String()
}

// mutualTLS serves both ends: neither looks at the other's certificate, which costs nothing once connected.
func mutualTLS(b *testing.B) *tls.Config {
	a := &authority{dir: b.TempDir()}
	a.cert, a.key = a.make(b, "both", "both", nil)
	cert, err := tls.LoadX509KeyPair(a.path("both.pem"), a.path("both.key"))
	require.NoError(b, err)
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAnyClientCert, InsecureSkipVerify: true}
}
