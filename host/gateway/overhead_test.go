package gateway

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/gateway/cuzkpb"
	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/sharedtest"
)

// TestMain makes the test's program a plugin when a host starts it.
func TestMain(m *testing.M) {
	if os.Getenv(envGatewayChild) != "" {
		if err := gatewayChild(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(shared.Handshake.MagicCookieKey) != "" {
		os.Exit(shared.Serve(func(context.Context, shared.Environment) (shared.Plugin, error) {
			return &sharedtest.Mock{
				OnSubmit: func(_ context.Context, r shared.Request) (shared.JobID, error) { return shared.JobID(r.ID), nil },
				OnAwait: func(context.Context, shared.JobID) (shared.Result, error) {
					return shared.Result{Proof: make([]byte, 1920), Partitions: 10}, nil
				},
				OnStatus: func(context.Context) (shared.Status, error) { return shared.Status{PID: os.Getpid()}, nil },
			}, nil
		}))
	}
	os.Exit(m.Run())
}

// envGatewayChild makes the test's program a gateway with a plugin, until its standard input ends.
const envGatewayChild = "INTERLOCK_TEST_GATEWAY"

func gatewayChild() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.Unsetenv(envGatewayChild); err != nil { // the plugin is none
		return err
	}
	h, err := host.Start(context.Background(), host.Options{PluginPath: self})
	if err != nil {
		return err
	}
	g := New(Options{Prover: h, Keeper: h.Toolbox()})
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	fmt.Println(l.Addr())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return errors.Join(g.Close(context.Background()), <-served, h.Stop(context.Background()))
}

// memoryOf is what a process has in memory that no file could give back, with the memory files that it has open, and its
// children's.
func memoryOf(pid int, seen map[uint64]bool) int64 {
	var total int64
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for _, field := range regexp.MustCompile(`(?m)^Rss(?:Anon|Shmem):\s+(\d+) kB`).FindAllSubmatch(text, -1) {
		n, _ := strconv.ParseInt(string(field[1]), 10, 64)
		total += n << 10
	}
	open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, fd := range open {
		if name, _ := os.Readlink(fd); strings.HasPrefix(name, "/memfd:") {
			var info syscall.Stat_t
			if err := syscall.Stat(fd, &info); err == nil && !seen[info.Ino] {
				seen[info.Ino] = true
				total += info.Blocks * 512
			}
		}
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		children, _ := os.ReadFile(task)
		for _, child := range strings.Fields(string(children)) {
			n, _ := strconv.Atoi(child)
			total += memoryOf(n, seen)
		}
	}
	return total
}

// BenchmarkMemoryOfLargeRequests measures what gateway and plugin together take at most, beside what they take at rest, for
// C1s that come one after the other.
func BenchmarkMemoryOfLargeRequests(b *testing.B) {
	self, err := os.Executable()
	require.NoError(b, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envGatewayChild+"=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(b, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	address, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(b, err)
	client := dial(b, strings.TrimSpace(address))
	_, err = client.GetStatus(b.Context(), &cuzkpb.GetStatusRequest{})
	require.NoError(b, err)

	before := memoryOf(cmd.Process.Pid, map[uint64]bool{})
	require.Greater(b, before, int64(10<<20))
	var worst int64
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			worst = max(worst, memoryOf(cmd.Process.Pid, map[uint64]bool{})-before)
			select {
			case <-over:
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	payload := make([]byte, payloadBytes)
	for b.Loop() {
		_, _ = rand.Read(payload[:1<<10])
		_, err := client.Prove(b.Context(), &cuzkpb.ProveRequest{Submit: &cuzkpb.SubmitProofRequest{
			ProofKind: cuzkpb.ProofKind_POREP_SEAL_COMMIT, SectorSize: 32 << 30, RegisteredProof: 8, VanillaProof: payload,
		}})
		require.NoError(b, err)
	}
	close(over)
	<-watched
	require.NoError(b, stdin.Close())
	require.NoError(b, cmd.Wait())
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(worst)/1e6, "MB-extra")
}

// payloadBytes is the size of a C1 of 32 GiB.
const payloadBytes = 50 << 20

// BenchmarkOverhead times a C1's way from a client through the gateway into a plugin process, with the digest that tells
// requests apart, beside a bare relay of the same bytes through grpc-go: TCP to a process, from there in chunks of 1 MiB
// over a unix socket with mutual TLS. Both take turns, so that the machine's load is the same to both.
func BenchmarkOverhead(b *testing.B) {
	payload := make([]byte, payloadBytes)
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
