package memory

import (
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Alloc makes a block of n values, all zero, which take no memory until they are first written. T must hold no
// pointers: the garbage collector does not look into blocks. The block must be given to Free as it is here, and not
// used after that.
func Alloc[T any](n int) ([]T, error) {
	if n == 0 {
		return nil, nil
	}
	size := n * int(unsafe.Sizeof(*new(T)))
	raw, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("allocating %d bytes of memory: %w", size, err)
	}
	if size >= hugePage {
		// Points are read in random order: with large pages, fewer misses of the address cache. Where there are none the
		// block is as good.
		_ = unix.Madvise(raw, unix.MADV_HUGEPAGE)
	}
	limit.count(int64(size))
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(raw))), n), nil
}

// hugePage is from where on large pages are asked for, their size on x86-64.
const hugePage = 2 << 20

// Free gives a block of Alloc back at once. It does nothing to nil.
func Free[T any](block []T) {
	if block == nil {
		return
	}
	size := cap(block) * int(unsafe.Sizeof(*new(T)))
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(block)), uintptr(size)); err != nil {
		panic(fmt.Sprintf("memory: freeing what is no block of %d bytes: %v", size, err))
	}
	limit.count(-int64(size))
}

// SetBudget keeps the limit of Go's heap at what blocks leave of so many bytes, so that both together stay within
// them; 0 is no limit. It holds for the whole process, the last call counts.
func SetBudget(bytes int64) {
	limit.mu.Lock()
	defer limit.mu.Unlock()
	limit.budget = bytes
	limit.apply()
	debug.SetGCPercent(garbagePercent)
}

// garbagePercent of the heap in use may be garbage before the collector comes by, a quarter of what Go allows by
// itself. Nearly all of the heap is numbers, which cost the collector nothing to look at.
const garbagePercent = 25

// Outside is how many bytes blocks take.
func Outside() int64 {
	limit.mu.Lock()
	defer limit.mu.Unlock()
	return limit.outside
}

// goLimit is the limit of Go's heap.
type goLimit struct {
	mu      sync.Mutex
	budget  int64
	outside int64 // in blocks
}

var limit goLimit

// leastHeap is a share of the budget that the heap keeps however much blocks take: with less the collector would do
// nothing but run.
const leastHeap = 1.0 / 16

func (l *goLimit) count(bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outside += bytes
	if l.budget > 0 {
		l.apply()
	}
}

// apply is called under mu.
func (l *goLimit) apply() {
	heap := int64(math.MaxInt64)
	if l.budget > 0 {
		heap = max(l.budget-l.outside, int64(float64(l.budget)*leastHeap))
	}
	debug.SetMemoryLimit(heap)
}
