// Rates of single instructions and of field products on the device.
#pragma once

#include "device/device.cuh"

namespace interlock {

// Prints one JSON line for each.
void measure_throughput(const Stream& stream);

}  // namespace interlock
