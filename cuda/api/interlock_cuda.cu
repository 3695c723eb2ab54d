#include "api/interlock_cuda.h"

#include <algorithm>

#include "api/objects.cuh"

namespace interlock {

int kind_of(cudaError_t code) {
    switch (code) {
        case cudaErrorMemoryAllocation: return INTERLOCK_OUT_OF_MEMORY;
        case cudaErrorNoDevice:
        case cudaErrorInvalidDevice:
        case cudaErrorInsufficientDriver:
        case cudaErrorSystemDriverMismatch:
        case cudaErrorInitializationError:
        case cudaErrorDevicesUnavailable: return INTERLOCK_NO_DEVICE;
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
        case cudaErrorContained:
        case cudaErrorMpsClientTerminated:
        case cudaErrorTensorMemoryLeak:
        case cudaErrorUnknown: return INTERLOCK_DEVICE_LOST;
        default: return INTERLOCK_DEVICE_FAILED;
    }
}

int report(interlock_error* error, int kind, int cuda_code, const char* message, uint64_t asked,
           uint64_t available) {
    if (error != nullptr) {
        error->kind = kind;
        error->cuda_code = cuda_code;
        error->bytes_asked = asked;
        error->bytes_free = available;
        std::snprintf(error->message, sizeof(error->message), "%s", message);
    }
    return kind;
}

// Tables of all twiddle factors are kept as long as they take no more than this together: those of
// both directions up to 2^21. The split ones of larger transforms take some megabytes, and 7 % more
// time.
constexpr size_t WHOLE_TABLES_BYTES = size_t(192) << 20;

const Transform& Device::transform(int log_size, Direction direction, const Stream& stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto key = std::make_pair(log_size, direction);
    auto at = transforms_.find(key);
    if (at == transforms_.end()) {
        const size_t bytes = sizeof(Fr) << log_size;
        const bool whole = whole_bytes_ + bytes <= WHOLE_TABLES_BYTES;
        at = transforms_
                 .emplace(key, Transform(log_size, direction,
                                         whole ? Twiddles::WHOLE : Twiddles::SPLIT, stream))
                 .first;
        if (whole) whole_bytes_ += bytes;
    }
    return at->second;
}

}  // namespace interlock

using namespace interlock;

namespace {

// Makes a device current. Waits of the runtime's own, in copies of memory that is not pinned, sleep
// as ours do (see Stream).
void choose_device(int32_t index) {
    const cudaError_t code =
        cudaInitDevice(index, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid);
    // One that another part of the process started waits as that part chose.
    if (code != cudaErrorSetOnActiveProcess) check(code, "starting the device");
    (void)cudaGetLastError();
    check(cudaSetDevice(index), "choosing the device");
}

// An argument's array on the device: itself, or a copy if it lies on the host.
template <class T>
class OnDevice {
  public:
    OnDevice(const void* memory, size_t bytes, const Stream& stream) {
        data_ = static_cast<const T*>(memory);
        if (bytes == 0 || on_device(memory)) return;
        copy_ = DeviceBuffer<T>((bytes + sizeof(T) - 1) / sizeof(T), stream);
        copy(reinterpret_cast<uint8_t*>(copy_.get()), static_cast<const uint8_t*>(memory), bytes,
             stream);
        data_ = copy_.get();
    }
    const T* get() const { return data_; }

  private:
    const T* data_;
    DeviceBuffer<T> copy_;
};

// Calls work with the bases of whichever group they are.
template <class Work>
void with_bases(const interlock_bases* bases, Work work) {
    if (bases->g1 != nullptr) {
        work(*bases->g1);
    } else {
        work(*bases->g2);
    }
}

void require_bases(const interlock_context* context, const interlock_bases* bases, uint64_t count) {
    require(bases != nullptr && bases->device == context->device, "sum: no bases of this device");
    require(count <= bases->count(), "sum: more scalars or bits than bases");
}

}  // namespace

int interlock_version(void) { return INTERLOCK_CUDA_VERSION; }

int interlock_count_devices(int32_t* count, interlock_error* error) {
    return guarded(error, [&] {
        require(count != nullptr, "device count: no place for the count");
        int n = 0;
        const cudaError_t code = cudaGetDeviceCount(&n);
        if (code != cudaErrorNoDevice) check(code, "looking for devices");
        (void)cudaGetLastError();
        *count = code == cudaErrorNoDevice ? 0 : n;
    });
}

