// Rates of single instructions and of field products on the device.
#pragma once

#include <cuda_runtime.h>

namespace interlock {

// Prints one JSON line for each.
void measure_throughput(cudaStream_t stream);

}  // namespace interlock
