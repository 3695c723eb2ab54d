// Multi-scalar multiplication: the sum of scalar[i] * base[i] in G1 or G2.
//
// Pippenger's method with signed windows. Each window's digit sends a base, or its negative, to the
// bucket of the digit's absolute value; entries are sorted by bucket, the entries of every bucket
// are added pairwise, level by level, with shared inversions (batch_add.cuh); the buckets' weighted
// sum follows by running sums. Bases stay on the device between calls.
//
// Windows may share buckets if the bases come with their multiples: with base[i] * 2^(c*s*m) for
// m = 0 .. multiples-1, window m*s + j uses buckets of set j, and only s sets are to be summed up.
#pragma once

#include "curve/point.cuh"
#include "device/device.cuh"
#include "msm/batch_add.cuh"

namespace interlock {

// How a multiplication of a given size is cut up.
struct MsmPlan {
    int window_bits;  // c
    int sets;         // s, bucket sets of 2^(c-1) buckets
    int multiples;    // sets * multiples * window_bits >= 255

    int windows() const { return (255 + window_bits - 1) / window_bits; }
    size_t buckets_per_set() const { return size_t(1) << (window_bits - 1); }

    // The plan of least estimated work. multiples is how many multiples of each base may be kept,
    // 1 for the bases alone.
    static MsmPlan choose(size_t count, int multiples);
    // A plan with a given window, for measurements.
    static MsmPlan with_window(int window_bits, int multiples);
};

// Bases on the device, with their multiples where the plan has them.
template <class F>
class Bases {
  public:
    // points lie on the host or on the device; infinity is allowed.
    Bases(const Affine<F>* points, size_t count, const MsmPlan& plan, cudaStream_t stream);

    size_t count() const { return count_; }
    const MsmPlan& plan() const { return plan_; }
    // Multiple m of base i is at points()[m*count() + i].
    const Affine<F>* points() const { return points_.get(); }

  private:
    size_t count_;
    MsmPlan plan_;
    DeviceBuffer<Affine<F>> points_;
};

enum class ScalarForm { CANONICAL, MONTGOMERY };

// Sum over the first count bases. scalars lie on the device. The result is on the host when the
// call returns.
template <class F>
Affine<F> msm(const Bases<F>& bases, const Fr* scalars, size_t count, ScalarForm form,
              cudaStream_t stream);

// Sum of those of the first count bases whose bit is 1; bit i is bit i%32 of bits[i/32], on the
// device. Bits past count are ignored.
template <class F>
Affine<F> msm_bits(const Bases<F>& bases, const uint32_t* bits, size_t count, cudaStream_t stream);

extern template class Bases<Fp>;
extern template class Bases<Fp2>;
extern template Affine<Fp> msm(const Bases<Fp>&, const Fr*, size_t, ScalarForm, cudaStream_t);
extern template Affine<Fp2> msm(const Bases<Fp2>&, const Fr*, size_t, ScalarForm, cudaStream_t);
extern template Affine<Fp> msm_bits(const Bases<Fp>&, const uint32_t*, size_t, cudaStream_t);
extern template Affine<Fp2> msm_bits(const Bases<Fp2>&, const uint32_t*, size_t, cudaStream_t);

}  // namespace interlock
