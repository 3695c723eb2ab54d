// Prime field arithmetic in Montgomery form, for the device and for the host.
//
// An element is LIMBS words of 32 bits, little endian, always reduced below p. That is byte for
// byte the layout of gnark-crypto's fr.Element and fp.Element, so arrays cross the C interface as
// they are.
#pragma once

#include <cstdint>
#include <cstring>

#include "field/chain.cuh"
#include "field/macros.cuh"
#include "field/params.cuh"

namespace interlock {

template <class P>
struct alignas(16) Field {
    using Params = P;
    static constexpr int LIMBS = P::LIMBS;

    uint32_t v[LIMBS];

    static IL_HD IL_INLINE Field zero() {
        Field r;
        IL_UNROLL
        for (int i = 0; i < LIMBS; i++) r.v[i] = 0;
        return r;
    }

    static IL_HD IL_INLINE Field one() {
        Field r;
        IL_UNROLL
        for (int i = 0; i < LIMBS; i++) r.v[i] = P::one(i);
        return r;
    }

    static IL_HD IL_INLINE Field modulus() {
        Field r;
        IL_UNROLL
        for (int i = 0; i < LIMBS; i++) r.v[i] = P::p(i);
        return r;
    }

    // R^2 mod p: multiplying by it brings a canonical integer into Montgomery form.
    static IL_HD IL_INLINE Field r_squared() {
        Field r;
        IL_UNROLL
        for (int i = 0; i < LIMBS; i++) r.v[i] = P::r2(i);
        return r;
    }

    IL_HD IL_INLINE bool is_zero() const {
        uint32_t any = 0;
        IL_UNROLL
        for (int i = 0; i < LIMBS; i++) any |= v[i];
        return any == 0;
    }

    friend IL_HD IL_INLINE bool operator==(const Field& a, const Field& b) {
        uint32_t any = 0;
        IL_UNROLL
        for (int i = 0; i < LIMBS; i++) any |= a.v[i] ^ b.v[i];
        return any == 0;
    }
    friend IL_HD IL_INLINE bool operator!=(const Field& a, const Field& b) { return !(a == b); }

    friend IL_HD IL_INLINE Field operator+(const Field& a, const Field& b) {
        Field s;
        add_limbs(s, a, b);  // below 2p, which fits: both moduli leave a bit free
        return reduced_once(s);
    }

    friend IL_HD IL_INLINE Field operator-(const Field& a, const Field& b) {
        Field d;
        uint32_t borrow = sub_limbs(d, a, b);
        Field m;
        IL_UNROLL
        for (int i = 0; i < LIMBS; i++) m.v[i] = P::p(i) & borrow;
        Field r;
        add_limbs(r, d, m);
        return r;
    }

    IL_HD IL_INLINE Field operator-() const { return zero() - *this; }

    IL_HD IL_INLINE Field doubled() const { return *this + *this; }

    // Negated if the condition holds.
    IL_HD IL_INLINE Field negated_if(bool condition) const {
        Field n = -*this;
        IL_UNROLL
        for (int i = 0; i < LIMBS; i++) n.v[i] = condition ? n.v[i] : v[i];
        return n;
    }

    friend IL_HD IL_INLINE Field operator*(const Field& a, const Field& b) {
#if defined(__CUDA_ARCH__) && defined(INTERLOCK_CALLED_PRODUCTS)
        return mul_called(a, b);
#elif defined(__CUDA_ARCH__)
        return mul_device(a, b);
#else
        return mul_host(a, b);
#endif
    }

    IL_HD IL_INLINE Field squared() const { return *this * *this; }

    // From Montgomery form to the canonical integer.
    IL_HD IL_INLINE Field to_canonical() const {
        Field u = zero();
        u.v[0] = 1;
        return *this * u;
    }

    IL_HD IL_INLINE Field to_montgomery() const { return *this * r_squared(); }

    // this^e for a small public exponent.
    IL_HD Field pow(uint64_t e) const {
        Field r = one(), b = *this;
        IL_NO_UNROLL
        for (; e != 0; e >>= 1) {
            if (e & 1) r = r * b;
            b = b.squared();
        }
        return r;
    }

  private:
    static IL_HD IL_INLINE void add_limbs(Field& r, const Field& a, const Field& b) {
#if defined(__CUDA_ARCH__)
        Chain<LIMBS>::add(r.v, a.v, b.v);
#else
        uint64_t carry = 0;
        for (int i = 0; i < LIMBS; i++) {
            carry += uint64_t(a.v[i]) + b.v[i];
            r.v[i] = uint32_t(carry);
            carry >>= 32;
        }
#endif
    }

    // r = a - b modulo R; all ones if it borrowed, else zero.
    static IL_HD IL_INLINE uint32_t sub_limbs(Field& r, const Field& a, const Field& b) {
#if defined(__CUDA_ARCH__)
        return Chain<LIMBS>::sub(r.v, a.v, b.v);
#else
        int64_t borrow = 0;
        for (int i = 0; i < LIMBS; i++) {
            borrow += int64_t(a.v[i]) - int64_t(b.v[i]);
            r.v[i] = uint32_t(borrow);
            borrow >>= 32;
        }
        return uint32_t(borrow);
#endif
    }

