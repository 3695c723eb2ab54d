package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"

	"github.com/interlock-prover/interlock/host"
	"github.com/interlock-prover/interlock/host/gateway/cuzkpb"
	"github.com/interlock-prover/interlock/shared"
)

// Keeper loads and drops parameters. A [shared.Toolbox] is one.
type Keeper interface {
	Preload(context.Context, shared.CircuitRequest) (shared.PreloadResult, error)
	Evict(context.Context, shared.CircuitRequest) (shared.EvictResult, error)
}

// Supervised is a prover whose process is restarted when it ends. A [host.Supervisor] is one.
type Supervised interface {
	State() host.State
}

// Options are what a gateway is made of.
type Options struct {
	Prover shared.Prover // may be a Supervised too
	Keeper Keeper
	Logger hclog.Logger // nil: nothing is logged
	TLS    *TLS         // of cuzk.v1; nil: none

	// Uploads is how many requests are received at once; each takes up to twice MaxMessageBytes until the prover has
	// it. Others wait. 0: 4.
	Uploads int
	// UploadTimeout is how long a request may take to arrive. 0: 2 minutes.
	UploadTimeout time.Duration
	// KeepAnswers is how many answered jobs are known. 0: 4096.
	KeepAnswers int
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Uploads <= 0 {
		o.Uploads = 4
	}
	if o.UploadTimeout <= 0 {
		o.UploadTimeout = 2 * time.Minute
	}
	if o.KeepAnswers <= 0 {
		o.KeepAnswers = 4096
	}
	return o
}

// Gateway serves a prover. Every Gateway needs a Close.
type Gateway struct {
	log     hclog.Logger
	service *service
	server  *grpc.Server
	health  *health.Server
	web     *http.Server
	serving sync.WaitGroup

	observer *observer
	pace     *pace
	watchers chan struct{} // one for each status page that is open

	ctx      context.Context // of what runs beside calls
	end      context.CancelFunc
	watching sync.WaitGroup
}

// New makes a gateway that serves nothing yet.
func New(o Options) *Gateway {
	o = o.withDefaults()
	g := &Gateway{
		log: o.Logger, health: health.NewServer(), observer: newObserver(o.Prover, o.Logger), pace: newPace(),
		watchers: make(chan struct{}, maxWatchers),
	}
	g.ctx, g.end = context.WithCancel(context.Background())
	m := newMetrics()
	g.service = &service{
		prover: o.Prover, keeper: o.Keeper, log: o.Logger, start: time.Now(),
		book:    newBook(o.Prover, o.Logger, o.KeepAnswers, func(j *job) { m.answered(j); g.pace.answered(j) }),
		uploads: newUploads(o.Uploads, o.UploadTimeout),
		metrics: m,
	}
	plugin, _ := o.Prover.(Supervised)
	m.registry.MustRegister(&proverCollector{
		observer: g.observer, plugin: plugin, book: g.service.book, uploads: g.service.uploads, start: g.service.start,
	})
	g.web = newWeb(g)
	g.watching.Go(func() { g.observer.watch(g.ctx) })
	g.server = grpc.NewServer(serverOptions(o)...)
	register(g.server, g.service)
	grpc_health_v1.RegisterHealthServer(g.server, g.health)
	reflection.Register(g.server)
	g.SetServing(true)
	return g
}

// A stream's window is what a client may send of a message before it is admitted. Fixed windows, since those that gRPC
// estimates grow for all streams of a connection.
const (
	streamWindowBytes     = 64 << 10
	connectionWindowBytes = 4 << 20
)

func serverOptions(o Options) []grpc.ServerOption {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessageBytes),
		grpc.MaxSendMsgSize(MaxMessageBytes),
		grpc.StaticStreamWindowSize(streamWindowBytes),
		grpc.StaticConnWindowSize(connectionWindowBytes),
		grpc.MaxConcurrentStreams(1024),
		grpc.MaxHeaderListSize(16 << 10),
		grpc.InTapHandle(tapReading),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.ReadBufferSize(256 << 10),
		grpc.ConnectionTimeout(10 * time.Second),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
			defer recovered(o.Logger, info.FullMethod, &err)
			return handler(ctx, request)
		}),
		grpc.StreamInterceptor(func(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
			defer recovered(o.Logger, info.FullMethod, &err)
			return handler(server, stream)
		}),
	}
	if o.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(o.TLS.config())))
	}
	return options
}

// recovered makes a panic, which is a bug, the failure of one call: other requests are under way.
func recovered(log hclog.Logger, method string, err *error) {
	if p := recover(); p != nil {
		log.Error("a call panicked", "method", method, "panic", p, "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, fmt.Sprintf("%s panicked: %v", method, p))
	}
}

// Serve answers cuzk.v1 on a listener, which it closes in the end, until Close.
func (g *Gateway) Serve(l net.Listener) error {
	g.serving.Add(1)
	defer g.serving.Done()
	if err := g.server.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serving cuzk.v1 on %s: %w", l.Addr(), err)
	}
	return nil
}

// SetServing sets what gRPC's health service says.
func (g *Gateway) SetServing(serving bool) {
	st := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if serving {
		st = grpc_health_v1.HealthCheckResponse_SERVING
	}
	g.health.SetServingStatus("", st)
	g.health.SetServingStatus(cuzkpb.ProvingEngine_ServiceDesc.ServiceName, st)
}

// answerGrace is how long clients have to take their answers when the gateway closes.
const answerGrace = 5 * time.Second

// Close takes no more requests, waits for those under way until ctx ends and gives up the rest, hands out the answers,
// and ends every connection. The error says that requests were given up.
func (g *Gateway) Close(ctx context.Context) error {
	g.health.Shutdown()
	err := g.service.book.drain(ctx)
	g.end()
	g.watching.Wait()
	g.closeWeb()
	stopped := make(chan struct{})
	go func() {
		g.server.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(answerGrace):
		g.server.Stop()
		<-stopped
	}
	g.serving.Wait()
	return err
}
