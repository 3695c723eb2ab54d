package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/interlock-prover/interlock/host/hosttest/ownfs"
	"github.com/interlock-prover/interlock/shared"
)

const roleEnv = "INTERLOCK_JOURNAL_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleEnv) == "full disk" {
		os.Exit(onFullDisk())
	}
	os.Exit(m.Run())
}

func open(t *testing.T, dir string) (*Journal, []Entry) {
	t.Helper()
	j, entries, err := Open(dir, hclog.NewNullLogger())
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j, entries
}

func request(id string, vanilla ...[]byte) *shared.Request {
	number, seal, partition := uint64(7), uint64(8), uint32(3)
	return &shared.Request{
		ID: id, Kind: shared.KindWindowPoSt, Priority: shared.PriorityHigh, SectorSize: shared.SectorSize32GiB, MinerID: 1000,
		SectorNumber: &number, RegisteredProof: &seal, Partition: &partition, Randomness: bytes.Repeat([]byte{9}, 32), APIVersion: shared.APIVersion120,
		Deadline: time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC), Vanilla: vanilla,
	}
}

func accept(t *testing.T, j *Journal, r *shared.Request) Key {
	t.Helper()
	digest, err := DigestOf(r)
	require.NoError(t, err)
	key, err := j.Accept(r, digest)
	require.NoError(t, err)
	return key
}

// What was accepted and answered is there after the journal was opened again, in the order of acceptance, whole.
func TestEverythingComesBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "journal")
	j, entries := open(t, dir)
	require.Empty(t, entries)
	first := request("first", []byte("one"), bytes.Repeat([]byte("x"), 3<<20), []byte("three"))
	second, third, fourth := request("second", []byte("2")), request("third", []byte("3")), request("fourth", []byte("4"))
	keys := []Key{accept(t, j, first), accept(t, j, second), accept(t, j, third), accept(t, j, fourth)}
	digest, err := DigestOf(second)
	require.NoError(t, err)
	result := shared.Result{
		RequestID: "second", Proof: []byte("proof"), Partitions: 2, Timings: shared.Timings{Device: time.Second}, InsecureParams: true,
	}
	at := time.Now().Round(0)
	require.NoError(t, j.Finish(Entry{Key: keys[1], Request: *second, Digest: digest}, Answer{Result: result, At: at}))
	aside := &shared.SetAsideError{RequestID: "third", Deaths: 2, Last: "signal: killed"}
	require.NoError(t, j.Finish(Entry{Key: keys[2], Request: *third}, Answer{Err: aside, At: at}))
	require.NoError(t, j.Forget(keys[3]))
	require.NoError(t, j.Close())

	j, entries = open(t, dir)
	require.Empty(t, j.Damage())
	require.Len(t, entries, 3)
	want := *first
	want.Vanilla = nil
	require.Equal(t, want, entries[0].Request)
	require.Nil(t, entries[0].Answer)
	require.Equal(t, result, entries[1].Answer.Result)
	require.Equal(t, digest, entries[1].Digest)
	require.True(t, at.Equal(entries[1].Answer.At))
	require.Equal(t, aside, entries[2].Answer.Err)
	vanilla, err := j.Payload(keys[0])
	require.NoError(t, err)
	require.Equal(t, first.Vanilla, vanilla)
	files, err := os.ReadDir(j.requestDir())
	require.NoError(t, err)
	require.Len(t, files, 1, "answered requests keep no payload")
	require.Greater(t, accept(t, j, request("fifth", []byte("5"))), keys[2], "keys are never used again")
}

// The directory and all in it are the owner's alone, whatever the umask and whoever made it.
func TestOwnerOnly(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := filepath.Join(t.TempDir(), "journal")
	require.NoError(t, os.Mkdir(dir, 0o777))
	j, _ := open(t, dir)
	accept(t, j, request("r", []byte("v")))
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		require.Zero(t, info.Mode()&0o077, path)
		return nil
	}))
}

