// Inputs made on the device, of which the right result is known.
#pragma once

#include <cstring>

#include "curve/point.cuh"
#include "device/device.cuh"
#include "setup/digits.cuh"

namespace interlock {

// Pseudo-random elements: any seed and index give the same element on host and device.
IL_HD inline uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

template <class P>
IL_HD inline Field<P> sample(uint64_t seed, uint64_t index) {
    Field<P> e;
    for (int i = 0; i < P::LIMBS; i++) e.v[i] = uint32_t(mix(seed ^ mix(index * P::LIMBS + i)));
    // Clear the bits above the modulus's length, and the highest if that leaves p or more.
    e.v[P::LIMBS - 1] &= (1u << (P::BITS % 32)) - 1;
    if (e.v[P::LIMBS - 1] >= P::p(P::LIMBS - 1)) e.v[P::LIMBS - 1] >>= 1;
    return e;
}

// The known multiple of the generator that base i is.
IL_HD inline uint32_t sample_multiple(uint64_t seed, uint64_t index) {
    return uint32_t(mix(seed ^ mix(index))) | 1u;
}

// values[i] = sample(seed, i).
void fill_samples(Fr* values, size_t count, uint64_t seed, const Stream& stream);

// bases[i] = sample_multiple(seed, i) * generator.
template <class F>
void fill_bases(Affine<F>* bases, size_t count, uint64_t seed, const Stream& stream);

// A point as parameter files hold it, in the place of one in memory.
template <class F>
Affine<F> encoded_point(const Affine<F>& p) {
    constexpr size_t PARTS = sizeof(p) / sizeof(Fp);
    Fp in[PARTS], out[PARTS];
    std::memcpy(in, &p, sizeof(p));
    for (size_t i = 0; i < PARTS; i++) out[i] = encoded(in[PARTS == 4 ? i ^ 1 : i]);
    Affine<F> bytes;
    std::memcpy(&bytes, out, sizeof(bytes));
    return bytes;
}

// The sum over i of scalars[i] * sample_multiple(seed, i); form as kept.
Fr weighted_sum(const Fr* scalars, size_t count, uint64_t seed, const Stream& stream);

// The value at x of the polynomial whose coefficients are on the device.
Fr evaluate(const Fr* coefficients, size_t count, const Fr& x, const Stream& stream);

// Applies field operations to count samples on the device and compares with the host; returns the
// number that differ.
size_t compare_fields_with_host(size_t count, const Stream& stream);

extern template void fill_bases(Affine<Fp>*, size_t, uint64_t, const Stream&);
extern template void fill_bases(Affine<Fp2>*, size_t, uint64_t, const Stream&);

}  // namespace interlock
