package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/interlock-prover/interlock/host/gateway/cuzkpb"
	"github.com/interlock-prover/interlock/shared"
)

// Two requests that differ in any field differ in content: a field that is added to the message and forgotten in the
// digest would give one request another one's proof.
func TestEveryFieldCountsAsContent(t *testing.T) {
	base := contentOf(&cuzkpb.SubmitProofRequest{})
	seen := map[content]string{base: "nothing set"}
	fields := base0().ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		r := &cuzkpb.SubmitProofRequest{}
		set(r.ProtoReflect(), field)
		require.False(t, proto.Equal(r, &cuzkpb.SubmitProofRequest{}))
		c := contentOf(r)
		require.NotContains(t, seen, c, field.Name())
		seen[c] = string(field.Name())
	}
	// Bytes that move from one list element to the next are other content.
	a := contentOf(&cuzkpb.SubmitProofRequest{VanillaProofs: [][]byte{{1, 2}, {3}}})
	b := contentOf(&cuzkpb.SubmitProofRequest{VanillaProofs: [][]byte{{1}, {2, 3}}})
	require.NotEqual(t, a, b)
	// Every byte of a large field counts.
	large := make([]byte, 2*hashedAtOnce+1)
	known := map[content]bool{contentOf(&cuzkpb.SubmitProofRequest{VanillaProof: large}): true}
	for _, at := range []int{0, hashedAtOnce - 1, hashedAtOnce, 2*hashedAtOnce - 1, 2 * hashedAtOnce} {
		large[at] ^= 1
		c := contentOf(&cuzkpb.SubmitProofRequest{VanillaProof: large})
		require.False(t, known[c])
		known[c] = true
	}
	require.False(t, known[contentOf(&cuzkpb.SubmitProofRequest{VanillaProof: large[:2*hashedAtOnce]})])
}

func base0() *cuzkpb.SubmitProofRequest { return &cuzkpb.SubmitProofRequest{} }

func set(m protoreflect.Message, field protoreflect.FieldDescriptor) {
	switch {
	case field.IsList():
		m.Mutable(field).List().Append(protoreflect.ValueOfBytes([]byte{1}))
	case field.Kind() == protoreflect.BytesKind:
		m.Set(field, protoreflect.ValueOfBytes([]byte{1}))
	case field.Kind() == protoreflect.StringKind:
		m.Set(field, protoreflect.ValueOfString("1"))
	case field.Kind() == protoreflect.EnumKind:
		m.Set(field, protoreflect.ValueOfEnum(1))
	case field.Kind() == protoreflect.Uint32Kind:
		m.Set(field, protoreflect.ValueOfUint32(1))
	case field.Kind() == protoreflect.Uint64Kind:
		m.Set(field, protoreflect.ValueOfUint64(1))
	default:
		panic("a kind of field that this test does not know: " + field.Kind().String())
	}
}

// The contract's table of registered proofs.
func TestRegisteredProofs(t *testing.T) {
	sizes := []shared.SectorSize{2 << 10, 8 << 20, 512 << 20, 32 << 30, 64 << 30}
	for _, c := range []struct {
		kind        shared.Kind
		first, last uint64
		api         string
	}{
		{shared.KindPoRep, 0, 19, ""},
		{shared.KindWinningPoSt, 0, 4, "1.0.0"},
		{shared.KindWindowPoSt, 5, 9, "1.0.0"},
		{shared.KindWindowPoSt, 10, 14, "1.2.0"},
		{shared.KindUpdate, 0, 4, ""},
	} {
		for n := c.first; n <= c.last; n++ {
			size, api, known := registered(c.kind, n)
			require.True(t, known)
			require.Equal(t, sizes[n%5], size)
			require.Equal(t, c.api, api)
		}
	}
	for _, c := range []struct {
		kind shared.Kind
		n    uint64
	}{
		{shared.KindPoRep, 20}, {shared.KindWinningPoSt, 5}, {shared.KindWindowPoSt, 4}, {shared.KindWindowPoSt, 15},
		{shared.KindUpdate, 5}, {shared.KindPoRep, 1<<64 - 1},
	} {
		_, _, known := registered(c.kind, c.n)
		require.False(t, known, "%v %d", c.kind, c.n)
	}
}