    // s < 2p brought below p.
    static IL_HD IL_INLINE Field reduced_once(const Field& s) {
        Field d;
        uint32_t borrow = sub_limbs(d, s, modulus());
        IL_UNROLL
        for (int i = 0; i < LIMBS; i++) d.v[i] = borrow ? s.v[i] : d.v[i];
        return d;
    }

#if defined(__CUDACC__)
    // Montgomery product row by row. The running sum is kept as two interleaved rows: even has the
    // products of even limbs, odd those of odd limbs, one limb higher. Then every carry chain is a
    // run of double-limb multiply-adds, and dividing by 2^32 just swaps the rows' names.
    // 2*LIMBS^2 + LIMBS multiplications (Fr: LIMBS rows of 14 instead of 17).
    static __device__ IL_INLINE Field mul_device(const Field& a, const Field& b) {
        using C = Chain<LIMBS>;
        uint32_t even[LIMBS], odd[LIMBS];
        IL_UNROLL
        for (int i = 0; i < LIMBS; i += 2) {
            uint64_t e = uint64_t(a.v[i]) * b.v[0], o = uint64_t(a.v[i + 1]) * b.v[0];
            even[i] = uint32_t(e), even[i + 1] = uint32_t(e >> 32);
            odd[i] = uint32_t(o), odd[i + 1] = uint32_t(o >> 32);
        }
        reduce_row(even, odd);
        IL_UNROLL
        for (int j = 1; j < LIMBS; j++) {
            uint32_t shifted[LIMBS];
            IL_UNROLL
            for (int i = 0; i < LIMBS - 2; i++) shifted[i] = even[i + 2];
            shifted[LIMBS - 2] = shifted[LIMBS - 1] = 0;
            C::join_mac(shifted, odd[0], even[1], a.v + 1, b.v[j]);
            C::mac_carry(odd, shifted[LIMBS - 1], a.v, b.v[j]);
            IL_UNROLL
            for (int i = 0; i < LIMBS; i++) even[i] = odd[i], odd[i] = shifted[i];
            reduce_row(even, odd);
        }
        Field s;
        uint32_t top[LIMBS];
        IL_UNROLL
        for (int i = 0; i < LIMBS - 1; i++) top[i] = even[i + 1];
        top[LIMBS - 1] = 0;
        C::add(s.v, odd, top);
        return reduced_once(s);
    }

    // The product as a function that is called. Sources whose kernels hold dozens of products
    // define INTERLOCK_CALLED_PRODUCTS: inlined, they would overflow the instruction cache and take
    // minutes to compile.
    static __device__ __noinline__ Field mul_called(Field a, Field b) { return mul_device(a, b); }

    // Adds the multiple of p that clears the lowest limb of the sum even + 2^32*odd.
    static __device__ IL_INLINE void reduce_row(uint32_t* even, uint32_t* odd) {
        uint32_t p[LIMBS];
        IL_UNROLL
        for (int i = 0; i < LIMBS; i++) p[i] = P::p(i);
        if constexpr (P::LOW_LIMBS_TRIVIAL) {
            // m = -even[0]; m*p[0] = m and m*p[1] = 2^32*m - m.
            const uint32_t minus_m = even[0], m = 0u - minus_m, m_high = m - (m != 0);
            Chain<LIMBS>::mac_trivial(odd, p + 1, m, minus_m, m_high);
            Chain<LIMBS>::mac_trivial_carry(even, odd[LIMBS - 1], p, m, m, 0);
        } else {
            const uint32_t m = even[0] * P::N0;
            Chain<LIMBS>::mac(odd, p + 1, m);
            Chain<LIMBS>::mac_carry(even, odd[LIMBS - 1], p, m);
        }
    }
#endif

    // The same product with 64-bit words (coarsely integrated operand scanning).
    static IL_INLINE Field mul_host(const Field& a, const Field& b) {
        constexpr int W = LIMBS / 2;
        uint64_t x[W], y[W], p[W], t[W + 2] = {};
        std::memcpy(x, a.v, sizeof(x));
        std::memcpy(y, b.v, sizeof(y));
        for (int i = 0; i < W; i++) p[i] = uint64_t(P::p(2 * i + 1)) << 32 | P::p(2 * i);
        uint64_t n0 = p[0];  // p^-1 mod 2^64 by Newton's iteration from an inverse mod 2^3
        for (int i = 0; i < 5; i++) n0 *= 2 - p[0] * n0;
        n0 = 0 - n0;
        for (int j = 0; j < W; j++) {
            unsigned __int128 c = 0;
            for (int i = 0; i < W; i++) {
                c += (unsigned __int128)x[i] * y[j] + t[i];
                t[i] = uint64_t(c);
                c >>= 64;
            }
            c += t[W];
            t[W] = uint64_t(c);
            t[W + 1] = uint64_t(c >> 64);
            const uint64_t m = t[0] * n0;
            c = (unsigned __int128)m * p[0] + t[0];
            c >>= 64;
            for (int i = 1; i < W; i++) {
                c += (unsigned __int128)m * p[i] + t[i];
                t[i - 1] = uint64_t(c);
                c >>= 64;
            }
            c += t[W];
            t[W - 1] = uint64_t(c);
            t[W] = t[W + 1] + uint64_t(c >> 64);
        }
        Field s;
        std::memcpy(s.v, t, sizeof(s.v));
        return reduced_once(s);
    }
};

using Fr = Field<FrParams>;
using Fp = Field<FpParams>;

}  // namespace interlock
