package timeline

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-prover/interlock/shared/sharedtest/bounded"
)

// Whatever the names of requests and GPUs, a recording comes back from its text lines; times to the microsecond.
func TestTextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Recording{
			Start: time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")).UTC(),
			Lost:  rapid.Uint64().Draw(t, "lost"),
		}
		for range rapid.IntRange(0, 8).Draw(t, "events") {
			want.Events = append(want.Events, Event{
				Time:      time.Duration(rapid.Int64Range(0, 1e12).Draw(t, "time")) * time.Microsecond,
				Kind:      Kind(rapid.Uint8Range(uint8(RequestStart), uint8(GPUPickup)).Draw(t, "kind")),
				Partition: rapid.Int32Min(None).Draw(t, "partition"),
				Worker:    rapid.Int32Min(None).Draw(t, "worker"),
				Request:   rapid.String().Draw(t, "request"),
				GPU:       rapid.String().Draw(t, "gpu"),
			})
		}
		var text bytes.Buffer
		require.NoError(t, want.WriteText(&text))
		got, err := Parse(strings.NewReader("a log line before\n" + text.String() + "and one after\n"))
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

// The lines are as documented: scripts depend on them.
func TestTextForm(t *testing.T) {
	r := Recording{
		Start: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Events: []Event{
			{Time: 12340 * time.Microsecond, Kind: GPUStart, Request: "sector 7,a", Partition: 3, GPU: "NVIDIA H200", Worker: 1},
			{Time: 2 * time.Second, Kind: RequestEnd, Request: "b", Partition: None, Worker: None},
		},
	}
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	require.Equal(t, `TIMELINE,0.000,RECORDER_START,,wall=2026-03-01T12:00:00Z lost=0
TIMELINE,12.340,GPU_START,sector%207%2Ca,partition=3 gpu=NVIDIA%20H200 worker=1
TIMELINE,2000.000,REQUEST_END,b,
`, text.String())
}

// A line that claims to be a timeline's and is not says which it is and why; other lines are passed over.
func TestParseRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"TIMELINE,1":                                "2 fields",
		"TIMELINE,x,GPU_END,a,":                     `"x"`,
		"TIMELINE,-1,GPU_END,a,":                    `"-1"`,
		"TIMELINE,NaN,GPU_END,a,":                   `"NaN"`,
		"TIMELINE,1e300,GPU_END,a,":                 `"1e300"`,
		"TIMELINE,1,GPU_EMD,a,":                     "GPU_EMD",
		"TIMELINE,1,GPU_END,%zz,":                   "request",
		"TIMELINE,1,GPU_END,a,gpu":                  "key=value",
		"TIMELINE,1,GPU_END,a,worker=-2":            "worker=-2",
		"TIMELINE,1,GPU_END,a,partition=x":          "partition=x",
		"TIMELINE,0,RECORDER_START,,wall=yesterday": "wall=yesterday",
	} {
		_, err := Parse(strings.NewReader("INFO something else\n\n" + line + "\n"))
		require.ErrorContains(t, err, want, line)
		require.ErrorContains(t, err, "line 3", line)
	}
}

// Property: a line that is longer than any of ours is an error that says which.
func TestParseLongLine(t *testing.T) {
	_, err := Parse(strings.NewReader("INFO\n\n" + strings.Repeat("x", 2<<20)))
	require.ErrorContains(t, err, "line 3")
}

func FuzzParse(f *testing.F) {
	f.Add("TIMELINE,12.340,GPU_START,sector%207,partition=3 gpu=H200 worker=1\n")
	f.Add("TIMELINE,0.000,RECORDER_START,,wall=2026-03-01T12:00:00Z lost=0\n")
	f.Fuzz(func(t *testing.T, text string) {
		var r Recording
		var err error
		bounded.Allocation(t, len(text), func() { r, err = Parse(strings.NewReader(text)) })
		if err != nil {
			return
		}
		// Whatever can be parsed can be analysed and exported.
		var out bytes.Buffer
		require.NoError(t, Analyze(r.Events).WriteText(&out))
		require.NoError(t, r.WriteWaterfall(&out, 40))
		out.Reset()
		require.NoError(t, r.WriteChromeTrace(&out))
		require.True(t, json.Valid(out.Bytes()))
	})
}
