// Many independent affine additions with shared inversions.
//
// out[target[j]] = in[pairs[j].a] + in[pairs[j].b]. An affine addition divides by x2 - x1; one
// inversion serves many (Montgomery's trick: three multiplications for each), so an addition comes
// to 5 multiplications and a squaring, against 10 for a mixed addition in XYZZ coordinates.
//
// Three kernels: products of the denominators, thread by thread, with every prefix kept; inversion
// of the threads' products; additions, walking the prefixes backwards. No kernel synchronises
// within a block, and every lane has work in each.
#pragma once

#include "curve/point.cuh"
#include "device/device.cuh"

namespace interlock {

// Set in a reference to a point that is to be negated.
constexpr uint32_t NEGATE = 1u << 31;
constexpr uint32_t INDEX_MASK = NEGATE - 1;

struct Pair {
    uint32_t a, b;
};

// Working memory for batch additions, allocated once and used for any number of pairs.
template <class F>
class BatchAdder {
  public:
    // Pairs in one go of the three kernels: the more, the smaller the share of the inversions.
    static constexpr size_t CHUNK = size_t(1) << 24;
    // The part of the stream's scratch bytes that they take at most.
    static constexpr size_t SCRATCH_SHARE = 16;

    BatchAdder(size_t max_pairs, const Stream& stream);

    // Adds. Arrays are on the device.
    void add(const Affine<F>* in, const Pair* pairs, const uint32_t* target, size_t count,
             Affine<F>* out);

  private:
    const Stream& stream_;
    size_t chunk_;
    uint32_t full_threads_;
    DeviceBuffer<F> prefixes_, products_, scratch_;
};

extern template class BatchAdder<Fp>;
extern template class BatchAdder<Fp2>;

}  // namespace interlock
