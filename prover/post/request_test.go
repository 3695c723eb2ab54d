package post

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/prover/merkle"
	"github.com/interlock-prover/interlock/shared/sharedtest/bounded"
)

// A referenceCase is what the originals made: real sectors' vanilla proofs, and the
// challenges and public inputs that they computed for them.
type referenceCase struct {
	Kind       string
	SectorSize uint64 `json:"sector_size"`
	APIVersion string `json:"api_version"`
	Randomness string
	Partitions int
	Sectors    []struct {
		SectorNumber uint64 `json:"sector_number"`
		CommR        string `json:"comm_r"`
		VanillaProof string `json:"vanilla_proof"`
		Challenges   []uint64
	}
	PublicInputs [][]string `json:"public_inputs"`
}

var caseNames = []string{
	"winning-2KiB", "winning-4KiB", "winning-16KiB", "winning-32KiB",
	"window-2KiB", "window-4KiB", "window-16KiB", "window-32KiB", "window-v1.0-2KiB",
}

func load(t testing.TB, name string) (c referenceCase, req *Request) {
	t.Helper()
	dir := filepath.Join("testdata", "cases", name)
	data, err := os.ReadFile(filepath.Join(dir, "case.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &c))
	req = &Request{
		Kind:       map[string]Kind{"winning": Winning, "window": Window}[c.Kind],
		SectorSize: c.SectorSize,
		APIVersion: c.APIVersion,
	}
	req.Randomness, err = hex.DecodeString(c.Randomness)
	require.NoError(t, err)
	for _, s := range c.Sectors {
		vanilla, err := os.ReadFile(filepath.Join(dir, s.VanillaProof))
		require.NoError(t, err)
		req.Vanilla = append(req.Vanilla, vanilla)
	}
	return c, req
}

func element(e fr.Element) string {
	b := e.Bytes()
	slices.Reverse(b[:])
	return hex.EncodeToString(b[:])
}

func inputs(p *Partition) (out []string) {
	for _, e := range p.PublicInputs() {
		out = append(out, element(e))
	}
	return out
}

func decodeAndCheck(req *Request) (*Statement, error) {
	s, err := Decode(context.Background(), req)
	if err != nil {
		return nil, err
	}
	return s, s.Check(context.Background())
}

// requireField requires an error that names a field.
func requireField(t testing.TB, err error, field string) {
	t.Helper()
	var fault *FieldError
	require.True(t, errors.As(err, &fault), "%v", err)
	require.NotEmpty(t, fault.Field)
	require.NotEmpty(t, fault.Reason)
	if field != "" {
		require.Equal(t, field, fault.Field)
	}
}

// Every case of the originals is accepted, in whatever order its files come, with their
// public inputs in each partition.
func TestReferenceCases(t *testing.T) {
	for _, name := range caseNames {
		c, req := load(t, name)
		for range 3 {
			s, err := decodeAndCheck(req)
			require.NoError(t, err, name)
			require.Len(t, s.Partitions, c.Partitions)
			for k := range s.Partitions {
				require.Equal(t, k, s.Partitions[k].Index)
				require.Len(t, s.Partitions[k].Sectors, s.Params.SectorsPerPartition)
				require.Equal(t, c.PublicInputs[k], inputs(&s.Partitions[k]), "%s partition %d", name, k)
			}
			rand.Shuffle(len(req.Vanilla), func(i, j int) {
				req.Vanilla[i], req.Vanilla[j] = req.Vanilla[j], req.Vanilla[i]
			})
		}
	}
}

func TestDecodeSectorProof(t *testing.T) {
	for _, name := range caseNames {
		c, req := load(t, name)
		p, err := ParamsFor(req.Kind, req.SectorSize)
		require.NoError(t, err)
		for i, s := range c.Sectors {
			got, err := DecodeSectorProof(p, req.Vanilla[i])
			require.NoError(t, err)
			require.Equal(t, s.SectorNumber, got.SectorID)
			require.Equal(t, s.CommR, element(got.CommR))
			require.Equal(t, req.Vanilla[i], encode(p, got))
		}
	}
}

// The challenges are those of the originals' generate_fallback_sector_challenges.
func TestChallenges(t *testing.T) {
	for _, name := range caseNames {
		c, req := load(t, name)
		p, err := ParamsFor(req.Kind, req.SectorSize)
		require.NoError(t, err)
		version, err := ParseAPIVersion(req.Kind, req.APIVersion)
		require.NoError(t, err)
		for i, s := range c.Sectors {
			require.Equal(t, s.Challenges,
				sectorChallenges(p, version, (*[32]byte)(req.Randomness), s.SectorNumber, uint64(i)), "%s sector %d", name, i)
		}
	}
}

// One partition alone has the same public inputs as in the whole proof; under 1.0.0, where
// its number counts, under its own number only.
func TestOnePartition(t *testing.T) {
	for _, name := range []string{"window-2KiB", "window-v1.0-2KiB"} {
		c, whole := load(t, name)
		for k := range uint32(2) {
			req := *whole
			req.Partition = &k
			req.Vanilla = whole.Vanilla[2*k : min(len(whole.Vanilla), int(2*k+2))]
			s, err := decodeAndCheck(&req)
			require.NoError(t, err)
			require.Len(t, s.Partitions, 1)
			require.Equal(t, int(k), s.Partitions[0].Index)
			require.Equal(t, c.PublicInputs[k], inputs(&s.Partitions[0]))

			other := k + 1
			req.Partition = &other
			_, err = decodeAndCheck(&req)
			if req.APIVersion == "1.0.0" {
				requireField(t, err, "vanilla[0].inclusion_proofs[0]")
			} else {
				require.NoError(t, err)
			}
		}
	}
}

// A request that is wrong as a whole is refused by the field that is.
func TestDecodeRefuses(t *testing.T) {
	flip := func(b []byte) []byte {
		b = slices.Clone(b)
		b[0] ^= 1
		return b
	}
	number := func(n uint64) *uint64 { return &n }
	partition := uint32(0)
	tooLarge, err := hex.DecodeString("01000000fffffffffe5bfeff02a4bd5305d8a10908d83933487d9d2953a7ed73")
	require.NoError(t, err)

	for _, c := range []struct {
		name, field string
		change      func(*Request)
	}{
		{"winning-2KiB", "vanilla[0].inclusion_proofs[0]", func(r *Request) { r.Randomness = flip(r.Randomness) }},
		{"window-2KiB", "vanilla[0].inclusion_proofs[0]", func(r *Request) { r.Randomness = flip(r.Randomness) }},
		{"window-2KiB", "randomness", func(r *Request) { r.Randomness = r.Randomness[:31] }},
		{"window-2KiB", "randomness", func(r *Request) { r.Randomness = tooLarge }},
		{"window-2KiB", "randomness", func(r *Request) { r.Randomness = nil }},
		{"winning-2KiB", "api_version", func(r *Request) { r.APIVersion = "1.2.0" }},
		{"window-2KiB", "api_version", func(r *Request) { r.APIVersion = "1.3.0" }},
		{"window-2KiB", "vanilla[1].inclusion_proofs[0]", func(r *Request) { r.APIVersion = "1.0.0" }},
		{"window-v1.0-2KiB", "vanilla[1].inclusion_proofs[0]", func(r *Request) { r.APIVersion = "" }},
		{"winning-2KiB", "kind", func(r *Request) { r.Kind = 7 }},
		{"winning-2KiB", "vanilla[0].inclusion_proofs", func(r *Request) { r.Kind = Window }},
		{"window-2KiB", "vanilla", func(r *Request) { r.Kind, r.APIVersion = Winning, "1.0.0" }},
		{"window-2KiB", "vanilla[0].inclusion_proofs", func(r *Request) {
			r.Kind, r.APIVersion, r.Vanilla = Winning, "1.0.0", r.Vanilla[:1]
		}},
		{"window-2KiB", "sector_size", func(r *Request) { r.SectorSize = 1 << 11 << 1 << 1 }},
		{"window-2KiB", "vanilla[0].inclusion_proofs[0].data", func(r *Request) { r.SectorSize = 4 << 10 }},
		{"window-2KiB", "vanilla[0].inclusion_proofs[0].path", func(r *Request) { r.SectorSize = 512 << 20 }},
		{"window-16KiB", "vanilla[0].inclusion_proofs[0].base_proof", func(r *Request) { r.SectorSize = 32 << 30 }},
		{"window-16KiB", "vanilla[0].inclusion_proofs[0].data", func(r *Request) { r.SectorSize = 32 << 10 }},
		{"window-4KiB", "vanilla[0].inclusion_proofs[0].sub_proof[0].hashes", func(r *Request) { r.SectorSize = 16 << 10 }},
		{"window-2KiB", "vanilla", func(r *Request) { r.Vanilla = nil }},
		{"winning-2KiB", "vanilla", func(r *Request) { r.Vanilla = nil }},
		{"winning-2KiB", "vanilla", func(r *Request) { r.Vanilla = append(r.Vanilla, r.Vanilla[0]) }},
		{"window-2KiB", "vanilla[3].sector_id", func(r *Request) { r.Vanilla = append(r.Vanilla, r.Vanilla[1]) }},
		{"window-2KiB", "vanilla[1].sector_id", func(r *Request) { r.Vanilla[1] = nil }},
		{"window-2KiB", "vanilla", func(r *Request) { r.Partition = &partition }},
		{"winning-2KiB", "partition", func(r *Request) { r.Partition = &partition }},
		{"winning-2KiB", "vanilla[0].sector_id", func(r *Request) { r.SectorNumber = number(16) }},
		{"window-2KiB", "sector_number", func(r *Request) { r.SectorNumber = number(15) }},
		{"window-v1.0-2KiB", "vanilla[0].inclusion_proofs[0]", func(r *Request) { r.Vanilla = r.Vanilla[1:] }},
	} {
		_, req := load(t, c.name)
		c.change(req)
		_, err := decodeAndCheck(req)
		requireField(t, err, c.field)
	}

	_, req := load(t, "winning-2KiB")
	req.SectorNumber = number(15)
	_, err = decodeAndCheck(req)
	require.NoError(t, err)
}

func TestCheckNamesTheHash(t *testing.T) {
	_, req := load(t, "window-2KiB")
	s, err := Decode(context.Background(), req)
	require.NoError(t, err)
	v := s.vanilla[2]

	leaf := v.Inclusions[7].Leaf
	v.Inclusions[7].Leaf.SetOne()
	require.EqualError(t, s.Check(context.Background()), "vanilla[2].inclusion_proofs[7].path: root is not comm_r_last")
	// The first fault is reported, whichever goroutine finds one.
	s.vanilla[1].CommC.SetOne()
	require.EqualError(t, s.Check(context.Background()), "vanilla[1].comm_r: is not the hash of comm_c and comm_r_last")

	_, req = load(t, "window-2KiB")
	s, err = Decode(context.Background(), req)
	require.NoError(t, err)
	require.Equal(t, leaf, s.vanilla[2].Inclusions[7].Leaf)
	require.NoError(t, s.Check(context.Background()))
}

func TestCancelled(t *testing.T) {
	_, req := load(t, "winning-2KiB")
	ctx, cancel := context.WithCancel(context.Background())
	s, err := Decode(ctx, req)
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, s.Check(ctx), context.Canceled)
	_, err = Decode(ctx, req)
	require.ErrorIs(t, err, context.Canceled)
}

// A vanilla proof with any one byte changed is refused by the name of a field: in Decode, or
// by the relation or path that the byte belongs to, which Check is made of. A sample of
// them goes through Check itself, as a caller's would.
func TestAnyByteChangedIsRefused(t *testing.T) {
	for _, name := range []string{"winning-2KiB", "winning-32KiB", "window-2KiB", "window-4KiB", "window-16KiB", "window-v1.0-2KiB"} {
		_, good := load(t, name)
		p, err := ParamsFor(good.Kind, good.SectorSize)
		require.NoError(t, err)
		last := len(good.Vanilla) - 1
		before, err := DecodeSectorProof(p, good.Vanilla[last])
		require.NoError(t, err)

		stride := 1
		if testing.Short() || name != "winning-2KiB" && name != "window-2KiB" {
			stride = 23
		}
		var wg sync.WaitGroup
		const workers = 2
		for worker := range workers {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(1, uint64(worker)))
				req := *good
				req.Vanilla = slices.Clone(good.Vanilla)
				data := slices.Clone(good.Vanilla[last])
				req.Vanilla[last] = data
				for at := worker * stride; at < len(data); at += workers * stride {
					change := byte(1 + rng.IntN(255))
					data[at] ^= change
					if err := refuse(&req, before, rng.IntN(400) == 0); !namesField(err) {
						t.Errorf("%s: byte %d changed by %#x: %v", name, at, change, err)
					}
					data[at] ^= change
				}
			})
		}
		wg.Wait()
	}
}

