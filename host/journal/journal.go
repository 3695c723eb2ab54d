package journal

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"github.com/interlock-prover/interlock/shared"
)

// Error says what the journal could not do. It is also a [*shared.BusyError]: nothing was accepted and nothing is lost,
// and the same call succeeds once the cause, such as a full disk, is gone.
type Error struct {
	Op   string // what was being done
	Path string
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("the journal %s: %s: %v", e.Path, e.Op, e.Err) }

// Unwrap gives the cause, and that one may try again.
func (e *Error) Unwrap() []error {
	return []error{e.Err, &shared.BusyError{Resource: "the journal", RetryAfter: retryAfter}}
}

const retryAfter = 10 * time.Second

// ErrInUse says that another process uses the journal's directory.
var ErrInUse = errors.New("another host uses it: end that one, or give this one a directory of its own")

// ErrDamaged says that what was written is not what is read.
var ErrDamaged = errors.New("damaged")

// Key names an accepted request. Keys go up in the order of acceptance.
type Key uint64

// Digest is the SHA-256 of everything that a request says, its id included.
type Digest [sha256.Size]byte

// Entry is an accepted request.
type Entry struct {
	Key      Key
	Request  shared.Request // without its vanilla proofs, which Payload reads
	Digest   Digest
	Accepted time.Time
	Answer   *Answer // nil until it is answered
}

// Answer is how a request ended: with a result or with an error.
type Answer struct {
	Result shared.Result
	Err    error
	At     time.Time
}

// Journal is an open journal. Its methods may be called from any number of goroutines.
type Journal struct {
	dir    string
	log    hclog.Logger
	lock   *os.File
	db     *bolt.DB
	last   atomic.Uint64 // the latest key
	damage []string
}

// Open opens the journal of a directory, which it makes if there is none, and gives what is in it, oldest first.
// Damage is set aside and reported, see [Journal.Damage]; it fails only if the directory cannot be used at all.
func Open(dir string, log hclog.Logger) (_ *Journal, _ []Entry, err error) {
	j := &Journal{dir: dir, log: log}
	if err := j.prepare(); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = j.lock.Close()
		}
	}()
	entries, err := j.recover()
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		j.last.Store(max(j.last.Load(), uint64(e.Key)))
	}
	return j, entries, nil
}

// prepare makes the directories, for their owner alone, and locks them against other hosts.
func (j *Journal) prepare() error {
	if err := os.MkdirAll(j.requestDir(), 0o700); err != nil {
		return j.failed("making its directory", err)
	}
	if err := errors.Join(os.Chmod(j.dir, 0o700), os.Chmod(j.requestDir(), 0o700)); err != nil {
		return j.failed("closing its directory to others", err)
	}
	lock, err := os.OpenFile(filepath.Join(j.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return j.failed("locking it", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrInUse
		}
		return j.failed("locking it", err)
	}
	j.lock = lock
	return nil
}

// Damage says what was found damaged at Open, and where it was put.
func (j *Journal) Damage() []string { return slices.Clone(j.damage) }

// Close closes the journal.
func (j *Journal) Close() error { return errors.Join(j.db.Close(), j.lock.Close()) }

// Accept writes a request down. Its vanilla proofs are not copied in memory.
func (j *Journal) Accept(r *shared.Request, digest Digest) (Key, error) {
	e := Entry{Key: Key(j.last.Add(1)), Request: *r, Digest: digest, Accepted: time.Now()}
	if err := writeRequest(j.requestPath(e.Key), &e); err != nil {
		return 0, j.failed("writing request "+r.ID, err)
	}
	if err := j.put(&e); err != nil {
		_ = os.Remove(j.requestPath(e.Key)) // what is left is removed at the next Open
		return 0, j.failed("writing request "+r.ID, err)
	}
	return e.Key, nil
}

// Payload reads the vanilla proofs of a request that is not answered. If they are damaged, the file is set aside and
// the error is an [ErrDamaged].
func (j *Journal) Payload(key Key) ([][]byte, error) {
	path := j.requestPath(key)
	e, err := readRequest(path)
	switch {
	case err == nil:
		return e.Request.Vanilla, nil
	case errors.Is(err, ErrDamaged):
		return nil, fmt.Errorf("the journal's file of the request is %w and was set aside as %s", err, j.setAside(path))
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: the journal's file of the request is missing: %s", ErrDamaged, path)
	}
	return nil, j.failed("reading a request", err)
}

// Finish writes down how a request ended, and removes its payload.
func (j *Journal) Finish(e Entry, answer Answer) error {
	e.Request.Vanilla, e.Answer = nil, &answer
	if err := j.put(&e); err != nil {
		return j.failed("writing the answer to request "+e.Request.ID, err)
	}
	if err := os.Remove(j.requestPath(e.Key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		j.log.Warn("removing an answered request", "error", err) // the next Open does it
	}
	return nil
}

// Forget removes requests and their answers.
func (j *Journal) Forget(keys ...Key) error {
	err := j.db.Update(func(tx *bolt.Tx) error {
		for _, key := range keys {
			if err := tx.Bucket(bucket).Delete(key.bytes()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return j.failed("removing old answers", err)
	}
	for _, key := range keys {
		_ = os.Remove(j.requestPath(key)) // there is none of an answered one
	}
	return nil
}

func (j *Journal) put(e *Entry) error {
	record, err := encodeRecord(e)
	if err != nil {
		return err
	}
	return j.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(bucket).Put(e.Key.bytes(), record) })
}

func (j *Journal) failed(op string, err error) error { return &Error{Op: op, Path: j.dir, Err: err} }

func (j *Journal) dbPath() string     { return filepath.Join(j.dir, "journal.db") }
func (j *Journal) requestDir() string { return filepath.Join(j.dir, "requests") }
func (j *Journal) requestPath(key Key) string {
	return filepath.Join(j.requestDir(), fmt.Sprintf("%016x", uint64(key)))
}

// setAside renames a damaged file and gives its new name.
func (j *Journal) setAside(path string) string {
	aside := fmt.Sprintf("%s.damaged-%s", path, time.Now().UTC().Format("20060102T150405.000000000"))
	if err := os.Rename(path, aside); err != nil {
		j.log.Error("setting a damaged file aside", "error", err)
		return path
	}
	return aside
}

// syncDir makes the names in a directory last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// removeOnError removes what was begun and could not be finished.
func removeOnError(path string, err *error) {
	if *err != nil {
		_ = os.Remove(path)
	}
}

var _ io.Closer = (*Journal)(nil)
