// Package files opens files that somebody named: parameters, configurations,
// inputs. It knows nothing of what is in them.
package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular says that a path leads to a pipe or a device.
var ErrNotRegular = errors.New("not a regular file")

// OpenRegular opens a file for reading. What is no regular file is refused at once,
// a directory with syscall.EISDIR, the rest with ErrNotRegular: opening a pipe would wait for whoever writes to it, and
// reading a device need not end. Errors are of type *fs.PathError.
func OpenRegular(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case info.IsDir():
		err = &fs.PathError{Op: "open", Path: path, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}
