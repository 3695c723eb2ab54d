// Constants of BLS12-381's two prime fields: the scalar field Fr (255 bits) and the base field Fp
// (381 bits). Every array is little endian in 32-bit limbs; R is 2^(32*LIMBS).
#pragma once

#include <cstdint>

#include "field/macros.cuh"

namespace interlock {

// Limbs of a constant are reached through functions, since device code cannot take the address of
// a static constexpr member; with a constant index the call folds to an immediate operand.
struct FrParams {
    static constexpr int LIMBS = 8;
    static constexpr int BITS = 255;
    // -p^-1 mod 2^32.
    static constexpr uint32_t N0 = 0xffffffffu;
    // p = 1 mod 2^32 and p's second limb is 2^32-1: the reduction of a row needs two products less.
    static constexpr bool LOW_LIMBS_TRIVIAL = true;

    static IL_HD IL_INLINE constexpr uint32_t p(int i) {
        constexpr uint32_t t[LIMBS] = {0x00000001, 0xffffffff, 0xfffe5bfe, 0x53bda402,
                                       0x09a1d805, 0x3339d808, 0x299d7d48, 0x73eda753};
        return t[i];
    }
    // R mod p, the Montgomery form of 1.
    static IL_HD IL_INLINE constexpr uint32_t one(int i) {
        constexpr uint32_t t[LIMBS] = {0xfffffffe, 0x00000001, 0x00034802, 0x5884b7fa,
                                       0xecbc4ff5, 0x998c4fef, 0xacc5056f, 0x1824b159};
        return t[i];
    }
    // R^2 mod p.
    static IL_HD IL_INLINE constexpr uint32_t r2(int i) {
        constexpr uint32_t t[LIMBS] = {0xf3f29c6d, 0xc999e990, 0x87925c23, 0x2b6cedcb,
                                       0x7254398f, 0x05d31496, 0x9f59ff11, 0x0748d9d9};
        return t[i];
    }
    // Montgomery form of 7^((p-1)/2^32), a primitive root of unity of order 2^32.
    static IL_HD IL_INLINE constexpr uint32_t root_of_unity(int i) {
        constexpr uint32_t t[LIMBS] = {0x5f0e466a, 0xb9b58d8c, 0x1819d7ec, 0x5b1b4c80,
                                       0x52a31e64, 0x0af53ae3, 0x19e9b27b, 0x5bf3adda};
        return t[i];
    }
    // Montgomery form of 7, which generates the multiplicative group; it shifts the coset.
    static IL_HD IL_INLINE constexpr uint32_t generator(int i) {
        constexpr uint32_t t[LIMBS] = {0xfffffff1, 0x0000000e, 0x00189c0f, 0x17e363d3,
                                       0x6f8457b0, 0xff9c5787, 0x8fc5a8c4, 0x35133220};
        return t[i];
    }
};

struct FpParams {
    static constexpr int LIMBS = 12;
    static constexpr int BITS = 381;
    static constexpr uint32_t N0 = 0xfffcfffdu;
    static constexpr bool LOW_LIMBS_TRIVIAL = false;

    static IL_HD IL_INLINE constexpr uint32_t p(int i) {
        constexpr uint32_t t[LIMBS] = {0xffffaaab, 0xb9feffff, 0xb153ffff, 0x1eabfffe,
                                       0xf6b0f624, 0x6730d2a0, 0xf38512bf, 0x64774b84,
                                       0x434bacd7, 0x4b1ba7b6, 0x397fe69a, 0x1a0111ea};
        return t[i];
    }
    static IL_HD IL_INLINE constexpr uint32_t one(int i) {
        constexpr uint32_t t[LIMBS] = {0x0002fffd, 0x76090000, 0xc40c0002, 0xebf4000b,
                                       0x53c758ba, 0x5f489857, 0x70525745, 0x77ce5853,
                                       0xa256ec6d, 0x5c071a97, 0xfa80e493, 0x15f65ec3};
        return t[i];
    }
    static IL_HD IL_INLINE constexpr uint32_t r2(int i) {
        constexpr uint32_t t[LIMBS] = {0x1c341746, 0xf4df1f34, 0x09d104f1, 0x0a76e6a6,
                                       0x4c95b6d5, 0x8de5476c, 0x939d83c0, 0x67eb88a9,
                                       0xb519952d, 0x9a793e85, 0x92cae3aa, 0x11988fe5};
        return t[i];
    }
};

}  // namespace interlock
