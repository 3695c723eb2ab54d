package config

import (
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
)

// ByteSize is an amount of memory or storage in bytes, written in a
// configuration as a whole number and a binary unit: "512MiB", "5GiB".
type ByteSize uint64

// The units of [ParseByteSize].
const (
	Byte ByteSize = 1
	KiB           = 1024 * Byte
	MiB           = 1024 * KiB
	GiB           = 1024 * MiB
	TiB           = 1024 * GiB
)

// sizeUnits goes from the largest unit to the smallest, so that the first one
// that divides a size is the one to write it in, and so that "B" is compared
// after the units that end in it.
var sizeUnits = []struct {
	name string
	size ByteSize
}{
	{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", Byte},
}

// ParseByteSize reads what [ByteSize.String] writes: decimal digits directly
// followed by B, KiB, MiB, GiB or TiB. The error names a likely correction of
// a near miss such as "5GB", "5 gib" or "1.5GiB".
func ParseByteSize(s string) (ByteSize, error) {
	for _, unit := range sizeUnits {
		digits, found := strings.CutSuffix(s, unit.name)
		if !found || !isDigits(digits) {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		high, size := bits.Mul64(n, uint64(unit.size))
		if err != nil || high != 0 {
			return 0, fmt.Errorf("%q is larger than any size that a machine can have", s)
		}
		return ByteSize(size), nil
	}
	err := fmt.Errorf(`%q is not a size: write a whole number followed by B, KiB, MiB, GiB or TiB, such as "5GiB"`, s)
	if better := correctSize(s); better != "" {
		err = fmt.Errorf("%w. Did you mean %q?", err, better)
	}
	return 0, err
}

// String writes the size as a whole number of the largest unit that divides
// it, which [ParseByteSize] reads back to the same value.
func (s ByteSize) String() string {
	for _, unit := range sizeUnits {
		if s != 0 && s%unit.size == 0 {
			return strconv.FormatUint(uint64(s/unit.size), 10) + unit.name
		}
	}
	return "0B"
}

// Approx writes the size for a person to read, with one decimal of the largest
// unit that it reaches: "23.5GiB".
func (s ByteSize) Approx() string {
	for _, unit := range sizeUnits {
		if s >= unit.size && unit.size > 1 {
			return strconv.FormatFloat(float64(s)/float64(unit.size), 'f', 1, 64) + unit.name
		}
	}
	return s.String()
}

// nearlySize matches what people write for a size: any case, spaces, decimals,
// decimal or abbreviated units.
var nearlySize = regexp.MustCompile(`^(?i)([0-9]+)(\.[0-9]+)? *(b|([kmgt])i?b?)$`)

// correctSize returns the size that was probably meant by a string that is not
// one, or "".
func correctSize(s string) string {
	match := nearlySize.FindStringSubmatch(s)
	if match == nil {
		return ""
	}
	number, fraction, unit := match[1], match[2], "B"
	if match[4] != "" {
		unit = strings.ToUpper(match[4]) + "iB"
	}
	if fraction == "" {
		return number + unit
	}
	for i, larger := range sizeUnits[:len(sizeUnits)-1] {
		if value, err := strconv.ParseFloat(number+fraction, 64); err == nil && larger.name == unit {
			return strconv.FormatFloat(value*1024, 'f', 0, 64) + sizeUnits[i+1].name
		}
	}
	return ""
}

// MemoryShare is an amount of memory, either in bytes or as a share of a
// whole: "20GiB" or "80%". One of the two fields is zero.
type MemoryShare struct {
	Bytes   ByteSize
	Percent int // 1 to 100
}

// ParseMemoryShare reads what [MemoryShare.String] writes: a size as
// [ParseByteSize] takes it, or 1 to 100 directly followed by a per cent sign.
func ParseMemoryShare(s string) (MemoryShare, error) {
	if digits, found := strings.CutSuffix(s, "%"); found {
		percent, err := strconv.Atoi(digits)
		if err != nil || !isDigits(digits) || percent < 1 || percent > 100 {
			return MemoryShare{}, fmt.Errorf(`%q is not a share of memory: write a whole number from 1 to 100 followed by %%, such as "80%%"`, s)
		}
		return MemoryShare{Percent: percent}, nil
	}
	size, err := ParseByteSize(s)
	if err != nil {
		return MemoryShare{}, err
	}
	return MemoryShare{Bytes: size}, nil
}

// Of is the amount in bytes, where whole is what a percentage refers to.
func (m MemoryShare) Of(whole ByteSize) ByteSize {
	if m.Percent == 0 {
		return m.Bytes
	}
	percent := ByteSize(m.Percent)
	return whole/100*percent + whole%100*percent/100
}

// String writes the share as [ParseMemoryShare] reads it.
func (m MemoryShare) String() string {
	if m.Percent != 0 {
		return strconv.Itoa(m.Percent) + "%"
	}
	return m.Bytes.String()
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
