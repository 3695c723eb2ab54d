package gateway

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-prover/interlock/host/gateway/cuzkpb"
	"github.com/interlock-prover/interlock/shared"
)

// tries is how often each kind of bad client comes.
const tries = 1000

// grown runs a flood twice, the first time a part of it to warm up, and tells what is left of the second in goroutines
// and in bytes of the heap.
func grown(t *testing.T, flood func(n int)) (goroutines int, heap int64) {
	t.Helper()
	measure := func() (int, int64) {
		var stats runtime.MemStats
		least, goroutines := int64(1<<62), 1<<30
		for range 100 { // connections end a little later than their clients
			runtime.GC()
			runtime.ReadMemStats(&stats)
			least, goroutines = min(least, int64(stats.HeapAlloc)), min(goroutines, runtime.NumGoroutine())
			time.Sleep(10 * time.Millisecond)
		}
		return goroutines, least
	}
	flood(tries / 10)
	goroutinesBefore, heapBefore := measure()
	flood(tries)
	goroutinesAfter, heapAfter := measure()
	t.Logf("%d tries: %+d goroutines, %+d KiB", tries, goroutinesAfter-goroutinesBefore, (heapAfter-heapBefore)>>10)
	return goroutinesAfter - goroutinesBefore, heapAfter - heapBefore
}

// inParallel runs n clients, a few at a time.
func inParallel(n int, client func(i int)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 8 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				client(int(i))
			}
		})
	}
	wg.Wait()
}

// rawCall begins a call of Prove as a client does that knows HTTP/2 well and means ill: it announces a message of a
// length and sends a part of it.
func rawCall(t *testing.T, address string, announced uint32, sent int) net.Conn {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return nil
	}
	framer := http2.NewFramer(conn, conn)
	var headers writerBuffer
	encoder := hpack.NewEncoder(&headers)
	for _, h := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", "/cuzk.v1.ProvingEngine/Prove"}, {":authority", "x"},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		_ = encoder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
	}
	_, _ = io.WriteString(conn, http2.ClientPreface)
	_ = framer.WriteSettings()
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers, EndHeaders: true})
	data := append([]byte{0, byte(announced >> 24), byte(announced >> 16), byte(announced >> 8), byte(announced)}, make([]byte, sent)...)
	for len(data) > 0 {
		n := min(len(data), 16<<10) // the largest frame that a server must take
		_ = framer.WriteData(1, false, data[:n])
		data = data[n:]
	}
	return conn
}

// rawStatus waits for the status of a call.
func rawStatus(t *testing.T, conn net.Conn) codes.Code {
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Errorf("no status came: %v", err)
			return codes.Unknown
		}
		if headers, ok := frame.(*http2.MetaHeadersFrame); ok {
			for _, h := range headers.Fields {
				if code, err := strconv.Atoi(h.Value); h.Name == "grpc-status" && err == nil {
					return codes.Code(code)
				}
			}
		}
	}
}

type writerBuffer []byte

func (b *writerBuffer) Write(p []byte) (int, error) { *b = append(*b, p...); return len(p), nil }

// Bad clients come and go by the thousand and leave nothing behind, and a good one is served all the while.
func TestBadClientsLeaveNothing(t *testing.T) {
	f := newFakeProver()
	_, address := serve(t, f, Options{UploadTimeout: 200 * time.Millisecond, KeepAnswers: 16})
	client := dial(t, address)
	garbage := make([]byte, 4096)
	_, _ = rand.Read(garbage)

	for name, flood := range map[string]func(i int){
		"connects and says nothing": func(int) {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.Close()
		},
		"garbage": func(int) {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = conn.Write(garbage)
			_ = conn.Close()
		},
		"vanishes in the middle of a message": func(int) {
			if conn := rawCall(t, address, 50<<20, 1<<10); conn != nil {
				_ = conn.(*net.TCPConn).SetLinger(0) // a reset, as of a machine that lost its power
				_ = conn.Close()
			}
		},
		"vanishes while it waits": func(i int) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
			defer cancel()
			_, _ = client.AwaitProof(ctx, &cuzkpb.AwaitProofRequest{JobId: "kept waiting"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.SubmitProof(testContext(t), winning("kept waiting"))
			require.NoError(t, err)
			goroutines, heap := grown(t, func(n int) { inParallel(n, flood) })
			require.LessOrEqual(t, goroutines, 5)
			require.Less(t, heap, int64(2<<20))
			_, err = client.GetStatus(testContext(t), &cuzkpb.GetStatusRequest{})
			require.NoError(t, err)
		})
	}
}

