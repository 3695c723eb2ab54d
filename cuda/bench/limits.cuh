// What part of the device's multiplication rate and memory bandwidth each kernel reaches.
#pragma once

#include "device/device.cuh"

namespace interlock {

// One JSON line for each kernel of each operation, and the same as a table on standard error.
// Returns whether the results that are looked at were right.
bool measure_limits(int max_log, const Stream& stream);

}  // namespace interlock
