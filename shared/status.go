package shared

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
)

// How errors travel: the code says what sort it is to any gRPC client, the message is the error's whole text, and a
// detail has the fields of the typed error. Faults of a request are a BadRequest, every other type is an ErrorInfo of
// errorDomain with one of the reasons below.
const (
	errorDomain = "interlock-prover"

	reasonParams       = "PARAMS"
	reasonProofInvalid = "PROOF_INVALID"
	reasonBusy         = "BUSY"
	reasonPluginDied   = "PLUGIN_DIED"
	reasonUnknownJob   = "UNKNOWN_JOB"
	reasonCancelled    = "CANCELLED"
	reasonSetAside     = "SET_ASIDE"
	reasonTooLarge     = "TOO_LARGE"
	reasonNotShared    = "NOT_SHARED"
)

// maxErrorBytes bounds an error's text on the wire.
const maxErrorBytes = 32 << 10

// toStatus turns an error of a Prover or Toolbox into a gRPC status. What gRPC itself reports, it leaves.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(interface{ GRPCStatus() *status.Status }); ok {
		return err
	}
	code, detail := codes.Internal, protoadapt.MessageV1(nil)
	info := func(reason string, fields ...string) {
		metadata := make(map[string]string, len(fields)/2)
		for i := 0; i < len(fields); i += 2 {
			metadata[fields[i]] = wireText(fields[i+1])
		}
		detail = &errdetails.ErrorInfo{Domain: errorDomain, Reason: reason, Metadata: metadata}
	}
	var (
		faults  Faults
		invalid *InvalidRequestError
		params  *ParamsError
		proof   *ProofInvalidError
		busy    *BusyError
		died    *PluginDiedError
		aside   *SetAsideError
		large   *TooLargeError
	)
	switch {
	case errors.As(err, &faults):
		code, detail = codes.InvalidArgument, badRequest(faults)
	case errors.As(err, &invalid):
		code, detail = codes.InvalidArgument, badRequest(Faults{invalid})
	case errors.As(err, &params):
		code = codes.FailedPrecondition
		info(reasonParams, "path", params.Path, "reason", params.Reason, "remedy", params.Remedy)
	case errors.As(err, &proof):
		code = codes.DataLoss
		info(reasonProofInvalid, "request", proof.RequestID, "partitions", joinInts(proof.Partitions), "detail", proof.Detail)
	case errors.As(err, &busy):
		code = codes.ResourceExhausted
		info(reasonBusy, "resource", busy.Resource, "retry_after", busy.RetryAfter.String())
	case errors.As(err, &large):
		code = codes.FailedPrecondition
		info(reasonTooLarge, "want_bytes", strconv.FormatUint(large.WantBytes, 10),
			"budget_bytes", strconv.FormatUint(large.BudgetBytes, 10), "detail", large.Detail)
	case errors.Is(err, errNotShared):
		code = codes.FailedPrecondition
		info(reasonNotShared)
	case errors.As(err, &died):
		code = codes.Unavailable
		info(reasonPluginDied, "path", died.Path, "pid", strconv.Itoa(died.PID), "status", died.Status,
			"stderr", strings.Join(died.Stderr, "\n"))
	case errors.As(err, &aside):
		code = codes.Aborted
		info(reasonSetAside, "request", aside.RequestID, "deaths", strconv.Itoa(aside.Deaths), "last", aside.Last)
	case errors.Is(err, ErrUnreachable):
		code = codes.Unavailable
	case errors.Is(err, ErrUnknownJob):
		code = codes.NotFound
		info(reasonUnknownJob)
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(err, ErrCancelled):
		code = codes.Canceled
		info(reasonCancelled)
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	}
	st := status.New(code, wireText(err.Error()))
	if detail != nil {
		detailed, err := st.WithDetails(detail)
		if err != nil {
			return status.Errorf(codes.Internal, "%s (its details were lost: %v)", st.Message(), err)
		}
		st = detailed
	}
	return st.Err()
}

func badRequest(faults Faults) *errdetails.BadRequest {
	bad := &errdetails.BadRequest{}
	for _, f := range faults {
		bad.FieldViolations = append(bad.FieldViolations,
			&errdetails.BadRequest_FieldViolation{Field: wireText(f.Field), Description: wireText(f.Reason)})
	}
	return bad
}

