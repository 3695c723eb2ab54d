// Times of device work.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

#include "device/device.cuh"

namespace interlock {

// The median time of some runs after one that is not counted, in milliseconds. Host time around
// launch and wait: what a caller sees.
template <class Work>
double median_ms(const Stream& stream, int runs, Work work) {
    std::vector<double> times;
    for (int i = 0; i <= runs; i++) {
        synchronize(stream);
        const auto begin = std::chrono::steady_clock::now();
        work();
        synchronize(stream);
        const std::chrono::duration<double, std::milli> d =
            std::chrono::steady_clock::now() - begin;
        if (i > 0) times.push_back(d.count());
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

}  // namespace interlock
