// Carry chains in PTX for numbers of 8 and 12 limbs of 32 bits. One asm statement is one chain, so
// that the compiler cannot put anything between two links of it; ptxas joins each pair of
// mad.lo and mad.hi of the same operands into one IMAD.WIDE with carry. Device code only.
#pragma once

#include <cstdint>

#include "field/macros.cuh"

#if defined(__CUDACC__)

namespace interlock {

// acc[0 .. 2*COUNT) += a[0,2,..] * b over COUNT limbs of a; the carry goes into top.
template <int COUNT>
__device__ IL_INLINE void mac_run(uint32_t* acc, uint32_t& top, const uint32_t* a, uint32_t b) {
    static_assert(COUNT >= 1 && COUNT <= 6, "a run is at most half of the limbs");
    if constexpr (COUNT == 1) {
        asm("mad.lo.cc.u32 %0, %3, %4, %0;\n\t"
            "madc.hi.cc.u32 %1, %3, %4, %1;\n\t"
            "addc.u32 %2, %2, 0;"
            : "+r"(acc[0]), "+r"(acc[1]), "+r"(top)
            : "r"(a[0]), "r"(b));
    }
    if constexpr (COUNT == 2) {
        asm("mad.lo.cc.u32 %0, %5, %7, %0;\n\t"
            "madc.hi.cc.u32 %1, %5, %7, %1;\n\t"
            "madc.lo.cc.u32 %2, %6, %7, %2;\n\t"
            "madc.hi.cc.u32 %3, %6, %7, %3;\n\t"
            "addc.u32 %4, %4, 0;"
            : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(top)
            : "r"(a[0]), "r"(a[2]), "r"(b));
    }
    if constexpr (COUNT == 3) {
        asm("mad.lo.cc.u32 %0, %7, %10, %0;\n\t"
            "madc.hi.cc.u32 %1, %7, %10, %1;\n\t"
            "madc.lo.cc.u32 %2, %8, %10, %2;\n\t"
            "madc.hi.cc.u32 %3, %8, %10, %3;\n\t"
            "madc.lo.cc.u32 %4, %9, %10, %4;\n\t"
            "madc.hi.cc.u32 %5, %9, %10, %5;\n\t"
            "addc.u32 %6, %6, 0;"
            : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
              "+r"(top)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(b));
    }
    if constexpr (COUNT == 4) {
        asm("mad.lo.cc.u32 %0, %9, %13, %0;\n\t"
            "madc.hi.cc.u32 %1, %9, %13, %1;\n\t"
            "madc.lo.cc.u32 %2, %10, %13, %2;\n\t"
            "madc.hi.cc.u32 %3, %10, %13, %3;\n\t"
            "madc.lo.cc.u32 %4, %11, %13, %4;\n\t"
            "madc.hi.cc.u32 %5, %11, %13, %5;\n\t"
            "madc.lo.cc.u32 %6, %12, %13, %6;\n\t"
            "madc.hi.cc.u32 %7, %12, %13, %7;\n\t"
            "addc.u32 %8, %8, 0;"
            : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
              "+r"(acc[6]), "+r"(acc[7]), "+r"(top)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(b));
    }
    if constexpr (COUNT == 5) {
        asm("mad.lo.cc.u32 %0, %11, %16, %0;\n\t"
            "madc.hi.cc.u32 %1, %11, %16, %1;\n\t"
            "madc.lo.cc.u32 %2, %12, %16, %2;\n\t"
            "madc.hi.cc.u32 %3, %12, %16, %3;\n\t"
            "madc.lo.cc.u32 %4, %13, %16, %4;\n\t"
            "madc.hi.cc.u32 %5, %13, %16, %5;\n\t"
            "madc.lo.cc.u32 %6, %14, %16, %6;\n\t"
            "madc.hi.cc.u32 %7, %14, %16, %7;\n\t"
            "madc.lo.cc.u32 %8, %15, %16, %8;\n\t"
            "madc.hi.cc.u32 %9, %15, %16, %9;\n\t"
            "addc.u32 %10, %10, 0;"
            : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
              "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(top)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(a[8]), "r"(b));
    }
    if constexpr (COUNT == 6) {
        asm("mad.lo.cc.u32 %0, %13, %19, %0;\n\t"
            "madc.hi.cc.u32 %1, %13, %19, %1;\n\t"
            "madc.lo.cc.u32 %2, %14, %19, %2;\n\t"
            "madc.hi.cc.u32 %3, %14, %19, %3;\n\t"
            "madc.lo.cc.u32 %4, %15, %19, %4;\n\t"
            "madc.hi.cc.u32 %5, %15, %19, %5;\n\t"
            "madc.lo.cc.u32 %6, %16, %19, %6;\n\t"
            "madc.hi.cc.u32 %7, %16, %19, %7;\n\t"
            "madc.lo.cc.u32 %8, %17, %19, %8;\n\t"
            "madc.hi.cc.u32 %9, %17, %19, %9;\n\t"
            "madc.lo.cc.u32 %10, %18, %19, %10;\n\t"
            "madc.hi.cc.u32 %11, %18, %19, %11;\n\t"
            "addc.u32 %12, %12, 0;"
            : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
              "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10]), "+r"(acc[11]),
              "+r"(top)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(a[8]), "r"(a[10]), "r"(b));
    }
}

template <int LIMBS>
struct Chain;

template <>
struct Chain<8> {
    // acc += a[0,2,..] * b, known not to overflow.
    static __device__ IL_INLINE void mac(uint32_t* acc, const uint32_t* a, uint32_t b) {
        asm("mad.lo.cc.u32 %0, %8, %12, %0;\n\t"
            "madc.hi.cc.u32 %1, %8, %12, %1;\n\t"
            "madc.lo.cc.u32 %2, %9, %12, %2;\n\t"
            "madc.hi.cc.u32 %3, %9, %12, %3;\n\t"
            "madc.lo.cc.u32 %4, %10, %12, %4;\n\t"
            "madc.hi.cc.u32 %5, %10, %12, %5;\n\t"
            "madc.lo.cc.u32 %6, %11, %12, %6;\n\t"
            "madc.hi.u32 %7, %11, %12, %7;\n\t"
            : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
              "+r"(acc[6]), "+r"(acc[7])
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(b));
    }
    // low += e; acc += a[0,2,..] * b + the carry of that addition.
    static __device__ IL_INLINE void join_mac(uint32_t* acc, uint32_t& low, uint32_t e,
                                              const uint32_t* a, uint32_t b) {
        asm("add.cc.u32 %8, %8, %14;\n\t"
            "madc.lo.cc.u32 %0, %9, %13, %0;\n\t"
            "madc.hi.cc.u32 %1, %9, %13, %1;\n\t"
            "madc.lo.cc.u32 %2, %10, %13, %2;\n\t"
            "madc.hi.cc.u32 %3, %10, %13, %3;\n\t"
            "madc.lo.cc.u32 %4, %11, %13, %4;\n\t"
            "madc.hi.cc.u32 %5, %11, %13, %5;\n\t"
            "madc.lo.cc.u32 %6, %12, %13, %6;\n\t"
            "madc.hi.u32 %7, %12, %13, %7;\n\t"
            : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
              "+r"(acc[6]), "+r"(acc[7]), "+r"(low)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(b), "r"(e));
    }
    // r = a + b, known not to overflow.
    static __device__ IL_INLINE void add(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        asm("add.cc.u32 %0, %8, %16;\n\t"
            "addc.cc.u32 %1, %9, %17;\n\t"
            "addc.cc.u32 %2, %10, %18;\n\t"
            "addc.cc.u32 %3, %11, %19;\n\t"
            "addc.cc.u32 %4, %12, %20;\n\t"
            "addc.cc.u32 %5, %13, %21;\n\t"
            "addc.cc.u32 %6, %14, %22;\n\t"
            "addc.u32 %7, %15, %23;\n\t"
            : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3]), "=&r"(r[4]), "=&r"(r[5]),
              "=&r"(r[6]), "=&r"(r[7])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]),
              "r"(a[7]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]),
              "r"(b[6]), "r"(b[7]));
    }
    // r = a - b; returns all ones if it borrowed, else zero.
    static __device__ IL_INLINE uint32_t sub(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        uint32_t borrow;
        asm("sub.cc.u32 %0, %9, %17;\n\t"
            "subc.cc.u32 %1, %10, %18;\n\t"
            "subc.cc.u32 %2, %11, %19;\n\t"
            "subc.cc.u32 %3, %12, %20;\n\t"
            "subc.cc.u32 %4, %13, %21;\n\t"
            "subc.cc.u32 %5, %14, %22;\n\t"
            "subc.cc.u32 %6, %15, %23;\n\t"
            "subc.cc.u32 %7, %16, %24;\n\t"
            "subc.u32 %8, 0, 0;"
            : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3]), "=&r"(r[4]), "=&r"(r[5]),
              "=&r"(r[6]), "=&r"(r[7]), "=r"(borrow)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]),
              "r"(a[7]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]),
              "r"(b[6]), "r"(b[7]));
        return borrow;
    }
    // acc += low + 2^64 * (a[2], a[4], a[6]) * b, known not to overflow.
    static __device__ IL_INLINE void add_mac_upper(uint32_t* acc, uint32_t low, const uint32_t* a,
                                                   uint32_t b) {
        asm("add.cc.u32 %0, %0, %12;\n\t"
            "addc.cc.u32 %1, %1, 0;\n\t"
            "madc.lo.cc.u32 %2, %8, %11, %2;\n\t"
            "madc.hi.cc.u32 %3, %8, %11, %3;\n\t"
            "madc.lo.cc.u32 %4, %9, %11, %4;\n\t"
            "madc.hi.cc.u32 %5, %9, %11, %5;\n\t"
            "madc.lo.cc.u32 %6, %10, %11, %6;\n\t"
            "madc.hi.u32 %7, %10, %11, %7;\n\t"
            : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
              "+r"(acc[6]), "+r"(acc[7])
            : "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(b), "r"(low));
    }
    // r += b if the condition is not zero, dropping the carry.
    static __device__ IL_INLINE void add_if(uint32_t* r, const uint32_t* b, uint32_t condition) {
        asm("{\n\t.reg .pred q;\n\t"
            "setp.ne.u32 q, %16, 0;\n\t"
            "@q add.cc.u32 %0, %0, %8;\n\t"
            "@q addc.cc.u32 %1, %1, %9;\n\t"
            "@q addc.cc.u32 %2, %2, %10;\n\t"
            "@q addc.cc.u32 %3, %3, %11;\n\t"
            "@q addc.cc.u32 %4, %4, %12;\n\t"
            "@q addc.cc.u32 %5, %5, %13;\n\t"
            "@q addc.cc.u32 %6, %6, %14;\n\t"
            "@q addc.u32 %7, %7, %15;\n\t"
            "}"
            : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]),
              "+r"(r[7])
            : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]),
              "r"(b[7]), "r"(condition));
    }
    // acc += low + 2^64 * a[0,2,4] * b; the carry goes into top.
    static __device__ IL_INLINE void add_mac3(uint32_t* acc, uint32_t& top, uint32_t low,
                                              const uint32_t* a, uint32_t b) {
        asm("add.cc.u32 %0, %0, %13;\n\t"
            "addc.cc.u32 %1, %1, 0;\n\t"
            "madc.lo.cc.u32 %2, %9, %12, %2;\n\t"
            "madc.hi.cc.u32 %3, %9, %12, %3;\n\t"
            "madc.lo.cc.u32 %4, %10, %12, %4;\n\t"
            "madc.hi.cc.u32 %5, %10, %12, %5;\n\t"
            "madc.lo.cc.u32 %6, %11, %12, %6;\n\t"
            "madc.hi.cc.u32 %7, %11, %12, %7;\n\t"
            "addc.u32 %8, %8, 0;"
            : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
              "+r"(acc[6]), "+r"(acc[7]), "+r"(top)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(b), "r"(low));
    }
    // m = c + d; acc += m + the carry of that addition + 2^64 * a[0,2,4] * m; the carry goes into
    // top.
    static __device__ IL_INLINE void join_mac3(uint32_t* acc, uint32_t& top, uint32_t& m,
                                               uint32_t c, uint32_t d, const uint32_t* a) {
        asm("add.cc.u32 %9, %13, %14;\n\t"
            "addc.cc.u32 %0, %0, %9;\n\t"
            "addc.cc.u32 %1, %1, 0;\n\t"
            "madc.lo.cc.u32 %2, %10, %9, %2;\n\t"
            "madc.hi.cc.u32 %3, %10, %9, %3;\n\t"
            "madc.lo.cc.u32 %4, %11, %9, %4;\n\t"
            "madc.hi.cc.u32 %5, %11, %9, %5;\n\t"
            "madc.lo.cc.u32 %6, %12, %9, %6;\n\t"
            "madc.hi.cc.u32 %7, %12, %9, %7;\n\t"
            "addc.u32 %8, %8, 0;"
            : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
              "+r"(acc[6]), "+r"(acc[7]), "+r"(top), "=&r"(m)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(c), "r"(d));
    }
    // Three limbs of acc += low, known not to overflow.
    static __device__ IL_INLINE void add3(uint32_t* acc, uint32_t low) {
        asm("add.cc.u32 %0, %0, %3;\n\t"
            "addc.cc.u32 %1, %1, 0;\n\t"
            "addc.u32 %2, %2, 0;"
            : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2])
            : "r"(low));
    }
    // Three limbs of r -= b; returns all ones if it borrowed, else zero.
    static __device__ IL_INLINE uint32_t sub3(uint32_t* r, const uint32_t* b) {
        uint32_t borrow;
        asm("sub.cc.u32 %0, %0, %4;\n\t"
            "subc.cc.u32 %1, %1, %5;\n\t"
            "subc.cc.u32 %2, %2, %6;\n\t"
            "subc.u32 %3, 0, 0;"
            : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "=r"(borrow)
            : "r"(b[0]), "r"(b[1]), "r"(b[2]));
        return borrow;
    }
};