int interlock_describe_device(int32_t index, interlock_device_info* info, interlock_error* error) {
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
        std::snprintf(info->pci_address, sizeof(info->pci_address), "%04x:%02x:%02x.0",
                      unsigned(p.pciDomainID) & 0xffff, unsigned(p.pciBusID) & 0xff,
                      unsigned(p.pciDeviceID) & 0xff);
        info->major = p.major;
        info->minor = p.minor;
        info->multiprocessors = p.multiProcessorCount;
        info->memory_bytes = p.totalGlobalMem;
        check(cudaDriverGetVersion(&info->driver_version), "asking for the driver's version");
    });
}

int interlock_free_memory(int32_t index, uint64_t* free_bytes, interlock_error* error) {
    return guarded(error, [&] {
        require(free_bytes != nullptr, "free memory: no place for it");
        choose_device(index);
        size_t free = 0, total = 0;
        check(cudaMemGetInfo(&free, &total), "asking for free memory");
        *free_bytes = free;
    });
}

int interlock_device_open(int32_t index, uint64_t memory_bytes, uint64_t scratch_bytes,
                          interlock_device** device, interlock_error* error) {
    return guarded(error, [&] {
        require(device != nullptr, "device: no place for it");
        *device = nullptr;
        require(scratch_bytes == 0 || scratch_bytes >= INTERLOCK_LEAST_SCRATCH_BYTES,
                "device: scratch_bytes is too small");
        choose_device(index);
        *device =
            new interlock_device{std::make_shared<Device>(index, memory_bytes, scratch_bytes)};
    });
}

void interlock_device_close(interlock_device* device) {
    if (device == nullptr) return;
    (void)cudaSetDevice(device->shared->index());
    delete device;
}

int interlock_device_memory(interlock_device* device, uint64_t* used_bytes, uint64_t* peak_bytes,
                            interlock_error* error) {
    return guarded(error, [&] {
        require(device != nullptr && used_bytes != nullptr && peak_bytes != nullptr,
                "device memory: a null pointer");
        check(cudaSetDevice(device->shared->index()), "choosing the device");
        *used_bytes = device->shared->pool().used_bytes();
        *peak_bytes = device->shared->pool().peak_bytes();
    });
}

int interlock_context_create(interlock_device* device, interlock_context** context,
                             interlock_error* error) {
    return guarded(error, [&] {
        require(device != nullptr && context != nullptr, "context: no device or no place for it");
        *context = nullptr;
        check(cudaSetDevice(device->shared->index()), "choosing the device");
        *context = new interlock_context(device->shared);
    });
}

void interlock_context_destroy(interlock_context* context) { destroy(context); }

double interlock_kernel_milliseconds(const interlock_context* context) {
    return context != nullptr ? context->kernel_ms : 0;
}

int interlock_device_alloc(interlock_context* context, uint64_t bytes, void** memory,
                           interlock_error* error) {
    return guarded_on(context, error, [&] {
        require(memory != nullptr, "device memory: no place for the pointer");
        *memory = nullptr;
        DeviceBuffer<uint8_t> buffer(bytes, context->stream);
        synchronize(context->stream);
        *memory = buffer.release();
    });
}

int interlock_device_free(interlock_context* context, void* memory, interlock_error* error) {
    return guarded_on(context, error, [&] {
        if (memory == nullptr) return;
        check(cudaFreeAsync(memory, context->stream), "freeing device memory");
        synchronize(context->stream);
    });
}

int interlock_host_alloc(interlock_context* context, uint64_t bytes, void** memory,
                         interlock_error* error) {
    return guarded_on(context, error, [&] {
        require(memory != nullptr && bytes > 0,
                "host memory: no bytes or no place for the pointer");
        *memory = nullptr;
        const cudaError_t code = cudaHostAlloc(memory, bytes, cudaHostAllocPortable);
        if (code == cudaSuccess) return;
        (void)cudaGetLastError();
        throw DeviceError{code,
                          std::string("allocating pinned host memory: ") + cudaGetErrorString(code),
                          size_t(bytes), 0};
    });
}

int interlock_host_free(interlock_context* context, void* memory, interlock_error* error) {
    return guarded_on(context, error, [&] {
        if (memory != nullptr) check(cudaFreeHost(memory), "freeing pinned host memory");
    });
}

