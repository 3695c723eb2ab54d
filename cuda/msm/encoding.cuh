// Points as parameter files hold them: coordinates canonical and big endian, x before y, in G2 the
// imaginary coefficient before the real one, not compressed (Zcash's encoding for BLS12-381). A
// point takes as many bytes as in memory.
#pragma once

#include "curve/point.cuh"
#include "device/device.cuh"

namespace interlock {

// Decodes count points on the device in place, and waits. An ArgumentError names the first that has
// a flag set, a coordinate not below the modulus, or is at infinity, counted from `first`. Whether
// a point lies on the curve is not looked at.
template <class F>
void decode_points(Affine<F>* points, size_t count, size_t first, const Stream& stream);

extern template void decode_points(Affine<Fp>*, size_t, size_t, const Stream&);
extern template void decode_points(Affine<Fp2>*, size_t, size_t, const Stream&);

}  // namespace interlock
