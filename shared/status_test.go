package shared

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

var errorSamples = []struct {
	err  error
	code codes.Code
}{
	{&InvalidRequestError{Field: "vanilla[3].comm_r", Reason: "is not below the modulus"}, codes.InvalidArgument},
	{Faults{{Field: "randomness", Reason: "has 31 bytes"}, {Field: "kind", Reason: "unknown"}}, codes.InvalidArgument},
	{&ParamsError{Path: "/p/v28-x.params", Reason: "is 12 bytes short", Remedy: "fetch it again"}, codes.FailedPrecondition},
	{&ProofInvalidError{RequestID: "r1", Partitions: []int{0, 7}, Detail: "kept in /d"}, codes.DataLoss},
	{&BusyError{Resource: "the queue", RetryAfter: 1500 * time.Millisecond}, codes.ResourceExhausted},
	{&PluginDiedError{Path: "/bin/p", PID: 42, Status: "signal: killed", Stderr: []string{"panic: x", "", "y"}}, codes.Unavailable},
	{&SetAsideError{RequestID: "r1", Deaths: 2, Last: "signal: killed"}, codes.Aborted},
	{&TooLargeError{WantBytes: 1<<63 + 1, BudgetBytes: 3 << 30, Detail: "2 GiB and 4 GiB"}, codes.FailedPrecondition},
	{&TooLargeError{WantBytes: 2, BudgetBytes: 1}, codes.FailedPrecondition},
	{ErrUnreachable, codes.Unavailable},
	{ErrUnknownJob, codes.NotFound},
	{ErrCancelled, codes.Canceled},
	{context.Canceled, codes.Canceled},
	{context.DeadlineExceeded, codes.DeadlineExceeded},
}

// An error of each type arrives equal to what was sent, with a code that any gRPC client understands.
func TestErrorsKeepTheirType(t *testing.T) {
	for _, sample := range errorSamples {
		t.Run(fmt.Sprintf("%T/%v", sample.err, sample.code), func(t *testing.T) {
			wire := toStatus(sample.err)
			require.Equal(t, sample.code, status.Code(wire))
			require.Equal(t, sample.err, fromStatus(wire))

			// Wrapped, the text arrives whole and the cause keeps its type.
			wrapped := fmt.Errorf("proving partition 3: %w", sample.err)
			got := fromStatus(toStatus(wrapped))
			require.Equal(t, wrapped.Error(), got.Error())
			require.Equal(t, sample.code, status.Code(toStatus(wrapped)))
			require.Equal(t, sample.err, errors.Unwrap(got))
		})
	}
}

// What is written down comes back as it would over the wire.
func TestErrorsCanBeKept(t *testing.T) {
	for _, sample := range errorSamples {
		encoded, err := EncodeError(fmt.Errorf("yesterday: %w", sample.err))
		require.NoError(t, err)
		got, err := DecodeError(encoded)
		require.NoError(t, err)
		require.EqualError(t, got, "yesterday: "+sample.err.Error())
		require.Equal(t, sample.err, errors.Unwrap(got))
	}
	_, err := DecodeError([]byte("no status"))
	require.Error(t, err)
}

func TestCancelledIsAlsoContextCanceled(t *testing.T) {
	require.ErrorIs(t, fromStatus(toStatus(ErrCancelled)), context.Canceled)
	require.NotErrorIs(t, fromStatus(toStatus(context.Canceled)), ErrCancelled)
}

func TestUnknownErrorsKeepTheirText(t *testing.T) {
	wire := toStatus(errors.New("the moon is full"))
	require.Equal(t, codes.Internal, status.Code(wire))
	require.EqualError(t, fromStatus(wire), "the moon is full")
	require.NoError(t, toStatus(nil))
	require.NoError(t, fromStatus(nil))
}

// What cannot go into a protobuf string, and endless text, must not cost the error its type.
func TestErrorsWithHostileText(t *testing.T) {
	var params *ParamsError
	err := fromStatus(toStatus(&ParamsError{Path: "/p/\xff\xfe", Reason: strings.Repeat("x", 10<<20)}))
	require.ErrorAs(t, err, &params)
	require.Equal(t, "/p/\uFFFD", params.Path)
	require.Less(t, len(err.Error()), 4*maxErrorBytes)
}
