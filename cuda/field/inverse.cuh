// Inversion by divsteps (Bernstein and Yang, "Fast constant-time gcd computation and modular
// inversion", 2019), in the variant that starts from delta = 1/2. Thirty divsteps at a time act on
// the low words alone; their 2x2 matrix is then applied to the long numbers. All lanes of a warp go
// the same way, and the cost is that of a few dozen multiplications.
#pragma once

#include "field/field.cuh"
#include "field/fp2.cuh"

namespace interlock {
namespace divsteps {

constexpr int WORD = 30;
constexpr uint32_t MASK = (1u << WORD) - 1;

// A signed number of LIMBS30 words of 30 bits, little endian; only the highest word has a sign.
template <class P>
struct Signed30 {
    static constexpr int LIMBS30 = P::BITS / WORD + 1;
    // Bits free above the modulus: room for the growth of d and e, one half p in each round.
    static_assert(LIMBS30 * WORD - P::BITS >= 8, "no room for d and e");

    int32_t v[LIMBS30];

    // Word i of a number given by its limbs of 32 bits.
    template <class Limb>
    static IL_HD IL_INLINE int32_t word(int i, Limb limb) {
        const int bit = i * WORD, q = bit / 32, s = bit % 32;
        uint32_t x = q < P::LIMBS ? limb(q) >> s : 0;
        if (s > 2 && q + 1 < P::LIMBS) x |= limb(q + 1) << (32 - s);
        return int32_t(x & MASK);
    }
    static IL_HD IL_INLINE int32_t p(int i) {
        return word(i, [](int q) { return P::p(q); });
    }
};

// The matrix of thirty divsteps, scaled by 2^30.
struct Matrix {
    int32_t u, v, q, r;
};

// Thirty divsteps on the low words; d is delta - 1/2.
IL_HD IL_INLINE Matrix thirty(int32_t& d, uint32_t f, uint32_t g) {
    uint32_t u = 1, v = 0, q = 0, r = 1;
    IL_NO_UNROLL
    for (int i = 0; i < WORD; i++) {
        const bool odd = g & 1, swap = odd && d >= 0;
        const uint32_t keep = odd ? ~0u : 0u, sign = swap ? ~0u : 0u;
        // g +- f if g is odd; f takes g's place where delta is positive.
        const uint32_t ng = g + (((f ^ sign) - sign) & keep);
        const uint32_t nq = q + (((u ^ sign) - sign) & keep);
        const uint32_t nr = r + (((v ^ sign) - sign) & keep);
        f = swap ? g : f;
        u = swap ? q : u;
        v = swap ? r : v;
        d = swap ? -d : d + 1;
        g = ng >> 1, q = nq, r = nr;
        u <<= 1, v <<= 1;
    }
    return {int32_t(u), int32_t(v), int32_t(q), int32_t(r)};
}

// p^-1 mod 2^30, from -p^-1 mod 2^32.
template <class P>
constexpr uint32_t inverse_of_p() {
    return (0u - P::N0) & MASK;
}

}  // namespace divsteps

// 1/a, both in Montgomery form; 0 for 0.
template <class P>
IL_HD Field<P> inverse(const Field<P>& a) {
    using namespace divsteps;
    using S = Signed30<P>;
    constexpr int L = S::LIMBS30;
    // d*a = f and e*a = g modulo p up to the factor R^2 that keeps the result in Montgomery form.
    S f, g, d, e;
    IL_UNROLL
    for (int i = 0; i < L; i++) {
        f.v[i] = S::p(i);
        g.v[i] = S::word(i, [&a](int q) { return a.v[q]; });
        d.v[i] = 0;
        e.v[i] = S::word(i, [](int q) { return P::r2(q); });
    }
    int32_t delta = 0;
    IL_NO_UNROLL
    for (;;) {
        int32_t any = 0;
        IL_UNROLL
        for (int i = 0; i < L; i++) any |= g.v[i];
        if (any == 0) break;
        const Matrix t = thirty(delta, uint32_t(f.v[0]) | uint32_t(f.v[1]) << WORD,
                                uint32_t(g.v[0]) | uint32_t(g.v[1]) << WORD);
        // (f, g) <- t(f, g) / 2^30, exact.
        int64_t cf = (int64_t(t.u) * f.v[0] + int64_t(t.v) * g.v[0]) >> WORD;
        int64_t cg = (int64_t(t.q) * f.v[0] + int64_t(t.r) * g.v[0]) >> WORD;
        IL_UNROLL
        for (int i = 1; i < L; i++) {
            cf += int64_t(t.u) * f.v[i] + int64_t(t.v) * g.v[i];
            cg += int64_t(t.q) * f.v[i] + int64_t(t.r) * g.v[i];
            f.v[i - 1] = int32_t(uint32_t(cf) & MASK), cf >>= WORD;
            g.v[i - 1] = int32_t(uint32_t(cg) & MASK), cg >>= WORD;
        }
        f.v[L - 1] = int32_t(cf), g.v[L - 1] = int32_t(cg);
        // (d, e) <- (t(d, e) + multiples of p) / 2^30. The multiples lie in [-2^29, 2^29), so that
        // |d| and |e| grow by at most p/2 in a round.
        int64_t cd = int64_t(t.u) * d.v[0] + int64_t(t.v) * e.v[0];
        int64_t ce = int64_t(t.q) * d.v[0] + int64_t(t.r) * e.v[0];
        constexpr uint32_t PINV = inverse_of_p<P>();
        const int32_t md = int32_t((0u - uint32_t(cd) * PINV) << 2) >> 2;
        const int32_t me = int32_t((0u - uint32_t(ce) * PINV) << 2) >> 2;
        cd += int64_t(md) * S::p(0), ce += int64_t(me) * S::p(0);
        cd >>= WORD, ce >>= WORD;
        IL_UNROLL
        for (int i = 1; i < L; i++) {
            // The sum of three products stays below 2^62.
            cd += int64_t(t.u) * d.v[i] + int64_t(t.v) * e.v[i] + int64_t(md) * S::p(i);
            ce += int64_t(t.q) * d.v[i] + int64_t(t.r) * e.v[i] + int64_t(me) * S::p(i);
            d.v[i - 1] = int32_t(uint32_t(cd) & MASK), cd >>= WORD;
            e.v[i - 1] = int32_t(uint32_t(ce) & MASK), ce >>= WORD;
        }
        d.v[L - 1] = int32_t(cd), e.v[L - 1] = int32_t(ce);
    }
    // f is 1 or -1 (or p, if a is zero; d is then 0). d has its sign, and lies within 32p.
    const int32_t flip = f.v[L - 1] >> 31;
    int32_t carry = 0;
    IL_UNROLL
    for (int i = 0; i < L; i++) {
        carry += (d.v[i] ^ flip) - flip;
        d.v[i] = i + 1 < L ? int32_t(uint32_t(carry) & MASK) : carry;
        carry >>= WORD;
    }
    // d + 32p, then 32p, 16p, ... p taken away where it stays positive.
    IL_NO_UNROLL
    for (int k = 6; k >= 0; k--) {
        const int shift = k == 6 ? 5 : k;
        S s;
        int64_t c = 0;
        IL_UNROLL
        for (int i = 0; i < L; i++) {
            const int64_t m = int64_t(S::p(i)) << shift;
            c += d.v[i] + (k == 6 ? m : -m);
            s.v[i] = i + 1 < L ? int32_t(uint32_t(c) & MASK) : int32_t(c);
            c >>= WORD;
        }
        const bool take = k == 6 || s.v[L - 1] >= 0;
        IL_UNROLL
        for (int i = 0; i < L; i++) d.v[i] = take ? s.v[i] : d.v[i];
    }
    Field<P> out;
    IL_UNROLL
    for (int i = 0; i < P::LIMBS; i++) {
        const int bit = i * 32, q = bit / WORD, s = bit % WORD;
        uint64_t x = uint64_t(uint32_t(d.v[q])) >> s;
        if (q + 1 < L) x |= uint64_t(uint32_t(d.v[q + 1])) << (WORD - s);
        if (q + 2 < L) x |= uint64_t(uint32_t(d.v[q + 2])) << (2 * WORD - s);
        out.v[i] = uint32_t(x);
    }
    return out;
}

// 1/(c0 + c1*u) = (c0 - c1*u) / (c0^2 + c1^2).
IL_HD IL_INLINE Fp2 inverse(const Fp2& a) {
    const Fp n = inverse(a.c0.squared() + a.c1.squared());
    return {a.c0 * n, -(a.c1 * n)};
}

}  // namespace interlock
