package shared_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/interlock-prover/interlock/shared"
	"github.com/interlock-prover/interlock/shared/proto"
	"github.com/interlock-prover/interlock/shared/sharedtest"
)

// memoryFiles counts the payloads' memory files that this process, host and plugin in one, has open or mapped.
func memoryFiles(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	n := strings.Count(string(maps), "/memfd:interlock-payload")
	open, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, fd := range open {
		if name, _ := os.Readlink(fd); strings.HasPrefix(name, "/memfd:interlock-payload") {
			n++
		}
	}
	return n
}

func largeRequest() shared.Request {
	return shared.Request{ID: "porep", Kind: shared.KindPoRep, SectorSize: shared.SectorSize32GiB, Vanilla: [][]byte{pattern(3<<20+17, 1)}}
}

// Property: of a request that the plugin refuses nothing stays behind, at once, and the same request is taken later.
func TestRefusedPayloadsLeaveNothing(t *testing.T) {
	request := largeRequest()
	calls := map[string]func(*shared.Client) error{
		"Prove":  func(c *shared.Client) error { _, err := c.Prove(t.Context(), request, nil); return err },
		"Submit": func(c *shared.Client) error { _, err := c.Submit(t.Context(), request); return err },
		"Verify": func(c *shared.Client) error { _, err := c.Verify(t.Context(), request, pattern(1920, 2)); return err },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			var refusal error
			take := func(r *shared.Request) error {
				require.Equal(t, 2, memoryFiles(t), "open in the host, mapped in the plugin")
				require.Equal(t, request, shared.OnHeap(*r))
				return refusal
			}
			client, _ := serve(t, &sharedtest.Mock{
				OnProve: func(_ context.Context, r shared.Request, _ func(shared.Progress)) (shared.Result, error) {
					return fullResult, take(&r)
				},
				OnSubmit: func(_ context.Context, r shared.Request) (shared.JobID, error) {
					err := take(&r)
					if err == nil {
						r.Release() // as it is decoded
					}
					return "job", err
				},
				OnVerify: func(_ context.Context, r shared.Request, _ []byte) (bool, error) { return true, take(&r) },
			})
			client.SharePayloads(func(err error) { t.Errorf("not shared: %v", err) })
			for _, refusal = range []error{
				&shared.BusyError{Resource: "memory"}, &shared.InvalidRequestError{Field: "vanilla[0]", Reason: "is wrong"}, context.Canceled, nil, nil,
			} {
				err := call(client)
				require.Equal(t, refusal == nil, err == nil, "%v", err)
				require.Zero(t, memoryFiles(t), "after %v", refusal)
			}
		})
	}
}

// elsewhere is a connection to a plugin that sees other processes than the host, as in a container of its own.
type elsewhere struct {
	grpc.ClientConnInterface
	refused *int
}

func (c elsewhere) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	return elsewhereStream{stream, c.refused}, err
}

type elsewhereStream struct {
	grpc.ClientStream
	refused *int
}

func (s elsewhereStream) SendMsg(message any) error {
	if upload, ok := message.(*proto.Upload); ok && upload.GetHeader().GetShared() != nil {
		*s.refused++
		upload.GetHeader().Shared.Pid = 1 << 30
	}
	return s.ClientStream.SendMsg(message)
}

// Property: a plugin that cannot have the host's memory files gets requests all the same, is asked no second time, and
// that is said once.
func TestPluginElsewhereGetsStreams(t *testing.T) {
	request := largeRequest()
	var got []shared.Request
	_, conn := serve(t, &sharedtest.Mock{
		OnSubmit: func(_ context.Context, r shared.Request) (shared.JobID, error) {
			got = append(got, r)
			return "job", nil
		},
	})
	refused, said := 0, []error(nil)
	client := shared.NewClient(elsewhere{conn, &refused})
	client.SharePayloads(func(err error) { said = append(said, err) })
	for range 3 {
		_, err := client.Submit(t.Context(), request)
		require.NoError(t, err)
		require.Zero(t, memoryFiles(t))
	}
	require.Equal(t, []shared.Request{request, request, request}, got)
	require.Equal(t, 1, refused)
	require.Len(t, said, 1)
	require.ErrorContains(t, said[0], "memory file")
}
