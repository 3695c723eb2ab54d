package host

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/shared"
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

// Of a detached plugin's log, what it said to this host counts, also when the log was begun anew meanwhile.
func TestLastLinesOfALogThatIsBegunAnew(t *testing.T) {
	log, older := shared.DetachedLog(t.TempDir())
	write := func(text string) {
		f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		require.NoError(t, err)
		_, err = f.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	write(strings.Repeat("to an earlier host\n", 5))
	first, err := os.Stat(log)
	require.NoError(t, err)
	d := &detached{log: log, older: older, first: first, begin: first.Size()}
	require.Empty(t, d.lines())
	write("one\n")
	require.Equal(t, []string{"one"}, d.lines())
	require.NoError(t, os.Rename(log, older))
	require.Equal(t, []string{"one"}, d.lines())
	write("two\n")
	require.Equal(t, []string{"one", "two"}, d.lines())
	require.NoError(t, os.Rename(log, older))
	write("three\n")
	require.Equal(t, []string{"two", "three"}, d.lines())
	require.NoError(t, os.Truncate(older, 0))
	d.first, err = os.Stat(log) // whose number a new file has got
	require.NoError(t, err)
	require.Equal(t, []string{"three"}, d.lines())
}
