package gateway

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/interlock-prover/interlock/host/gateway/cuzkpb"
	"github.com/interlock-prover/interlock/shared/sharedtest/bounded"
)

// Whatever a client sends as a request is decoded as protobuf's own decoder has it, and is refused or becomes a request
// that passes its own validation; nothing panics.
func FuzzRequest(f *testing.F) {
	for _, r := range []*cuzkpb.SubmitProofRequest{
		winning("porep-1000-7"),
		{ProofKind: cuzkpb.ProofKind_POREP_SEAL_COMMIT, SectorSize: 32 << 30, RegisteredProof: 8, VanillaProof: []byte("{}")},
		{ProofKind: cuzkpb.ProofKind_SNAP_DEALS_UPDATE, SectorSize: 2048, VanillaProofs: [][]byte{{1}, {2}}, CommROld: make([]byte, 32), CommRNew: make([]byte, 32), CommDNew: make([]byte, 32)},
		{ProofKind: cuzkpb.ProofKind_WINDOW_POST_PARTITION, SectorSize: 2048, RegisteredProof: 10, VanillaProofs: [][]byte{{1}}, Randomness: make([]byte, 32), PartitionIndex: 3},
	} {
		data, err := proto.Marshal(&cuzkpb.ProveRequest{Submit: r})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want cuzkpb.ProveRequest
		var err error
		bounded.Allocation(t, len(data), func() { err = unmarshalProve(data, &got) })
		wantErr := proto.Unmarshal(data, &want)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%v, but protobuf's decoder: %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if !proto.Equal(&got, &want) {
			t.Fatalf("%v, but protobuf's decoder: %v", &got, &want)
		}
		r, err := toRequest(got.GetSubmit())
		r.ID = jobID(got.GetSubmit().GetRequestId(), contentOf(got.GetSubmit()))
		if valid := r.Validate(); err == nil && valid != nil {
			t.Fatalf("taken, though %v", valid)
		}
	})
}
