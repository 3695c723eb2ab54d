// Points of y^2 = x^3 + b over a field F: affine, and in the coordinates (X, Y, ZZ, ZZZ) with
// x = X/ZZ, y = Y/ZZZ, ZZ^3 = ZZZ^2. The same code serves G1 (F = Fp) and G2 (F = Fp2); the
// formulas (EFD, "XYZZ coordinates for short Weierstrass curves", a = 0) do not need b.
#pragma once

#include "field/field.cuh"
#include "field/fp2.cuh"
#include "field/inverse.cuh"

namespace interlock {

// An affine point; (0, 0), which is not on the curve, stands for infinity. Byte for byte
// gnark-crypto's G1Affine and G2Affine.
template <class F>
struct Affine {
    F x, y;

    static IL_HD IL_INLINE Affine infinity() { return {F::zero(), F::zero()}; }
    IL_HD IL_INLINE bool is_infinity() const { return x.is_zero() && y.is_zero(); }
    IL_HD IL_INLINE Affine negated_if(bool condition) const { return {x, y.negated_if(condition)}; }
    friend IL_HD IL_INLINE bool operator==(const Affine& a, const Affine& b) {
        return a.x == b.x && a.y == b.y;
    }
};

// A point in XYZZ coordinates; ZZ = 0 is infinity.
template <class F>
struct Xyzz {
    F x, y, zz, zzz;

    static IL_HD IL_INLINE Xyzz infinity() { return {F::zero(), F::zero(), F::zero(), F::zero()}; }
    IL_HD IL_INLINE bool is_infinity() const { return zz.is_zero(); }

    static IL_HD IL_INLINE Xyzz from(const Affine<F>& p) {
        if (p.is_infinity()) return infinity();
        return {p.x, p.y, F::one(), F::one()};
    }

    // 9 multiplications.
    IL_HD Xyzz doubled() const {
        const F u = y.doubled(), v = u.squared(), w = u * v, s = x * v;
        const F t = x.squared(), m = t + t + t;
        const F x3 = m.squared() - s - s;
        return {x3, m * (s - x3) - w * y, v * zz, w * zzz};
    }

    // 10 multiplications.
    IL_HD Xyzz plus(const Affine<F>& q) const {
        if (q.is_infinity()) return *this;
        if (is_infinity()) return from(q);
        const F p = q.x * zz - x, r = q.y * zzz - y;
        if (p.is_zero()) return r.is_zero() ? from(q).doubled() : infinity();
        const F pp = p.squared(), ppp = p * pp, s = x * pp;
        const F x3 = r.squared() - ppp - s - s;
        return {x3, r * (s - x3) - y * ppp, zz * pp, zzz * ppp};
    }

    // 14 multiplications.
    IL_HD Xyzz plus(const Xyzz& q) const {
        if (q.is_infinity()) return *this;
        if (is_infinity()) return q;
        const F u = x * q.zz, t = y * q.zzz;
        const F p = q.x * zz - u, r = q.y * zzz - t;
        if (p.is_zero()) return r.is_zero() ? q.doubled() : infinity();
        const F pp = p.squared(), ppp = p * pp, s = u * pp;
        const F x3 = r.squared() - ppp - s - s;
        return {x3, r * (s - x3) - t * ppp, zz * q.zz * pp, zzz * q.zzz * ppp};
    }

    IL_HD Affine<F> to_affine() const {
        if (is_infinity()) return Affine<F>::infinity();
        const F i = inverse(zzz), z = zz * i;  // 1/zzz, then zz/zzz = 1/Z
        return {x * z.squared(), y * i};
    }
};

// k*p for a canonical scalar of 32-bit limbs.
template <class F>
IL_HD Xyzz<F> multiply(const Affine<F>& p, const uint32_t* k, int limbs) {
    Xyzz<F> r = Xyzz<F>::infinity();
    IL_NO_UNROLL
    for (int i = 32 * limbs - 1; i >= 0; i--) {
        r = r.doubled();
        if (k[i / 32] >> (i % 32) & 1) r = r.plus(p);
    }
    return r;
}

using G1Affine = Affine<Fp>;
using G2Affine = Affine<Fp2>;
using G1 = Xyzz<Fp>;
using G2 = Xyzz<Fp2>;

}  // namespace interlock
