package shared

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// DetachedLogBytes is how long the log of a detached plugin gets before it is begun anew. One older is kept.
const DetachedLogBytes = 16 << 20

// DetachedLog gives the paths of a detached plugin's log, which its standard output and error are, and of what was the log
// before it was begun anew.
func DetachedLog(dir string) (log, older string) {
	log = filepath.Join(dir, "plugin.log")
	return log, log + ".1"
}

// rotate makes a log that has more than limitBytes the older one, in the place of that, and has the descriptors that write
// to it go on in a new one. So whatever is written, by a library or a crash of the program too, is in one of the two. It
// leaves other descriptors alone. No other process may do the same at that time.
func rotate(log, older string, limitBytes int64, descriptors ...int) error {
	var now unix.Stat_t
	if err := unix.Stat(log, &now); err != nil {
		return fmt.Errorf("the log %s: %w", log, err)
	}
	var writers []int
	for _, fd := range descriptors {
		var at unix.Stat_t
		if unix.Fstat(fd, &at) == nil && at.Dev == now.Dev && at.Ino == now.Ino {
			writers = append(writers, fd)
		}
	}
	if now.Size <= limitBytes || len(writers) == 0 {
		return nil
	}
	fresh, err := os.OpenFile(log+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("beginning the log anew: %w", err)
	}
	defer fresh.Close() // the writers are duplicates
	if err := os.Rename(log, older); err != nil {
		return fmt.Errorf("beginning the log anew: %w", errors.Join(err, os.Remove(fresh.Name())))
	}
	if err := os.Rename(fresh.Name(), log); err != nil {
		return fmt.Errorf("beginning the log anew: %w", errors.Join(err, os.Rename(older, log)))
	}
	for _, fd := range writers {
		if err := unix.Dup3(int(fresh.Fd()), fd, 0); err != nil {
			return fmt.Errorf("beginning the log anew: %w", err)
		}
	}
	return nil
}
