// Checks of what a proof computes on the device, on small circuits at random.
#pragma once

#include <string>
#include <vector>

#include "device/device.cuh"

namespace interlock {

struct CircuitCheck {
    const char* name;
    std::string (*run)(const Stream& stream);  // what is wrong, or nothing
};

std::vector<CircuitCheck> circuit_checks();

}  // namespace interlock
