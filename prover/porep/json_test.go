package porep

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Property: bytes32 reads what encoding/json reads as 32 bytes, with any white space, and
// nothing else.
func TestBytes32(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{32, 32, 32, 31, 33, 0}).Draw(t, "items")
		item := rapid.OneOf(rapid.Map(rapid.Byte(), func(b byte) string { return fmt.Sprint(b) }),
			rapid.SampledFrom([]string{"256", "1000", "-1", "01", "00", "1.0", "1e1", `"1"`, "null", "", "99999999999999999999999"}))
		if rapid.Bool().Draw(t, "good") {
			item = rapid.Map(rapid.Byte(), func(b byte) string { return fmt.Sprint(b) })
		}
		space := rapid.SampledFrom([]string{"", "", " ", "\n\t"})
		var text strings.Builder
		text.WriteString("[")
		for i := range n {
			if i > 0 {
				text.WriteString(",")
			}
			text.WriteString(space.Draw(t, "space") + item.Draw(t, "item") + space.Draw(t, "space"))
		}
		text.WriteString("]")

		r := newJSONReader(strings.NewReader(text.String()))
		got := r.bytes32()
		r.finish()
		var list []uint8
		var raw []json.Number // uint8 alone accepts 1.0
		want := [32]byte{}
		ok := json.Unmarshal([]byte(text.String()), &raw) == nil && !strings.Contains(text.String(), `"`) && len(raw) == 32
		for _, x := range raw {
			var b uint8
			ok = ok && json.Unmarshal([]byte(x), &b) == nil
			list = append(list, b)
		}
		if !ok {
			require.Error(t, r.err)
			return
		}
		require.NoError(t, r.err)
		copy(want[:], list)
		require.Equal(t, want, got)
	})
}

// Property: numbers are whole, without sign, leading zeros or anything beyond the limit.
func TestNumber(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "7": 7, "255 ": 255, " 18446744073709551615": 1<<64 - 1,
	} {
		r := newJSONReader(strings.NewReader(text))
		require.Equal(t, want, r.number(1<<64-1))
		r.finish()
		require.NoError(t, r.err)
	}
	for _, text := range []string{
		"", "-0", "01", "1.5", "1.0", "1e2", "18446744073709551616", "99999999999999999999", "x", "null", `"1"`,
	} {
		r := newJSONReader(strings.NewReader(text))
		r.number(1<<64 - 1)
		r.finish()
		require.Error(t, r.err, text)
	}
	r := newJSONReader(strings.NewReader("8"))
	r.number(7)
	require.ErrorContains(t, r.err, "from 0 to 7")
}

// Objects have exactly their fields.
func TestObject(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":1,"b":2}`:                          "",
		` { "b" : 2 , "a":1}`:                    "",
		`{"a":1}`:                                "b: is missing",
		`{}`:                                     "a: is missing",
		`{"a":1,"b":2,"c":3}`:                    "c: is not a field of this object",
		`{"a":1,"a":1,"b":2}`:                    "a: is given twice",
		`{"a":1,"b":2,}`:                         "is not well formed",
		`{"a":1 "b":2}`:                          "is not well formed",
		`{"a" 1,"b":2}`:                          "is not well formed",
		`[1,2]`:                                  "is not well formed",
		`{"a":1,"b":2`:                           "ends where",
		`{"a`:                                    "does not end",
		`{"\u0061":1,"b":2}`:                     "escaped characters",
		`{"a":1,"b":2}0`:                         "follows the end",
		`{"a":1,"b":x}`:                          "b: is not well formed",
		`{"` + strings.Repeat("a", 200) + `":1}`: "does not end within",
	} {
		r := newJSONReader(strings.NewReader(text))
		r.object(
			field{"a", func() { require.Equal(t, uint64(1), r.number(9)) }},
			field{"b", func() { r.number(9) }},
		)
		r.finish()
		if want == "" {
			require.NoError(t, r.err, text)
		} else {
			require.ErrorContains(t, r.err, want, text)
		}
	}
}
