// What a pass of a transform is told (see ntt.cuh); the benchmark reads it to count the work.
#pragma once

#include "field/field.cuh"

namespace interlock {

constexpr int MAX_LOG_ROWS = 9;

struct Tables {
    const Fr *low, *high, *first, *small, *coset_low, *coset_high;
    int low_bits;
};

struct Pass {
    int log_size;              // of the whole transform
    int log_rows;              // of this pass
    int log_stride;            // product of the rows of the passes before
    int log_columns;           // of a block
    bool scale_in, scale_out;  // by the coset's powers
};

}  // namespace interlock
