package porep

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-prover/interlock/shared/sharedtest/bounded"
)

// decodeAndCheck is all that happens before proving.
func decodeAndCheck(req *Request) (*Statement, error) {
	s, err := Decode(context.Background(), req)
	if err != nil {
		return nil, err
	}
	return s, s.Check(context.Background())
}

// parse makes a tree of a JSON text, with numbers as they are written.
func parse(t require.TestingT, data []byte) any {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	return v
}

// write writes a tree with objects' fields in random order and white space in random
// places.
func write(out *bytes.Buffer, r *rand.Rand, v any) {
	space := func() { out.WriteString([]string{"", "", "", " ", "\n\t", "\r\n "}[r.IntN(6)]) }
	space()
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		out.WriteByte('{')
		for i, key := range keys {
			if i > 0 {
				out.WriteByte(',')
			}
			space()
			fmt.Fprintf(out, "%q", key)
			space()
			out.WriteByte(':')
			write(out, r, v[key])
		}
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			write(out, r, item)
		}
		space()
		out.WriteByte(']')
	default:
		text, _ := json.Marshal(v)
		out.Write(text)
	}
	space()
}

// Property: neither the order of fields nor white space matters, and the stream may come in
// any pieces.
func TestDecodeAnyOrder(t *testing.T) {
	for _, name := range []string{"porep-2KiB", "porep-32KiB"} {
		_, req := load(t, name)
		want, err := readPhase1(bytes.NewReader(req.Phase1))
		require.NoError(t, err)
		tree := parse(t, req.Phase1)
		for seed := range uint64(5) {
			var out bytes.Buffer
			write(&out, rand.New(rand.NewPCG(seed, 0)), tree)
			got, err := readPhase1(iotest.HalfReader(bytes.NewReader(out.Bytes())))
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		got, err := readPhase1(iotest.OneByteReader(bytes.NewReader(req.Phase1)))
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// The wrapped form is the plain one with the sector's number and size.
func TestDecodeWrapped(t *testing.T) {
	ref, req := load(t, "porep-2KiB")
	plain, err := decodeAndCheck(req)
	require.NoError(t, err)
	wrapped, err := os.ReadFile("testdata/cases/porep-2KiB/c1-wrapped.json")
	require.NoError(t, err)
	got, err := decodeAndCheck(&Request{Phase1: wrapped, MinerID: &ref.MinerID})
	require.NoError(t, err)
	require.Equal(t, plain, got)
	require.Equal(t, ref.SectorNumber, *got.SectorNumber)

	// Serialisers may escape the slash.
	got, err = decodeAndCheck(&Request{Phase1: bytes.ReplaceAll(wrapped, []byte("/"), []byte(`\/`))})
	require.NoError(t, err)
	require.Equal(t, plain, got)

	wrap := func(phase1 string) string { return base64.StdEncoding.EncodeToString([]byte(phase1)) }
	c1 := string(req.Phase1)
	text := wrap(c1)
	for field, data := range map[string]string{
		"SectorNum":        fmt.Sprintf(`{"SectorNum":1,"Phase1Out":%q,"SectorSize":2048}`, text),
		"SectorSize":       fmt.Sprintf(`{"SectorNum":%d,"Phase1Out":%q,"SectorSize":4096}`, ref.SectorNumber, text),
		"Phase1Out":        fmt.Sprintf(`{"SectorNum":%d,"Phase1Out":%q,"SectorSize":2048}`, ref.SectorNumber, text[:len(text)-1]),
		"Phase1Out ":       fmt.Sprintf(`{"SectorNum":%d,"Phase1Out":"*%s","SectorSize":2048}`, ref.SectorNumber, text[1:]),
		"Phase1Out  ":      fmt.Sprintf(`{"SectorNum":%d,"Phase1Out":%q,"SectorSize":2048}`, ref.SectorNumber, wrap(c1+"x")),
		"Phase1Out   ":     fmt.Sprintf(`{"SectorNum":%d,"Phase1Out":%q,"SectorSize":2048}`, ref.SectorNumber, wrap(c1+"{")),
		"Phase1Out    ":    fmt.Sprintf(`{"SectorNum":%d,"Phase1Out":"\u0065","SectorSize":2048}`, ref.SectorNumber),
		"Phase1Out     ":   fmt.Sprintf(`{"SectorNum":%d,"Phase1Out":%q`, ref.SectorNumber, text)[:len(text)],
		"Phase1Out.comm_d": fmt.Sprintf(`{"SectorNum":%d,"Phase1Out":%q,"SectorSize":2048}`, ref.SectorNumber, wrap(strings.Replace(c1, "comm_d", "comm_e", 1))),
	} {
		_, err := decodeAndCheck(&Request{Phase1: []byte(data), SectorNumber: &ref.SectorNumber})
		var fault *FieldError
		require.ErrorAs(t, err, &fault, field)
		require.True(t, strings.HasPrefix(fault.Field, strings.TrimSuffix(strings.TrimSpace(field), ".comm_d")), "%q: %v", field, err)
	}
}

// change makes one change somewhere in a tree of JSON, and says what.
func change(t *rapid.T, v any) (any, string) {
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		key := rapid.SampledFrom(keys).Draw(t, "key")
		switch rapid.IntRange(0, 60).Draw(t, "change of an object") {
		case 0:
			delete(v, key)
			return v, "without " + key
		case 1:
			v[key+"_"] = v[key]
			return v, "one field more: " + key
		default:
			inner, what := change(t, v[key])
			v[key] = inner
			return v, key + "." + what
		}
	case []any:
		i := rapid.IntRange(0, len(v)-1).Draw(t, "index")
		switch rapid.IntRange(0, 60).Draw(t, "change of a list") {
		case 0:
			return slices.Delete(v, i, i+1), fmt.Sprintf("without item %d", i)
		case 1:
			return slices.Insert(v, i, v[i]), fmt.Sprintf("twice item %d", i)
		default:
			inner, what := change(t, v[i])
			v[i] = inner
			return v, fmt.Sprintf("[%d].%s", i, what)
		}
	case json.Number:
		x, err := strconv.ParseUint(v.String(), 10, 64)
		require.NoError(t, err)
		to := rapid.Uint64Range(0, 300).Filter(func(y uint64) bool { return y != x }).Draw(t, "to")
		return to, fmt.Sprintf("%d becomes %d", x, to)
	case string:
		other := rapid.SampledFrom([]string{"", "StackedDrg2KiBV1", "StackedDrg2KiBV1_1_Feat_SyntheticPoRep",
			"StackedDrg2KiBV1_2_Feat_NonInteractivePoRep", "StackedDrg8MiBV1_1", "StackedDrg2KiBV2"}).Draw(t, "name")
		return other, v + " becomes " + other
	default:
		return 0, "null becomes 0"
	}
}

// Property: any single change to a phase-1 output is refused, by the name of a field.
func TestAnyChangeIsRefused(t *testing.T) {
	for _, name := range []string{"porep-2KiB", "porep-32KiB"} {
		_, req := load(t, name)
		rapid.Check(t, func(t *rapid.T) {
			tree, what := change(t, parse(t, req.Phase1))
			changed, err := json.Marshal(tree)
			require.NoError(t, err)
			changedReq := *req
			changedReq.Phase1 = changed
			_, err = decodeAndCheck(&changedReq)
			var fault *FieldError
			require.ErrorAs(t, err, &fault, what)
			require.NotEmpty(t, fault.Field, what)
			require.NotEmpty(t, fault.Reason, what)
		})
	}
}

// Property: a phase-1 output that ends too early, or on which something follows, is refused.
func TestTruncated(t *testing.T) {
	_, req := load(t, "porep-2KiB")
	rapid.Check(t, func(t *rapid.T) {
		cut := rapid.IntRange(0, len(req.Phase1)-1).Draw(t, "cut")
		_, err := Decode(context.Background(), &Request{Phase1: req.Phase1[:cut]})
		var fault *FieldError
		require.ErrorAs(t, err, &fault)
	})
	_, err := Decode(context.Background(), &Request{Phase1: append(slices.Clone(req.Phase1), '}')})
	require.ErrorContains(t, err, "follows the end")
}

// Property: a fault of the stream is reported as it is.
func TestBrokenStream(t *testing.T) {
	_, req := load(t, "porep-2KiB")
	broken := errors.New("broken")
	_, err := readPhase1(iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(req.Phase1))))
	require.ErrorIs(t, err, iotest.ErrTimeout)
	_, err = readPhase1(iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
}

// What a request may demand of a phase-1 output: faults and the fields that are named.
func TestRequestFaults(t *testing.T) {
	ref, _ := load(t, "porep-2KiB")
	other := uint64(7)
	for field, req := range map[string]Request{
		"sector_size":      {SectorSize: 4096},
		"registered_proof": {RegisteredProof: &other},
		"replica_id":       {MinerID: &other, SectorNumber: &ref.SectorNumber},
		"replica_id ":      {MinerID: &ref.MinerID, SectorNumber: &other},
	} {
		_, good := load(t, "porep-2KiB")
		req.Phase1 = good.Phase1
		_, err := Decode(context.Background(), &req)
		var fault *FieldError
		require.ErrorAs(t, err, &fault)
		require.Equal(t, strings.TrimSpace(field), fault.Field)
	}
	_, good := load(t, "porep-2KiB")
	number := uint64(5) // StackedDrg2KiBV1_1, which the case's output says it is
	_, err := Decode(context.Background(), &Request{Phase1: good.Phase1, RegisteredProof: &number})
	require.NoError(t, err)
}

// Changes whose faults have particular names.
func TestFaultNames(t *testing.T) {
	_, req := load(t, "porep10-2KiB")
	at := func(v any, path ...any) any {
		for _, p := range path {
			switch p := p.(type) {
			case string:
				v = v.(map[string]any)[p]
			case int:
				v = v.([]any)[p]
			}
		}
		return v
	}
	const proofs = "StackedDrg2KiBV1"
	for _, test := range []struct {
		want   string
		change func(tree map[string]any)
	}{
		{"seed: is zero", func(c map[string]any) { c["seed"] = make([]int, 32) }},
		{"comm_r: is zero", func(c map[string]any) { c["comm_r"] = make([]int, 32) }},
		{"comm_d: is not below the field's modulus", func(c map[string]any) { at(c, "comm_d").([]any)[31] = 255 }},
		{"comm_d: has 31 bytes, not 32", func(c map[string]any) { c["comm_d"] = at(c, "comm_d").([]any)[:31] }},
		{"vanilla_proofs: has 9 partitions, the first of 1 challenges; no StackedDrg2KiBV1_1 proof has that", func(c map[string]any) {
			c["vanilla_proofs"] = map[string]any{proofs: at(c, "vanilla_proofs", proofs).([]any)[:9]}
		}},
		{"registered_proof: is StackedDrg8MiBV1_1, but the vanilla proofs are of StackedDrg2KiBV1", func(c map[string]any) {
			c["registered_proof"] = "StackedDrg8MiBV1_1"
		}},
		{"vanilla_proofs.StackedDrg2KiBV1[4][0].replica_column_proofs.c_x: is of node", func(c map[string]any) {
			list := at(c, "vanilla_proofs", proofs).([]any)
			list[4], list[5] = list[5], list[4]
		}},
		{"vanilla_proofs.StackedDrg2KiBV1[3][0].replica_column_proofs.drg_parents[1]: is of node", func(c map[string]any) {
			list := at(c, "vanilla_proofs", proofs, 3, 0, "replica_column_proofs", "drg_parents").([]any)
			labels := at(c, "vanilla_proofs", proofs, 3, 0, "labeling_proofs").([]any)
			labels = append(labels, at(c, "vanilla_proofs", proofs, 3, 0, "encoding_proof"))
			list[1], list[2] = list[2], list[1]
			for layer, l := range labels {
				parents := at(l, "parents").([]any)
				n := degree
				if layer == 0 {
					n = baseDegree
				}
				for i := range parents {
					if i%n == 1 && i+1 < len(parents) {
						parents[i], parents[i+1] = parents[i+1], parents[i]
					}
				}
			}
		}},
		{"vanilla_proofs.StackedDrg2KiBV1[0][0].labeling_proofs[1].parents[36]: is not the label of the parent's column", func(c map[string]any) {
			l := at(c, "vanilla_proofs", proofs, 0, 0, "labeling_proofs", 1, "parents").([]any)
			l[36] = l[35]
		}},
		{"vanilla_proofs.StackedDrg2KiBV1[9][0].comm_d_proofs.data.Single.path.path[3].index: is not a whole number from 0 to 1", func(c map[string]any) {
			at(c, "vanilla_proofs", proofs, 9, 0, "comm_d_proofs", "data", "Single", "path", "path", 3).(map[string]any)["index"] = 2
		}},
		{"vanilla_proofs.StackedDrg2KiBV1[9][0].comm_d_proofs: path does not lead to comm_d", func(c map[string]any) {
			hashes := at(c, "vanilla_proofs", proofs, 9, 0, "comm_d_proofs", "data", "Single", "path", "path", 3).(map[string]any)
			hashes["hashes"] = []any{make([]int, 32)}
		}},
	} {
		tree := parse(t, req.Phase1)
		test.change(tree.(map[string]any))
		changed, err := json.Marshal(tree)
		require.NoError(t, err)
		changedReq := *req
		changedReq.Phase1 = changed
		_, err = decodeAndCheck(&changedReq)
		require.ErrorContains(t, err, test.want)
	}
}

// Property: a done context stops the checks.
func TestCancelled(t *testing.T) {
	_, req := load(t, "porep-2KiB")
	s, err := Decode(context.Background(), req)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, s.Check(ctx), context.Canceled)
	_, err = Decode(ctx, req)
	require.ErrorIs(t, err, context.Canceled)
	_, err = NewCircuit(s.Params).Witness(ctx, s, 0)
	require.ErrorIs(t, err, context.Canceled)
}

// Property: whatever the data, it is decoded or refused with a *FieldError.
func FuzzDecode(f *testing.F) {
	// Beginnings, as whole files are too large to be varied quickly.
	for _, name := range []string{"porep-2KiB", "porep-32KiB"} {
		_, req := load(f, name)
		f.Add(req.Phase1[:2000])
	}
	f.Add([]byte(`{"SectorNum":1,"Phase1Out":"eyJjb21tX2QiOls4NywxMiw0Nl19","SectorSize":2048}`))
	f.Add([]byte(`{"vanilla_proofs":{"StackedDrg2KiBV1":[[{"encoding_proof":{"layer_index":2,"node":63,"parents":[]}}]]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var err error
		bounded.Allocation(t, len(data), func() { _, err = Decode(context.Background(), &Request{Phase1: data}) })
		if err != nil {
			var fault *FieldError
			require.ErrorAs(t, err, &fault)
		}
	})
}
