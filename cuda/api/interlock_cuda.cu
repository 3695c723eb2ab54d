#include "api/interlock_cuda.h"

#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "msm/msm.cuh"
#include "ntt/ntt.cuh"

using namespace interlock;

// A table of all twiddle factors is kept where it takes at most this part of the card's memory: up
// to 2^27 on a card of 141 GB, to 2^24 on one of 16.
constexpr size_t TWIDDLE_SHARE = 28;

struct interlock_context {
    int device;
    cudaStream_t stream = nullptr;
    std::map<std::pair<int, Direction>, Transform> transforms;

    explicit interlock_context(int index) : device(index) {
        check(cudaSetDevice(device), "choosing the device");
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream");
        // Working memory stays in the pool between calls: giving gigabytes back to the driver and
        // asking for them again takes longer than many a kernel.
        cudaMemPool_t pool;
        check(cudaDeviceGetDefaultMemPool(&pool, device), "asking for the memory pool");
        uint64_t keep = UINT64_MAX;
        check(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep),
              "setting up the memory pool");
    }
    ~interlock_context() {
        (void)cudaSetDevice(device);
        transforms.clear();
        if (stream != nullptr) {
            (void)cudaStreamSynchronize(stream);
            (void)cudaStreamDestroy(stream);
        }
    }

    const Transform& transform(int log_size, Direction direction) {
        const auto key = std::make_pair(log_size, direction);
        auto at = transforms.find(key);
        if (at == transforms.end()) {
            size_t free_bytes = 0, total_bytes = 0;
            check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for free memory");
            const bool whole = (sizeof(Fr) << log_size) <= total_bytes / TWIDDLE_SHARE;
            at = transforms
                     .emplace(key, Transform(log_size, direction,
                                             whole ? Twiddles::WHOLE : Twiddles::SPLIT, stream))
                     .first;
        }
        return at->second;
    }
};

// Bases keep their context's stream for giving memory back.
struct interlock_bases {
    int device;
    std::unique_ptr<Bases<Fp>> g1;
    std::unique_ptr<Bases<Fp2>> g2;
};

namespace {

int kind_of(cudaError_t code) {
    switch (code) {
        case cudaErrorMemoryAllocation: return INTERLOCK_OUT_OF_MEMORY;
        case cudaErrorNoDevice:
        case cudaErrorInvalidDevice:
        case cudaErrorInsufficientDriver:
        case cudaErrorSystemDriverMismatch:
        case cudaErrorInitializationError: return INTERLOCK_NO_DEVICE;
        case cudaErrorIllegalAddress:
        case cudaErrorIllegalInstruction:
        case cudaErrorMisalignedAddress:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorHardwareStackError:
        case cudaErrorAssert:
        case cudaErrorLaunchFailure:
        case cudaErrorLaunchTimeout:
        case cudaErrorECCUncorrectable:
        case cudaErrorNvlinkUncorrectable:
        case cudaErrorExternalDevice:
        case cudaErrorUnknown:
        case cudaErrorDevicesUnavailable: return INTERLOCK_DEVICE_LOST;
        default: return INTERLOCK_DEVICE_FAILED;
    }
}

int report(interlock_error* error, int kind, int cuda_code, const char* message, uint64_t asked = 0,
           uint64_t available = 0) {
    if (error != nullptr) {
        error->kind = kind;
        error->cuda_code = cuda_code;
        error->bytes_asked = asked;
        error->bytes_free = available;
        std::snprintf(error->message, sizeof(error->message), "%s", message);
    }
    return kind;
}

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

void require(bool condition, const char* what) {
    if (!condition) throw ArgumentError{what};
}

void enter(const interlock_context* context) {
    require(context != nullptr, "no context");
    check(cudaSetDevice(context->device), "choosing the device");
}

bool on_device(const void* memory) {
    cudaPointerAttributes attributes;
    check(cudaPointerGetAttributes(&attributes, memory), "asking where memory lies");
    return attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
}

// An argument's array on the device: itself, or a copy if it lies on the host.
template <class T>
class OnDevice {
  public:
    OnDevice(const void* memory, size_t bytes, cudaStream_t stream) {
        data_ = static_cast<const T*>(memory);
        if (bytes == 0 || on_device(memory)) return;
        copy_ = DeviceBuffer<T>((bytes + sizeof(T) - 1) / sizeof(T), stream);
        check(cudaMemcpyAsync(copy_.get(), memory, bytes, cudaMemcpyHostToDevice, stream),
              "copying to the device");
        data_ = copy_.get();
    }
    const T* get() const { return data_; }

