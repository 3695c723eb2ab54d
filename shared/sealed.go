package shared

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/interlock-prover/interlock/shared/files"
	"github.com/interlock-prover/interlock/shared/proto"
)

// sharedFromBytes is the size from which on vanilla proofs go to the plugin in a memory file. A stream encrypts them, cuts
// them into messages and copies each several times; a file is written once and read where it lies.
const sharedFromBytes = 1 << 20

// errNotShared says that the plugin cannot read the host's memory file.
var errNotShared = errors.New("the host's memory file cannot be read")

// seals are what a memory file must have: nobody can change it any more, not even its maker.
const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// newSealed makes a sealed memory file of vanilla proofs.
func newSealed(vanilla [][]byte) (*os.File, *proto.SharedPayload, error) {
	fd, err := unix.MemfdCreate("interlock-payload", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, fmt.Errorf("making a memory file: %w", err)
	}
	f := os.NewFile(uintptr(fd), "interlock-payload")
	var stat unix.Stat_t
	for _, v := range vanilla {
		if err == nil {
			_, err = f.Write(v)
		}
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
	}
	if err == nil {
		err = unix.Fstat(fd, &stat)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("writing a memory file: %w", err), f.Close())
	}
	return f, &proto.SharedPayload{Pid: int64(os.Getpid()), Fd: int64(fd), Device: uint64(stat.Dev), Inode: stat.Ino}, nil
}

// openSealed maps vanilla proofs of the given sizes out of the host's memory file. It maps nothing but the file that the
// host means, as whole as it was made. An error of another kind than that is errNotShared: numbers of processes and files
// may mean something else here, or nothing, as in a container of the plugin's own.
func openSealed(where *proto.SharedPayload, sizes []uint64) ([][]byte, *mapping, error) {
	f, info, err := files.OpenRegular(fmt.Sprintf("/proc/%d/fd/%d", where.GetPid(), where.GetFd()))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errNotShared, err)
	}
	defer f.Close()
	stat, isStat := info.Sys().(*syscall.Stat_t)
	if !isStat || uint64(stat.Dev) != where.GetDevice() || stat.Ino != where.GetInode() {
		return nil, nil, fmt.Errorf("%w: it is another file", errNotShared)
	}
	has, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	if err != nil || has&seals != seals {
		return nil, nil, fmt.Errorf("%w: it is not sealed", errNotShared)
	}
	var total uint64
	for _, size := range sizes {
		total += size
	}
	if uint64(info.Size()) != total {
		return nil, nil, uploadFault("its memory file has %d bytes, its header says %d", info.Size(), total)
	}
	m, err := newMapping(f, int(total))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errNotShared, err)
	}
	vanilla, rest := make([][]byte, len(sizes)), m.data
	for i, size := range sizes {
		vanilla[i], rest = rest[:size:size], rest[size:]
	}
	return vanilla, m, nil
}

// mapping is a file in memory. The file cannot change or shrink, so that reading it cannot fail. It is unmapped when nothing
// points to the mapping any more, whatever points to its data.
type mapping struct {
	data []byte
	once sync.Once
}

// newMapping maps a file of the given size, which is not 0.
func newMapping(f *os.File, size int) (*mapping, error) {
	start, err := unix.MmapPtr(int(f.Fd()), 0, nil, uintptr(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	m := &mapping{data: unsafe.Slice((*byte)(start), size)}
	runtime.AddCleanup(m, func(start unsafe.Pointer) { _ = unix.MunmapPtr(start, uintptr(size)) }, start)
	return m, nil
}

// release gives the memory back. The addresses stay and have zeros from then on: a reader that a cancelled request has left
// behind reads nonsense, which is of no use to anybody, and not from memory that is gone.
func (m *mapping) release() {
	m.once.Do(func() {
		_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(m.data)), uintptr(len(m.data)),
			unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED)
		if err != nil {
			panic(fmt.Sprintf("shared: replacing a mapping: %v", err)) // of addresses that are ours: a bug
		}
	})
}

// Release says that the vanilla proofs are not needed any more. Those that came in a memory file are gone at once: slices of
// them read as zeros.
func (r *Request) Release() {
	r.Vanilla = nil
	if r.mapped != nil {
		r.mapped.release()
	}
}
