// Products of Fr with factors known in advance, for which a quarter of Montgomery's multiplications
// are not needed.
//
// x is cut into four pieces X_i of 64 bits, and the known factor w is kept as four numbers
// w_i = w * 2^(64*i + 96) mod p. Then
//
//     S = X_0*w_0 + X_1*w_1 + X_2*w_2 + X_3*w_3,    x * w = S / 2^96 modulo p.
//
// That is Montgomery's reduction (P. Montgomery, 1985) of a sum of short products in the place of a
// long one: S has 66 bits more than p, so three rows of it do the work of eight. Two would do for
// the length; with the third the result needs no more than one correction: S lies below
// 4 * 2^64 * p, so that (S - M*p) / 2^96, M < 2^96, lies between -p and p / 2^30. Added p if
// negative, it is below p. x need not be: every number of 256 bits does. If x is in Montgomery form
// so is the product, w being the number itself.
//
// 8 * 8 double-limb multiplications and 3 * 6 for the reduction: 82, for Montgomery's 112.
#pragma once

#include "field/field.cuh"

namespace interlock {

constexpr int PIECES = 4;

// A known factor is 2 * PIECES chunks, two for each w_i.
struct alignas(16) KnownChunk {
    uint32_t v[4];
};
constexpr int KNOWN_CHUNKS = 2 * PIECES;

// The factors that make the w_i of a w in Montgomery form.
struct PieceFactors {
    Fr factor[PIECES];

    static PieceFactors make() {
        PieceFactors f;
        f.factor[0] = Fr::zero();
        f.factor[0].v[3] = 1;
        for (int i = 1; i < PIECES; i++) {
            f.factor[i] = f.factor[i - 1];
            for (int bit = 0; bit < 64; bit++) f.factor[i] = f.factor[i].doubled();
        }
        return f;
    }
};

// A factor in memory: chunk c is at[c * STRIDE].
template <uint32_t STRIDE>
struct Known {
    const KnownChunk* at;

    // Cuts w, in Montgomery form.
    static IL_HD void store(KnownChunk* at, const Fr& w, const PieceFactors& factors) {
        for (int i = 0; i < PIECES; i++) {
            const Fr piece = w * factors.factor[i];
            for (int limb = 0; limb < Fr::LIMBS; limb++) {
                at[(2 * i + limb / 4) * STRIDE].v[limb % 4] = piece.v[limb];
            }
        }
    }

    // x may be any number of 256 bits.
    friend IL_HD IL_INLINE Fr operator*(const Known& w, const Fr& x) {
#if defined(__CUDA_ARCH__)
        return w.times_device(x);
#else
        return w.times_host(x);
#endif
    }

  private:
#if defined(__CUDACC__)
    // Two interleaved sums as in Field::mul_device: e[c] and o[c] have the weight 2^(32*c); double
    // limbs begin at an even place in e, at an odd one in o.
    __device__ IL_INLINE Fr times_device(const Fr& x) const {
        using C = Chain<Fr::LIMBS>;
        uint32_t w[8], e[11], o[11], carries8 = 0;  // carries8: into place 8 of e
        e[8] = e[9] = e[10] = o[9] = o[10] = 0;
        IL_UNROLL
        for (int i = 0; i < PIECES; i++) {
            load_piece(i, w);
            const uint32_t low = x.v[2 * i], high = x.v[2 * i + 1];
            if (i == 0) {
                IL_UNROLL
                for (int j = 0; j < 8; j += 2) {
                    const uint64_t s = uint64_t(w[j]) * low, t = uint64_t(w[j + 1]) * low;
                    e[j] = uint32_t(s), e[j + 1] = uint32_t(s >> 32);
                    o[j + 1] = uint32_t(t), o[j + 2] = uint32_t(t >> 32);
                }
            } else {
                mac_run<4>(e, carries8, w, low);
                mac_run<4>(o + 1, o[9], w + 1, low);
            }
            mac_run<4>(o + 1, o[9], w, high);
            // p's highest limb is below 2^31: the first two do not overflow.
            if (i < 2) {
                C::mac(e + 2, w + 1, high);
            } else {
                mac_run<4>(e + 2, e[10], w + 1, high);
            }
        }
        // The rows of the reduction, of which Field::reduce_row says how they are done: by the
        // multiple m[row] of q = 2^256 - p, which clears a limb and adds m[row] to the next. With
        // all of them the sum stays below 2^321 + 2^96 * q, which 11 limbs hold.
        uint32_t q[8], m[3], beyond = 0;
        IL_UNROLL
        for (int i = 0; i < 8; i++) q[i] = ~FrParams::p(i);
        m[0] = e[0];
        C::add_mac3(o + 1, o[9], m[0], q + 3, m[0]);
        mac_run<3>(e + 2, carries8, q + 2, m[0]);
        C::join_mac3(e + 2, e[10], m[1], o[1], e[1], q + 3);
        mac_run<3>(o + 3, o[9], q + 2, m[1]);
        C::join_mac3(o + 3, beyond, m[2], e[2], o[2], q + 3);
        mac_run<3>(e + 4, e[10], q + 2, m[2]);
        C::add3(e + 8, carries8);
        Fr r;
        C::add(r.v, e + 3, o + 3);
        // 2^256 * m is still to be taken away.
        const uint32_t borrow = C::sub3(r.v + 5, m);
        C::add_if(r.v, Fr::modulus().v, borrow);
        return r;
    }

    __device__ IL_INLINE void load_piece(int i, uint32_t* w) const {
        IL_UNROLL
        for (int half = 0; half < 2; half++) {
            // Volatile: a factor that is used twice is loaded twice rather than kept.
            asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(w[4 * half]), "=r"(w[4 * half + 1]), "=r"(w[4 * half + 2]),
                           "=r"(w[4 * half + 3])
                         : "l"(at + (2 * i + half) * STRIDE));
        }
    }
#endif

    // The same by rows of 32 bits, as p stands: (S + M*p) / 2^96 lies below p + p / 2^30.
    IL_INLINE Fr times_host(const Fr& x) const {
        constexpr int LENGTH = Fr::LIMBS + 3;
        uint32_t s[LENGTH] = {}, w[Fr::LIMBS];
        // s += a * b * 2^(32*first)
        const auto add_row = [&s](int first, const uint32_t* a, uint32_t b) {
            uint64_t carry = 0;
            for (int k = 0; first + k < LENGTH; k++) {
                carry += s[first + k];
                if (k < Fr::LIMBS) carry += uint64_t(a[k]) * b;
                s[first + k] = uint32_t(carry);
                carry >>= 32;
            }
        };
        for (int i = 0; i < PIECES; i++) {
            std::memcpy(w, at[2 * i * STRIDE].v, sizeof(KnownChunk));
            std::memcpy(w + 4, at[(2 * i + 1) * STRIDE].v, sizeof(KnownChunk));
            for (int j = 0; j < 2; j++) add_row(j, w, x.v[2 * i + j]);
        }
        const Fr p = Fr::modulus();
        for (int row = 0; row < 3; row++) add_row(row, p.v, 0 - s[row]);  // p = 1 modulo 2^32
        Fr r;
        std::memcpy(r.v, s + 3, sizeof(r.v));
        return r - p;  // with p added again if that is negative
    }
};

}  // namespace interlock
