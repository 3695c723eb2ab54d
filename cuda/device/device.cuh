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

// Owns a stretch of device memory. Memory comes from the device's stream-ordered pool, so that
// taking and giving back costs microseconds once the pool has grown.
template <class T>
class DeviceBuffer {
  public:
    DeviceBuffer() = default;
    DeviceBuffer(size_t count, cudaStream_t stream) : count_(count), stream_(stream) {
        const size_t bytes = count * sizeof(T);
        if (bytes == 0) return;
        const cudaError_t code = cudaMallocAsync(reinterpret_cast<void**>(&data_), bytes, stream);
        if (code == cudaSuccess) return;
        (void)cudaGetLastError();
        size_t free_bytes = 0, total = 0;
        (void)cudaMemGetInfo(&free_bytes, &total);
        throw DeviceError{code,
                          std::string("allocating device memory: ") + cudaGetErrorString(code),
                          bytes, free_bytes};
    }
    ~DeviceBuffer() { reset(); }
    DeviceBuffer(DeviceBuffer&& o) noexcept { *this = std::move(o); }
    DeviceBuffer& operator=(DeviceBuffer&& o) noexcept {
        if (this != &o) {
            reset();
            data_ = std::exchange(o.data_, nullptr);
            count_ = std::exchange(o.count_, 0);
            stream_ = o.stream_;
        }
        return *this;
    }
    DeviceBuffer(const DeviceBuffer&) = delete;
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;

    void reset() noexcept {
        if (data_ != nullptr) (void)cudaFreeAsync(data_, stream_);
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

    void upload(const T* from, size_t count) {
        check(cudaMemcpyAsync(data_, from, count * sizeof(T), cudaMemcpyHostToDevice, stream_),
              "copying to the device");
    }
    void download(T* to, size_t count) const {
        check(cudaMemcpyAsync(to, data_, count * sizeof(T), cudaMemcpyDeviceToHost, stream_),
              "copying from the device");
    }

  private:
    T* data_ = nullptr;
    size_t count_ = 0;
    cudaStream_t stream_ = nullptr;
};

inline void synchronize(cudaStream_t stream) {
    check(cudaStreamSynchronize(stream), "waiting for the device");
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