// Messages of 300 MiB are refused with a clear status before their bytes are taken: a thousand cost nothing. The client
// here only announces them, as the server never reads the rest.
func TestOversizedMessagesAreRefused(t *testing.T) {
	f := newFakeProver()
	_, address := serve(t, f, Options{})
	goroutines, heap := grown(t, func(n int) {
		inParallel(n, func(int) {
			conn := rawCall(t, address, 300<<20, 1<<10)
			if conn == nil {
				return
			}
			defer conn.Close()
			if code := rawStatus(t, conn); code != codes.ResourceExhausted {
				t.Errorf("status %v", code)
			}
		})
	})
	require.LessOrEqual(t, goroutines, 5)
	require.Less(t, heap, int64(2<<20))
	require.Empty(t, f.submitted())
}

// One that is really sent gets the same status from a client library.
func TestOversizedMessageByAClient(t *testing.T) {
	_, address := serve(t, newFakeProver(), Options{})
	huge := winning("a")
	huge.VanillaProofs = [][]byte{make([]byte, 300<<20)}
	_, err := dial(t, address).SubmitProof(testContext(t), huge)
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.ErrorContains(t, err, "larger than max")
}

// However many clients begin to upload and stop, memory is bounded by the places there are, the slow ones are sent
// away, and a good one has its turn.
func TestSlowUploadsAreBoundedAndSentAway(t *testing.T) {
	f := newFakeProver()
	g, address := serve(t, f, Options{Uploads: 2, UploadTimeout: 300 * time.Millisecond})
	var conns []net.Conn
	for range 20 {
		if conn := rawCall(t, address, 200<<20, 60<<10); conn != nil {
			conns = append(conns, conn)
		}
	}
	require.Eventually(t, func() bool { return len(g.service.uploads.places) == 2 }, 5*time.Second, time.Millisecond)
	proved := make(chan error, 1)
	go func() {
		reply, err := dial(t, address).SubmitProof(testContext(t), winning("good"))
		if err == nil && reply.JobId == "" {
			err = fmt.Errorf("no job")
		}
		proved <- err
	}()
	require.NoError(t, <-proved)
	require.Eventually(t, func() bool { return len(g.service.uploads.places) == 0 }, 30*time.Second, 10*time.Millisecond)
	for _, c := range conns {
		require.Equal(t, codes.DeadlineExceeded, rawStatus(t, c))
		_ = c.Close()
	}
}

// More uploads than may wait are refused at once.
func TestTooManyUploadsAreRefused(t *testing.T) {
	f := newFakeProver()
	goOn := make(chan struct{})
	f.onSubmit = func(context.Context, shared.Request) error { <-goOn; return nil }
	g, address := serve(t, f, Options{Uploads: 1})
	client, ctx := dial(t, address), testContext(t)
	var wg sync.WaitGroup
	var refused atomic.Int64
	for i := range uploadsWaiting + 11 {
		wg.Go(func() {
			_, err := client.SubmitProof(ctx, winning(fmt.Sprint(i)))
			switch status.Code(err) {
			case codes.OK:
			case codes.ResourceExhausted:
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	require.Eventually(t, func() bool { return refused.Load() == 10 }, 10*time.Second, time.Millisecond)
	close(goOn)
	wg.Wait()
	require.Empty(t, g.service.uploads.places)
}
