// How fast the device multiplies: the limit against which the kernels are judged.
#include "bench/throughput.cuh"

#include <cstdio>

#include "bench/timer.cuh"
#include "device/device.cuh"
#include "field/field.cuh"
#include "field/known.cuh"

namespace interlock {
namespace {

constexpr uint32_t BLOCK = 256;
constexpr int ROUNDS = 256;

// Eight independent chains of 32-bit multiply-adds a thread.
__global__ void __launch_bounds__(BLOCK) mad_low(uint32_t* out) {
    uint32_t x[8];
    for (int i = 0; i < 8; i++) x[i] = threadIdx.x + i;
#pragma unroll 1
    for (int r = 0; r < ROUNDS; r++) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
#pragma unroll
            for (int i = 0; i < 8; i++)
                asm volatile("mad.lo.u32 %0, %0, %1, %1;" : "+r"(x[i]) : "r"(x[(i + 1) % 8]));
        }
    }
    uint32_t s = 0;
    for (int i = 0; i < 8; i++) s ^= x[i];
    out[blockIdx.x * BLOCK + threadIdx.x] = s;
}

// The same with 64-bit sums: a double-width product and an addition without carry. One operand
// changes all the time, lest the compiler take the product out of the loop.
__global__ void __launch_bounds__(BLOCK) mad_wide(uint32_t* out) {
    uint32_t x[16], a[8];
    for (int i = 0; i < 16; i++) x[i] = threadIdx.x * 7 + i;
    for (int i = 0; i < 8; i++) a[i] = threadIdx.x * 3 + i;
#pragma unroll 1
    for (int r = 0; r < ROUNDS; r++) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const uint32_t b = x[2 * k];
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const int at = 2 * ((i + k + 1) % 8);
                asm volatile("mad.lo.cc.u32 %0, %2, %3, %0;\n\tmadc.hi.u32 %1, %2, %3, %1;"
                             : "+r"(x[at]), "+r"(x[at + 1])
                             : "r"(a[i]), "r"(b));
            }
        }
    }
    uint32_t s = 0;
    for (int i = 0; i < 16; i++) s ^= x[i];
    out[blockIdx.x * BLOCK + threadIdx.x] = s;
}

// The same in carry chains of four links.
__global__ void __launch_bounds__(BLOCK) mad_carry(uint32_t* out) {
    uint32_t x[16];
    const uint32_t a = threadIdx.x * 2 + 1, b = threadIdx.x * 3 + 7;
    for (int i = 0; i < 16; i++) x[i] = threadIdx.x + i;
#pragma unroll 1
    for (int r = 0; r < ROUNDS; r++) {
#pragma unroll
        for (int k = 0; k < 16; k++) {
            uint32_t* y = x + k % 2 * 8;
            asm volatile(
                "mad.lo.cc.u32 %0, %8, %9, %0;\n\t"
                "madc.hi.cc.u32 %1, %8, %9, %1;\n\t"
                "madc.lo.cc.u32 %2, %8, %9, %2;\n\t"
                "madc.hi.cc.u32 %3, %8, %9, %3;\n\t"
                "madc.lo.cc.u32 %4, %8, %9, %4;\n\t"
                "madc.hi.cc.u32 %5, %8, %9, %5;\n\t"
                "madc.lo.cc.u32 %6, %8, %9, %6;\n\t"
                "madc.hi.u32 %7, %8, %9, %7;"
                : "+r"(y[0]), "+r"(y[1]), "+r"(y[2]), "+r"(y[3]), "+r"(y[4]), "+r"(y[5]),
                  "+r"(y[6]), "+r"(y[7])
                : "r"(a), "r"(b));
        }
    }
    uint32_t s = 0;
    for (int i = 0; i < 16; i++) s ^= x[i];
    out[blockIdx.x * BLOCK + threadIdx.x] = s;
}

__global__ void __launch_bounds__(BLOCK) fma_double(uint32_t* out) {
    double x[8];
    const double a = 1.0 + threadIdx.x * 1e-9, b = 1e-7;
    for (int i = 0; i < 8; i++) x[i] = threadIdx.x + i;
#pragma unroll 1
    for (int r = 0; r < ROUNDS; r++) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
#pragma unroll
            for (int i = 0; i < 8; i++) x[i] = fma(x[i], a, b);
        }
    }
    double s = 0;
    for (int i = 0; i < 8; i++) s += x[i];
    out[blockIdx.x * BLOCK + threadIdx.x] = uint32_t(s);
}

