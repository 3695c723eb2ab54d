// Faults of a device when a test asks for them: linked in front of the runtime's calls, in a
// library for tests alone (`make faults`). Everything else in that library is the product's.
//
// A test writes a word to the file that INTERLOCK_TEST_FAULT names. The call that heeds it takes
// the file away:
//   launch   the next launch asks for more threads in a block than any device has, and is refused;
//   address  the next launch is followed by a kernel that writes where no memory is, which spoils
//   the
//            CUDA context;
//   memory   from the next allocation on nothing is left on the device, until one has failed.
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

extern "C" cudaError_t __real___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                 void** arguments, size_t shared_bytes,
                                                 cudaStream_t stream);
extern "C" cudaError_t __real_cudaMallocFromPoolAsync(void** memory, size_t bytes,
                                                      cudaMemPool_t pool, cudaStream_t stream);

namespace {

__global__ void write_nowhere() { *reinterpret_cast<volatile int*>(64) = 1; }

// Whether the test asks for this; then nobody else is asked.
bool asked_for(const char* what) {
    static const char* const file = std::getenv("INTERLOCK_TEST_FAULT");
    if (file == nullptr || access(file, R_OK) != 0) return false;
    std::string word;
    std::ifstream(file) >> word;
    return word == what && unlink(file) == 0;
}

// All of the device's memory, while it is held.
std::mutex mutex;
std::vector<void*> held;
int failures = 0;

void hold_all(cudaMemPool_t pool, cudaStream_t stream) {
    (void)cudaStreamSynchronize(stream);
    (void)cudaMemPoolTrimTo(pool, 0);
    for (size_t bytes = size_t(64) << 30; bytes >= size_t(2) << 20;) {
        void* memory = nullptr;
        if (cudaMalloc(&memory, bytes) == cudaSuccess) {
            held.push_back(memory);
        } else {
            bytes /= 2;
        }
    }
    (void)cudaGetLastError();
}

void let_go() {
    for (void* memory : held) (void)cudaFree(memory);
    held.clear();
    failures = 0;
}

}  // namespace

extern "C" cudaError_t __wrap___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                 void** arguments, size_t shared_bytes,
                                                 cudaStream_t stream) {
    if (asked_for("launch")) block = dim3(1 << 16);
    const bool spoil = asked_for("address");
    const cudaError_t code =
        __real___cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
    if (spoil) write_nowhere<<<1, 1, 0, stream>>>();
    return code;
}

// An allocation that fails is tried again after the pool was trimmed: only then has it failed.
extern "C" cudaError_t __wrap_cudaMallocFromPoolAsync(void** memory, size_t bytes,
                                                      cudaMemPool_t pool, cudaStream_t stream) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (held.empty() && asked_for("memory")) hold_all(pool, stream);
    const cudaError_t code = __real_cudaMallocFromPoolAsync(memory, bytes, pool, stream);
    failures = code == cudaErrorMemoryAllocation ? failures + 1 : 0;
    if (failures == 2) let_go();
    return code;
}
