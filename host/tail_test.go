package host

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTailKeepsTheLastLines(t *testing.T) {
	var tail tail
	for i := range 100 {
		fmt.Fprintf(&tail, "line %d\n", i)
	}
	fmt.Fprint(&tail, "unfinished")
	lines := tail.lines()
	require.Len(t, lines, tailLines+1)
	require.Equal(t, "line 80", lines[0])
	require.Equal(t, "unfinished", lines[tailLines])
}

func TestTailKeepsTheFirstLinesOfACrash(t *testing.T) {
	var tail tail
	fmt.Fprintln(&tail, "before")
	fmt.Fprintln(&tail, "panic: survived")
	fmt.Fprintln(&tail, `{"@level":"info","@message":"going on","@module":"m","b":2,"a":"x"}`)
	require.Equal(t, []string{"before", "panic: survived", "[INFO] m: going on a=x b=2"}, tail.lines())
	fmt.Fprintln(&tail, "fatal error: the end")
	for i := range 100 {
		fmt.Fprintf(&tail, "frame %d\n", i)
	}
	lines := tail.lines()
	require.Len(t, lines, tailLines)
	require.Equal(t, "fatal error: the end", lines[0])
	require.Equal(t, "frame 0", lines[1])
}

func TestTailBoundsLines(t *testing.T) {
	var tail tail
	fmt.Fprintln(&tail, strings.Repeat("x", 1<<20))
	require.Len(t, tail.lines()[0], tailLineBytes)
}
