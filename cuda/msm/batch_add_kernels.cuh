// Kernels of batch additions; included by batch_add_g1.cu and batch_add_g2.cu alone, one
// instantiation each, so that they compile apart.
#pragma once

#include <algorithm>

#include "msm/batch_add.cuh"

namespace interlock {

// Products to an inversion, and the fewest pairs of a thread whose product it is (if there are
// enough): the share of the inversion in an addition.
constexpr uint32_t INVERT_BATCH = 8;
constexpr uint32_t PAIRS_PER_THREAD = 32;
// A thread has more pairs than that only where the threads would fill the device more often.
constexpr uint32_t MOST_WAVES = 4;

constexpr uint32_t DENOMINATOR_BLOCK = 128;
constexpr uint32_t INVERT_BLOCK = 64;

// 128 threads a block; as many blocks as leave the addition its registers without spills.
template <class F>
constexpr uint32_t ADD_BLOCK = 128;
template <class F>
constexpr uint32_t ADD_BLOCKS_PER_SM = 4;
template <>
constexpr uint32_t ADD_BLOCKS_PER_SM<Fp2> = 2;

template <class F>
__device__ __forceinline__ Affine<F> load_point(const Affine<F>* in, uint32_t ref) {
    const Affine<F>* p = in + (ref & INDEX_MASK);
    return {load(&p->x), load(&p->y).negated_if(ref & NEGATE)};
}

// Which case an addition is.
enum class Case { GENERAL, DOUBLING, CANCEL, FIRST, SECOND };

template <class F>
__device__ __noinline__ Case special_case(const Affine<F>* in, Pair pair) {
    const Affine<F> p = load_point(in, pair.a), q = load_point(in, pair.b);
    if (q.is_infinity()) return Case::FIRST;
    if (p.is_infinity()) return Case::SECOND;
    if (p.x != q.x) return Case::GENERAL;
    return p.y == q.y && !p.y.is_zero() ? Case::DOUBLING : Case::CANCEL;
}

// The denominator of an addition: x2 - x1; 2y for a doubling; 1 where nothing is divided.
template <class F>
__device__ __forceinline__ F denominator(const Affine<F>* in, Pair pair, const F& x1, const F& x2,
                                         Case& which) {
    F d = x2 - x1;
    which = Case::GENERAL;
    if (d.is_zero() || x1.is_zero() || x2.is_zero()) {
        which = special_case(in, pair);
        if (which == Case::DOUBLING) {
            d = load(&in[pair.a & INDEX_MASK].y).negated_if(pair.a & NEGATE).doubled();
        } else if (which != Case::GENERAL) {
            d = F::one();
        }
    }
    return d;
}

// Thread t takes pairs t, t + threads, ...; prefixes[i*threads + t] is the product of its first i+1
// denominators.
template <class F>
__global__ void __launch_bounds__(DENOMINATOR_BLOCK)
    denominators(const Affine<F>* __restrict__ in, const Pair* __restrict__ pairs, uint32_t count,
                 uint32_t threads, F* __restrict__ prefixes, F* __restrict__ products) {
    const uint32_t t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads) return;
    F product = F::one();
#pragma unroll 1
    for (uint32_t j = t; j < count; j += threads) {
        const Pair pair = pairs[j];
        const F x1 = load(&in[pair.a & INDEX_MASK].x), x2 = load(&in[pair.b & INDEX_MASK].x);
        Case which;
        const F d = denominator(in, pair, x1, x2, which);
        product = j == t ? d : product * d;
        store(prefixes + j, product);
    }
    store(products + t, product);
}

// values[i] <- 1/values[i], INVERT_BATCH to an inversion.
template <class F>
__global__ void __launch_bounds__(INVERT_BLOCK)
    invert_all(F* __restrict__ values, uint32_t count, uint32_t threads, F* __restrict__ scratch) {
    const uint32_t t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads || t >= count) return;
    F product = load(values + t);
    uint32_t last = t;
#pragma unroll 1
    for (uint32_t j = t + threads; j < count; j += threads) {
        store(scratch + j, product);
        product = product * load(values + j);
        last = j;
    }
    F inv = inverse(product);
#pragma unroll 1
    for (uint32_t j = last; j != t; j -= threads) {
        const F v = values[j];
        values[j] = inv * scratch[j];
        inv = inv * v;
    }
    values[t] = inv;
}

