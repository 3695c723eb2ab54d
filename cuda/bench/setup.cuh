// Multiples of the generator, checked and measured.
#pragma once

#include "device/device.cuh"

namespace interlock {

// Whether multiples by some scalars, among them those with digits at their limits, are those that
// the host computes, and whether zero is refused.
bool check_generator_multiples(const Stream& stream);

// Multiples of both generators by many scalars that lie on the device, some of them checked. Prints
// points per second; returns whether they were right.
bool measure_generator_multiples(const Stream& stream);

}  // namespace interlock