func TestOneHostAtATime(t *testing.T) {
	dir := t.TempDir()
	j, _ := open(t, dir)
	_, _, err := Open(dir, hclog.NewNullLogger())
	var fault *Error
	require.ErrorAs(t, err, &fault)
	require.ErrorIs(t, err, ErrInUse)
	require.NoError(t, j.Close())
	open(t, dir)
}

func TestDigestTellsRequestsApart(t *testing.T) {
	base := func() *shared.Request { return request("r", []byte("ab"), []byte("c")) }
	want, err := DigestOf(base())
	require.NoError(t, err)
	for name, change := range map[string]func(*shared.Request){
		"the same":         func(*shared.Request) {},
		"priority":         func(r *shared.Request) { r.Priority = shared.PriorityLow },
		"deadline":         func(r *shared.Request) { r.Deadline = time.Time{} },
		"id":               func(r *shared.Request) { r.ID = "s" },
		"vanilla bounds":   func(r *shared.Request) { r.Vanilla = [][]byte{[]byte("a"), []byte("bc")} },
		"vanilla":          func(r *shared.Request) { r.Vanilla[1] = []byte("d") },
		"randomness":       func(r *shared.Request) { r.Randomness[0]++ },
		"partition":        func(r *shared.Request) { r.Partition = nil },
		"registered proof": func(r *shared.Request) { *r.RegisteredProof = 5 },
		"sector number":    func(r *shared.Request) { *r.SectorNumber = 8 },
		"miner":            func(r *shared.Request) { r.MinerID++ },
	} {
		r := base()
		change(r)
		got, err := DigestOf(r)
		require.NoError(t, err)
		isSame := name == "the same" || name == "priority" || name == "deadline"
		require.Equal(t, isSame, got == want, name)
	}
}

// A large payload is written without a copy of it in memory, and read with one.
func TestLargePayloadIsNotCopied(t *testing.T) {
	const size = 64 << 20
	j, _ := open(t, t.TempDir())
	r := request("large", bytes.Repeat([]byte("0123456789abcdef"), size/16))
	allocated := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	var key Key
	require.Less(t, allocated(func() { key = accept(t, j, r) }), uint64(4<<20))
	var vanilla [][]byte
	require.Less(t, allocated(func() {
		var err error
		vanilla, err = j.Payload(key)
		require.NoError(t, err)
	}), uint64(size+4<<20))
	require.True(t, bytes.Equal(r.Vanilla[0], vanilla[0]))
}

// filled is a journal of 40 requests, the odd ones answered. It gives the keys.
func filled(t *testing.T, dir string) (answered, pending map[Key]string) {
	j, _ := open(t, dir)
	answered, pending = map[Key]string{}, map[Key]string{}
	for i := range 40 {
		r := request(fmt.Sprintf("r%d", i), []byte(strings.Repeat("v", 100+i)))
		key := accept(t, j, r)
		if i%2 == 1 {
			require.NoError(t, j.Finish(Entry{Key: key, Request: *r}, Answer{Result: shared.Result{Proof: []byte(r.ID)}, At: time.Now()}))
			answered[key] = r.ID
		} else {
			pending[key] = r.ID
		}
	}
	require.NoError(t, j.Close())
	return answered, pending
}

