#define INTERLOCK_CALLED_PRODUCTS
#include "bench/samples.cuh"

#include <vector>

#include "curve/generators.cuh"
#include "field/known.cuh"

namespace interlock {
namespace {

constexpr uint32_t BLOCK = 128;
constexpr uint32_t SUM_THREADS = 132 * 8 * BLOCK;

__global__ void __launch_bounds__(BLOCK) fill(Fr* values, uint32_t count, uint64_t seed) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] = sample<FrParams>(seed, i);
}

// Multiples of the generator by k << 8*j, k < 256, at 256*j + k.
template <class F>
__global__ void __launch_bounds__(BLOCK)
    multiples(const Affine<F>* __restrict__ table, uint32_t count, uint64_t seed,
              Affine<F>* __restrict__ bases) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const uint32_t k = sample_multiple(seed, i);
    Xyzz<F> p = Xyzz<F>::infinity();
#pragma unroll 1
    for (int j = 0; j < 4; j++) p = p.plus(table[256 * j + (k >> (8 * j) & 255)]);
    bases[i] = p.to_affine();
}

__global__ void __launch_bounds__(BLOCK)
    sum_weighted(const Fr* __restrict__ scalars, uint32_t count, uint64_t seed, Fr* partial) {
    const uint32_t t = blockIdx.x * blockDim.x + threadIdx.x;
    Fr sum = Fr::zero();
    for (uint32_t i = t; i < count; i += gridDim.x * blockDim.x) {
        Fr k = Fr::zero();
        k.v[0] = sample_multiple(seed, i);
        sum = sum + scalars[i] * k.to_montgomery();
    }
    partial[t] = sum;
}

__global__ void __launch_bounds__(BLOCK)
    evaluate_parts(const Fr* __restrict__ coefficients, uint32_t count, Fr x, Fr* partial) {
    const uint32_t t = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
    const Fr x_step = x.pow(step);
    Fr power = x.pow(t), sum = Fr::zero();
    for (uint32_t i = t; i < count; i += step) {
        sum = sum + coefficients[i] * power;
        power = power * x_step;
    }
    partial[t] = sum;
}

Fr sum_up(const DeviceBuffer<Fr>& partial, const Stream& stream) {
    std::vector<Fr> host(partial.count());
    stream.fetch(host.data(), partial.get(), host.size());
    Fr sum = Fr::zero();
    for (const Fr& e : host) sum = sum + e;
    return sum;
}

constexpr int OPERATIONS = 7;

template <class F>
IL_HD void apply(const F& a, const F& b, F* results) {
    results[0] = a + b;
    results[1] = a - b;
    results[2] = a * b;
    results[3] = a.squared();
    results[4] = -a;
    results[5] = inverse(a);
    results[6] = b.doubled();
}

template <class P>
IL_HD void operands(uint32_t i, Field<P>& a, Field<P>& b) {
    a = sample<P>(1, i);
    b = sample<P>(2, i);
    // Edge values in the first few: 0, R mod p, p-1.
    if (i % 64 == 1) a = Field<P>::zero();
    if (i % 64 == 2) b = Field<P>::zero();
    if (i % 64 == 3) a = Field<P>::one();
    if (i % 64 == 4 || i % 64 == 5) {
        a = Field<P>::modulus();
        a.v[0]--;  // both moduli are odd
    }
    if (i % 64 == 5) b = a;
    if (i % 64 == 6) b = a;
}

template <class P>
__global__ void __launch_bounds__(BLOCK) apply_all(Field<P>* results, uint32_t count) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Field<P> a, b;
    operands<P>(i, a, b);
    apply(a, b, results + size_t(i) * OPERATIONS);
}

template <class P>
size_t compare(size_t count, const Stream& stream) {
    using F = Field<P>;
    DeviceBuffer<F> results(count * OPERATIONS, stream);
    apply_all<P><<<blocks_for(count, BLOCK), BLOCK, 0, stream>>>(results.get(), uint32_t(count));
    check_launch("apply_all");
    std::vector<F> got(results.count());
    stream.fetch(got.data(), results.get(), got.size());
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        F a, b, want[OPERATIONS];
        operands<P>(uint32_t(i), a, b);
        apply(a, b, want);
        for (int k = 0; k < OPERATIONS; k++) wrong += want[k] != got[i * OPERATIONS + size_t(k)];
    }
    return wrong;
}

