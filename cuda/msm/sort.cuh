// Sorting and prefix sums of 32-bit words on the device.
#pragma once

#include "device/device.cuh"

namespace interlock {

// Sorts pairs by the low key_bits bits of the key, stably. The result is in keys and values; the
// other two buffers, of the same size, are overwritten (and may change places with the first two).
void sort_pairs(DeviceBuffer<uint32_t>& keys, DeviceBuffer<uint32_t>& values,
                DeviceBuffer<uint32_t>& other_keys, DeviceBuffer<uint32_t>& other_values,
                size_t count, int key_bits, const Stream& stream);

// out[i] = in[0] + ... + in[i-1]. in and out may be the same.
void exclusive_sum(const uint32_t* in, uint32_t* out, size_t count, const Stream& stream);

}  // namespace interlock
