package shared

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The names are fixed, because scripts depend on them.
func TestNamesAreFixedAndInvertible(t *testing.T) {
	kinds := []string{"porep", "winning-post", "window-post", "update"}
	require.Len(t, Kinds(), len(kinds))
	for i, k := range Kinds() {
		require.Equal(t, kinds[i], k.String())
		parsed, err := ParseKind(kinds[i])
		require.NoError(t, err)
		require.Equal(t, k, parsed)
	}
	sizes := map[string]uint64{
		"2KiB": 2048, "4KiB": 4096, "16KiB": 16384, "32KiB": 32768,
		"8MiB": 8388608, "512MiB": 536870912, "32GiB": 34359738368, "64GiB": 68719476736,
	}
	require.Len(t, SectorSizes(), len(sizes))
	for text, bytes := range sizes {
		parsed, err := ParseSectorSize(text)
		require.NoError(t, err)
		require.EqualValues(t, bytes, parsed)
		require.Equal(t, text, parsed.String())
		require.NoError(t, parsed.Validate())
	}
	for _, p := range []Priority{PriorityLow, PriorityNormal, PriorityHigh, PriorityCritical} {
		parsed, err := ParsePriority(p.String())
		require.NoError(t, err)
		require.Equal(t, p, parsed)
		require.Equal(t, p, p.OrNormal())
	}
	require.Equal(t, PriorityNormal, PriorityUnspecified.OrNormal())
	require.Less(t, PriorityLow, PriorityNormal)
	require.Less(t, PriorityNormal, PriorityHigh)
	require.Less(t, PriorityHigh, PriorityCritical)

	for _, name := range []string{"", "PoRep", "winning", "unspecified"} {
		_, err := ParseKind(name)
		require.Error(t, err)
		_, err = ParsePriority(name)
		require.Error(t, err)
	}
	for _, size := range []SectorSize{0, 1, 2047, 1 << 20, 1 << 60} {
		require.Error(t, size.Validate())
		_, err := ParseSectorSize(size.String())
		require.Error(t, err)
	}
}

func TestAPIVersionDefaults(t *testing.T) {
	for _, c := range []struct {
		request Request
		want    string
	}{
		{Request{Kind: KindWindowPoSt}, "1.2.0"},
		{Request{Kind: KindWinningPoSt}, "1.0.0"},
		{Request{Kind: KindWindowPoSt, APIVersion: "1.0.0"}, "1.0.0"},
		{Request{Kind: KindPoRep}, ""},
	} {
		require.Equal(t, c.want, c.request.Version())
	}
}

func sample(kind Kind) Request {
	r := Request{ID: "sample-1", Kind: kind, SectorSize: SectorSize2KiB, Vanilla: [][]byte{{1, 2, 3}}, MinerID: 1000}
	switch {
	case kind.IsPoSt():
		r.Randomness = make([]byte, 32)
	case kind == KindUpdate:
		r.CommROld, r.CommRNew, r.CommDNew = make([]byte, 32), make([]byte, 32), make([]byte, 32)
	}
	return r
}