// wireText makes a text fit for a protobuf string.
func wireText(text string) string {
	if len(text) > maxErrorBytes {
		text = text[:maxErrorBytes] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// fromStatus is the inverse of toStatus. It also takes what gRPC itself reports on the client's side, such as a broken
// connection.
func fromStatus(err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: its answer ended early", ErrUnreachable)
	}
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	cause := causeFromDetails(st)
	if cause == nil {
		switch st.Code() {
		case codes.DeadlineExceeded:
			cause = context.DeadlineExceeded
		case codes.Canceled:
			cause = context.Canceled
		case codes.Unavailable:
			cause = ErrUnreachable
			if !strings.Contains(st.Message(), cause.Error()) { // gRPC's own words
				return fmt.Errorf("%w: %s", cause, st.Message())
			}
		default:
			return errors.New(st.Message())
		}
	}
	if cause.Error() == st.Message() {
		return cause
	}
	return &remoteError{text: st.Message(), cause: cause}
}

func causeFromDetails(st *status.Status) error {
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.BadRequest:
			var faults Faults
			for _, v := range d.GetFieldViolations() {
				faults.Add(v.GetField(), "%s", v.GetDescription())
			}
			if err := faults.Err(); err != nil {
				return err
			}
		case *errdetails.ErrorInfo:
			if d.GetDomain() != errorDomain {
				continue
			}
			m := d.GetMetadata()
			switch d.GetReason() {
			case reasonParams:
				return &ParamsError{Path: m["path"], Reason: m["reason"], Remedy: m["remedy"]}
			case reasonProofInvalid:
				return &ProofInvalidError{RequestID: m["request"], Partitions: splitInts(m["partitions"]), Detail: m["detail"]}
			case reasonBusy:
				after, err := time.ParseDuration(m["retry_after"])
				if err != nil {
					after = 0 // a guess that cannot be read is no guess
				}
				return &BusyError{Resource: m["resource"], RetryAfter: after}
			case reasonPluginDied:
				died := &PluginDiedError{Path: m["path"], Status: m["status"]}
				if pid, err := strconv.Atoi(m["pid"]); err == nil {
					died.PID = pid
				}
				if m["stderr"] != "" {
					died.Stderr = strings.Split(m["stderr"], "\n")
				}
				return died
			case reasonSetAside:
				deaths, err := strconv.Atoi(m["deaths"])
				if err != nil {
					deaths = 0 // the text has the number too
				}
				return &SetAsideError{RequestID: m["request"], Deaths: deaths, Last: m["last"]}
			case reasonTooLarge:
				large := &TooLargeError{Detail: m["detail"]}
				for field, to := range map[string]*uint64{"want_bytes": &large.WantBytes, "budget_bytes": &large.BudgetBytes} {
					if n, err := strconv.ParseUint(m[field], 10, 64); err == nil { // the text has the number too
						*to = n
					}
				}
				return large
			case reasonNotShared:
				return errNotShared
			case reasonUnknownJob:
				return ErrUnknownJob
			case reasonCancelled:
				return ErrCancelled
			}
		}
	}
	return nil
}

// EncodeError writes an error so that [DecodeError] gives it back, text and type, as it comes over the plugin boundary.
func EncodeError(err error) ([]byte, error) {
	st, _ := status.FromError(toStatus(err))
	return proto.Marshal(st.Proto())
}

// DecodeError is the inverse of [EncodeError].
func DecodeError(encoded []byte) (error, error) {
	var st spb.Status
	if err := proto.Unmarshal(encoded, &st); err != nil {
		return nil, fmt.Errorf("an encoded error: %w", err)
	}
	return fromStatus(status.ErrorProto(&st)), nil
}

// remoteError has the text of an error of the other side, which wrapped a cause of known type.
type remoteError struct {
	text  string
	cause error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.cause }

func joinInts(numbers []int) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ",")
}

func splitInts(text string) []int {
	var numbers []int
	for _, field := range strings.FieldsFunc(text, func(c rune) bool { return c == ',' }) {
		if n, err := strconv.Atoi(field); err == nil {
			numbers = append(numbers, n)
		}
	}
	return numbers
}
