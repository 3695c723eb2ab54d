// The quadratic extension Fp2 = Fp[u]/(u^2 + 1), where G2's coordinates live.
#pragma once

#include "field/field.cuh"

namespace interlock {

// c0 + c1*u. Byte for byte gnark-crypto's E2.
struct Fp2 {
    Fp c0, c1;

    static IL_HD IL_INLINE Fp2 zero() { return {Fp::zero(), Fp::zero()}; }
    static IL_HD IL_INLINE Fp2 one() { return {Fp::one(), Fp::zero()}; }

    IL_HD IL_INLINE bool is_zero() const { return c0.is_zero() && c1.is_zero(); }
    friend IL_HD IL_INLINE bool operator==(const Fp2& a, const Fp2& b) {
        return a.c0 == b.c0 && a.c1 == b.c1;
    }
    friend IL_HD IL_INLINE bool operator!=(const Fp2& a, const Fp2& b) { return !(a == b); }

    friend IL_HD IL_INLINE Fp2 operator+(const Fp2& a, const Fp2& b) {
        return {a.c0 + b.c0, a.c1 + b.c1};
    }
    friend IL_HD IL_INLINE Fp2 operator-(const Fp2& a, const Fp2& b) {
        return {a.c0 - b.c0, a.c1 - b.c1};
    }
    IL_HD IL_INLINE Fp2 operator-() const { return {-c0, -c1}; }
    IL_HD IL_INLINE Fp2 doubled() const { return {c0.doubled(), c1.doubled()}; }
    IL_HD IL_INLINE Fp2 negated_if(bool condition) const {
        return {c0.negated_if(condition), c1.negated_if(condition)};
    }

    // Karatsuba: three products in Fp.
    friend IL_HD IL_INLINE Fp2 operator*(const Fp2& a, const Fp2& b) {
        const Fp s = (a.c0 + a.c1) * (b.c0 + b.c1);
        const Fp m = a.c0 * b.c0;
        const Fp n = a.c1 * b.c1;
        return {m - n, s - m - n};
    }

    // Complex squaring: two products in Fp.
    IL_HD IL_INLINE Fp2 squared() const {
        const Fp m = (c0 + c1) * (c0 - c1);
        const Fp n = c0 * c1;
        return {m, n.doubled()};
    }
};

}  // namespace interlock