func namesField(err error) bool {
	var fault *FieldError
	return errors.As(err, &fault) && fault.Field != "" && fault.Reason != ""
}

// refuse returns why a request is refused whose last vanilla proof differs from before.
func refuse(req *Request, before *SectorProof, whole bool) error {
	s, err := Decode(context.Background(), req)
	if err != nil {
		return err
	}
	if whole {
		return s.Check(context.Background())
	}
	after := s.vanilla[len(s.vanilla)-1]
	if after.CommR != before.CommR || after.CommC != before.CommC || after.CommRLast != before.CommRLast {
		return after.checkRelation()
	}
	for i := range after.Inclusions {
		a, b := &after.Inclusions[i], &before.Inclusions[i]
		same := a.Leaf == b.Leaf
		for j := range a.Path {
			same = same && slices.Equal(a.Path[j].Siblings, b.Path[j].Siblings)
		}
		if !same {
			return after.checkInclusion(i)
		}
	}
	return errors.New("nothing differs")
}

// A vanilla proof cut short anywhere is refused, and one with bytes after it.
func TestTruncatedIsRefused(t *testing.T) {
	for _, name := range []string{"winning-2KiB", "window-4KiB", "window-32KiB"} {
		_, req := load(t, name)
		p, err := ParamsFor(req.Kind, req.SectorSize)
		require.NoError(t, err)
		data := req.Vanilla[0]
		stride := 1
		if testing.Short() {
			stride = 23
		}
		for n := 0; n < len(data); n += stride {
			if _, err := DecodeSectorProof(p, data[:n]); !namesField(err) {
				t.Fatalf("%s cut to %d bytes: %v", name, n, err)
			}
		}
		_, err = DecodeSectorProof(p, append(slices.Clone(data), 0))
		require.EqualError(t, err, "1 bytes follow the end of the data")
	}
}

