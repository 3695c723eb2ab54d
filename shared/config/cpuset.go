package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxCPU is the largest CPU number that a set may hold: Linux is built for at
// most 8,192 CPUs (CONFIG_NR_CPUS on x86-64).
const maxCPU = 8191

// CPUSet is a set of logical CPU numbers as the kernel counts them, ascending
// and each once. The empty set stands for "no restriction".
type CPUSet []int

// CPUSetError is a fault in one item of a CPU set, with its place in the text.
type CPUSetError struct {
	Offset int    // of the item, in bytes from the start of the text
	Item   string // the text between two commas
	Reason string // a sentence
}

func (e *CPUSetError) Error() string { return e.Reason }

// ParseCPUSet reads the list form of cpuset(7): numbers and ascending ranges
// between commas, such as "0-7,16". The error is a *[CPUSetError].
func ParseCPUSet(text string) (CPUSet, error) {
	var member [maxCPU + 1]bool
	offset := 0
	for item := range strings.SplitSeq(text, ",") {
		first, last, err := parseCPURange(item)
		if err != nil {
			return nil, &CPUSetError{Offset: offset, Item: item, Reason: err.Error()}
		}
		for cpu := first; cpu <= last; cpu++ {
			member[cpu] = true
		}
		offset += len(item) + 1
	}
	var set CPUSet
	for cpu, is := range member {
		if is {
			set = append(set, cpu)
		}
	}
	return set, nil
}

func parseCPURange(item string) (first, last int, err error) {
	low, high, isRange := strings.Cut(item, "-")
	if !isRange {
		high = low
	}
	for _, number := range []string{low, high} {
		if !isDigits(number) {
			return 0, 0, fmt.Errorf(`%q is neither a CPU number nor a range of them: write a set such as "0-7,16"`, item)
		}
	}
	first, lowErr := strconv.Atoi(low)
	last, highErr := strconv.Atoi(high)
	switch {
	case lowErr != nil || highErr != nil || first > maxCPU || last > maxCPU:
		return 0, 0, fmt.Errorf("%q is above the largest CPU number, %d", item, maxCPU)
	case first > last:
		return 0, 0, fmt.Errorf(`the range %q runs backwards. Did you mean "%d-%d"?`, item, last, first)
	}
	return first, last, nil
}

// String writes the set as [ParseCPUSet] reads it, with ranges as long as
// possible; the empty set is "".
func (s CPUSet) String() string {
	var text strings.Builder
	for i := 0; i < len(s); {
		last := i
		for last+1 < len(s) && s[last+1] == s[last]+1 {
			last++
		}
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteString(strconv.Itoa(s[i]))
		if last > i {
			text.WriteString("-" + strconv.Itoa(s[last]))
		}
		i = last + 1
	}
	return text.String()
}

// Intersect returns the CPUs that are in both sets.
func (s CPUSet) Intersect(other CPUSet) CPUSet {
	return s.where(func(cpu int) bool { _, found := slices.BinarySearch(other, cpu); return found })
}

// Minus returns the CPUs of s that are not in other.
func (s CPUSet) Minus(other CPUSet) CPUSet {
	return s.where(func(cpu int) bool { _, found := slices.BinarySearch(other, cpu); return !found })
}

func (s CPUSet) where(keep func(cpu int) bool) CPUSet {
	var set CPUSet
	for _, cpu := range s {
		if keep(cpu) {
			set = append(set, cpu)
		}
	}
	return set
}
