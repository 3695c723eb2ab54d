#include "msm/sort.cuh"

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

namespace interlock {

void sort_pairs(DeviceBuffer<uint32_t>& keys, DeviceBuffer<uint32_t>& values,
                DeviceBuffer<uint32_t>& other_keys, DeviceBuffer<uint32_t>& other_values,
                size_t count, int key_bits, const Stream& stream) {
    if (count == 0) return;
    cub::DoubleBuffer<uint32_t> k(keys.get(), other_keys.get());
    cub::DoubleBuffer<uint32_t> v(values.get(), other_values.get());
    size_t bytes = 0;
    check(
        cub::DeviceRadixSort::SortPairs(nullptr, bytes, k, v, uint32_t(count), 0, key_bits, stream),
        "sizing the sort");
    DeviceBuffer<uint8_t> temporary(bytes, stream);
    check(cub::DeviceRadixSort::SortPairs(temporary.get(), bytes, k, v, uint32_t(count), 0,
                                          key_bits, stream),
          "sorting by bucket");
    if (k.Current() != keys.get()) std::swap(keys, other_keys);
    if (v.Current() != values.get()) std::swap(values, other_values);
}

void exclusive_sum(const uint32_t* in, uint32_t* out, size_t count, const Stream& stream) {
    if (count == 0) return;
    size_t bytes = 0;
    check(cub::DeviceScan::ExclusiveSum(nullptr, bytes, in, out, uint32_t(count), stream),
          "sizing the prefix sum");
    DeviceBuffer<uint8_t> temporary(bytes, stream);
    check(cub::DeviceScan::ExclusiveSum(temporary.get(), bytes, in, out, uint32_t(count), stream),
          "prefix sum");
}

}  // namespace interlock
