// Rates of single instructions and of field products on the device.
#pragma once

#include "device/device.cuh"

namespace interlock {

// Prints one JSON line for each.
void measure_throughput(const Stream& stream);

// The device's peaks in billions a second: 32-bit multiply-adds with 64-bit sums, and bytes that a
// copy on the device reads and writes.
double measured_multiply_adds(const Stream& stream);
double measured_bandwidth(const Stream& stream);

}  // namespace interlock