// CHAINS dependent chains of products a thread; SQUARE: of squares.
template <class F, int CHAINS, bool SQUARE>
__global__ void __launch_bounds__(128, 4) products(F* out) {
    F x[CHAINS], y = F::one();
    y.v[0] += threadIdx.x;
    for (int i = 0; i < CHAINS; i++) x[i] = y, x[i].v[1] += i;
#pragma unroll 1
    for (int r = 0; r < ROUNDS; r++) {
#pragma unroll
        for (int i = 0; i < CHAINS; i++) x[i] = SQUARE ? x[i].squared() : x[i] * y;
    }
    F s = x[0];
    for (int i = 1; i < CHAINS; i++) s = s + x[i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}

// A chain of products with known factors, any numbers of a table, the same in all threads.
__global__ void __launch_bounds__(128, 4) known_products(const KnownChunk* factors, Fr* out) {
    Fr x = Fr::one();
    x.v[0] += threadIdx.x;
#pragma unroll 1
    for (int r = 0; r < ROUNDS; r++) x = Known<ROUNDS>{factors + r} * x;
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

void print(const char* what, double giga_per_second) {
    std::printf("{\"what\":\"throughput\",\"of\":\"%s\",\"giga_per_second\":%.1f}\n", what,
                giga_per_second);
}

template <class Launch>
void measure(const char* what, double operations, const Stream& stream, Launch launch) {
    print(what, operations / median_ms(stream, 5, launch) * 1e-6);
}

uint32_t multiprocessors() {
    int device = 0, sms = 0;
    check(cudaGetDevice(&device), "device");
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device), "multiprocessors");
    return uint32_t(sms);
}

}  // namespace

double measured_multiply_adds(const Stream& stream) {
    const uint32_t blocks = multiprocessors() * 16;
    DeviceBuffer<uint32_t> out(size_t(blocks) * BLOCK, stream);
    const double ms =
        median_ms(stream, 5, [&] { mad_wide<<<blocks, BLOCK, 0, stream>>>(out.get()); });
    return double(blocks) * BLOCK * ROUNDS * 64 / ms * 1e-6;
}

double measured_bandwidth(const Stream& stream) {
    const size_t half = size_t(4) << 30;
    DeviceBuffer<uint8_t> a(half, stream), b(half, stream);
    const double ms = median_ms(stream, 5, [&] {
        check(cudaMemcpyAsync(b.get(), a.get(), half, cudaMemcpyDeviceToDevice, stream), "copy");
    });
    return 2.0 * double(half) / ms * 1e-6;
}

void measure_throughput(const Stream& stream) {
    const uint32_t blocks = multiprocessors() * 16, field_blocks = multiprocessors() * 32;
    DeviceBuffer<Fp> out(size_t(blocks) * BLOCK, stream);
    auto* words = reinterpret_cast<uint32_t*>(out.get());
    const double threads = double(blocks) * BLOCK, field_threads = double(field_blocks) * 128;
    measure("32-bit multiply-add, low half", threads * ROUNDS * 64, stream,
            [&] { mad_low<<<blocks, BLOCK, 0, stream>>>(words); });
    print("32-bit multiply-add, 64-bit sum", measured_multiply_adds(stream));
    measure("32-bit multiply-add, 64-bit sum, carry chains of four", threads * ROUNDS * 64, stream,
            [&] { mad_carry<<<blocks, BLOCK, 0, stream>>>(words); });
    measure("double precision multiply-add", threads * ROUNDS * 64, stream,
            [&] { fma_double<<<blocks, BLOCK, 0, stream>>>(words); });
    measure("Fp product", field_threads * ROUNDS, stream,
            [&] { products<Fp, 1, false><<<field_blocks, 128, 0, stream>>>(out.get()); });
    measure("Fp product, two chains", field_threads * ROUNDS * 2, stream,
            [&] { products<Fp, 2, false><<<field_blocks, 128, 0, stream>>>(out.get()); });
    measure("Fp square", field_threads * ROUNDS, stream,
            [&] { products<Fp, 1, true><<<field_blocks, 128, 0, stream>>>(out.get()); });
    auto* frs = reinterpret_cast<Fr*>(out.get());
    measure("Fr product", field_threads * ROUNDS, stream,
            [&] { products<Fr, 1, false><<<field_blocks, 128, 0, stream>>>(frs); });
    measure("Fr product, two chains", field_threads * ROUNDS * 2, stream,
            [&] { products<Fr, 2, false><<<field_blocks, 128, 0, stream>>>(frs); });
    DeviceBuffer<KnownChunk> factors(ROUNDS * KNOWN_CHUNKS, stream);
    check(cudaMemsetAsync(factors.get(), 1, factors.count() * sizeof(KnownChunk), stream),
          "factors");
    measure("Fr product, known factor", field_threads * ROUNDS, stream,
            [&] { known_products<<<field_blocks, 128, 0, stream>>>(factors.get(), frs); });
    print("device copy, bytes read and written", measured_bandwidth(stream));
}

}  // namespace interlock
