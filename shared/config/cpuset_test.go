package config

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The list format of cpuset(7).
func TestParseCPUSet(t *testing.T) {
	for _, test := range []struct {
		text string
		want CPUSet
		form string
	}{
		{"0", CPUSet{0}, "0"},
		{"0-3", CPUSet{0, 1, 2, 3}, "0-3"},
		{"0-2,16", CPUSet{0, 1, 2, 16}, "0-2,16"},
		{"16,0-2", CPUSet{0, 1, 2, 16}, "0-2,16"},
		{"0-2,1-3", CPUSet{0, 1, 2, 3}, "0-3"},
		{"5,4", CPUSet{4, 5}, "4-5"},
		{"8191", CPUSet{8191}, "8191"},
	} {
		got, err := ParseCPUSet(test.text)
		require.NoError(t, err, test.text)
		require.Equal(t, test.want, got, test.text)
		require.Equal(t, test.form, got.String(), test.text)
	}
}

func TestParseCPUSetNamesTheBadItem(t *testing.T) {
	for _, test := range []struct {
		text   string
		offset int
		item   string
	}{
		{"", 0, ""},
		{"0-3,", 4, ""},
		{"0-3, 5", 4, " 5"},
		{"0-3,5x,7", 4, "5x"},
		{"-3", 0, "-3"},
		{"3-", 0, "3-"},
		{"1-2-3", 0, "1-2-3"},
		{"0,7-4", 2, "7-4"},
		{"0-8192", 0, "0-8192"},
		{"99999999999999999999", 0, "99999999999999999999"},
	} {
		_, err := ParseCPUSet(test.text)
		var fault *CPUSetError
		require.ErrorAs(t, err, &fault, test.text)
		require.Equal(t, test.offset, fault.Offset, test.text)
		require.Equal(t, test.item, fault.Item, test.text)
	}
}

var anyCPUSet = rapid.Map(rapid.SliceOf(rapid.IntRange(0, 200)), func(cpus []int) CPUSet {
	slices.Sort(cpus)
	return slices.Compact(cpus)
})

// Whatever String writes, ParseCPUSet reads back.
func TestCPUSetRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set := anyCPUSet.Filter(func(s CPUSet) bool { return len(s) > 0 }).Draw(t, "set")
		back, err := ParseCPUSet(set.String())
		if err != nil || !slices.Equal(back, set) {
			t.Fatalf("%v was written as %q and read as %v: %v", []int(set), set, []int(back), err)
		}
	})
}

// Intersect and Minus split a set in two.
func TestCPUSetIntersectAndMinus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyCPUSet.Draw(t, "a"), anyCPUSet.Draw(t, "b")
		in, out := a.Intersect(b), a.Minus(b)
		for _, cpu := range in {
			if !slices.Contains(b, cpu) {
				t.Fatalf("%d is not in both", cpu)
			}
		}
		for _, cpu := range out {
			if slices.Contains(b, cpu) {
				t.Fatalf("%d was not taken away", cpu)
			}
		}
		both := slices.Sorted(slices.Values(append(slices.Clone(in), out...)))
		if !slices.Equal(both, a) {
			t.Fatalf("%v and %v together are not %v", in, out, a)
		}
	})
}
