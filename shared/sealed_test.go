package shared

import (
	"os"
	"testing"

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
	got, err := readSealed(where, []uint64{3, 3 << 20, 1})
	require.NoError(t, err)
	require.Equal(t, vanilla, got)

	_, err = f.WriteAt([]byte{9}, 0)
	require.ErrorIs(t, err, unix.EPERM)
	require.ErrorIs(t, f.Truncate(1), unix.EPERM)
	require.ErrorIs(t, f.Truncate(1<<30), unix.EPERM)

	var invalid *InvalidRequestError
	_, err = readSealed(where, []uint64{3, 3 << 20, 2})
	require.ErrorAs(t, err, &invalid)

	require.NoError(t, f.Close())
	_, err = readSealed(where, []uint64{3, 3 << 20, 1})
	require.ErrorIs(t, err, errNotShared)
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
		_, err := readSealed(other, []uint64{1})
		require.ErrorIs(t, err, errNotShared, name)
	}
}
