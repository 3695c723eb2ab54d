package params

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"unsafe"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"golang.org/x/sys/unix"

	"github.com/interlock-prover/interlock/prover/constraint"
	"github.com/interlock-prover/interlock/prover/groth16"
	"github.com/interlock-prover/interlock/shared/files"
)

// File is an open parameter file. Points are decoded from the mapped file as
// they are asked for; nothing but the verifying key is kept. It is safe for
// concurrent use.
type File struct {
	path string
	info os.FileInfo // as it was opened
	vk   *groth16.VerifyingKey

	mu      sync.RWMutex // held for reading while data is in use
	data    []byte       // nil once closed
	queries [groth16.NumQueries]struct {
		offset int64 // of the first point
		n      int
	}
}

var _ groth16.Source = (*File)(nil)

var errClosed = errors.New("parameter file is closed")

// openRegular opens a file for reading, if it is one.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	f, info, err := files.OpenRegular(path)
	if errors.Is(err, unix.EISDIR) {
		err = files.ErrNotRegular
	}
	if err != nil {
		return nil, nil, fileError(path, err)
	}
	return f, info, nil
}

// Open maps a parameter file and checks its structure: that the counts are
// those of a proving key and that they account for every byte of the file.
// This reads a few pages and takes microseconds, beside decoding the IC points
// (one for each public input). Points are not checked: see Verify. Errors are
// of type *Error.
func Open(path string) (*File, error) {
	osFile, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer osFile.Close() // the mapping stays
	size := info.Size()
	if size < vkHeaderBytes { // an empty file cannot be mapped
		_, reason := vkBytes(nil, size)
		return nil, &Error{Path: path, Reason: reason, Remedy: remedyReplace}
	}
	data, err := unix.Mmap(int(osFile.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fileError(path, fmt.Errorf("mapping %d bytes: %w", size, err))
	}
	f := &File{path: path, info: info, data: data}
	err = guardFault(func() error {
		vkLen, reason := f.locate()
		if reason != "" {
			return &Error{Path: path, Reason: reason, Remedy: remedyReplace}
		}
		ctx := context.Background()
		f.vk, err = parseVK(ctx, data[:vkLen], decodeG1, decodeG2)
		if err != nil {
			return pointError(ctx, path, fmt.Errorf("verifying key: %w", err))
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Open opens the set's parameter file in dir. The remedy for a missing file
// names the command that makes one for development.
func (s Set) Open(dir string) (*File, error) {
	f, err := Open(s.ParamsPath(dir))
	return f, s.missing(dir, err)
}

// locate finds the queries. It returns the length of the verifying key, or what
// is wrong with the structure.
func (f *File) locate() (vkLen int64, reason string) {
	size := int64(len(f.data))
	vkLen, reason = vkBytes(f.data, size)
	if reason != "" {
		return 0, reason
	}
	offset := vkLen
	for q := range groth16.Query(groth16.NumQueries) {
		if size < offset+countBytes {
			return 0, fmt.Sprintf("truncated before query %s: expected at least %d bytes, found %d", q, offset+countBytes, size)
		}
		n := int64(binary.BigEndian.Uint32(f.data[offset:]))
		offset += countBytes
		f.queries[q].offset, f.queries[q].n = offset, int(n)
		offset += n * int64(q.PointBytes())
		if size < offset {
			return 0, fmt.Sprintf("truncated within query %s: its %d points need %d bytes, found %d", q, n, offset, size)
		}
	}
	if size != offset {
		return 0, fmt.Sprintf("expected %d bytes, found %d", offset, size)
	}
	ic := int(vkLen-vkHeaderBytes) / g1Bytes
	switch h, a, b1, b2 := f.Len(groth16.QueryH), f.Len(groth16.QueryA), f.Len(groth16.QueryBG1), f.Len(groth16.QueryBG2); {
	case bits.OnesCount(uint(h+1)) != 1:
		return 0, fmt.Sprintf("query H has %d points, which is not one less than a power of two", h)
	case a < ic:
		return 0, fmt.Sprintf("query A has %d points, fewer than the %d inputs", a, ic)
	case b1 != b2:
		return 0, fmt.Sprintf("query B has %d points in G1 and %d in G2", b1, b2)
	}
	return vkLen, ""
}

// Close unmaps the file, once nothing reads from it any more. Reads after that
// fail. Close may be called more than once.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.data == nil {
		return nil
	}
	err := unix.Munmap(f.data)
	f.data = nil
	if err != nil {
		return fileError(f.path, err)
	}
	return nil
}

// Name returns the file's path. It implements groth16.Source.
func (f *File) Name() string { return f.path }

// VerifyingKey implements groth16.Source.
func (f *File) VerifyingKey() *groth16.VerifyingKey { return f.vk }

// Len implements groth16.Source.
func (f *File) Len(q groth16.Query) int { return f.queries[q].n }

// SizeBytes is the size of the file.
func (f *File) SizeBytes() int64 {
	last := f.queries[groth16.QueryBG2]
	return last.offset + int64(last.n)*g2Bytes
}

// decodeGrain points are decoded at a time, some 2 ms of work, between looks at
// the context.
const decodeGrain = 1 << 13

// ReadG1 implements groth16.Source. It decodes with all cores.
func (f *File) ReadG1(ctx context.Context, q groth16.Query, from int, dst []bls12381.G1Affine) error {
	if q == groth16.QueryBG2 {
		return fmt.Errorf("%s: query %s is not in G1", f.path, q)
	}
	return f.read(ctx, q, from, len(dst), func(i int, b []byte) error { return decodeG1(&dst[i], b) })
}

// ReadG2 implements groth16.Source. It decodes with all cores.
func (f *File) ReadG2(ctx context.Context, from int, dst []bls12381.G2Affine) error {
	return f.read(ctx, groth16.QueryBG2, from, len(dst), func(i int, b []byte) error { return decodeG2(&dst[i], b) })
}

// read calls point with the encodings of points [from, from+n), from many
// goroutines, with indices that count from 0. The file must not have changed
// since it was opened.
func (f *File) read(ctx context.Context, q groth16.Query, from, n int, point func(i int, b []byte) error) error {
	if err := groth16.CheckRange(q, f.Len(q), from, n); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.data == nil {
		return fmt.Errorf("%s: %w", f.path, errClosed)
	}
	size := q.PointBytes()
	start := int(f.queries[q].offset) + from*size
	data := f.data[start : start+n*size]
	defer forget(data) // pieces bring their neighbours back
	err := constraint.Parallel(ctx, n, decodeGrain, runtime.GOMAXPROCS(0), func(lo, hi int) error {
		defer forget(data[lo*size : hi*size])
		return guardFault(func() error {
			for i := lo; i < hi; i++ {
				if err := point(i, data[i*size:(i+1)*size]); err != nil {
					return fmt.Errorf("query %s, point %d: %w", q, from+i, err)
				}
			}
			return nil
		})
	})
	if err != nil {
		return pointError(ctx, f.path, err)
	}
	return f.Changed()
}

// forget takes mapped memory that was read out of the process; the system keeps
// it for the next read as long as it likes. Otherwise a whole file would count
// as memory of this process, beside the points decoded from it.
func forget(mapped []byte) {
	if len(mapped) == 0 {
		return
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(mapped)))
	before := int(start % uintptr(os.Getpagesize()))
	page := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(mapped)), -before)), before+len(mapped))
	// It changes nothing but the memory taken, so it may as well fail.
	_ = unix.Madvise(page, unix.MADV_DONTNEED)
}

// ReadEncoded implements groth16.Source.
func (f *File) ReadEncoded(ctx context.Context, q groth16.Query, from int, dst []byte) error {
	size := q.PointBytes()
	if len(dst)%size != 0 {
		return fmt.Errorf("%s: buffer of %d bytes for points of %d", f.path, len(dst), size)
	}
	return f.read(ctx, q, from, len(dst)/size, func(i int, b []byte) error {
		copy(dst[i*size:], b)
		return nil
	})
}

// guardFault runs read, which reads mapped memory. A file that shrinks while it
// is mapped, or a disk that fails, makes such reads fault, which would end the
// process; here it becomes an error.
func guardFault(read func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if fault, ok := r.(interface{ Addr() uintptr }); ok {
			err = fmt.Errorf("reading failed at address %#x: the file was cut short or its disk fails", fault.Addr())
			return
		}
		panic(r)
	}()
	return read()
}
