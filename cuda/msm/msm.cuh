// Multi-scalar multiplication: the sum of scalar[i] * base[i] in G1 or G2.
//
// Pippenger's method with signed windows. Each window's digit sends a base, or its negative, to the
// bucket of the digit's absolute value; entries are sorted by bucket, the entries of every bucket
// are added pairwise, level by level, with shared inversions (batch_add.cuh); the buckets' weighted
// sum follows by running sums. Bases stay on the device between calls.
//
// Windows may share buckets if the bases come with their multiples: with base[i] * 2^(c*s*m) for
// m = 0 .. multiples-1, window m*s + j uses buckets of set j, and only s sets are to be summed up.
//
// What a sum takes for itself is bounded by the stream's scratch_bytes: it is done for some sets of
// buckets at a time and, where even one does not fit, for some of the scalars.
#pragma once

#include <mutex>

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

    // The plan of least estimated time. multiples is how many multiples of each base may be kept,
    // 1 for the bases alone.
    static MsmPlan choose(size_t count, int multiples);
    // Its estimated time for so many scalars, in field multiplications.
    double work(size_t count) const;
    // A plan with a given window, for measurements.
    static MsmPlan with_window(int window_bits, int multiples);
};

// Bases on the device, with their multiples where the plan has them. Any number of threads may use
// them at once, or one may load some.
template <class F>
class Bases {
  public:
    // Room for `capacity` bases, infinity until they are loaded. Each may have as many multiples as
    // the plan says. The memory outlives the stream.
    Bases(size_t capacity, const MsmPlan& plan, const Stream& stream);

    // Overwrites bases [at, at + count) with points that lie on the host or on the device, infinity
    // allowed. Returns when they are there.
    void load(size_t at, size_t count, const Affine<F>* points, const Stream& stream);
    // The same with points encoded as parameter files hold them (msm/encoding.cuh). An
    // ArgumentError names the first base that is not encoded right; the range then holds nothing
    // of use.
    void load_encoded(size_t at, size_t count, const void* points, const Stream& stream);

    size_t count() const { return count_; }
    const MsmPlan& plan() const { return plan_; }
    // The plan for a sum over `count` of them, with their multiples or without.
    MsmPlan plan_for(size_t count) const;
    // Multiple m of base i is at points()[m*count() + i].
    const Affine<F>* points() const { return points_.get(); }
    // Makes the multiples if bases were loaded since it was done.
    void make_multiples(const Stream& stream) const;

  private:
    void loaded(size_t end, const Stream& stream);

    size_t count_;
    MsmPlan plan_;
    DeviceBuffer<Affine<F>> points_;
    mutable std::mutex mutex_;
    mutable bool multiples_missing_ = false;
};

enum class ScalarForm { CANONICAL, MONTGOMERY };

// Scalars on the device, and the bases to which they belong.
struct Scalars {
    const Fr* values;
    size_t count;
    ScalarForm form;
    const uint32_t* base_of = nullptr;  // on the device: scalar i belongs to base base_of[i];
    size_t first_base = 0;              // or, without it, to base first_base + i

    // Scalars [at, at + n).
    Scalars part(size_t at, size_t n) const {
        return {values + at, n, form, base_of != nullptr ? base_of + at : nullptr, first_base + at};
    }
};

// The sum of scalars times bases, by a plan for these bases. The result is on the host when the
// call returns.
template <class F>
Xyzz<F> msm(const Bases<F>& bases, const Scalars& scalars, const MsmPlan& plan,
            const Stream& stream);

// Sum of those of the first count bases whose bit is 1; bit i is bit i%32 of bits[i/32], on the
// device. Bits past count are ignored.
template <class F>
Xyzz<F> msm_bits(const Bases<F>& bases, const uint32_t* bits, size_t count, const Stream& stream);

extern template class Bases<Fp>;
extern template class Bases<Fp2>;
extern template Xyzz<Fp> msm(const Bases<Fp>&, const Scalars&, const MsmPlan&, const Stream&);
extern template Xyzz<Fp2> msm(const Bases<Fp2>&, const Scalars&, const MsmPlan&, const Stream&);
extern template Xyzz<Fp> msm_bits(const Bases<Fp>&, const uint32_t*, size_t, const Stream&);
extern template Xyzz<Fp2> msm_bits(const Bases<Fp2>&, const uint32_t*, size_t, const Stream&);

}  // namespace interlock
