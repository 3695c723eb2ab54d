// Launches that fail when a test asks for it: linked in front of the runtime's, in a library for
// tests alone (`make faults`). Everything else in that library is the product's.
//
// A test writes a word to the file that INTERLOCK_TEST_FAULT names. The next launch takes the file
// away and
//   launch   asks for more threads in a block than any device has, so that the runtime refuses it;
//   address  is followed by a kernel that writes where no memory is, which spoils the CUDA context.
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

extern "C" cudaError_t __real___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                 void** arguments, size_t shared_bytes,
                                                 cudaStream_t stream);

namespace {

__global__ void write_nowhere() { *reinterpret_cast<volatile int*>(64) = 1; }

// What the test asks of this launch; empty: nothing.
std::string fault() {
    static const char* const file = std::getenv("INTERLOCK_TEST_FAULT");
    std::string word;
    if (file == nullptr || access(file, R_OK) != 0) return word;
    std::ifstream(file) >> word;
    return unlink(file) == 0 ? word : "";  // else another thread's launch has it
}

}  // namespace

extern "C" cudaError_t __wrap___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                 void** arguments, size_t shared_bytes,
                                                 cudaStream_t stream) {
    const std::string word = fault();
    if (word == "launch") block = dim3(1 << 16);
    const cudaError_t code =
        __real___cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
    if (word == "address") write_nowhere<<<1, 1, 0, stream>>>();
    return code;
}
