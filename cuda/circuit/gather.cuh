// The scalars of a range of a query's points, out of a compact witness.
#pragma once

#include "circuit/circuit.cuh"

namespace interlock {

// Points are numbered from the range's first. bits has those that belong to a bit that is one.
// Points of variables that are no bits are in no order: scalar k, in Montgomery form, belongs to
// point place[k].
struct Gathered {
    DeviceBuffer<uint32_t> bits;  // bit i%32 of word i/32 is point i's
    DeviceBuffer<Fr> scalars;
    DeviceBuffer<uint32_t> places;
    size_t full;
};

// For points [from, from + count) of a query.
Gathered gather(const Circuit& circuit, const Witness& witness, Query query, size_t from,
                size_t count, const Stream& stream);

}  // namespace interlock
