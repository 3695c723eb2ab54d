package gateway

import (
	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/interlock-prover/interlock/host/gateway/cuzkpb"
)

// largeBytes is the size from which on it pays to keep copies away from a message.
const largeBytes = 1 << 20

// codec is gRPC's protobuf codec, but for large requests: it copies them once out of the connection's buffers, and the
// vanilla proofs stay where they are in that copy. Decoded as usual, they would be copied once more.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(grpcproto.Name)} }

func (c codec) Unmarshal(data mem.BufferSlice, message any) error {
	if data.Len() < largeBytes {
		return c.CodecV2.Unmarshal(data, message)
	}
	switch m := message.(type) {
	case *cuzkpb.SubmitProofRequest:
		return unmarshalSubmit(data.Materialize(), m)
	case *cuzkpb.ProveRequest:
		return unmarshalProve(data.Materialize(), m)
	}
	return c.CodecV2.Unmarshal(data, message)
}

// unmarshalProve decodes a ProveRequest, whose vanilla proofs then are parts of data.
func unmarshalProve(data []byte, into *cuzkpb.ProveRequest) error {
	submit, rest, err := takeBytes(data, fieldSubmit)
	if err != nil {
		return err
	}
	if len(submit) != 1 { // messages that come in parts are merged
		return proto.Unmarshal(data, into)
	}
	if err := proto.Unmarshal(rest, into); err != nil {
		return err
	}
	into.Submit = &cuzkpb.SubmitProofRequest{}
	return unmarshalSubmit(submit[0].value, into.Submit)
}

// unmarshalSubmit decodes a SubmitProofRequest, whose vanilla proofs then are parts of data.
func unmarshalSubmit(data []byte, into *cuzkpb.SubmitProofRequest) error {
	vanilla, rest, err := takeBytes(data, fieldVanillaProof, fieldVanillaProofs)
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(rest, into); err != nil {
		return err
	}
	for _, v := range vanilla {
		if v.field == fieldVanillaProof {
			into.VanillaProof = v.value // the last one counts
		} else {
			into.VanillaProofs = append(into.VanillaProofs, v.value)
		}
	}
	return nil
}

// Fields of the contract that may be large.
const (
	fieldSubmit        protowire.Number = 1  // of ProveRequest
	fieldVanillaProof  protowire.Number = 10 // of SubmitProofRequest, as the next
	fieldVanillaProofs protowire.Number = 11
)

type bytesField struct {
	field protowire.Number
	value []byte
}

// takeBytes takes the values of bytes fields out of a message, as parts of data, and gives the rest of it.
func takeBytes(data []byte, fields ...protowire.Number) (taken []bytesField, rest []byte, err error) {
	for len(data) > 0 {
		field, kind, tagBytes := protowire.ConsumeTag(data)
		if tagBytes < 0 {
			return nil, nil, protowire.ParseError(tagBytes)
		}
		isWanted := false
		for _, f := range fields {
			isWanted = isWanted || f == field && kind == protowire.BytesType
		}
		n := 0
		if isWanted {
			var value []byte
			if value, n = protowire.ConsumeBytes(data[tagBytes:]); n >= 0 {
				taken = append(taken, bytesField{field, value[:len(value):len(value)]})
			}
		} else if n = protowire.ConsumeFieldValue(field, kind, data[tagBytes:]); n >= 0 {
			rest = append(rest, data[:tagBytes+n]...)
		}
		if n < 0 {
			return nil, nil, protowire.ParseError(n)
		}
		data = data[tagBytes+n:]
	}
	return taken, rest, nil
}
