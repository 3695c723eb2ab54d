//go:build linux && amd64

package cuda

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is wrong with a library is told, with what to do about it.
func TestLoadSaysWhatIsWrong(t *testing.T) {
	damaged := filepath.Join(t.TempDir(), libraryName)
	require.NoError(t, os.WriteFile(damaged, []byte("no library"), 0o600))
	for name, c := range map[string]struct {
		path    string
		problem Problem
		says    string
	}{
		"missing":         {filepath.Join(t.TempDir(), "absent.so"), LibraryMissing, "cannot be loaded"},
		"damaged":         {damaged, LibraryMissing, "cannot be loaded"},
		"another library": {"libc.so.6", LibraryOtherVersion, "another library"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(c.path)
			var e *LibraryError
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.problem, e.Problem)
			require.Equal(t, c.path, e.Path)
			require.Contains(t, err.Error(), c.says)
			require.NotEmpty(t, e.Remedy)
		})
	}
}

// Without a path both places are named.
func TestLoadNamesWhereItLooked(t *testing.T) {
	l, err := Load("")
	if err == nil { // there is one beside the tests, or the system has one
		require.Contains(t, l.Path(), libraryName)
		return
	}
	var e *LibraryError
	require.ErrorAs(t, err, &e)
	if e.Problem == LibraryMissing {
		executable, err := os.Executable()
		require.NoError(t, err)
		require.Contains(t, e.Reason, filepath.Dir(executable))
		require.Contains(t, e.Reason, "the loader")
	}
}
