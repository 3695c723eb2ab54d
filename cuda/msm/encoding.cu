#include "msm/encoding.cuh"

namespace interlock {
namespace {

constexpr uint32_t BLOCK = 128;

// What is wrong with a point, in the order in which it is looked for.
enum Fault : uint32_t { FLAGS, TOO_LARGE, AT_INFINITY };
const char* const FAULTS[] = {"has a flag set: it is compressed or at infinity",
                              "has a coordinate that is not below the modulus", "is at infinity"};

// The three highest bits of the first byte say compressed, infinity, and which root y is.
constexpr uint32_t FLAG_BITS = 0xe0;

__device__ __forceinline__ uint32_t first_word(const Fp& raw) { return raw.v[0]; }
__device__ __forceinline__ uint32_t first_word(const Fp2& raw) { return raw.c0.v[0]; }

__device__ __forceinline__ Fp decoded(const Fp& raw, bool& below) {
    Fp a;
    bool less = false;
#pragma unroll
    for (int i = 0; i < Fp::LIMBS; i++) {
        a.v[i] = __byte_perm(raw.v[Fp::LIMBS - 1 - i], 0, 0x0123);
        if (a.v[i] != FpParams::p(i)) less = a.v[i] < FpParams::p(i);
    }
    below = below && less;
    return a.to_montgomery();
}
__device__ __forceinline__ Fp2 decoded(const Fp2& raw, bool& below) {
    Fp2 a;
    a.c1 = decoded(raw.c0, below);
    a.c0 = decoded(raw.c1, below);
    return a;
}

// *first_fault becomes the least of 4 * index + fault.
template <class F>
__global__ void __launch_bounds__(BLOCK)
    decode(Affine<F>* points, uint32_t count, unsigned long long* first_fault) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const Affine<F> raw = points[i];
    bool below = true;
    const Affine<F> p = {decoded(raw.x, below), decoded(raw.y, below)};
    uint32_t fault = AT_INFINITY + 1;
    if (first_word(raw.x) & FLAG_BITS) {
        fault = FLAGS;
    } else if (!below) {
        fault = TOO_LARGE;
    } else if (p.is_infinity()) {
        fault = AT_INFINITY;
    }
    if (fault <= AT_INFINITY) atomicMin(first_fault, 4ull * i + fault);
    store(points + i, p);
}

}  // namespace

template <class F>
void decode_points(Affine<F>* points, size_t count, size_t first, const Stream& stream) {
    if (count == 0) return;
    unsigned long long none = ~0ull, fault = none;
    DeviceBuffer<unsigned long long> first_fault(1, stream);
    copy(first_fault.get(), &none, 1, stream);
    stream.start_clock();
    decode<F><<<blocks_for(count, BLOCK), BLOCK, 0, stream>>>(points, uint32_t(count),
                                                              first_fault.get());
    check_launch("decode");
    stream.fetch(&fault, first_fault.get(), 1);
    if (fault != none) {
        throw ArgumentError{"encoded points: base " + std::to_string(first + fault / 4) + " " +
                            FAULTS[fault % 4]};
    }
}

template void decode_points(Affine<Fp>*, size_t, size_t, const Stream&);
template void decode_points(Affine<Fp2>*, size_t, size_t, const Stream&);

}  // namespace interlock
