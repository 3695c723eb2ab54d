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
        const uint32_t borrow = sub_limbs(d, a, b);
        add_modulus_if(d, borrow);
        return d;
    }

    // a - b + p, which lies below 2p: good only as the second factor of a product whose first is
    // below p. An ordinary difference costs a comparison more.
    static IL_HD IL_INLINE Field unreduced_difference(const Field& a, const Field& b) {
        Field minus_b, r;
        (void)sub_limbs(minus_b, modulus(), b);
        add_limbs(r, a, minus_b);
        return r;
    }

    // sum = a + b, and difference unreduced as above, with fewer instructions than one by one.
    static IL_HD IL_INLINE void sum_and_difference(const Field& a, const Field& b, Field& sum,
                                                   Field& difference) {
        Field minus_b, s;
        (void)sub_limbs(minus_b, modulus(), b);
        const uint32_t borrow = sub_limbs(s, a, minus_b);
        add_limbs(difference, a, minus_b);
        add_modulus_if(s, borrow);
        sum = s;
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

    IL_HD IL_INLINE Field squared() const {
#if defined(__CUDA_ARCH__) && !defined(INTERLOCK_CALLED_PRODUCTS)
        if constexpr (LIMBS == 12) return square_device(*this);
#endif
        return *this * *this;
    }

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

    // r + p modulo R if the condition is not zero.
    static IL_HD IL_INLINE void add_modulus_if(Field& r, uint32_t condition) {
#if defined(__CUDA_ARCH__)
        Chain<LIMBS>::add_if(r.v, modulus().v, condition);
#else
        if (condition != 0) add_limbs(r, r, modulus());
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
    // 2*LIMBS^2 double-limb multiplications and LIMBS single ones; Fr: 112.
    static __device__ IL_INLINE Field mul_device(const Field& a, const Field& b) {
        using C = Chain<LIMBS>;
        uint32_t even[LIMBS], odd[LIMBS], m[LIMBS];
        IL_UNROLL
        for (int i = 0; i < LIMBS; i += 2) {
            uint64_t e = uint64_t(a.v[i]) * b.v[0], o = uint64_t(a.v[i + 1]) * b.v[0];
            even[i] = uint32_t(e), even[i + 1] = uint32_t(e >> 32);
            odd[i] = uint32_t(o), odd[i + 1] = uint32_t(o >> 32);
        }
        reduce_row(even, odd, m[0]);
        IL_UNROLL
        for (int j = 1; j < LIMBS; j++) {
            uint32_t shifted[LIMBS];
            IL_UNROLL
            for (int i = 0; i < LIMBS - 2; i++) shifted[i] = even[i + 2];
            shifted[LIMBS - 2] = shifted[LIMBS - 1] = 0;
            C::join_mac(shifted, odd[0], even[1], a.v + 1, b.v[j]);
            mac_run<LIMBS / 2>(odd, shifted[LIMBS - 1], a.v, b.v[j]);
            IL_UNROLL
            for (int i = 0; i < LIMBS; i++) even[i] = odd[i], odd[i] = shifted[i];
            reduce_row(even, odd, m[j]);
        }
        Field s;
        uint32_t top[LIMBS];
        IL_UNROLL
        for (int i = 0; i < LIMBS - 1; i++) top[i] = even[i + 1];
        top[LIMBS - 1] = 0;
        C::add(s.v, odd, top);
        if constexpr (P::LOW_LIMBS_TRIVIAL) {
            // The rows added multiples of 2^256 - p for those of -p: 2^256 * m is still to be
            // taken away, and the result lies between -p and p.
            Field d;
            const uint32_t borrow = C::sub(d.v, s.v, m);
            add_modulus_if(d, borrow);
            return d;
        } else {
            return reduced_once(s);
        }
    }

    // Adds the multiple of p that clears the lowest limb of the sum even + 2^32*odd.
    //
    // If p = 1 modulo 2^32 and its second limb is all ones, then q = 2^(32*LIMBS) - p has all ones,
    // zero, and the complements of p's higher limbs. The multiple m of -p is then taken as m*q -
    // 2^(32*LIMBS)*m, m being the lowest limb itself: m*q clears it and adds m one limb higher,
    // without any multiplication. Even's lowest limb is left as it was, and not used again.
    static __device__ IL_INLINE void reduce_row(uint32_t* even, uint32_t* odd, uint32_t& m) {
        uint32_t p[LIMBS];
        if constexpr (P::LOW_LIMBS_TRIVIAL) {
            IL_UNROLL
            for (int i = 0; i < LIMBS; i++) p[i] = ~P::p(i);
            m = even[0];
            Chain<LIMBS>::add_mac_upper(odd, m, p + 1, m);
            mac_run<3>(even + 2, odd[LIMBS - 1], p + 2, m);
        } else {
            IL_UNROLL
            for (int i = 0; i < LIMBS; i++) p[i] = P::p(i);
            m = even[0] * P::N0;
            Chain<LIMBS>::mac(odd, p + 1, m);
            mac_run<LIMBS / 2>(even, odd[LIMBS - 1], p, m);
        }
    }

    // Square: products of two different limbs once, doubled; then the reduction. Of Fp's 288
    // double-limb multiplications 222 remain.
    static __device__ IL_INLINE Field square_device(const Field& a) {
        using C = Chain<LIMBS>;
        uint32_t t[2 * LIMBS];
        {
            // Products at an even place and those at an odd one, each free of overlaps in a row.
            uint32_t even[2 * LIMBS] = {}, odd[2 * LIMBS] = {};
            square_rows<0>(even, odd, a.v);
            // t = 2 * (even + odd).
            uint32_t sum[2 * LIMBS], carry_low;
            C::add_out(sum, even, odd, carry_low);
            C::add_in(sum + LIMBS, even + LIMBS, odd + LIMBS, carry_low);
            t[0] = sum[0] << 1;
            IL_UNROLL
            for (int i = 1; i < 2 * LIMBS; i++) t[i] = __funnelshift_l(sum[i - 1], sum[i], 1);
            uint32_t carry;
            C::add_squares_low(t, a.v, carry);
            C::add_squares_high(t + LIMBS, a.v + LIMBS / 2, carry);
        }
        uint32_t even[LIMBS], odd[LIMBS], p[LIMBS], m;
        IL_UNROLL
        for (int i = 0; i < LIMBS; i++) even[i] = t[i], odd[i] = 0, p[i] = P::p(i);
        reduce_row(even, odd, m);
        IL_UNROLL
        for (int j = 1; j < LIMBS; j++) {
            uint32_t shifted[LIMBS];
            IL_UNROLL
            for (int i = 0; i < LIMBS - 2; i++) shifted[i] = even[i + 2];
            shifted[LIMBS - 2] = shifted[LIMBS - 1] = 0;
            C::join_reduce(shifted, odd[0], even[1], p + 1, P::N0, m);
            mac_run<LIMBS / 2>(odd, shifted[LIMBS - 1], p, m);
            IL_UNROLL
            for (int i = 0; i < LIMBS; i++) even[i] = odd[i], odd[i] = shifted[i];
        }
        Field s, r;
        uint32_t top[LIMBS];
        IL_UNROLL
        for (int i = 0; i < LIMBS - 1; i++) top[i] = even[i + 1];
        top[LIMBS - 1] = 0;
        C::add(s.v, odd, top);
        C::add(r.v, s.v, t + LIMBS);
        return reduced_once(r);
    }

    template <int I>
    static __device__ IL_INLINE void square_rows(uint32_t* even, uint32_t* odd, const uint32_t* a) {
        if constexpr (I < LIMBS - 1) {
            constexpr int ODD = (LIMBS - I) / 2, EVEN = (LIMBS - 1 - I) / 2;
            mac_run<ODD>(odd + 2 * I + 1, odd[2 * I + 1 + 2 * ODD], a + I + 1, a[I]);
            if constexpr (EVEN > 0) {
                mac_run<EVEN>(even + 2 * I + 2, even[2 * I + 2 + 2 * EVEN], a + I + 2, a[I]);
            }
            square_rows<I + 1>(even, odd, a);
        }
    }

    // The product as a function that is called. Sources whose kernels hold dozens of products
    // define INTERLOCK_CALLED_PRODUCTS: inlined, they would overflow the instruction cache and take
    // minutes to compile.
    static __device__ __noinline__ Field mul_called(Field a, Field b) { return mul_device(a, b); }
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
