package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// socketDir is a directory for one plugin's socket. It is locked as long as its host lives, so that what a killed host
// leaves is known for that, and removed by the next one.
type socketDir struct {
	path string
	lock *os.File // the directory itself
}

// maxSocketsRoot is how long the root's path may be, so that the longest socket's below it fits the 107 bytes that the
// system has room for: three names follow, of "/1234567890", "/plugin-dir1234567890" and "/plugin1234567890".
const maxSocketsRoot = 107 - 11 - 21 - 17

// socketsRoot is where this user's hosts have their directories of sockets.
func socketsRoot() string {
	name := "interlock-" + strconv.Itoa(os.Getuid())
	root := filepath.Join(os.TempDir(), name)
	if len(root) > maxSocketsRoot {
		root = filepath.Join("/tmp", name)
	}
	return root
}

// newSocketDir makes a directory that nobody but the owner can enter, and removes those that were left behind.
func newSocketDir() (*socketDir, error) {
	root := socketsRoot()
	if err := os.Mkdir(root, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("a directory for sockets: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(root, &st); err != nil {
		return nil, fmt.Errorf("a directory for sockets: %w", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Getuid() || st.Mode&0o077 != 0 {
		return nil, fmt.Errorf("%s is to hold sockets, but it is no directory that is this user's alone: remove it", root)
	}
	sweep(root)
	for {
		path, err := os.MkdirTemp(root, "")
		if err != nil {
			return nil, fmt.Errorf("a directory for sockets: %w", err)
		}
		lock, err := lockDir(path)
		if err == nil {
			return &socketDir{path, lock}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EWOULDBLOCK) { // another host's sweep was faster
			return nil, fmt.Errorf("a directory for sockets: %w", err)
		}
	}
}

// remove removes the directory, and gives up its lock.
func (d *socketDir) remove() {
	_ = os.RemoveAll(d.path)
	_ = d.lock.Close()
}

// lockDir locks a directory that nobody else has locked, and that still exists then.
func lockDir(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// sweep removes directories that no host has locked.
func sweep(root string) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(root, e.Name())
		if lock, err := lockDir(path); err == nil {
			(&socketDir{path, lock}).remove()
		}
	}
}
