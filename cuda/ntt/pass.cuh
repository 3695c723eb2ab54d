// What a pass of a transform is told (see ntt.cuh); the benchmark reads it to count the work.
#pragma once

#include "field/known.cuh"

namespace interlock {

constexpr int MAX_LOG_ROWS = 9;

// Roots of unity of the orders up to 2^MAX_LOG_ROWS: power e of that of order 2^n, e < 2^(n-1), is
// entry 2^(n-1) + e of a table, so that neighbouring threads read neighbouring entries.
constexpr uint32_t ROOTS = 1u << MAX_LOG_ROWS;
using Root = Known<ROOTS>;

struct Tables {
    const Fr *low, *high, *first, *coset_low, *coset_high;
    const KnownChunk* roots;
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
