package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"
)

// lockTimeout is how long bbolt waits for its own lock, which nobody can hold who does not hold the journal's.
const lockTimeout = 5 * time.Second

// recover reads what is in the directory and opens the database. The database is written anew from what was read, so
// that no fault of the old one is carried on.
func (j *Journal) recover() ([]Entry, error) {
	files, err := j.requestFiles()
	if err != nil {
		return nil, j.failed("listing its requests", err)
	}
	entries, damage := readDatabase(j.dbPath())
	isNew := errors.Is(damage, fs.ErrNotExist) && len(files) == 0
	found := len(entries)
	entries = append(entries, j.unrecorded(files, entries, damage != nil)...)
	if damage != nil && !isNew {
		j.report("the journal's database is unusable (%v; set aside as %s); %d records of it could be read, %d unanswered requests were found beside it",
			damage, j.setAside(j.dbPath()), found, len(entries)-found)
	}
	entries = j.dropHollow(entries, files)
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })

	j.db, err = writeDatabase(j.dbPath(), entries)
	if err != nil && damage == nil {
		// No room for a second database, perhaps. The first is in order as far as can be told.
		j.log.Warn("the journal's database could not be written anew and is used as it is", "error", err)
		j.db, err = openDatabase(j.dbPath())
	}
	if err != nil {
		return nil, j.failed("opening its database", err)
	}
	j.removeUnneeded(files, entries)
	return entries, nil
}

// requestFiles lists the requests that have a file.
func (j *Journal) requestFiles() ([]Key, error) {
	names, err := os.ReadDir(j.requestDir())
	if err != nil {
		return nil, err
	}
	var keys []Key
	for _, name := range names {
		if key, err := strconv.ParseUint(name.Name(), 16, 64); err == nil && len(name.Name()) == 16 {
			keys = append(keys, Key(key))
			j.last.Store(max(j.last.Load(), key))
		}
	}
	return keys, nil
}

// unrecorded reads the requests that have a file and no record: the database lost it, or the host was killed before there
// was one. They may not be unanswered, or never have been accepted, but to prove one in vain does no harm. What is no
// whole file was not accepted, unless the database is damaged too.
func (j *Journal) unrecorded(files []Key, entries []Entry, isDamaged bool) (more []Entry) {
	known := make(map[Key]bool, len(entries))
	for _, e := range entries {
		known[e.Key] = true
	}
	for _, key := range files {
		if known[key] {
			continue
		}
		path := j.requestPath(key)
		e, err := readRequest(path)
		switch {
		case err == nil:
			e.Key, e.Request.Vanilla = key, nil
			more = append(more, e)
		case isDamaged:
			j.report("the journal's file of a request is unusable (%v; set aside as %s)", err, j.setAside(path))
		}
	}
	return more
}

// dropHollow drops unanswered requests that have no file. An answered one comes to look so if the last change of the
// database is lost, to which bbolt falls back silently.
func (j *Journal) dropHollow(entries []Entry, files []Key) []Entry {
	return slices.DeleteFunc(entries, func(e Entry) bool {
		isHollow := e.Answer == nil && !slices.Contains(files, e.Key)
		if isHollow {
			j.report("the journal has request %s without an answer and without its file; it was probably answered, and has to be sent again if not", e.Request.ID)
		}
		return isHollow
	})
}

func (j *Journal) report(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	j.damage = append(j.damage, text)
	j.log.Error(text)
}

// removeUnneeded removes files of requests that were never accepted, or have been answered.
func (j *Journal) removeUnneeded(files []Key, entries []Entry) {
	pending := make(map[Key]bool, len(entries))
	for _, e := range entries {
		pending[e.Key] = e.Answer == nil
	}
	for _, key := range files {
		if !pending[key] {
			if err := os.Remove(j.requestPath(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				j.log.Warn("removing the file of an old request", "error", err)
			}
		}
	}
}

// readDatabase reads all records. If it fails, it gives those that it could read.
func readDatabase(path string) (entries []Entry, err error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	// bbolt reads through a mapping of the file and trusts what it finds there.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: lockTimeout})
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrDamaged, err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var damage error
	tx, err := db.Begin(false)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrDamaged, err)
	}
	defer func() { _ = tx.Rollback() }() // before the closing above, which waits for it
	b := tx.Bucket(bucket)
	if b == nil {
		return nil, fmt.Errorf("%w: it has no records", ErrDamaged)
	}
	var last Key
	err = b.ForEach(func(key, value []byte) error {
		e, err := decodeRecord(key, value)
		if err == nil && e.Key <= last {
			err = fmt.Errorf("%w: record %x comes twice", ErrDamaged, key)
		}
		if err != nil {
			damage = err
			return nil // others may be readable
		}
		last = e.Key
		entries = append(entries, e)
		return nil
	})
	return entries, errors.Join(err, damage)
}

// writeDatabase writes the records to a new database, puts that in the place of the old, and leaves it open.
func writeDatabase(path string, entries []Entry) (_ *bolt.DB, err error) {
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	defer removeOnError(fresh, &err)
	db, err := openDatabase(fresh)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = db.Close()
		}
	}()
	err = db.Update(func(tx *bolt.Tx) error {
		for _, e := range entries {
			value, err := encodeRecord(&e)
			if err != nil {
				return err
			}
			if err := tx.Bucket(bucket).Put(e.Key.bytes(), value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := os.Rename(fresh, path); err != nil {
		return nil, err
	}
	return db, syncDir(filepath.Dir(path))
}

// openDatabase opens a database, a new one if there is none, for writing.
func openDatabase(path string) (db *bolt.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	db, err = bolt.Open(path, 0o600, &bolt.Options{Timeout: lockTimeout, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucket)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}
