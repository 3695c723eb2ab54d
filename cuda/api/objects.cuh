// What the handles of the C interface stand for, and what every call shares.
#pragma once

#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "api/interlock_cuda.h"
#include "circuit/circuit.cuh"
#include "circuit/quotient.cuh"
#include "msm/msm.cuh"
#include "ntt/ntt.cuh"

namespace interlock {

// A device that was opened. What is made through its contexts shares it, so that it stays as long
// as they do.
class Device {
  public:
    Device(int index, size_t memory_bytes, size_t scratch_bytes)
        : index_(index), scratch_bytes_(scratch_bytes), pool_(index, memory_bytes) {}

    int index() const { return index_; }
    size_t scratch_bytes() const { return scratch_bytes_; }
    MemoryPool& pool() { return pool_; }

    // The tables of a transform, made on first use and kept.
    const Transform& transform(int log_size, Direction direction, const Stream& stream);

  private:
    int index_;
    size_t scratch_bytes_;
    MemoryPool pool_;
    std::mutex mutex_;
    size_t whole_bytes_ = 0;  // of tables of all twiddle factors
    std::map<std::pair<int, Direction>, Transform> transforms_;
};

}  // namespace interlock

struct interlock_device {
    std::shared_ptr<interlock::Device> shared;
};

struct interlock_context {
    std::shared_ptr<interlock::Device> device;
    interlock::Stream stream;
    double kernel_ms = 0;

    explicit interlock_context(const std::shared_ptr<interlock::Device>& d)
        : device(d), stream(d->pool(), d->scratch_bytes()) {}
};

struct interlock_bases {
    std::shared_ptr<interlock::Device> device;
    std::unique_ptr<interlock::Bases<interlock::Fp>> g1;  // one of the two
    std::unique_ptr<interlock::Bases<interlock::Fp2>> g2;

    size_t count() const { return g1 != nullptr ? g1->count() : g2->count(); }
};

struct interlock_circuit {
    std::shared_ptr<interlock::Device> device;
    interlock::Circuit circuit;
};

struct interlock_witness {
    std::shared_ptr<interlock::Device> device;
    interlock::Witness witness;
};

struct interlock_quotient {
    std::shared_ptr<interlock::Device> device;
    interlock::Quotient quotient;
};

namespace interlock {

int report(interlock_error* error, int kind, int cuda_code, const char* message, uint64_t asked = 0,
           uint64_t available = 0);
// The kind of failure that a CUDA error is.
int kind_of(cudaError_t code);

// Runs a call's body; whatever it throws becomes its error.
template <class Body>
int guarded(interlock_error* error, Body body) {
    try {
        body();
        return report(error, INTERLOCK_OK, 0, "");
    } catch (const DeviceError& e) {
        return report(error, kind_of(e.code), e.code, e.what.c_str(), e.bytes_asked, e.bytes_free);
    } catch (const ArgumentError& e) {
        return report(error, INTERLOCK_BAD_ARGUMENT, 0, e.what.c_str());
    } catch (const std::bad_alloc&) {
        return report(error, INTERLOCK_OUT_OF_MEMORY, 0, "out of host memory");
    } catch (const std::exception& e) {
        return report(error, INTERLOCK_DEVICE_FAILED, 0, e.what());
    } catch (...) {
        return report(error, INTERLOCK_DEVICE_FAILED, 0, "unknown exception");
    }
}

inline void require(bool condition, const char* what) {
    if (!condition) throw ArgumentError{what};
}

// The same with the context's device current. A call that fails leaves nothing at work on the
// caller's memory.
template <class Body>
int guarded_on(interlock_context* context, interlock_error* error, Body body) {
    return guarded(error, [&] {
        require(context != nullptr, "no context");
        check(cudaSetDevice(context->device->index()), "choosing the device");
        try {
            body();
        } catch (...) {
            (void)cudaStreamSynchronize(context->stream);
            (void)cudaGetLastError();
            throw;
        }
    });
}

// Runs work that waits for its kernels, and takes their time.
template <class Work>
void timed(interlock_context* context, Work work) {
    context->stream.start_clock();
    work();
    context->kernel_ms = context->stream.clock_milliseconds();
}

// Handles of what may outlive every context: their memory is given back on their device.
template <class T>
void destroy(T* object) {
    if (object == nullptr) return;
    (void)cudaSetDevice(object->device->index());
    delete object;
}

// Hands a sum to the caller as an affine point.
template <class F>
void put(void* result, const Xyzz<F>& sum) {
    const Affine<F> affine = sum.to_affine();
    std::memcpy(result, &affine, sizeof(affine));
}

inline bool on_device(const void* memory) {
    cudaPointerAttributes attributes;
    check(cudaPointerGetAttributes(&attributes, memory), "asking where memory lies");
    return attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
}

}  // namespace interlock