// Every fault is named by its field, and all of them are told at once.
func TestRequestValidate(t *testing.T) {
	partition := uint32(3)
	big := make([]byte, MaxRequestBytes/2+1) // never touched, so it costs no memory
	for _, c := range []struct {
		name   string
		kind   Kind
		change func(*Request)
		fields []string
	}{
		{"porep", KindPoRep, func(*Request) {}, nil},
		{"winning", KindWinningPoSt, func(*Request) {}, nil},
		{"window", KindWindowPoSt, func(r *Request) { r.Vanilla = append(r.Vanilla, r.Vanilla[0]); r.Partition = &partition }, nil},
		{"update", KindUpdate, func(*Request) {}, nil},
		{"no id", KindPoRep, func(r *Request) { r.ID = "" }, nil},
		{"half of the limit", KindPoRep, func(r *Request) { r.Vanilla = [][]byte{big} }, nil},
		{"an update's limit", KindUpdate, func(r *Request) { r.Vanilla = [][]byte{big[:MaxUpdateProofBytes]} }, nil},

		{"nothing", 0, func(r *Request) { *r = Request{} }, []string{"kind", "sector_size", "vanilla"}},
		{"unknown kind", 9, func(*Request) {}, []string{"kind"}},
		{"unknown size", KindPoRep, func(r *Request) { r.SectorSize = 2047 }, []string{"sector_size"}},
		{"unknown priority", KindPoRep, func(r *Request) { r.Priority = 9 }, []string{"priority"}},
		{"long id", KindPoRep, func(r *Request) { r.ID = strings.Repeat("x", 257) }, []string{"id"}},
		{"id with a comma", KindPoRep, func(r *Request) { r.ID = "a,b" }, []string{"id"}},
		{"id of two lines", KindPoRep, func(r *Request) { r.ID = "a\nb" }, []string{"id"}},
		{"id that is no text", KindPoRep, func(r *Request) { r.ID = "a\xffb" }, []string{"id"}},
		{"no vanilla proof", KindUpdate, func(r *Request) { r.Vanilla = nil }, []string{"vanilla"}},
		{"empty vanilla proofs", KindWindowPoSt, func(r *Request) { r.Vanilla = [][]byte{nil, {1}, {}} }, []string{"vanilla[0]", "vanilla[2]"}},
		{"two C1", KindPoRep, func(r *Request) { r.Vanilla = [][]byte{{1}, {2}} }, []string{"vanilla"}},
		{"two winning sectors", KindWinningPoSt, func(r *Request) { r.Vanilla = [][]byte{{1}, {2}} }, []string{"vanilla"}},
		{"too many", KindWindowPoSt, func(r *Request) { r.Vanilla = fill(MaxVanillaProofs+1, []byte{1}) }, []string{"vanilla"}},
		{"too large together", KindUpdate, func(r *Request) { r.Vanilla = fill(257, big[:MaxUpdateProofBytes]) }, []string{"vanilla"}},
		{"too large for a PoSt", KindWindowPoSt, func(r *Request) { r.Vanilla = [][]byte{{1}, big[:MaxPoStProofBytes+1]} }, []string{"vanilla[1]"}},
		{"too large for an update", KindUpdate, func(r *Request) { r.Vanilla = [][]byte{big} }, []string{"vanilla[0]"}},
		{"short randomness", KindWinningPoSt, func(r *Request) { r.Randomness = make([]byte, 31) }, []string{"randomness"}},
		{"randomness for porep", KindPoRep, func(r *Request) { r.Randomness = make([]byte, 32) }, []string{"randomness"}},
		{"unknown version", KindWindowPoSt, func(r *Request) { r.APIVersion = "1.3.0" }, []string{"api_version"}},
		{"version for update", KindUpdate, func(r *Request) { r.APIVersion = "1.2.0" }, []string{"api_version"}},
		{"partition of winning", KindWinningPoSt, func(r *Request) { r.Partition = &partition }, []string{"partition"}},
		{"commitments missing", KindUpdate, func(r *Request) { r.CommROld, r.CommRNew, r.CommDNew = nil, nil, nil }, []string{"comm_r_old", "comm_r_new", "comm_d_new"}},
		{"commitments for window", KindWindowPoSt, func(r *Request) { r.CommDNew = make([]byte, 32) }, []string{"comm_d_new"}},
		{"several at once", KindWindowPoSt, func(r *Request) { r.SectorSize, r.Randomness, r.Vanilla = 1, nil, nil }, []string{"sector_size", "vanilla", "randomness"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := sample(c.kind)
			c.change(&r)
			require.Equal(t, c.fields, faultFields(r.Validate()))
		})
	}
}

// The sum of announced sizes must not wrap around.
func TestAnnouncedSizesDoNotOverflow(t *testing.T) {
	r := sample(KindUpdate)
	var faults Faults
	r.validate([]uint64{1 << 63, 1 << 63, 5}, &faults)
	require.Equal(t, []string{"vanilla"}, faultFields(faults.Err()))
}

func TestFaultsAreBounded(t *testing.T) {
	r := sample(KindWindowPoSt)
	r.Vanilla = make([][]byte, 1000)
	require.Len(t, faultFields(r.Validate()), maxFaults)
}

func TestToolboxRequestsValidate(t *testing.T) {
	for _, c := range []struct {
		request SetupRequest
		fields  []string
	}{
		{SetupRequest{CircuitRequest{KindPoRep, SectorSize2KiB, 10}, "d"}, nil},
		{SetupRequest{CircuitRequest{KindWinningPoSt, SectorSize32GiB, 0}, "d"}, nil},
		{SetupRequest{}, []string{"kind", "sector_size", "dir"}},
		{SetupRequest{CircuitRequest{KindUpdate, SectorSize2KiB, 10}, "d"}, []string{"partitions"}},
		{SetupRequest{CircuitRequest{KindPoRep, SectorSize2KiB, -1}, "d"}, []string{"partitions"}},
		{SetupRequest{CircuitRequest{KindPoRep, SectorSize2KiB, 1 << 40}, "d"}, []string{"partitions"}},
	} {
		require.Equal(t, c.fields, faultFields(c.request.Validate()))
	}
	r := sample(KindWinningPoSt)
	require.NoError(t, validateVerify(&r, r.vanillaBytes(), make([]byte, 192)))
	r.SectorSize = 1
	require.Equal(t, []string{"sector_size", "proof"}, faultFields(validateVerify(&r, r.vanillaBytes(), make([]byte, MaxProofBytes+1))))
}

func faultFields(err error) []string {
	var faults Faults
	if !errors.As(err, &faults) {
		var one *InvalidRequestError
		if !errors.As(err, &one) {
			return nil
		}
		faults = Faults{one}
	}
	var fields []string
	for _, f := range faults {
		fields = append(fields, f.Field)
	}
	return fields
}

func fill(n int, value []byte) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = value
	}
	return all
}

// Both clocks of a moment agree afterwards, and what is left until it is what it was.
func TestAsOfNow(t *testing.T) {
	require.True(t, AsOfNow(time.Time{}).IsZero())
	for _, at := range []time.Time{time.Now().Add(time.Hour), time.Now().Add(-time.Hour).Round(0)} {
		now := AsOfNow(at)
		require.Contains(t, now.String(), "m=", "it has a reading of the monotonic clock")
		require.WithinDuration(t, at, now, time.Second)
		require.WithinDuration(t, at, now.Round(0), time.Second)
	}
}