template <class F>
__global__ void __launch_bounds__(ADD_BLOCK<F>, ADD_BLOCKS_PER_SM<F>)
    add_pairs(const Affine<F>* __restrict__ in, const Pair* __restrict__ pairs,
              const uint32_t* __restrict__ target, uint32_t count, uint32_t threads,
              const F* __restrict__ prefixes, const F* __restrict__ inverses,
              Affine<F>* __restrict__ out) {
    const uint32_t t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads || t >= count) return;
    F inv = load(inverses + t);
#pragma unroll 1
    for (uint32_t j = t + (count - 1 - t) / threads * threads;; j -= threads) {
        const Pair pair = pairs[j];
        const F x1 = load(&in[pair.a & INDEX_MASK].x), x2 = load(&in[pair.b & INDEX_MASK].x);
        F slope = inv;  // becomes the inverse denominator, then the slope
        Case which;
        {
            const F d = denominator(in, pair, x1, x2, which);
            if (j != t) {
                slope = inv * load(prefixes + (j - threads));
                inv = inv * d;
            }
        }
        const F y1 = load(&in[pair.a & INDEX_MASK].y).negated_if(pair.a & NEGATE);
        F numerator = load(&in[pair.b & INDEX_MASK].y).negated_if(pair.b & NEGATE) - y1;
        if (which == Case::DOUBLING) {
            const F s = x1.squared();
            numerator = s.doubled() + s;
        }
        slope = slope * numerator;
        Affine<F> r;
        r.x = slope.squared() - x1 - x2;
        r.y = slope * (x1 - r.x) - y1;
        if (which >= Case::CANCEL) {
            r = Affine<F>::infinity();
            if (which == Case::FIRST) r = load_point(in, pair.a);
            if (which == Case::SECOND) r = load_point(in, pair.b);
        }
        store(out + target[j], r);
        if (j == t) break;
    }
}

template <class F>
BatchAdder<F>::BatchAdder(size_t max_pairs, const Stream& stream)
    : stream_(stream),
      chunk_(std::min(std::min(max_pairs, CHUNK),
                      stream.scratch_bytes() / SCRATCH_SHARE / sizeof(F))) {
    int device = 0, sms = 0;
    check(cudaGetDevice(&device), "asking for the device");
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device),
          "asking for the number of multiprocessors");
    full_threads_ = uint32_t(sms) * ADD_BLOCK<F> * ADD_BLOCKS_PER_SM<F>;
    const size_t threads = std::min<size_t>(chunk_, size_t(full_threads_) * MOST_WAVES);
    prefixes_ = DeviceBuffer<F>(chunk_, stream);
    products_ = DeviceBuffer<F>(threads, stream);
    scratch_ = DeviceBuffer<F>(threads, stream);
}

template <class F>
void BatchAdder<F>::add(const Affine<F>* in, const Pair* pairs, const uint32_t* target,
                        size_t count, Affine<F>* out) {
    for (size_t begin = 0; begin < count; begin += chunk_) {
        const uint32_t n = uint32_t(std::min(chunk_, count - begin));
        // A multiple of the threads that the device holds at once, so that none of the waves is
        // half empty; each thread takes an equal share of the pairs.
        const uint32_t waves = std::clamp(n / (full_threads_ * PAIRS_PER_THREAD), 1u, MOST_WAVES);
        const uint32_t threads = std::min(n, full_threads_ * waves);
        const uint32_t inverters = (threads + INVERT_BATCH - 1) / INVERT_BATCH;
        denominators<F><<<blocks_for(threads, DENOMINATOR_BLOCK), DENOMINATOR_BLOCK, 0, stream_>>>(
            in, pairs + begin, n, threads, prefixes_.get(), products_.get());
        check_launch("denominators");
        invert_all<F><<<blocks_for(inverters, INVERT_BLOCK), INVERT_BLOCK, 0, stream_>>>(
            products_.get(), threads, inverters, scratch_.get());
        check_launch("invert_all");
        add_pairs<F><<<blocks_for(threads, ADD_BLOCK<F>), ADD_BLOCK<F>, 0, stream_>>>(
            in, pairs + begin, target + begin, n, threads, prefixes_.get(), products_.get(), out);
        check_launch("add_pairs");
    }
}

}  // namespace interlock
