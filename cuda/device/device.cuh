// What every layer above the curve needs of a device: checked calls, memory, streams. Errors travel
// as exceptions inside the library and stop at the C interface (api/).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace interlock {

// A CUDA call that failed. For an allocation, bytes_asked and bytes_free say what was wanted and
// what the device had.
struct DeviceError {
    cudaError_t code;
    std::string what;
    size_t bytes_asked = 0;
    size_t bytes_free = 0;
};

// A call that asks for what the library does not do (a size out of range, a null pointer).
struct ArgumentError {
    std::string what;
};

inline void check(cudaError_t code, const char* doing) {
    if (code == cudaSuccess) return;
    (void)cudaGetLastError();  // errors that are not sticky must not surface in a later call
    throw DeviceError{code, std::string(doing) + ": " + cudaGetErrorString(code)};
}

// After each kernel launch.
inline void check_launch(const char* kernel) { check(cudaGetLastError(), kernel); }

// The device memory that the library may take: a pool of one device with a hard limit. What is
// given back stays in the pool, since giving gigabytes back to the driver and asking for them again
// takes longer than many a kernel.
class MemoryPool {
  public:
    // The device must be current. limit_bytes 0: all the memory that it has.
    MemoryPool(int device, size_t limit_bytes);
    ~MemoryPool();
    MemoryPool(const MemoryPool&) = delete;
    MemoryPool& operator=(const MemoryPool&) = delete;

    size_t limit_bytes() const { return limit_bytes_; }
    size_t used_bytes() const;  // now
    size_t peak_bytes() const;  // the most since the pool was made

    // Memory for work on the stream from here on. Throws a DeviceError with what was asked for and
    // what is free.
    void* allocate(size_t bytes, cudaStream_t stream);

    // On this stream memory is given back that may outlive the stream it was allocated on.
    cudaStream_t home() const { return home_; }

  private:
    uint64_t attribute(cudaMemPoolAttr which) const;
    size_t free_bytes() const;

    size_t limit_bytes_;
    cudaMemPool_t pool_ = nullptr;
    cudaStream_t home_ = nullptr;
};

// A queue of work on a device, with the pool that its memory comes from. For one thread at a time.
class Stream {
  public:
    // scratch_bytes bounds what a multi-exponentiation takes for itself. 0: 27 GB, or a quarter of
    // the pool where that is less.
    Stream(MemoryPool& pool, size_t scratch_bytes);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    operator cudaStream_t() const { return handle_; }
    MemoryPool& pool() const { return pool_; }
    size_t scratch_bytes() const { return scratch_bytes_; }

    // Waits until all work is done.
    void wait() const;
    // Copies count elements to the host and waits.
    template <class T>
    void fetch(T* to, const T* from, size_t count) const {
        fetch_bytes(to, from, count * sizeof(T));
    }

    // Starts the clock: the next work on the device is the first that counts.
    void start_clock() const;
    // Time of the device from there to the begin of the last wait or fetch; 0 if there was none.
    double clock_milliseconds() const;

  private:
    void fetch_bytes(void* to, const void* from, size_t bytes) const;
    void mark_end() const;
    void wait_for(cudaEvent_t event) const;
    void destroy() noexcept;

    MemoryPool& pool_;
    size_t scratch_bytes_;
    cudaStream_t handle_ = nullptr;
    cudaEvent_t clock_begin_ = nullptr, clock_end_ = nullptr, copied_ = nullptr;
    mutable bool clock_ended_ = false;
    void* landing_ = nullptr;  // pinned memory in which small copies arrive
};

inline void synchronize(const Stream& stream) { stream.wait(); }

// Owns a stretch of device memory, for work on the stream it is made with. Taking and giving back
// costs microseconds once the pool has grown.
template <class T>
class DeviceBuffer {
  public:
    DeviceBuffer() = default;
    DeviceBuffer(size_t count, const Stream& stream) : count_(count), freed_on_(stream) {
        if (count == 0) return;
        data_ = static_cast<T*>(stream.pool().allocate(count * sizeof(T), stream));
    }
    // Makes it memory that may outlive the stream, once that has been waited for: if work on it
    // fails halfway, the memory goes after what of that still runs. From then on nothing may be at
    // work on it when the buffer goes.
    void outlive(const Stream& stream) { freed_on_ = stream.pool().home(); }
    ~DeviceBuffer() { reset(); }
    DeviceBuffer(DeviceBuffer&& o) noexcept { *this = std::move(o); }
    DeviceBuffer& operator=(DeviceBuffer&& o) noexcept {
        if (this != &o) {
            reset();
            data_ = std::exchange(o.data_, nullptr);
            count_ = std::exchange(o.count_, 0);
            freed_on_ = o.freed_on_;
        }
        return *this;
    }
    DeviceBuffer(const DeviceBuffer&) = delete;
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;

    void reset() noexcept {
        if (data_ != nullptr) (void)cudaFreeAsync(data_, freed_on_);
        data_ = nullptr;
        count_ = 0;
    }

    // Gives up the memory to the caller, who frees it.
    T* release() {
        count_ = 0;
        return std::exchange(data_, nullptr);
    }

    T* get() const { return data_; }
    size_t count() const { return count_; }
    size_t bytes() const { return count_ * sizeof(T); }

  private:
    T* data_ = nullptr;
    size_t count_ = 0;
    cudaStream_t freed_on_ = nullptr;
};

// Copies between host and device, or within one of them. What lies on the host must stay as it is
// until the stream has been waited for.
template <class T>
void copy(T* to, const T* from, size_t count, cudaStream_t stream) {
    if (count == 0) return;
    check(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDefault, stream), "copying");
}

template <class T>
void clear(T* values, size_t count, cudaStream_t stream) {
    if (count == 0) return;
    check(cudaMemsetAsync(values, 0, count * sizeof(T), stream), "clearing");
}

constexpr uint32_t blocks_for(size_t items, uint32_t per_block) {
    return uint32_t((items + per_block - 1) / per_block);
}

#if defined(__CUDACC__)

// Loads and stores of values aligned to 16 bytes, 16 bytes at a time.
template <class T>
__device__ __forceinline__ T load(const T* p) {
    static_assert(sizeof(T) % 16 == 0 && alignof(T) >= 16, "not made of 16-byte words");
    T t;
    const uint4* from = reinterpret_cast<const uint4*>(p);
    uint4* to = reinterpret_cast<uint4*>(&t);
#pragma unroll
    for (size_t i = 0; i < sizeof(T) / 16; i++) to[i] = __ldg(from + i);
    return t;
}

template <class T>
__device__ __forceinline__ void store(T* p, const T& t) {
    static_assert(sizeof(T) % 16 == 0 && alignof(T) >= 16, "not made of 16-byte words");
    const uint4* from = reinterpret_cast<const uint4*>(&t);
    uint4* to = reinterpret_cast<uint4*>(p);
#pragma unroll
    for (size_t i = 0; i < sizeof(T) / 16; i++) to[i] = from[i];
}

#endif

}  // namespace interlock