func TestFaultyRequestsAreRefusedByField(t *testing.T) {
	porep := func() *cuzkpb.SubmitProofRequest {
		return &cuzkpb.SubmitProofRequest{
			ProofKind: cuzkpb.ProofKind_POREP_SEAL_COMMIT, SectorSize: 32 << 30, RegisteredProof: 8, VanillaProof: []byte("{}"),
		}
	}
	update := func() *cuzkpb.SubmitProofRequest {
		return &cuzkpb.SubmitProofRequest{
			ProofKind: cuzkpb.ProofKind_SNAP_DEALS_UPDATE, SectorSize: 32 << 30, RegisteredProof: 3, VanillaProofs: [][]byte{{1}},
			CommROld: make([]byte, 32), CommRNew: make([]byte, 32), CommDNew: make([]byte, 32),
		}
	}
	window := func() *cuzkpb.SubmitProofRequest {
		return &cuzkpb.SubmitProofRequest{
			ProofKind: cuzkpb.ProofKind_WINDOW_POST_PARTITION, SectorSize: 32 << 30, RegisteredProof: 13,
			VanillaProofs: [][]byte{{1}, {2}}, Randomness: make([]byte, 32), MinerId: 1000, PartitionIndex: 0,
		}
	}
	for _, good := range []*cuzkpb.SubmitProofRequest{porep(), update(), window(), winning("")} {
		_, err := toRequest(good)
		require.NoError(t, err)
	}
	r, err := toRequest(window())
	require.NoError(t, err)
	require.Equal(t, uint32(0), *r.Partition, "one request is one partition, the first one too")
	require.Equal(t, "1.2.0", r.APIVersion)
	require.Nil(t, r.RegisteredProof)
	r, err = toRequest(porep())
	require.NoError(t, err)
	require.Equal(t, uint64(8), *r.RegisteredProof, "the prover compares it with the C1's")
	sizeless := update() // Curio's updates for others say their size by the registered proof alone
	sizeless.SectorSize = 0
	r, err = toRequest(sizeless)
	require.NoError(t, err)
	require.Equal(t, shared.SectorSize32GiB, r.SectorSize)

	for field, spoil := range map[string]func() *cuzkpb.SubmitProofRequest{
		"proof_kind":       func() *cuzkpb.SubmitProofRequest { r := porep(); r.ProofKind = 0; return r },
		"priority":         func() *cuzkpb.SubmitProofRequest { r := porep(); r.Priority = 5; return r },
		"registered_proof": func() *cuzkpb.SubmitProofRequest { r := porep(); r.RegisteredProof = 9; return r },
		"randomness":       func() *cuzkpb.SubmitProofRequest { r := porep(); r.Randomness = make([]byte, 32); return r },
		"vanilla_proofs":   func() *cuzkpb.SubmitProofRequest { r := porep(); r.VanillaProofs = [][]byte{{1}}; return r },
		"vanilla_proof":    func() *cuzkpb.SubmitProofRequest { r := update(); r.VanillaProof = []byte{1}; return r },
		"partition_index":  func() *cuzkpb.SubmitProofRequest { r := update(); r.PartitionIndex = 1; return r },
		"comm_r_new":       func() *cuzkpb.SubmitProofRequest { r := update(); r.CommRNew = r.CommRNew[1:]; return r },
		"vanilla":          func() *cuzkpb.SubmitProofRequest { r := window(); r.VanillaProofs = nil; return r },
		"vanilla[1]":       func() *cuzkpb.SubmitProofRequest { r := window(); r.VanillaProofs[1] = nil; return r },
	} {
		_, err := toRequest(spoil())
		var fault *shared.InvalidRequestError
		require.ErrorAs(t, err, &fault, field)
		require.Equal(t, field, fault.Field)
	}
	small := winning("")
	small.SectorSize = 4096 // exists for tests, but the contract has no registered proof for it
	_, err = toRequest(small)
	require.ErrorContains(t, err, "registered_proof")
}

func TestCircuitIDs(t *testing.T) {
	for id, want := range map[string]shared.CircuitRequest{
		"porep-32g":   {Kind: shared.KindPoRep, SectorSize: shared.SectorSize32GiB},
		"snap-64g":    {Kind: shared.KindUpdate, SectorSize: shared.SectorSize64GiB},
		"wpost-32g":   {Kind: shared.KindWindowPoSt, SectorSize: shared.SectorSize32GiB},
		"winning-64g": {Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize64GiB},
		"winning-2k":  {Kind: shared.KindWinningPoSt, SectorSize: shared.SectorSize2KiB},
		"wpost-512m":  {Kind: shared.KindWindowPoSt, SectorSize: shared.SectorSize512MiB},
	} {
		got, err := parseCircuitID(id)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, id, circuitID(got.Kind, got.SectorSize))
	}
	for _, bad := range []string{"", "porep", "porep-32", "PoRep-32G", "winning-post-32g"} {
		_, err := parseCircuitID(bad)
		require.Error(t, err, bad)
	}
}

// Whatever a client calls its request, the prover's name for it is in good form.
func TestJobNamesAreInGoodForm(t *testing.T) {
	for _, id := range []string{"", "porep-1000-7", "a,b", "\x00\xff\n", "日本語", strings.Repeat("é", 1000), strings.Repeat("x", 199) + "日本"} {
		r := shared.Request{ID: jobID(id, content{1}), Kind: shared.KindPoRep, SectorSize: 2048, Vanilla: [][]byte{{1}}}
		require.NoError(t, r.Validate(), fmt.Sprintf("%q", id))
	}
}
