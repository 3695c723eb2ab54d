#include "device/device.cuh"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace interlock {
namespace {

constexpr size_t MOST_SCRATCH_BYTES = 27000000000;
// Pools grow by whole pages.
constexpr size_t PAGE_BYTES = size_t(2) << 20;
constexpr size_t LANDING_BYTES = size_t(256) << 10;

// A wait asks again and again for so long, then sleeps. Waking up takes some 50 us, which matters
// between short kernels; the cores belong to the witnesses, which a thread that only asks, or
// yields, would take time from.
constexpr std::chrono::microseconds POLL(100);

}  // namespace

MemoryPool::MemoryPool(int device, size_t limit_bytes) : limit_bytes_(limit_bytes) {
    size_t free_bytes = 0, total_bytes = 0;
    check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for free memory");
    if (limit_bytes_ == 0 || limit_bytes_ > total_bytes) limit_bytes_ = total_bytes;
    limit_bytes_ -= limit_bytes_ % PAGE_BYTES;
    if (limit_bytes_ == 0) throw ArgumentError{"memory pool: less than a page of 2 MiB"};
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.handleTypes = cudaMemHandleTypeNone;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = device;
    properties.maxSize = limit_bytes_;
    check(cudaMemPoolCreate(&pool_, &properties), "making a memory pool");
    try {
        uint64_t keep = UINT64_MAX;
        check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep),
              "setting up the memory pool");
        check(cudaStreamCreateWithFlags(&home_, cudaStreamNonBlocking), "creating a stream");
    } catch (...) {
        (void)cudaMemPoolDestroy(pool_);
        throw;
    }
}

MemoryPool::~MemoryPool() {
    (void)cudaStreamSynchronize(home_);
    (void)cudaStreamDestroy(home_);
    (void)cudaMemPoolDestroy(pool_);
}

uint64_t MemoryPool::attribute(cudaMemPoolAttr which) const {
    uint64_t value = 0;
    check(cudaMemPoolGetAttribute(pool_, which, &value), "asking how full the memory pool is");
    return value;
}

size_t MemoryPool::used_bytes() const { return attribute(cudaMemPoolAttrUsedMemCurrent); }
size_t MemoryPool::peak_bytes() const { return attribute(cudaMemPoolAttrUsedMemHigh); }

// What the limit leaves, or the device, if others have its memory.
size_t MemoryPool::free_bytes() const {
    size_t device_free = 0, total = 0;
    check(cudaMemGetInfo(&device_free, &total), "asking for free memory");
    const size_t used = used_bytes();
    const size_t reserved = std::max<size_t>(attribute(cudaMemPoolAttrReservedMemCurrent), used);
    return std::min(limit_bytes_ - std::min(limit_bytes_, used), device_free + reserved - used);
}

void* MemoryPool::allocate(size_t bytes, cudaStream_t stream) {
    void* memory = nullptr;
    cudaError_t code = cudaErrorMemoryAllocation;
    if (bytes <= limit_bytes_) {
        code = cudaMallocFromPoolAsync(&memory, bytes, pool_, stream);
        if (code == cudaErrorMemoryAllocation) {
            // What the pool holds may lie in stretches that are too short: they go back to the
            // driver, once the work that has them is done.
            (void)cudaGetLastError();
            check(cudaStreamSynchronize(stream), "waiting for the device");
            check(cudaStreamSynchronize(home_), "waiting for the device");
            check(cudaMemPoolTrimTo(pool_, 0), "trimming the memory pool");
            code = cudaMallocFromPoolAsync(&memory, bytes, pool_, stream);
        }
        if (code == cudaSuccess) return memory;
        (void)cudaGetLastError();
    }
    throw DeviceError{code, std::string("allocating device memory: ") + cudaGetErrorString(code),
                      bytes, free_bytes()};
}

Stream::Stream(MemoryPool& pool, size_t scratch_bytes)
    : pool_(pool),
      scratch_bytes_(scratch_bytes != 0 ? scratch_bytes
                                        : std::min(MOST_SCRATCH_BYTES, pool.limit_bytes() / 4)) {
    try {
        check(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "creating a stream");
        check(cudaEventCreateWithFlags(&clock_begin_, cudaEventBlockingSync), "creating an event");
        check(cudaEventCreateWithFlags(&clock_end_, cudaEventBlockingSync), "creating an event");
        check(cudaEventCreateWithFlags(&copied_, cudaEventBlockingSync | cudaEventDisableTiming),
              "creating an event");
        check(cudaHostAlloc(&landing_, LANDING_BYTES, cudaHostAllocDefault),
              "allocating pinned host memory");
    } catch (...) {
        destroy();
        throw;
    }
}

Stream::~Stream() { destroy(); }

void Stream::destroy() noexcept {
    if (handle_ != nullptr) {
        (void)cudaStreamSynchronize(handle_);
        (void)cudaStreamDestroy(handle_);
    }
    for (cudaEvent_t event : {clock_begin_, clock_end_, copied_}) {
        if (event != nullptr) (void)cudaEventDestroy(event);
    }
    if (landing_ != nullptr) (void)cudaFreeHost(landing_);
    (void)cudaGetLastError();
}

void Stream::wait() const {
    mark_end();
    wait_for(clock_end_);
}

void Stream::fetch_bytes(void* to, const void* from, size_t bytes) const {
    if (bytes == 0) return;
    mark_end();
    void* landing = bytes <= LANDING_BYTES ? landing_ : to;
    check(cudaMemcpyAsync(landing, from, bytes, cudaMemcpyDeviceToHost, handle_),
          "copying from the device");
    check(cudaEventRecord(copied_, handle_), "recording an event");
    wait_for(copied_);
    if (landing != to) std::memcpy(to, landing, bytes);
}

void Stream::start_clock() const {
    clock_ended_ = false;
    check(cudaEventRecord(clock_begin_, handle_), "recording an event");
}

double Stream::clock_milliseconds() const {
    float ms = 0;
    if (clock_ended_) {
        check(cudaEventElapsedTime(&ms, clock_begin_, clock_end_), "asking for the time");
    }
    return ms;
}

void Stream::mark_end() const {
    check(cudaEventRecord(clock_end_, handle_), "recording an event");
    clock_ended_ = true;
}

void Stream::wait_for(cudaEvent_t event) const {
    const auto until = std::chrono::steady_clock::now() + POLL;
    cudaError_t code = cudaEventQuery(event);
    while (code == cudaErrorNotReady && std::chrono::steady_clock::now() < until) {
        code = cudaEventQuery(event);
    }
    (void)cudaGetLastError();  // that it was not ready is no error
    if (code == cudaErrorNotReady) code = cudaEventSynchronize(event);
    check(code, "waiting for the device");
}

}  // namespace interlock
