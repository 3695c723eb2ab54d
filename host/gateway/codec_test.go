package gateway

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/interlock-prover/interlock/host/gateway/cuzkpb"
)

// Large requests decode as protobuf's own decoder has them, and so does what is no request at all.
func TestLargeRequestsDecodeAsOthers(t *testing.T) {
	large := make([]byte, largeBytes)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.Byte(), 0, 40)
		submit := &cuzkpb.SubmitProofRequest{
			RequestId: rapid.String().Draw(t, "id"), ProofKind: cuzkpb.ProofKind(rapid.Int32Range(0, 6).Draw(t, "kind")),
			SectorSize: rapid.Uint64().Draw(t, "size"), Randomness: text.Draw(t, "randomness"), MinerId: rapid.Uint64().Draw(t, "miner"),
			VanillaProof: text.Draw(t, "vanilla"), CommDNew: text.Draw(t, "comm"), PartitionIndex: rapid.Uint32().Draw(t, "partition"),
		}
		for range rapid.IntRange(0, 4).Draw(t, "proofs") {
			submit.VanillaProofs = append(submit.VanillaProofs, text.Draw(t, "proof"))
		}
		data, err := proto.Marshal(submit)
		require.NoError(t, err)
		var got cuzkpb.SubmitProofRequest
		require.NoError(t, unmarshalSubmit(data, &got))
		require.True(t, proto.Equal(submit, &got))

		data, err = proto.Marshal(&cuzkpb.ProveRequest{Submit: submit})
		require.NoError(t, err)
		if rapid.Bool().Draw(t, "in two parts") {
			data = append(data, data...)
		}
		var want, gotProve cuzkpb.ProveRequest
		require.NoError(t, proto.Unmarshal(data, &want))
		require.NoError(t, unmarshalProve(data, &gotProve))
		require.True(t, proto.Equal(&want, &gotProve))

		for range 3 {
			broken := append([]byte(nil), data...)
			if len(broken) > 0 {
				broken[rapid.IntRange(0, len(broken)-1).Draw(t, "at")] ^= rapid.Byte().Draw(t, "flip")
				broken = broken[:rapid.IntRange(0, len(broken)).Draw(t, "cut")]
			}
			want, gotProve := cuzkpb.ProveRequest{}, cuzkpb.ProveRequest{}
			wantErr, gotErr := proto.Unmarshal(broken, &want), unmarshalProve(broken, &gotProve)
			require.Equal(t, wantErr == nil, gotErr == nil, "%x: %v, %v", broken, wantErr, gotErr)
			if wantErr == nil {
				require.True(t, proto.Equal(&want, &gotProve), "%x", broken)
			}
		}
	})
	data, err := proto.Marshal(&cuzkpb.SubmitProofRequest{VanillaProof: large})
	require.NoError(t, err)
	var got cuzkpb.SubmitProofRequest
	require.NoError(t, newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, &got))
	require.Len(t, got.VanillaProof, len(large))
}