  private:
    const T* data_;
    DeviceBuffer<T> copy_;
};

}  // namespace

int interlock_version(void) { return INTERLOCK_CUDA_VERSION; }

int interlock_device_count(int32_t* count, interlock_error* error) {
    return guarded(error, [&] {
        require(count != nullptr, "device count: no place for the count");
        int n = 0;
        const cudaError_t code = cudaGetDeviceCount(&n);
        if (code != cudaErrorNoDevice) check(code, "looking for devices");
        (void)cudaGetLastError();
        *count = code == cudaErrorNoDevice ? 0 : n;
    });
}

int interlock_device_info(int32_t index, interlock_device* info, interlock_error* error) {
    return guarded(error, [&] {
        require(info != nullptr, "device info: no place for it");
        cudaDeviceProp p;
        check(cudaGetDeviceProperties(&p, index), "asking for a device's properties");
        *info = {};
        std::snprintf(info->name, sizeof(info->name), "%s", p.name);
        const auto* u = reinterpret_cast<const unsigned char*>(p.uuid.bytes);
        int at = std::snprintf(info->uuid, sizeof(info->uuid), "GPU");
        for (int i = 0; i < 16; i++) {
            const bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
            at += std::snprintf(info->uuid + at, sizeof(info->uuid) - size_t(at),
                                dash ? "-%02x" : "%02x", u[i]);
        }
        info->memory_bytes = p.totalGlobalMem;
        info->major = p.major;
        info->minor = p.minor;
        info->multiprocessors = p.multiProcessorCount;
    });
}

int interlock_context_create(int32_t device, interlock_context** context, interlock_error* error) {
    return guarded(error, [&] {
        require(context != nullptr, "context: no place for it");
        *context = nullptr;
        *context = new interlock_context(device);
    });
}

void interlock_context_destroy(interlock_context* context) { delete context; }

int interlock_device_alloc(interlock_context* context, uint64_t bytes, void** memory,
                           interlock_error* error) {
    return guarded(error, [&] {
        enter(context);
        require(memory != nullptr, "device memory: no place for the pointer");
        *memory = nullptr;
        DeviceBuffer<uint8_t> buffer(bytes, context->stream);
        synchronize(context->stream);
        *memory = buffer.release();
    });
}

int interlock_device_free(interlock_context* context, void* memory, interlock_error* error) {
    return guarded(error, [&] {
        enter(context);
        if (memory != nullptr) {
            check(cudaFreeAsync(memory, context->stream), "freeing device memory");
        }
    });
}

int interlock_host_alloc(interlock_context* context, uint64_t bytes, void** memory,
                         interlock_error* error) {
    return guarded(error, [&] {
        enter(context);
        require(memory != nullptr && bytes > 0,
                "host memory: no bytes or no place for the pointer");
        *memory = nullptr;
        const cudaError_t code = cudaHostAlloc(memory, bytes, cudaHostAllocDefault);
        if (code == cudaSuccess) return;
        (void)cudaGetLastError();
        throw DeviceError{code,
                          std::string("allocating pinned host memory: ") + cudaGetErrorString(code),
                          size_t(bytes), 0};
    });
}

int interlock_host_free(interlock_context* context, void* memory, interlock_error* error) {
    return guarded(error, [&] {
        enter(context);
        if (memory != nullptr) check(cudaFreeHost(memory), "freeing pinned host memory");
    });
}