int interlock_copy(interlock_context* context, void* to, const void* from, uint64_t bytes,
                   interlock_error* error) {
    return guarded_on(context, error, [&] {
        require(bytes == 0 || (to != nullptr && from != nullptr), "copy: a null pointer");
        copy(static_cast<uint8_t*>(to), static_cast<const uint8_t*>(from), bytes, context->stream);
        synchronize(context->stream);
    });
}

int interlock_ntt(interlock_context* context, void* values, int32_t log_size, int32_t inverse,
                  int32_t coset, interlock_error* error) {
    return guarded_on(context, error, [&] {
        require(log_size >= 1 && log_size <= MAX_LOG_NTT, "ntt: the size must be 2^1 to 2^27");
        require(values != nullptr && on_device(values), "ntt: values must be in device memory");
        const Transform& transform = context->device->transform(
            log_size, inverse ? Direction::INVERSE : Direction::FORWARD, context->stream);
        DeviceBuffer<Fr> work(size_t(1) << log_size, context->stream);
        timed(context, [&] {
            transform.run(static_cast<Fr*>(values), work.get(),
                          coset ? Domain::COSET : Domain::SUBGROUP, context->stream);
            synchronize(context->stream);
        });
    });
}

int interlock_bases_create(interlock_context* context, int32_t group, uint64_t capacity,
                           int32_t multiples, interlock_bases** bases, interlock_error* error) {
    return guarded_on(context, error, [&] {
        require(bases != nullptr, "bases: no place for them");
        *bases = nullptr;
        require(group == 1 || group == 2, "bases: the group is 1 or 2");
        require(capacity > 0, "bases: no capacity");
        require(multiples >= 1 && multiples <= 64, "bases: 1 to 64 multiples");
        const MsmPlan plan = MsmPlan::choose(capacity, multiples);
        auto made = std::make_unique<interlock_bases>();
        made->device = context->device;
        if (group == 1) {
            made->g1 = std::make_unique<Bases<Fp>>(capacity, plan, context->stream);
        } else {
            made->g2 = std::make_unique<Bases<Fp2>>(capacity, plan, context->stream);
        }
        *bases = made.release();
    });
}

int interlock_bases_load(interlock_context* context, interlock_bases* bases, uint64_t at,
                         uint64_t count, const void* points, int32_t encoded,
                         interlock_error* error) {
    return guarded_on(context, error, [&] {
        require(bases != nullptr && bases->device == context->device, "bases: none of this device");
        require(points != nullptr || count == 0, "bases: no points");
        if (count == 0) return;
        with_bases(bases, [&](auto& b) {
            if (encoded != 0) {
                b.load_encoded(at, count, points, context->stream);
                context->kernel_ms = context->stream.clock_milliseconds();
            } else {
                using Point = std::remove_cv_t<std::remove_pointer_t<decltype(b.points())>>;
                b.load(at, count, static_cast<const Point*>(points), context->stream);
            }
        });
    });
}

void interlock_bases_destroy(interlock_bases* bases) { destroy(bases); }

int interlock_msm(interlock_context* context, const interlock_bases* bases, const void* scalars,
                  uint64_t count, int32_t montgomery, void* result, interlock_error* error) {
    return guarded_on(context, error, [&] {
        require_bases(context, bases, count);
        require(result != nullptr && (scalars != nullptr || count == 0), "msm: a null pointer");
        const OnDevice<Fr> values(scalars, count * sizeof(Fr), context->stream);
        const Scalars s = {values.get(), count,
                           montgomery ? ScalarForm::MONTGOMERY : ScalarForm::CANONICAL};
        with_bases(bases, [&](const auto& b) {
            timed(context, [&] { put(result, msm(b, s, b.plan_for(count), context->stream)); });
        });
    });
}

int interlock_msm_bits(interlock_context* context, const interlock_bases* bases, const void* bits,
                       uint64_t count, void* result, interlock_error* error) {
    return guarded_on(context, error, [&] {
        require_bases(context, bases, count);
        require(result != nullptr && (bits != nullptr || count == 0), "msm: a null pointer");
        const OnDevice<uint32_t> words(bits, (count + 63) / 64 * 8, context->stream);
        with_bases(bases, [&](const auto& b) {
            timed(context, [&] { put(result, msm_bits(b, words.get(), count, context->stream)); });
        });
    });
}