// As operands, but a is any number of 256 bits.
IL_HD void known_operands(uint32_t i, Fr& a, Fr& b) {
    operands<FrParams>(i, a, b);
    if (i % 2 == 0) a.v[Fr::LIMBS - 1] = uint32_t(mix(i));
    if (i % 64 == 5 || i % 64 == 8) {
        for (int limb = 0; limb < Fr::LIMBS; limb++) a.v[limb] = 0xffffffff;
    }
}

__global__ void __launch_bounds__(BLOCK)
    cut_factors(PieceFactors factors, uint32_t count, KnownChunk* __restrict__ out) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Fr a, b;
    known_operands(i, a, b);
    Known<1>::store(out + i * KNOWN_CHUNKS, b, factors);
}

__global__ void __launch_bounds__(BLOCK)
    multiply_known(const KnownChunk* factors, uint32_t count, Fr* results) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Fr a, b;
    known_operands(i, a, b);
    results[i] = Known<1>{factors + i * KNOWN_CHUNKS} * a;
}

size_t compare_known(size_t count, const Stream& stream) {
    DeviceBuffer<KnownChunk> factors(count * KNOWN_CHUNKS, stream);
    DeviceBuffer<Fr> results(count, stream);
    cut_factors<<<blocks_for(count, BLOCK), BLOCK, 0, stream>>>(PieceFactors::make(),
                                                                uint32_t(count), factors.get());
    check_launch("cut_factors");
    multiply_known<<<blocks_for(count, BLOCK), BLOCK, 0, stream>>>(factors.get(), uint32_t(count),
                                                                   results.get());
    check_launch("multiply_known");
    std::vector<Fr> got(count);
    stream.fetch(got.data(), results.get(), count);
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        Fr a, b;
        known_operands(uint32_t(i), a, b);
        wrong += got[i] != b * a;
    }
    return wrong;
}

}  // namespace

void fill_samples(Fr* values, size_t count, uint64_t seed, const Stream& stream) {
    fill<<<blocks_for(count, BLOCK), BLOCK, 0, stream>>>(values, uint32_t(count), seed);
    check_launch("fill");
}

template <class F>
void fill_bases(Affine<F>* bases, size_t count, uint64_t seed, const Stream& stream) {
    std::vector<Affine<F>> table(4 * 256, Affine<F>::infinity());
    Xyzz<F> step = Xyzz<F>::from(generator<F>());
    for (size_t j = 0; j < 4; j++) {
        Xyzz<F> p = Xyzz<F>::infinity();
        for (size_t k = 0; k < 256; k++) {
            table[256 * j + k] = p.to_affine();
            p = p.plus(step);
        }
        step = p;
    }
    DeviceBuffer<Affine<F>> on_device(table.size(), stream);
    copy(on_device.get(), table.data(), table.size(), stream);
    multiples<F><<<blocks_for(count, BLOCK), BLOCK, 0, stream>>>(on_device.get(), uint32_t(count),
                                                                 seed, bases);
    check_launch("multiples");
    synchronize(stream);
}

template void fill_bases(Affine<Fp>*, size_t, uint64_t, const Stream&);
template void fill_bases(Affine<Fp2>*, size_t, uint64_t, const Stream&);

Fr weighted_sum(const Fr* scalars, size_t count, uint64_t seed, const Stream& stream) {
    DeviceBuffer<Fr> partial(SUM_THREADS, stream);
    sum_weighted<<<SUM_THREADS / BLOCK, BLOCK, 0, stream>>>(scalars, uint32_t(count), seed,
                                                            partial.get());
    check_launch("sum_weighted");
    return sum_up(partial, stream);
}

Fr evaluate(const Fr* coefficients, size_t count, const Fr& x, const Stream& stream) {
    DeviceBuffer<Fr> partial(SUM_THREADS, stream);
    evaluate_parts<<<SUM_THREADS / BLOCK, BLOCK, 0, stream>>>(coefficients, uint32_t(count), x,
                                                              partial.get());
    check_launch("evaluate_parts");
    return sum_up(partial, stream);
}

size_t compare_fields_with_host(size_t count, const Stream& stream) {
    return compare<FrParams>(count, stream) + compare<FpParams>(count, stream) +
           compare_known(count, stream);
}

}  // namespace interlock
