package files

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Property: regular files are opened, through links too; anything else is refused
// without waiting, by name.
func TestOpenRegular(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(path, []byte("content"), 0o600))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(path, link))
	for _, name := range []string{path, link} {
		f, info, err := OpenRegular(name)
		require.NoError(t, err)
		require.EqualValues(t, 7, info.Size())
		content, err := io.ReadAll(f)
		require.NoError(t, err)
		require.Equal(t, "content", string(content))
		require.NoError(t, f.Close())
	}

	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for name, want := range map[string]error{pipe: ErrNotRegular, os.DevNull: ErrNotRegular, dir: syscall.EISDIR} {
		_, _, err := OpenRegular(name)
		require.ErrorIs(t, err, want)
		var at *fs.PathError
		require.ErrorAs(t, err, &at)
		require.Equal(t, name, at.Path)
	}
	_, _, err := OpenRegular(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}
