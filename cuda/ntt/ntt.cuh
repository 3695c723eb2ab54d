// Number-theoretic transforms over Fr, in natural order at both ends.
//
// A transform of 2^n elements is cut into one to three passes over memory of at most 2^9 rows each
// (Stockham's autosort order, so that no pass exists for reordering alone). A pass takes a few
// columns of 2^k rows into a block, transforms them between registers and shared memory, applies
// the twiddle factors between passes on the way out, and writes whole sectors. The coset's powers
// and the inverse's 1/N are applied in the same passes.
#pragma once

#include "device/device.cuh"
#include "field/known.cuh"

namespace interlock {

enum class Direction { FORWARD, INVERSE };

// Whether values belong to the subgroup of order 2^n or to its coset by the field's generator 7.
enum class Domain { SUBGROUP, COSET };

constexpr int MAX_LOG_NTT = 27;

// Whether the twiddle factors after the first pass, one for each element, are kept as a table of
// the transform's size or made of two smaller ones by a multiplication each time. The table saves
// one multiplication in thirteen.
enum class Twiddles { WHOLE, SPLIT };

// Twiddle factors for one size and direction, for use on any stream of the device.
class Transform {
  public:
    // 1 <= log_size <= MAX_LOG_NTT.
    Transform(int log_size, Direction direction, Twiddles twiddles, const Stream& stream);

    int log_size() const { return log_size_; }

    // Forward: coefficients to values; inverse: values to coefficients. In place; work, of the same
    // size, is overwritten. Both on the device, in Montgomery form.
    void run(Fr* data, Fr* work, Domain domain, const Stream& stream) const;

  private:
    int log_size_;
    Direction direction_;
    // w^j for the low bits of an exponent (times 1/N for the inverse), w^(j << low_bits) for the
    // rest; powers of the coset's shift, cut the same way; roots of small orders.
    int low_bits_;
    DeviceBuffer<Fr> low_, high_, first_, coset_low_, coset_high_;
    DeviceBuffer<KnownChunk> roots_;
};

}  // namespace interlock
