package shared_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/interlock-prover/interlock/shared"
)

// openLog opens a log as a host does for a plugin, twice, as its standard output and error.
func openLog(t *testing.T, path string) (out, errors int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	defer f.Close()
	for _, fd := range []*int{&out, &errors} {
		*fd, err = unix.Dup(int(f.Fd()))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, unix.Close(*fd)) })
	}
	return out, errors
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// A log is begun anew when it is long enough, and what was written is in it or in the older one.
func TestLogIsBegunAnew(t *testing.T) {
	log, older := shared.DetachedLog(t.TempDir())
	out, errors := openLog(t, log)
	write := func(fd int, text string) {
		_, err := unix.Write(fd, []byte(text))
		require.NoError(t, err)
	}
	rotate := func() { require.NoError(t, shared.Rotate(log, older, 8, out, errors)) }
	before := openDescriptors(t)
	write(out, "12")
	write(errors, "345678")
	rotate()
	require.NoFileExists(t, older, "it is not too long")
	write(out, "9")
	rotate()
	require.Equal(t, "123456789", read(t, older))
	require.Empty(t, read(t, log))
	write(errors, "a")
	write(out, "bcdefghij")
	require.Equal(t, "abcdefghij", read(t, log), "both go on in the new one")
	rotate()
	require.Equal(t, "abcdefghij", read(t, older))

	// The next plugin appends.
	write(out, "end\n")
	next, _ := openLog(t, log)
	write(next, "begin")
	require.Equal(t, "end\nbegin", read(t, log))
	require.NoError(t, shared.Rotate(log, older, 8, next))
	require.Equal(t, "end\nbegin", read(t, older))
	require.Equal(t, before+2, openDescriptors(t), "next's two are all that came")
	info, err := os.Stat(log)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

// What does not write to the log is left alone.
func TestOthersDescriptorsAreLeftAlone(t *testing.T) {
	log, older := shared.DetachedLog(t.TempDir())
	out, _ := openLog(t, log)
	elsewhere, _ := openLog(t, filepath.Join(t.TempDir(), "elsewhere"))
	_, err := unix.Write(out, []byte("long"))
	require.NoError(t, err)
	require.NoError(t, shared.Rotate(log, older, 1, elsewhere, -1))
	require.NoFileExists(t, older)
	require.NoError(t, shared.Rotate(log, older, 1, elsewhere, out))
	require.Equal(t, "long", read(t, older))
	_, err = unix.Write(elsewhere, []byte("mine"))
	require.NoError(t, err)
	require.Empty(t, read(t, log))
}

// A log that cannot be begun anew goes on, and nothing is left beside it; once it can be, it is.
func TestLogGoesOnWhereItCannotBeBegunAnew(t *testing.T) {
	log, older := shared.DetachedLog(t.TempDir())
	out, _ := openLog(t, log)
	require.NoError(t, os.MkdirAll(filepath.Join(older, "in the way"), 0o700))
	before := openDescriptors(t)
	for _, text := range []string{"some", " more"} {
		_, err := unix.Write(out, []byte(text))
		require.NoError(t, err)
		require.ErrorContains(t, shared.Rotate(log, older, 1, out), "beginning the log anew")
	}
	require.Equal(t, "some more", read(t, log))
	require.NoFileExists(t, log+".new")
	require.Equal(t, before, openDescriptors(t))
	require.NoError(t, os.RemoveAll(older))
	require.NoError(t, shared.Rotate(log, older, 1, out))
	require.Equal(t, "some more", read(t, older))
}

// No line is lost or torn that is written while the log is begun anew.
func TestNoLineIsLost(t *testing.T) {
	log, older := shared.DetachedLog(t.TempDir())
	out, errors := openLog(t, log)
	const times = 30
	enough := make(chan struct{})
	var writing sync.WaitGroup
	var lines [2]int
	for k, fd := range []int{out, errors} {
		writing.Go(func() {
			for ; ; lines[k]++ {
				select {
				case <-enough:
					return
				default:
				}
				if _, err := unix.Write(fd, fmt.Appendf(nil, "%d of %d\n", lines[k], fd)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var parts []string
	for len(parts) < times && !t.Failed() {
		if err := shared.Rotate(log, older, 0, out, errors); err != nil {
			t.Error(err)
		}
		kept := fmt.Sprintf("%s.%d", older, len(parts))
		if os.Rename(older, kept) == nil {
			parts = append(parts, kept) // read at the end: a write that began before may still be under way
		}
		time.Sleep(time.Millisecond)
	}
	close(enough)
	writing.Wait()
	next := map[string]int{}
	for _, part := range append(parts, log) {
		for line := range strings.Lines(read(t, part)) {
			var i int
			var fd string
			_, err := fmt.Sscanf(line, "%d of %s\n", &i, &fd)
			require.NoError(t, err, "%q", line)
			require.Equal(t, next[fd], i)
			next[fd]++
		}
	}
	require.Equal(t, map[string]int{fmt.Sprint(out): lines[0], fmt.Sprint(errors): lines[1]}, next)
}
