package shared

import (
	"bytes"
	"testing"

	"google.golang.org/grpc/mem"
	protobuf "google.golang.org/protobuf/proto"

	"github.com/interlock-prover/interlock/shared/proto"
	"github.com/interlock-prover/interlock/shared/sharedtest/bounded"
)

// Whatever a message holds, what is taken of it is what protobuf decodes of it, and never more than was announced.
func FuzzPayload(f *testing.F) {
	for _, chunk := range [][]byte{nil, {1}, {1, 2, 3, 4, 5}} {
		message, err := protobuf.Marshal(&proto.Upload{Part: &proto.Upload_Chunk{Chunk: chunk}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message, uint16(2), uint16(3))
		f.Add(append(message, 0), uint16(1), uint16(9))
	}
	header, err := protobuf.Marshal(&proto.Upload{Part: &proto.Upload_Header{Header: &proto.RequestHeader{Id: "x"}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(header, uint16(2), uint16(3))
	f.Fuzz(func(t *testing.T, message []byte, first, second uint16) {
		p := payload{sizes: []uint64{uint64(first) + 1, uint64(second) + 1}}
		bounded.Allocation(t, len(message), func() { p.take(mem.BufferSlice{mem.SliceBuffer(message)}) })
		taken := bytes.Join(p.vanilla, nil)
		if len(taken) > int(first)+int(second)+2 {
			t.Fatalf("%d bytes taken", len(taken))
		}
		if p.fault != nil {
			return
		}
		var upload proto.Upload
		if err := protobuf.Unmarshal(message, &upload); err != nil {
			t.Fatalf("taken, but no message: %v", err)
		}
		if chunk := upload.GetChunk(); len(chunk) == 0 || !bytes.Equal(chunk, taken[:len(taken)-len(p.rest)]) {
			t.Fatalf("%x taken as %x", message, taken)
		}
	})
}