// Whatever is done to the database, the journal opens, no unanswered request is lost, no answer is another than was
// given, damage is reported and the damaged file kept, and the journal works from then on.
func TestDamagedDatabase(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	origin := t.TempDir()
	answered, pending := filled(t, origin)
	whole, err := os.ReadFile(filepath.Join(origin, "journal.db"))
	require.NoError(t, err)
	damages := map[string]func([]byte) []byte{
		"empty":         func([]byte) []byte { return nil },
		"text":          func([]byte) []byte { return []byte("no database\n") },
		"zeros":         func(b []byte) []byte { return make([]byte, len(b)) },
		"cut in half":   func(b []byte) []byte { return b[:len(b)/2] },
		"cut to a page": func(b []byte) []byte { return b[:4096] },
		"cut to two":    func(b []byte) []byte { return b[:2*4096] },
	}
	for i := range 60 {
		damages[fmt.Sprintf("overwritten %d", i)] = func(b []byte) []byte {
			n := 1 + random.IntN(512)
			at := random.IntN(len(b) - n)
			for k := range n {
				b[at+k] = byte(random.Uint32())
			}
			return b
		}
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(origin)))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "journal.db"), damage(bytes.Clone(whole)), 0o600))
			j, entries := open(t, dir)
			got := map[Key]bool{}
			for _, e := range entries {
				require.False(t, got[e.Key])
				got[e.Key] = true
				if e.Answer != nil {
					require.Equal(t, answered[e.Key], string(e.Answer.Result.Proof))
					continue
				}
				require.Equal(t, pending[e.Key], e.Request.ID)
				_, err := j.Payload(e.Key)
				require.NoError(t, err)
			}
			for key := range pending {
				require.True(t, got[key], "an unanswered request is lost")
			}
			aside, err := filepath.Glob(filepath.Join(dir, "journal.db.damaged-*"))
			require.NoError(t, err)
			if len(got) < len(pending)+len(answered) {
				require.NotEmpty(t, j.Damage())
			}
			require.LessOrEqual(t, len(aside), len(j.Damage()))
			key := accept(t, j, request("new", []byte("v")))
			require.NoError(t, j.Close())
			j, entries = open(t, dir)
			require.Empty(t, j.Damage())
			require.Equal(t, key, entries[len(entries)-1].Key)
			require.Len(t, entries, len(got)+1)
		})
	}
}

// A database that is gone is no reason to lose what has a file.
func TestMissingDatabase(t *testing.T) {
	dir := t.TempDir()
	_, pending := filled(t, dir)
	require.NoError(t, os.Remove(filepath.Join(dir, "journal.db")))
	j, entries := open(t, dir)
	require.Len(t, entries, len(pending))
	require.Len(t, j.Damage(), 1)
}

// A damaged payload is set aside and named; the rest is not touched by it.
func TestDamagedPayload(t *testing.T) {
	dir := t.TempDir()
	j, _ := open(t, dir)
	bad, gone, good := accept(t, j, request("bad", []byte("vanilla"))), accept(t, j, request("gone", []byte("v"))), accept(t, j, request("good", []byte("v")))
	data, err := os.ReadFile(j.requestPath(bad))
	require.NoError(t, err)
	for _, change := range []func() []byte{
		func() []byte { return data[:len(data)-1] },
		func() []byte { return nil },
		func() []byte { c := bytes.Clone(data); c[len(c)-40] ^= 1; return c },
	} {
		require.NoError(t, os.WriteFile(j.requestPath(bad), change(), 0o600))
		_, err = j.Payload(bad)
		require.ErrorIs(t, err, ErrDamaged)
		require.ErrorContains(t, err, "set aside as")
		require.NoFileExists(t, j.requestPath(bad))
	}
	require.NoError(t, os.Remove(j.requestPath(gone)))
	_, err = j.Payload(gone)
	require.ErrorIs(t, err, ErrDamaged)
	_, err = j.Payload(good)
	require.NoError(t, err)
}

// A host killed while it wrote a request leaves nothing that the next one trips over; one killed before the record was
// written leaves a request that is proven rather than lost.
func TestUnfinishedAcceptance(t *testing.T) {
	dir := t.TempDir()
	j, _ := open(t, dir)
	key := accept(t, j, request("whole", []byte("vanilla")))
	data, err := os.ReadFile(j.requestPath(key))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(j.requestPath(key+1), data, 0o600))
	require.NoError(t, os.WriteFile(j.requestPath(key+2), data[:len(data)-10], 0o600))
	require.NoError(t, j.Close())
	j, entries := open(t, dir)
	require.Len(t, entries, 2)
	require.Equal(t, key+1, entries[1].Key)
	require.NoFileExists(t, j.requestPath(key+2))
	require.Empty(t, j.Damage())
	require.Equal(t, key+3, accept(t, j, request("next", []byte("v"))))
}