template <>
struct Chain<12> {
    // acc += a[0,2,..] * b, known not to overflow.
    static __device__ IL_INLINE void mac(uint32_t* acc, const uint32_t* a, uint32_t b) {
        asm("mad.lo.cc.u32 %0, %12, %18, %0;\n\t"
            "madc.hi.cc.u32 %1, %12, %18, %1;\n\t"
            "madc.lo.cc.u32 %2, %13, %18, %2;\n\t"
            "madc.hi.cc.u32 %3, %13, %18, %3;\n\t"
            "madc.lo.cc.u32 %4, %14, %18, %4;\n\t"
            "madc.hi.cc.u32 %5, %14, %18, %5;\n\t"
            "madc.lo.cc.u32 %6, %15, %18, %6;\n\t"
            "madc.hi.cc.u32 %7, %15, %18, %7;\n\t"
            "madc.lo.cc.u32 %8, %16, %18, %8;\n\t"
            "madc.hi.cc.u32 %9, %16, %18, %9;\n\t"
            "madc.lo.cc.u32 %10, %17, %18, %10;\n\t"
            "madc.hi.u32 %11, %17, %18, %11;\n\t"
            : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
              "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10]), "+r"(acc[11])
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(a[8]), "r"(a[10]), "r"(b));
    }
    // low += e; acc += a[0,2,..] * b + the carry of that addition.
    static __device__ IL_INLINE void join_mac(uint32_t* acc, uint32_t& low, uint32_t e,
                                              const uint32_t* a, uint32_t b) {
        asm("add.cc.u32 %12, %12, %20;\n\t"
            "madc.lo.cc.u32 %0, %13, %19, %0;\n\t"
            "madc.hi.cc.u32 %1, %13, %19, %1;\n\t"
            "madc.lo.cc.u32 %2, %14, %19, %2;\n\t"
            "madc.hi.cc.u32 %3, %14, %19, %3;\n\t"
            "madc.lo.cc.u32 %4, %15, %19, %4;\n\t"
            "madc.hi.cc.u32 %5, %15, %19, %5;\n\t"
            "madc.lo.cc.u32 %6, %16, %19, %6;\n\t"
            "madc.hi.cc.u32 %7, %16, %19, %7;\n\t"
            "madc.lo.cc.u32 %8, %17, %19, %8;\n\t"
            "madc.hi.cc.u32 %9, %17, %19, %9;\n\t"
            "madc.lo.cc.u32 %10, %18, %19, %10;\n\t"
            "madc.hi.u32 %11, %18, %19, %11;\n\t"
            : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
              "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10]), "+r"(acc[11]),
              "+r"(low)
            : "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(a[8]), "r"(a[10]), "r"(b), "r"(e));
    }
    // r = a + b, known not to overflow.
    static __device__ IL_INLINE void add(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        asm("add.cc.u32 %0, %12, %24;\n\t"
            "addc.cc.u32 %1, %13, %25;\n\t"
            "addc.cc.u32 %2, %14, %26;\n\t"
            "addc.cc.u32 %3, %15, %27;\n\t"
            "addc.cc.u32 %4, %16, %28;\n\t"
            "addc.cc.u32 %5, %17, %29;\n\t"
            "addc.cc.u32 %6, %18, %30;\n\t"
            "addc.cc.u32 %7, %19, %31;\n\t"
            "addc.cc.u32 %8, %20, %32;\n\t"
            "addc.cc.u32 %9, %21, %33;\n\t"
            "addc.cc.u32 %10, %22, %34;\n\t"
            "addc.u32 %11, %23, %35;\n\t"
            : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3]), "=&r"(r[4]), "=&r"(r[5]),
              "=&r"(r[6]), "=&r"(r[7]), "=&r"(r[8]), "=&r"(r[9]), "=&r"(r[10]), "=&r"(r[11])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]),
              "r"(a[7]), "r"(a[8]), "r"(a[9]), "r"(a[10]), "r"(a[11]), "r"(b[0]), "r"(b[1]),
              "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]), "r"(b[8]),
              "r"(b[9]), "r"(b[10]), "r"(b[11]));
    }
    // r = a - b; returns all ones if it borrowed, else zero.
    static __device__ IL_INLINE uint32_t sub(uint32_t* r, const uint32_t* a, const uint32_t* b) {
        uint32_t borrow;
        asm("sub.cc.u32 %0, %13, %25;\n\t"
            "subc.cc.u32 %1, %14, %26;\n\t"
            "subc.cc.u32 %2, %15, %27;\n\t"
            "subc.cc.u32 %3, %16, %28;\n\t"
            "subc.cc.u32 %4, %17, %29;\n\t"
            "subc.cc.u32 %5, %18, %30;\n\t"
            "subc.cc.u32 %6, %19, %31;\n\t"
            "subc.cc.u32 %7, %20, %32;\n\t"
            "subc.cc.u32 %8, %21, %33;\n\t"
            "subc.cc.u32 %9, %22, %34;\n\t"
            "subc.cc.u32 %10, %23, %35;\n\t"
            "subc.cc.u32 %11, %24, %36;\n\t"
            "subc.u32 %12, 0, 0;"
            : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3]), "=&r"(r[4]), "=&r"(r[5]),
              "=&r"(r[6]), "=&r"(r[7]), "=&r"(r[8]), "=&r"(r[9]), "=&r"(r[10]), "=&r"(r[11]),
              "=r"(borrow)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]),
              "r"(a[7]), "r"(a[8]), "r"(a[9]), "r"(a[10]), "r"(a[11]), "r"(b[0]), "r"(b[1]),
              "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]), "r"(b[8]),
              "r"(b[9]), "r"(b[10]), "r"(b[11]));
        return borrow;
    }
    // r += b if the condition is not zero, dropping the carry.
    static __device__ IL_INLINE void add_if(uint32_t* r, const uint32_t* b, uint32_t condition) {
        asm("{\n\t.reg .pred q;\n\t"
            "setp.ne.u32 q, %24, 0;\n\t"
            "@q add.cc.u32 %0, %0, %12;\n\t"
            "@q addc.cc.u32 %1, %1, %13;\n\t"
            "@q addc.cc.u32 %2, %2, %14;\n\t"
            "@q addc.cc.u32 %3, %3, %15;\n\t"
            "@q addc.cc.u32 %4, %4, %16;\n\t"
            "@q addc.cc.u32 %5, %5, %17;\n\t"
            "@q addc.cc.u32 %6, %6, %18;\n\t"
            "@q addc.cc.u32 %7, %7, %19;\n\t"
            "@q addc.cc.u32 %8, %8, %20;\n\t"
            "@q addc.cc.u32 %9, %9, %21;\n\t"
            "@q addc.cc.u32 %10, %10, %22;\n\t"
            "@q addc.u32 %11, %11, %23;\n\t"
            "}"
            : "+r"(r[0]), "+r"(r[1]), "+r"(r[2]), "+r"(r[3]), "+r"(r[4]), "+r"(r[5]), "+r"(r[6]),
              "+r"(r[7]), "+r"(r[8]), "+r"(r[9]), "+r"(r[10]), "+r"(r[11])
            : "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]),
              "r"(b[7]), "r"(b[8]), "r"(b[9]), "r"(b[10]), "r"(b[11]), "r"(condition));
    }
    // acc[0 .. 12) += the squares of a[0 .. 6), each at twice its place; carry is 1 or 0.
    static __device__ IL_INLINE void add_squares_low(uint32_t* acc, const uint32_t* a,
                                                     uint32_t& carry) {
        asm("mad.lo.cc.u32 %0, %13, %13, %0;\n\t"
            "madc.hi.cc.u32 %1, %13, %13, %1;\n\t"
            "madc.lo.cc.u32 %2, %14, %14, %2;\n\t"
            "madc.hi.cc.u32 %3, %14, %14, %3;\n\t"
            "madc.lo.cc.u32 %4, %15, %15, %4;\n\t"
            "madc.hi.cc.u32 %5, %15, %15, %5;\n\t"
            "madc.lo.cc.u32 %6, %16, %16, %6;\n\t"
            "madc.hi.cc.u32 %7, %16, %16, %7;\n\t"
            "madc.lo.cc.u32 %8, %17, %17, %8;\n\t"
            "madc.hi.cc.u32 %9, %17, %17, %9;\n\t"
            "madc.lo.cc.u32 %10, %18, %18, %10;\n\t"
            "madc.hi.cc.u32 %11, %18, %18, %11;\n\t"
            "addc.u32 %12, 0, 0;"
            : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
              "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10]), "+r"(acc[11]),
              "=&r"(carry)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));
    }
    // The same with the carry coming in, known not to overflow.
    static __device__ IL_INLINE void add_squares_high(uint32_t* acc, const uint32_t* a,
                                                      uint32_t carry) {
        asm("add.cc.u32 %12, %12, 0xffffffff;\n\t"
            "madc.lo.cc.u32 %0, %13, %13, %0;\n\t"
            "madc.hi.cc.u32 %1, %13, %13, %1;\n\t"
            "madc.lo.cc.u32 %2, %14, %14, %2;\n\t"
            "madc.hi.cc.u32 %3, %14, %14, %3;\n\t"
            "madc.lo.cc.u32 %4, %15, %15, %4;\n\t"
            "madc.hi.cc.u32 %5, %15, %15, %5;\n\t"
            "madc.lo.cc.u32 %6, %16, %16, %6;\n\t"
            "madc.hi.cc.u32 %7, %16, %16, %7;\n\t"
            "madc.lo.cc.u32 %8, %17, %17, %8;\n\t"
            "madc.hi.cc.u32 %9, %17, %17, %9;\n\t"
            "madc.lo.cc.u32 %10, %18, %18, %10;\n\t"
            "madc.hi.u32 %11, %18, %18, %11;\n\t"
            : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
              "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10]), "+r"(acc[11]),
              "+r"(carry)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));
    }
    // low += e; m = low * factor; acc += a[0,2,..] * m + the carry of that addition.
    static __device__ IL_INLINE void join_reduce(uint32_t* acc, uint32_t& low, uint32_t e,
                                                 const uint32_t* a, uint32_t factor, uint32_t& m) {
        asm("add.cc.u32 %12, %12, %14;\n\t"
            "mul.lo.u32 %13, %12, %15;\n\t"
            "madc.lo.cc.u32 %0, %16, %13, %0;\n\t"
            "madc.hi.cc.u32 %1, %16, %13, %1;\n\t"
            "madc.lo.cc.u32 %2, %17, %13, %2;\n\t"
            "madc.hi.cc.u32 %3, %17, %13, %3;\n\t"
            "madc.lo.cc.u32 %4, %18, %13, %4;\n\t"
            "madc.hi.cc.u32 %5, %18, %13, %5;\n\t"
            "madc.lo.cc.u32 %6, %19, %13, %6;\n\t"
            "madc.hi.cc.u32 %7, %19, %13, %7;\n\t"
            "madc.lo.cc.u32 %8, %20, %13, %8;\n\t"
            "madc.hi.cc.u32 %9, %20, %13, %9;\n\t"
            "madc.lo.cc.u32 %10, %21, %13, %10;\n\t"
            "madc.hi.u32 %11, %21, %13, %11;\n\t"
            : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3]), "+r"(acc[4]), "+r"(acc[5]),
              "+r"(acc[6]), "+r"(acc[7]), "+r"(acc[8]), "+r"(acc[9]), "+r"(acc[10]), "+r"(acc[11]),
              "+r"(low), "=&r"(m)
            : "r"(e), "r"(factor), "r"(a[0]), "r"(a[2]), "r"(a[4]), "r"(a[6]), "r"(a[8]),
              "r"(a[10]));
    }
    // r = a + b; carry is 1 or 0.
    static __device__ IL_INLINE void add_out(uint32_t* r, const uint32_t* a, const uint32_t* b,
                                             uint32_t& carry) {
        asm("add.cc.u32 %0, %13, %25;\n\t"
            "addc.cc.u32 %1, %14, %26;\n\t"
            "addc.cc.u32 %2, %15, %27;\n\t"
            "addc.cc.u32 %3, %16, %28;\n\t"
            "addc.cc.u32 %4, %17, %29;\n\t"
            "addc.cc.u32 %5, %18, %30;\n\t"
            "addc.cc.u32 %6, %19, %31;\n\t"
            "addc.cc.u32 %7, %20, %32;\n\t"
            "addc.cc.u32 %8, %21, %33;\n\t"
            "addc.cc.u32 %9, %22, %34;\n\t"
            "addc.cc.u32 %10, %23, %35;\n\t"
            "addc.cc.u32 %11, %24, %36;\n\t"
            "addc.u32 %12, 0, 0;"
            : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3]), "=&r"(r[4]), "=&r"(r[5]),
              "=&r"(r[6]), "=&r"(r[7]), "=&r"(r[8]), "=&r"(r[9]), "=&r"(r[10]), "=&r"(r[11]),
              "=&r"(carry)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]),
              "r"(a[7]), "r"(a[8]), "r"(a[9]), "r"(a[10]), "r"(a[11]), "r"(b[0]), "r"(b[1]),
              "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]), "r"(b[8]),
              "r"(b[9]), "r"(b[10]), "r"(b[11]));
    }
    // r = a + b + carry, known not to overflow.
    static __device__ IL_INLINE void add_in(uint32_t* r, const uint32_t* a, const uint32_t* b,
                                            uint32_t carry) {
        asm("add.cc.u32 %12, %12, 0xffffffff;\n\t"
            "addc.cc.u32 %0, %13, %25;\n\t"
            "addc.cc.u32 %1, %14, %26;\n\t"
            "addc.cc.u32 %2, %15, %27;\n\t"
            "addc.cc.u32 %3, %16, %28;\n\t"
            "addc.cc.u32 %4, %17, %29;\n\t"
            "addc.cc.u32 %5, %18, %30;\n\t"
            "addc.cc.u32 %6, %19, %31;\n\t"
            "addc.cc.u32 %7, %20, %32;\n\t"
            "addc.cc.u32 %8, %21, %33;\n\t"
            "addc.cc.u32 %9, %22, %34;\n\t"
            "addc.cc.u32 %10, %23, %35;\n\t"
            "addc.u32 %11, %24, %36;\n\t"
            : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3]), "=&r"(r[4]), "=&r"(r[5]),
              "=&r"(r[6]), "=&r"(r[7]), "=&r"(r[8]), "=&r"(r[9]), "=&r"(r[10]), "=&r"(r[11]),
              "+r"(carry)
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]),
              "r"(a[7]), "r"(a[8]), "r"(a[9]), "r"(a[10]), "r"(a[11]), "r"(b[0]), "r"(b[1]),
              "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]), "r"(b[8]),
              "r"(b[9]), "r"(b[10]), "r"(b[11]));
    }
};

}  // namespace interlock

#endif
