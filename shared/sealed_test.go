package shared

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/interlock-prover/interlock/shared/proto"
)

// Property: vanilla proofs come out of a memory file as they went in, and nobody can change them meanwhile.
func TestSealedFileIsWhatWasWritten(t *testing.T) {
	vanilla := [][]byte{{1, 2, 3}, make([]byte, 3<<20), {4}}
	vanilla[1][1<<20] = 5
	f, where, err := newSealed(vanilla)
	require.NoError(t, err)
	got, m, err := openSealed(where, []uint64{3, 3 << 20, 1})
	require.NoError(t, err)
	require.Equal(t, vanilla, got)

	_, err = f.WriteAt([]byte{9}, 0)
	require.ErrorIs(t, err, unix.EPERM)
	require.ErrorIs(t, f.Truncate(1), unix.EPERM)
	require.ErrorIs(t, f.Truncate(1<<30), unix.EPERM)

	var invalid *InvalidRequestError
	_, _, err = openSealed(where, []uint64{3, 3 << 20, 2})
	require.ErrorAs(t, err, &invalid)

	require.NoError(t, f.Close())
	_, _, err = openSealed(where, []uint64{3, 3 << 20, 1})
	require.ErrorIs(t, err, errNotShared)
	require.Equal(t, vanilla, got, "what is mapped stays")

	r := Request{Vanilla: got, mapped: m}
	other := r
	r.Release()
	require.Nil(t, r.Vanilla)
	require.Equal(t, [][]byte{{0, 0, 0}, make([]byte, 3<<20), {0}}, got, "whoever still reads finds zeros")
	other.Release() // of the same memory: nothing happens
}

// Property: a request that is dropped without a Release takes no memory, nor addresses, for ever.
func TestDroppedRequestsAreUnmapped(t *testing.T) {
	mappings := func() int {
		maps, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		return strings.Count(string(maps), "/memfd:interlock-payload")
	}
	func() {
		f, where, err := newSealed([][]byte{make([]byte, 1<<20)})
		require.NoError(t, err)
		_, m, err := openSealed(where, []uint64{1 << 20})
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.Equal(t, 1, mappings())
		runtime.KeepAlive(m)
	}()
	require.Eventually(t, func() bool { runtime.GC(); return mappings() == 0 }, 10*time.Second, time.Millisecond)
}

// Property: no file is read but the one that the host means, and that only if it is sealed.
func TestOtherFilesAreNotRead(t *testing.T) {
	f, where, err := newSealed([][]byte{{1}})
	require.NoError(t, err)
	defer f.Close()
	unsealed, err := unix.MemfdCreate("unsealed", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	defer func() { _ = unix.Close(unsealed) }()
	_, err = unix.Write(unsealed, []byte{1})
	require.NoError(t, err)
	var stat unix.Stat_t
	require.NoError(t, unix.Fstat(unsealed, &stat))
	read, write, err := os.Pipe()
	require.NoError(t, err)
	defer read.Close()
	defer write.Close()
	for name, other := range map[string]*proto.SharedPayload{
		"no process":      {Pid: 1 << 30, Fd: where.Fd, Device: where.Device, Inode: where.Inode},
		"no file":         {Pid: where.Pid, Fd: 1 << 20, Device: where.Device, Inode: where.Inode},
		"another file":    {Pid: where.Pid, Fd: int64(unsealed), Device: where.Device, Inode: where.Inode},
		"not sealed":      {Pid: where.Pid, Fd: int64(unsealed), Device: uint64(stat.Dev), Inode: stat.Ino},
		"a pipe":          {Pid: where.Pid, Fd: int64(read.Fd()), Device: where.Device, Inode: where.Inode},
		"another device":  {Pid: where.Pid, Fd: where.Fd, Device: where.Device + 1, Inode: where.Inode},
		"nothing at all":  {},
		"numbers below 0": {Pid: -1, Fd: -1},
	} {
		_, _, err := openSealed(other, []uint64{1})
		require.ErrorIs(t, err, errNotShared, name)
	}
}
