// Development setup: multiples of the generator of G1 or G2 by many scalars, encoded as parameter
// files hold points.
//
// A scalar is sixteen signed digits of sixteen bits; a table holds the multiples of the generator
// by every digit of every window, and the sixteen of a scalar are added by batches of affine
// additions (msm/batch_add.cuh). The table is made by the same additions, in less than a
// millisecond, so that every call has its own and nothing is kept between calls.
#pragma once

#include "curve/point.cuh"
#include "device/device.cuh"

namespace interlock {

// An encoded point: its coordinates, x before y, in G2 the imaginary coefficient before the real
// one, each canonical and big endian.
template <class F>
constexpr size_t ENCODED_BYTES = sizeof(Affine<F>);

// points[i] = scalars[i] * generator, encoded. scalars are in Montgomery form; both arrays lie in
// host or device memory. An ArgumentError names a scalar of zero: its multiple has no encoding in a
// parameter file. Takes 1.5 GB of device memory or less. Returns when the points are there.
template <class F>
void generator_multiples(const Fr* scalars, size_t count, uint8_t* points, const Stream& stream);

extern template void generator_multiples<Fp>(const Fr*, size_t, uint8_t*, const Stream&);
extern template void generator_multiples<Fp2>(const Fr*, size_t, uint8_t*, const Stream&);

}  // namespace interlock
