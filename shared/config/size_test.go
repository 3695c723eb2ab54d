package config

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestParseByteSize(t *testing.T) {
	for _, test := range []struct {
		text string
		want ByteSize
	}{
		{"0B", 0},
		{"1B", 1},
		{"512B", 512},
		{"1KiB", 1 << 10},
		{"3MiB", 3 << 20},
		{"5GiB", 5 << 30},
		{"1024GiB", 1 << 40},
		{"2TiB", 2 << 40},
		{"007MiB", 7 << 20},
		{"18446744073709551615B", math.MaxUint64},
		{"16777215TiB", 16777215 << 40},
	} {
		got, err := ParseByteSize(test.text)
		require.NoError(t, err, test.text)
		require.Equal(t, test.want, got, test.text)
	}
}

func TestParseByteSizeRefusesAndSuggests(t *testing.T) {
	for _, test := range []struct{ text, suggestion string }{
		{"", ""},
		{"GiB", ""},
		{"-5GiB", ""},
		{"lots", ""},
		{"20", ""},
		{"0x10GiB", ""},
		{"18446744073709551616B", ""},
		{"16777216TiB", ""},
		{"5GB", "5GiB"},
		{"5 GiB", "5GiB"},
		{"5gib", "5GiB"},
		{"5G", "5GiB"},
		{"5tb", "5TiB"},
		{"300 k", "300KiB"},
		{"64b", "64B"},
		{"1.5GiB", "1536MiB"},
		{"0.5TB", "512GiB"},
	} {
		_, err := ParseByteSize(test.text)
		require.Error(t, err, test.text)
		if test.suggestion == "" {
			require.NotContains(t, err.Error(), "Did you mean", test.text)
		} else {
			require.Contains(t, err.Error(), `Did you mean "`+test.suggestion+`"?`, test.text)
		}
	}
}

func TestByteSizeFormat(t *testing.T) {
	for _, test := range []struct {
		size          ByteSize
		exact, approx string
	}{
		{0, "0B", "0B"},
		{1023, "1023B", "1023B"},
		{1536 * MiB, "1536MiB", "1.5GiB"},
		{20 * GiB, "20GiB", "20.0GiB"},
		{131981020 * KiB, "131981020KiB", "125.9GiB"},
	} {
		require.Equal(t, test.exact, test.size.String())
		require.Equal(t, test.approx, test.size.Approx())
	}
}

// Whatever String writes, ParseByteSize reads back.
func TestByteSizeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shift := rapid.IntRange(0, 63).Draw(t, "shift")
		size := ByteSize(rapid.Uint64().Draw(t, "size")) >> shift << shift // many whole units among them
		back, err := ParseByteSize(size.String())
		if err != nil || back != size {
			t.Fatalf("%d was written as %q and read as %d: %v", size, size, back, err)
		}
	})
}

func TestParseMemoryShare(t *testing.T) {
	for _, test := range []struct {
		text  string
		want  MemoryShare
		of64G ByteSize
	}{
		{"80%", MemoryShare{Percent: 80}, 64 * GiB / 5 * 4},
		{"100%", MemoryShare{Percent: 100}, 64 * GiB},
		{"20GiB", MemoryShare{Bytes: 20 * GiB}, 20 * GiB},
	} {
		got, err := ParseMemoryShare(test.text)
		require.NoError(t, err)
		require.Equal(t, test.want, got)
		require.InDelta(t, float64(test.of64G), float64(got.Of(64*GiB)), 1)
	}
	for _, text := range []string{"0%", "101%", "-1%", "+5%", "8.5%", "%", "80", "80 %", "99999999999999999999%"} {
		_, err := ParseMemoryShare(text)
		require.Error(t, err, text)
	}
}

// A percentage is exact to the byte below, for machines of every size.
func TestMemoryShareOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		percent := rapid.IntRange(1, 100).Draw(t, "percent")
		whole := rapid.Uint64Range(0, math.MaxUint64/100).Draw(t, "whole") // so that the product below fits
		got := MemoryShare{Percent: percent}.Of(ByteSize(whole))
		if want := ByteSize(whole * uint64(percent) / 100); got != want {
			t.Fatalf("%d%% of %d is %d, not %d", percent, whole, want, got)
		}
	})
}

func TestMemoryShareRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.OneOf(
			rapid.Map(rapid.IntRange(1, 100), func(p int) MemoryShare { return MemoryShare{Percent: p} }),
			rapid.Map(rapid.Uint64(), func(n uint64) MemoryShare { return MemoryShare{Bytes: ByteSize(n)} }),
		).Draw(t, "share")
		back, err := ParseMemoryShare(share.String())
		if err != nil || back != share {
			t.Fatalf("%v was read back as %v: %v", share, back, err)
		}
	})
}