int interlock_copy(interlock_context* context, void* to, const void* from, uint64_t bytes,
                   interlock_error* error) {
    return guarded(error, [&] {
        enter(context);
        require(bytes == 0 || (to != nullptr && from != nullptr), "copy: a null pointer");
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, context->stream), "copying");
        synchronize(context->stream);
    });
}

int interlock_ntt(interlock_context* context, void* values, int32_t log_size, int32_t inverse,
                  int32_t coset, interlock_error* error) {
    return guarded(error, [&] {
        enter(context);
        require(log_size >= 1 && log_size <= MAX_LOG_NTT, "ntt: the size must be 2^1 to 2^27");
        require(values != nullptr && on_device(values), "ntt: values must be in device memory");
        const Transform& transform =
            context->transform(log_size, inverse ? Direction::INVERSE : Direction::FORWARD);
        DeviceBuffer<Fr> work(size_t(1) << log_size, context->stream);
        transform.run(static_cast<Fr*>(values), work.get(),
                      coset ? Domain::COSET : Domain::SUBGROUP, context->stream);
        synchronize(context->stream);
    });
}

int interlock_bases_create(interlock_context* context, int32_t group, const void* points,
                           uint64_t count, int32_t multiples, interlock_bases** bases,
                           interlock_error* error) {
    return guarded(error, [&] {
        enter(context);
        require(bases != nullptr, "bases: no place for them");
        *bases = nullptr;
        require(group == 1 || group == 2, "bases: the group is 1 or 2");
        require(points != nullptr && count > 0, "bases: none given");
        require(multiples >= 1 && multiples <= 64, "bases: 1 to 64 multiples");
        const MsmPlan plan = MsmPlan::choose(count, multiples);
        auto made = std::make_unique<interlock_bases>();
        made->device = context->device;
        if (group == 1) {
            made->g1 = std::make_unique<Bases<Fp>>(static_cast<const G1Affine*>(points), count,
                                                   plan, context->stream);
        } else {
            made->g2 = std::make_unique<Bases<Fp2>>(static_cast<const G2Affine*>(points), count,
                                                    plan, context->stream);
        }
        *bases = made.release();
    });
}

void interlock_bases_destroy(interlock_bases* bases) {
    if (bases != nullptr) (void)cudaSetDevice(bases->device);
    delete bases;
}

int interlock_msm(interlock_context* context, const interlock_bases* bases, const void* scalars,
                  uint64_t count, int32_t montgomery, void* result, interlock_error* error) {
    return guarded(error, [&] {
        enter(context);
        require(bases != nullptr && bases->device == context->device, "msm: bases of this device");
        require(result != nullptr && (scalars != nullptr || count == 0), "msm: a null pointer");
        const OnDevice<Fr> s(scalars, count * sizeof(Fr), context->stream);
        const ScalarForm form = montgomery ? ScalarForm::MONTGOMERY : ScalarForm::CANONICAL;
        if (bases->g1 != nullptr) {
            const G1Affine r = msm(*bases->g1, s.get(), count, form, context->stream);
            std::memcpy(result, &r, sizeof(r));
        } else {
            const G2Affine r = msm(*bases->g2, s.get(), count, form, context->stream);
            std::memcpy(result, &r, sizeof(r));
        }
    });
}

int interlock_msm_bits(interlock_context* context, const interlock_bases* bases, const void* bits,
                       uint64_t count, void* result, interlock_error* error) {
    return guarded(error, [&] {
        enter(context);
        require(bases != nullptr && bases->device == context->device, "msm: bases of this device");
        require(result != nullptr && (bits != nullptr || count == 0), "msm: a null pointer");
        const OnDevice<uint32_t> b(bits, (count + 63) / 64 * 8, context->stream);
        if (bases->g1 != nullptr) {
            const G1Affine r = msm_bits(*bases->g1, b.get(), count, context->stream);
            std::memcpy(result, &r, sizeof(r));
        } else {
            const G2Affine r = msm_bits(*bases->g2, b.get(), count, context->stream);
            std::memcpy(result, &r, sizeof(r));
        }
    });
}
