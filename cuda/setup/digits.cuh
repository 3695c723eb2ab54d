// What a multiple of the generator is made of and how it is written down: arithmetic alone, for the
// device and for the host.
#pragma once

#include "field/field.cuh"

namespace interlock {

constexpr int WINDOW_BITS = 16;
constexpr uint32_t WINDOWS = 16;  // of 255 bits; the highest digit is below half a window
constexpr uint32_t HALF_WINDOW = 1u << (WINDOW_BITS - 1);

// A scalar's digit in a window: the multiple to add, or to take away.
struct Digit {
    uint32_t multiple;  // 0 to HALF_WINDOW
    bool negative;
};

// A canonical scalar plus half a window in every window but the highest. A digit is then its word
// of 16 bits less HALF_WINDOW, and all carries between digits are done.
IL_HD inline Fr shift_digits(const Fr& canonical) {
    Fr shifted;
    uint64_t carry = 0;
    IL_UNROLL
    for (int i = 0; i < Fr::LIMBS; i++) {
        const bool highest = i + 1 == Fr::LIMBS;
        carry += uint64_t(canonical.v[i]) +
                 (highest ? HALF_WINDOW : HALF_WINDOW << WINDOW_BITS | HALF_WINDOW);
        shifted.v[i] = uint32_t(carry);
        carry >>= 32;
    }
    return shifted;
}

// The digit of a window, from the limb of the shifted scalar that holds it: limb window/2.
IL_HD inline Digit digit(uint32_t limb, uint32_t window) {
    const uint32_t word = limb >> (WINDOW_BITS * (window % 2)) & ((1u << WINDOW_BITS) - 1);
    if (window == WINDOWS - 1) return {word, false};
    return word < HALF_WINDOW ? Digit{HALF_WINDOW - word, true} : Digit{word - HALF_WINDOW, false};
}

// The bytes of a coordinate in an encoded point: canonical, big endian.
IL_HD inline Fp encoded(const Fp& coordinate) {
    const Fp c = coordinate.to_canonical();
    Fp reversed;
    IL_UNROLL
    for (int i = 0; i < Fp::LIMBS; i++) {
#if defined(__CUDA_ARCH__)
        reversed.v[i] = __byte_perm(c.v[Fp::LIMBS - 1 - i], 0, 0x0123);
#else
        reversed.v[i] = __builtin_bswap32(c.v[Fp::LIMBS - 1 - i]);
#endif
    }
    return reversed;
}

}  // namespace interlock
