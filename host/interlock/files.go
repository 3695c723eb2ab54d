package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/interlock-prover/interlock/shared/files"
)

// openRegular opens a file for reading, if it is one.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	f, info, err := files.OpenRegular(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("there is no file %s", path)
	case errors.Is(err, syscall.EISDIR):
		err = fmt.Errorf("%s is a directory", path)
	case errors.Is(err, files.ErrNotRegular):
		err = fmt.Errorf("%s is %w", path, files.ErrNotRegular)
	}
	return f, info, err
}

// readFile reads a file of at most limit bytes.
func readFile(path string, limit int64) ([]byte, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, more than the %d that it may have", path, info.Size(), limit)
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// outputFile is a file being made. It appears under its name when it is complete;
// that it can be made there is known from the start.
type outputFile struct {
	path string
	f    *os.File
	// direct is a file that is not made but written to: a pipe, a device.
	direct bool
}

// newOutput prepares to write to path.
func newOutput(path string) (*outputFile, error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory", path)
	}
	if err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &outputFile{path: path, f: f, direct: true}, err
	}
	// A file beside it, which is renamed in the end; its name says nothing to anybody.
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	var fault *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s cannot be written: there is no directory %s", path, filepath.Dir(path))
	case errors.As(err, &fault):
		return nil, fmt.Errorf("%s cannot be written: directory %s: %w", path, filepath.Dir(path), fault.Err)
	case err != nil:
		return nil, fmt.Errorf("%s cannot be written: %w", path, err)
	}
	return &outputFile{path: path, f: f}, nil
}

// commit writes the content and gives the file its name.
func (o *outputFile) commit(write func(io.Writer) error) error {
	err := write(o.f)
	if !o.direct {
		err = errors.Join(err, o.f.Chmod(0o644), o.f.Sync())
	}
	if err = errors.Join(err, o.f.Close()); err == nil && !o.direct {
		err = os.Rename(o.f.Name(), o.path)
	}
	if err != nil {
		o.discard()
		return fmt.Errorf("writing %s: %w", o.path, err)
	}
	return nil
}

// discard gives the file up; after commit it does nothing.
func (o *outputFile) discard() {
	if o == nil || o.direct {
		return
	}
	o.f.Close()
	os.Remove(o.f.Name())
}

// absolute is path as the plugin process may use it, wherever that runs.
func absolute(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return abs, nil
}
