//go:build !(linux && amd64)

package cuda

import (
	"errors"
	"runtime"
)

// Load fails: the library is for Linux on amd64.
func Load(path string) (*Library, error) {
	if path == "" {
		path = libraryName
	}
	return nil, &LibraryError{
		Problem: LibraryMissing, Path: path, Reason: "there is none for " + runtime.GOOS + " on " + runtime.GOARCH,
		Remedy: "prove on the CPU, or on Linux on amd64", Err: errors.ErrUnsupported,
	}
}
