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
		say(t, &tail, fmt.Sprintf("line %d\n", i))
	}
	say(t, &tail, "unfinished")
	lines := tail.lines()
	require.Len(t, lines, tailLines+1)
	require.Equal(t, "line 80", lines[0])
	require.Equal(t, "unfinished", lines[tailLines])
}

func TestTailKeepsTheFirstLinesOfACrash(t *testing.T) {
	var tail tail
	say(t, &tail, "before"+"\n")
	say(t, &tail, "panic: survived"+"\n")
	say(t, &tail, `{"@level":"info","@message":"going on","@module":"m","b":2,"a":"x"}`+"\n")
	require.Equal(t, []string{"before", "panic: survived", "[INFO] m: going on a=x b=2"}, tail.lines())
	say(t, &tail, "fatal error: the end"+"\n")
	for i := range 100 {
		say(t, &tail, fmt.Sprintf("frame %d\n", i))
	}
	lines := tail.lines()
	require.Len(t, lines, tailLines)
	require.Equal(t, "fatal error: the end", lines[0])
	require.Equal(t, "frame 0", lines[1])
}

func TestTailBoundsLines(t *testing.T) {
	var tail tail
	say(t, &tail, strings.Repeat("x", 1<<20)+"\n")
	require.Len(t, tail.lines()[0], tailLineBytes)
}

func say(t *testing.T, tail *tail, text string) {
	_, err := tail.Write([]byte(text))
	require.NoError(t, err)
}