// Whatever is decoded is what would be encoded: a vanilla proof has one form.
func FuzzDecodeSectorProof(f *testing.F) {
	var params []Params
	for _, name := range caseNames {
		_, req := load(f, name)
		p, err := ParamsFor(req.Kind, req.SectorSize)
		require.NoError(f, err)
		f.Add(len(params), req.Vanilla[0])
		params = append(params, p)
	}
	f.Fuzz(func(t *testing.T, i int, data []byte) {
		p := params[uint(i)%uint(len(params))]
		var s *SectorProof
		var err error
		bounded.Allocation(t, len(data), func() { s, err = DecodeSectorProof(p, data) })
		if err != nil {
			var fault *FieldError
			require.True(t, errors.As(err, &fault))
			return
		}
		require.Equal(t, data, encode(p, s))
	})
}

// No request makes Decode or Check panic.
func FuzzDecode(f *testing.F) {
	for _, name := range caseNames {
		_, req := load(f, name)
		f.Add(byte(req.Kind), req.SectorSize, req.Randomness, req.APIVersion, uint32(0), false, req.Vanilla[0], req.Vanilla[len(req.Vanilla)-1])
	}
	f.Fuzz(func(t *testing.T, kind byte, size uint64, randomness []byte, version string, partition uint32, one bool, a, b []byte) {
		req := &Request{Kind: Kind(kind), SectorSize: size, Randomness: randomness, APIVersion: version, Vanilla: [][]byte{a}}
		if one {
			req.Partition = &partition
		}
		if len(b) > 0 && Kind(kind) == Window {
			req.Vanilla = append(req.Vanilla, b)
		}
		var s *Statement
		var err error
		bounded.Allocation(t, len(randomness)+len(version)+len(a)+len(b), func() {
			if s, err = Decode(context.Background(), req); err == nil {
				err = s.Check(context.Background())
			}
		})
		if err != nil {
			var fault *FieldError
			require.True(t, errors.As(err, &fault))
			return
		}
		for k := range s.Partitions {
			require.NotEmpty(t, s.Partitions[k].PublicInputs())
		}
	})
}

// One sector's part in a 32 GiB window partition: 10 paths of 10 levels in 23,870 bytes.
func BenchmarkDecodeSectorProof(b *testing.B) {
	p, err := ParamsFor(Window, 32<<30)
	require.NoError(b, err)
	data := encode(p, blank(p))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := DecodeSectorProof(p, data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckSector(b *testing.B) {
	p, err := ParamsFor(Window, 32<<30)
	require.NoError(b, err)
	s := blank(p)
	for b.Loop() {
		_ = s.checkRelation()
		for i := range s.Inclusions {
			_ = s.checkInclusion(i)
		}
	}
}

// blank is a vanilla proof of the right form, whose hashes are all zero.
func blank(p Params) *SectorProof {
	s := &SectorProof{Inclusions: make([]Inclusion, p.vanillaChallenges())}
	for i := range s.Inclusions {
		for _, arity := range p.Tree.Arities() {
			s.Inclusions[i].Path = append(s.Inclusions[i].Path, merkle.Step{Siblings: make([]fr.Element, arity-1)})
		}
	}
	return s
}
