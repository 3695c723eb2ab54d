#include "msm/entries.cuh"
#include "msm/sort.cuh"

namespace interlock {
namespace {

constexpr uint32_t BLOCK = 256;

// What the recoding adds to a scalar: half a window in each window, so that digits become signed
// without carries from one to the next.
struct Recoding {
    uint32_t half[Fr::LIMBS + 1];
};

Recoding recoding(const MsmPlan& plan) {
    Recoding r = {};
    for (int w = 0; w < plan.windows(); w++) {
        const int bit = (w + 1) * plan.window_bits - 1;
        if (bit / 32 < Fr::LIMBS + 1) r.half[bit / 32] |= 1u << (bit % 32);
    }
    return r;
}

// Writes the entry of scalar i in window w (of those whose set is asked for) at
// place*count + i, place counting those windows. Zero digits get the key past the last bucket.
__global__ void __launch_bounds__(BLOCK)
    digits(const Fr* __restrict__ scalars, const uint32_t* __restrict__ base_of,
           uint32_t first_base, uint32_t count, uint32_t base_count, bool montgomery, MsmPlan plan,
           Recoding recoding, int windows, int first_set, int sets, uint32_t* __restrict__ keys,
           uint32_t* __restrict__ references) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Fr s = load(scalars + i);
    if (montgomery) s = s.to_canonical();
    // s or its negative is below 2^254.
    const Fr minus = -s;
    bool negate = false;
#pragma unroll
    for (int k = 0; k < Fr::LIMBS; k++) {
        if (s.v[k] != minus.v[k]) negate = s.v[k] > minus.v[k];
    }
    uint32_t v[Fr::LIMBS + 1];
    uint64_t carry = 0;
#pragma unroll
    for (int k = 0; k < Fr::LIMBS; k++) {
        carry += uint64_t(negate ? minus.v[k] : s.v[k]) + recoding.half[k];
        v[k] = uint32_t(carry);
        carry >>= 32;
    }
    v[Fr::LIMBS] = uint32_t(carry) + recoding.half[Fr::LIMBS];

    const int c = plan.window_bits;
    const uint32_t half = 1u << (c - 1), mask = (half << 1) - 1;
    const uint32_t none = uint32_t(sets) << (c - 1);
    // The low window is shifted out of v again and again, so that v stays in registers.
    const uint32_t base = base_of != nullptr ? base_of[i] : first_base + i;
    size_t place = i;
    for (int w = 0; w < windows; w++) {
        const int32_t digit = int32_t(v[0] & mask) - int32_t(half);
#pragma unroll
        for (int k = 0; k < Fr::LIMBS; k++) v[k] = __funnelshift_r(v[k], v[k + 1], c);
        v[Fr::LIMBS] >>= c;
        const int set = w % plan.sets - first_set, multiple = w / plan.sets;
        if (set < 0 || set >= sets) continue;
        const uint32_t magnitude = uint32_t(digit < 0 ? -digit : digit);
        keys[place] = digit == 0 ? none : (uint32_t(set) << (c - 1)) + magnitude - 1;
        references[place] =
            (uint32_t(multiple) * base_count + base) | ((digit < 0) != negate ? NEGATE : 0u);
        place += count;
    }
}

// begins[b] = the first entry whose key is at least b.
__global__ void __launch_bounds__(BLOCK)
    find_begins(const uint32_t* __restrict__ keys, uint32_t count, uint32_t buckets,
                uint32_t* __restrict__ begins) {
    const uint32_t b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b > buckets) return;
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (keys[middle] < b) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    begins[b] = low;
}

__device__ __forceinline__ uint32_t at_level(uint32_t entries, int level) {
    return entries == 0 ? 0 : ((entries - 1) >> level) + 1;
}

// totals[l] += the block's buckets' entries at level l.
__global__ void __launch_bounds__(BLOCK)
    sum_levels(const uint32_t* __restrict__ begins, uint32_t buckets,
               uint32_t* __restrict__ totals) {
    __shared__ uint32_t sums[Entries::LEVELS];
    if (threadIdx.x < Entries::LEVELS) sums[threadIdx.x] = 0;
    __syncthreads();
    for (uint32_t b = blockIdx.x * BLOCK + threadIdx.x; b < buckets; b += gridDim.x * BLOCK) {
        const uint32_t n = begins[b + 1] - begins[b], active = __activemask();
        for (int l = 0; l < Entries::LEVELS; l++) {
            const uint32_t s = __reduce_add_sync(active, at_level(n, l));
            if (threadIdx.x % 32 == __ffs(active) - 1) atomicAdd(&sums[l], s);
        }
    }
    __syncthreads();
    if (threadIdx.x < Entries::LEVELS) atomicAdd(&totals[threadIdx.x], sums[threadIdx.x]);
}

__global__ void __launch_bounds__(BLOCK)
    counts_at_level(const uint32_t* __restrict__ begins, uint32_t buckets, int level,
                    uint32_t* __restrict__ counts) {
    const uint32_t b = blockIdx.x * blockDim.x + threadIdx.x;
    if (b > buckets) return;
    counts[b] = b == buckets ? 0 : at_level(begins[b + 1] - begins[b], level);
}

}  // namespace

Entries::Entries(const MsmPlan& plan, const Scalars& scalars, size_t base_count, int first_set,
                 int sets, const Stream& stream)
    : buckets_(plan.buckets_per_set() * size_t(sets)), stream_(stream) {
    int windows = 0;
    for (int w = 0; w < plan.windows(); w++) {
        windows += w % plan.sets >= first_set && w % plan.sets < first_set + sets;
    }
    const size_t count = scalars.count, entries = count * size_t(windows);
    keys = DeviceBuffer<uint32_t>(entries, stream);
    references = DeviceBuffer<uint32_t>(entries, stream);
    spare_keys = DeviceBuffer<uint32_t>(entries, stream);
    spare_references = DeviceBuffer<uint32_t>(entries, stream);
    begins = DeviceBuffer<uint32_t>(buckets_ + 1, stream);
    digits<<<blocks_for(count, BLOCK), BLOCK, 0, stream>>>(
        scalars.values, scalars.base_of, uint32_t(scalars.first_base), uint32_t(count),
        uint32_t(base_count), scalars.form == ScalarForm::MONTGOMERY, plan, recoding(plan),
        plan.windows(), first_set, sets, keys.get(), references.get());
    check_launch("digits");
    int key_bits = 1;
    while ((buckets_ >> key_bits) != 0) key_bits++;
    sort_pairs(keys, references, spare_keys, spare_references, entries, key_bits, stream);
    find_begins<<<blocks_for(buckets_ + 1, BLOCK), BLOCK, 0, stream>>>(
        keys.get(), uint32_t(entries), uint32_t(buckets_), begins.get());
    check_launch("find_begins");
    DeviceBuffer<uint32_t> totals(LEVELS, stream);
    clear(totals.get(), LEVELS, stream);
    sum_levels<<<std::min(blocks_for(buckets_, BLOCK), 1024u), BLOCK, 0, stream>>>(
        begins.get(), uint32_t(buckets_), totals.get());
    check_launch("sum_levels");
    stream.fetch(totals_.data(), totals.get(), LEVELS);
}

void Entries::level_begins(int level, DeviceBuffer<uint32_t>& next) const {
    counts_at_level<<<blocks_for(buckets_ + 1, BLOCK), BLOCK, 0, stream_>>>(
        begins.get(), uint32_t(buckets_), level, next.get());
    check_launch("counts_at_level");
    exclusive_sum(next.get(), next.get(), buckets_ + 1, stream_);
}

}  // namespace interlock
