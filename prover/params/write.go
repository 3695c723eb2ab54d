package params

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A file that is being written has a temporary name, .NAME.RANDOM.tmp, and is
// locked by its writer. One that nobody has locked was left by a writer that was
// killed: of a large circuit it has tens of gigabytes.

// writeFile writes a file under its final name only once it is complete: fill
// writes a temporary one in the same directory, which then takes its place. On
// any error nothing is left. Errors are of type *Error, or fill's.
func writeFile(path string, fill func(w io.Writer) error) (err error) {
	dir := filepath.Dir(path)
	f, err := createTemporary(dir, "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return writeError(path, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()           // may be closed already
			_ = os.Remove(f.Name()) // the error at hand matters more
		}
	}()
	if err = fill(f); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		return writeError(path, err)
	}
	if err = f.Sync(); err != nil {
		return writeError(path, err)
	}
	// Before it is closed, which gives up the lock.
	if err = os.Rename(f.Name(), path); err != nil {
		return writeError(path, err)
	}
	if err = f.Close(); err != nil {
		return writeError(path, err)
	}
	return syncDir(dir)
}

// createTemporary makes a file and locks it.
func createTemporary(dir, pattern string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(dir, pattern)
		if err != nil {
			return nil, err
		}
		// Where the file system knows no locks, nobody can tell what was left, and
		// nothing is removed.
		_ = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if _, err := os.Stat(f.Name()); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return f, nil
		}
		_ = f.Close() // somebody removed it before it was locked
	}
}

// leftovers gives the temporary files in a directory that no writer has any more,
// of files whose names begin with prefix. remove removes them too.
func leftovers(dir, prefix string, remove bool) (paths []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // whoever needs the directory will say why
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "."+prefix) || filepath.Ext(e.Name()) != ".tmp" {
			continue
		}
		path := filepath.Join(dir, e.Name())
		f, _, err := openRegular(path)
		if err != nil {
			continue // gone meanwhile, or not ours
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && (!remove || os.Remove(path) == nil) {
			paths = append(paths, path)
		}
		_ = f.Close()
	}
	return paths
}

// writeError is fileError for a file that was to be written.
func writeError(path string, err error) *Error {
	e := fileError(path, err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Reason, e.Remedy = "cannot be written: its directory does not exist", "make the directory, or name another"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		e.Reason, e.Remedy = "cannot be written: "+e.Reason, "make its directory writable for the user that runs the prover"
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		e.Reason, e.Remedy = "cannot be written: "+e.Reason, "make room for it"
	}
	return e
}

// syncDir makes renames within dir last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return writeError(dir, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return writeError(dir, err)
	}
	return nil
}