func TestConcurrentUse(t *testing.T) {
	j, _ := open(t, t.TempDir())
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for k := range 5 {
				r := request(fmt.Sprintf("%d-%d", i, k), []byte("v"))
				key, err := j.Accept(r, Digest{})
				if err == nil {
					_, err = j.Payload(key)
				}
				if err == nil {
					err = j.Finish(Entry{Key: key, Request: *r}, Answer{At: time.Now()})
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, j.Close())
	_, entries := open(t, j.dir)
	require.Len(t, entries, 40)
}

// A directory that cannot be used is an error that names it.
func TestUnusableDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, _, err := Open(filepath.Join(file, "journal"), hclog.NewNullLogger())
	var fault *Error
	require.ErrorAs(t, err, &fault)
	require.ErrorContains(t, err, file)
}

// On a full disk, and on one that has become read-only, requests are refused with a typed error and nothing is lost; with
// room again, the same journal works on. It runs in a process with a file system of its own.
func TestFullDisk(t *testing.T) {
	ownfs.Run(t, roleEnv+"=full disk")
}

func onFullDisk() int {
	return ownfs.Main("512k", fullDisk)
}

func fullDisk(dir string) error {
	j, _, err := Open(filepath.Join(dir, "journal"), hclog.NewNullLogger())
	if err != nil {
		return err
	}
	small, large := request("small", []byte("v")), request("large", make([]byte, 1<<20))
	first, err := j.Accept(small, Digest{})
	if err != nil {
		return err
	}
	refused := func(err error, cause error) error {
		var fault *Error
		var busy *shared.BusyError
		if !errors.As(err, &fault) || !errors.As(err, &busy) || !errors.Is(err, cause) {
			return fmt.Errorf("not a typed error of %v: %v", cause, err)
		}
		return nil
	}
	if _, err := j.Accept(large, Digest{}); refused(err, syscall.ENOSPC) != nil {
		return refused(err, syscall.ENOSPC)
	}
	// No byte is left, so that the database cannot grow either.
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	_ = f.Close()
	for range 50 {
		if _, err := j.Accept(small, Digest{}); refused(err, syscall.ENOSPC) != nil {
			return refused(err, syscall.ENOSPC)
		}
	}
	// The journal opens on a full disk too.
	if err := j.Close(); err != nil {
		return err
	}
	j, entries, err := Open(filepath.Join(dir, "journal"), hclog.NewNullLogger())
	if err != nil || len(entries) != 1 {
		return fmt.Errorf("%d entries on a full disk, %w", len(entries), err)
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	second, err := j.Accept(small, Digest{})
	if err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	if err := syscall.Mount("none", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err == nil { // refused while files are open for writing
		return errors.New("made read-only under an open database")
	}
	for _, key := range []Key{first, second} {
		if _, err := j.Payload(key); err != nil {
			return err
		}
	}
	if err := j.Close(); err != nil {
		return err
	}
	if err := syscall.Mount("none", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		return err
	}
	if _, _, err := Open(filepath.Join(dir, "journal"), hclog.NewNullLogger()); refused(err, syscall.EROFS) != nil {
		return refused(err, syscall.EROFS)
	}
	if err := syscall.Mount("none", dir, "", syscall.MS_REMOUNT, "size=512k"); err != nil {
		return err
	}
	j, entries, err = Open(filepath.Join(dir, "journal"), hclog.NewNullLogger())
	if err != nil || len(entries) != 2 {
		return fmt.Errorf("%d entries after it was read-only, %w", len(entries), err)
	}
	return j.Close()
}
