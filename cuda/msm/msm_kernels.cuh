// The part of a multiplication that works on points; included by msm_g1.cu and msm_g2.cu alone, one
// instantiation each, so that they compile apart.
#pragma once

#include <algorithm>
#include <vector>

#include "msm/encoding.cuh"
#include "msm/entries.cuh"
#include "msm/msm.cuh"
#include "msm/sort.cuh"

namespace interlock {

// Products of curve operations off the hot path are calls, not inlined: a kernel with several
// complete additions would not fit the instruction cache.
template <class F>
__device__ __noinline__ void add_to(Xyzz<F>& a, const Xyzz<F>& b) {
    a = a.plus(b);
}
template <class F>
__device__ __noinline__ void add_to(Xyzz<F>& a, const Affine<F>& b) {
    a = a.plus(b);
}
template <class F>
__device__ __noinline__ void double_it(Xyzz<F>& a) {
    a = a.doubled();
}

constexpr uint32_t POINT_BLOCK = 128;

// to[i] = from[i] * 2^doublings.
template <class F>
__global__ void __launch_bounds__(POINT_BLOCK)
    multiply_by_power_of_two(const Affine<F>* __restrict__ from, uint32_t count, int doublings,
                             Affine<F>* __restrict__ to) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Xyzz<F> p = Xyzz<F>::from(load(from + i));
#pragma unroll 1
    for (int k = 0; k < doublings; k++) double_it(p);
    store(to + i, p.to_affine());
}

// Pairs the entries of each bucket at one level: entries 2k and 2k+1 of a bucket are to be added
// into the next level; an odd one out is copied there.
template <class F>
__global__ void __launch_bounds__(POINT_BLOCK)
    pair_up(const uint32_t* __restrict__ keys, const uint32_t* __restrict__ references,
            const uint32_t* __restrict__ begins, const uint32_t* __restrict__ next_begins,
            uint32_t count, const Affine<F>* __restrict__ in, Affine<F>* __restrict__ out,
            Pair* __restrict__ pairs, uint32_t* __restrict__ target,
            uint32_t* __restrict__ next_keys) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const uint32_t b = keys[i], begin = begins[b], place = i - begin;
    if (place & 1) return;
    const uint32_t next_begin = next_begins[b], t = next_begin + place / 2;
    next_keys[t] = b;
    const uint32_t r = references != nullptr ? references[i] : i;
    if (i + 1 < begins[b + 1]) {
        // As many pairs lie before this bucket as the next level is shorter there.
        const uint32_t p = begin - next_begin + place / 2;
        pairs[p] = {r, references != nullptr ? references[i + 1] : i + 1};
        target[p] = t;
    } else {
        const Affine<F> a = load(in + (r & INDEX_MASK));
        store(out + t, a.negated_if(r & NEGATE));
    }
}

// Weighted sums of consecutive runs of a set's buckets. Thread s of a set has items s*run ..
// s*run+run-1: sums[s] is their sum, weighted[s] the sum of (k + first_weight) * item k.
template <class F>
__global__ void __launch_bounds__(POINT_BLOCK)
    sum_buckets(const Affine<F>* __restrict__ points, const uint32_t* __restrict__ begins,
                uint32_t threads, uint32_t run, Xyzz<F>* __restrict__ sums,
                Xyzz<F>* __restrict__ weighted) {
    const uint32_t t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= threads) return;
    Xyzz<F> sum = Xyzz<F>::infinity(), total = Xyzz<F>::infinity();
#pragma unroll 1
    for (uint32_t k = run; k-- > 0;) {
        const uint32_t b = t * run + k, begin = begins[b];
        if (begin != begins[b + 1]) {
            const Affine<F> p = load(points + begin);
            add_to(sum, p);
        }
        add_to(total, sum);
    }
    store(sums + t, sum);
    store(weighted + t, total);
}

// The next level of the same. Row blockIdx.y = row of weighted: rows below `rows` are only summed
// over their runs; row `rows` is new, the sum of k * item k of the items' sums.
template <class F>
__global__ void __launch_bounds__(POINT_BLOCK)
    sum_runs(const Xyzz<F>* __restrict__ sums, const Xyzz<F>* __restrict__ weighted,
             uint32_t threads, uint32_t run, uint32_t rows, Xyzz<F>* __restrict__ next_sums,
             Xyzz<F>* __restrict__ next_weighted) {
    const uint32_t t = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
    if (t >= threads) return;
    Xyzz<F> sum = Xyzz<F>::infinity(), total = Xyzz<F>::infinity();
    const Xyzz<F>* items = (row == rows ? sums : weighted + size_t(row) * threads * run);
#pragma unroll 1
    for (uint32_t k = run; k-- > 0;) {
        const Xyzz<F> item = load(items + size_t(t) * run + k);
        add_to(sum, item);
        if (row == rows && k > 0) add_to(total, sum);
    }
    if (row == rows) {
        store(next_sums + t, sum);
        store(next_weighted + size_t(row) * threads + t, total);
    } else {
        store(next_weighted + size_t(row) * threads + t, sum);
    }
}

// partial[block] = the sum of the points that the block's threads reach.
template <class F>
__global__ void __launch_bounds__(POINT_BLOCK)
    sum_points(const Affine<F>* __restrict__ points, uint32_t count,
               Xyzz<F>* __restrict__ partial) {
    __shared__ Xyzz<F> shared[POINT_BLOCK];
    Xyzz<F> sum = Xyzz<F>::infinity();
#pragma unroll 1
    for (uint32_t i = blockIdx.x * POINT_BLOCK + threadIdx.x; i < count;
         i += gridDim.x * POINT_BLOCK) {
        const Affine<F> p = load(points + i);
        add_to(sum, p);
    }
    shared[threadIdx.x] = sum;
#pragma unroll 1
    for (uint32_t half = POINT_BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) add_to(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
    if (threadIdx.x == 0) partial[blockIdx.x] = shared[0];
}

// The references of the bases whose bit is set, in order; places[w] of them lie before word w.
static __global__ void __launch_bounds__(POINT_BLOCK)
    count_bits(const uint32_t* __restrict__ bits, uint32_t count, uint32_t words,
               uint32_t* __restrict__ places) {
    const uint32_t w = blockIdx.x * blockDim.x + threadIdx.x;
    if (w > words) return;
    uint32_t v = w < words ? bits[w] : 0;
    if (w + 1 == words && count % 32 != 0) v &= (1u << (count % 32)) - 1;
    places[w] = __popc(v);
}
static __global__ void __launch_bounds__(POINT_BLOCK)
    list_bits(const uint32_t* __restrict__ bits, uint32_t words,
              const uint32_t* __restrict__ places, uint32_t* __restrict__ references) {
    const uint32_t w = blockIdx.x * blockDim.x + threadIdx.x;
    if (w >= words) return;
    uint32_t v = bits[w], place = places[w];
    const uint32_t end = places[w + 1];
    for (; place < end; v &= v - 1) references[place++] = 32 * w + __ffs(v) - 1;
}

// Pairs neighbours; an odd one out is copied to the end of the next level.
template <class F>
__global__ void __launch_bounds__(POINT_BLOCK)
    pair_neighbours(const uint32_t* __restrict__ references, uint32_t count,
                    const Affine<F>* __restrict__ in, Affine<F>* __restrict__ out,
                    Pair* __restrict__ pairs, uint32_t* __restrict__ target) {
    const uint32_t p = blockIdx.x * blockDim.x + threadIdx.x;
    if (2 * p >= count) return;
    const uint32_t a = references != nullptr ? references[2 * p] : 2 * p;
    if (2 * p + 1 < count) {
        pairs[p] = {a, references != nullptr ? references[2 * p + 1] : 2 * p + 1};
        target[p] = p;
    } else {
        store(out + p, load(in + a));
    }
}

// Points still to be added when a level has this few are summed without shared inversions, which
// then cost more in latency than they save in work.
constexpr size_t FEW_POINTS = size_t(1) << 14;

template <class F>
Bases<F>::Bases(size_t capacity, const MsmPlan& plan, const Stream& stream)
    : count_(capacity), plan_(plan) {
    if (capacity == 0 || capacity > INDEX_MASK / size_t(plan.multiples)) {
        throw ArgumentError{"bases: between 1 and 2^31-1, multiples counted"};
    }
    points_ = DeviceBuffer<Affine<F>>(capacity * size_t(plan.multiples), stream);
    clear(points_.get(), points_.count(), stream);
    synchronize(stream);
    points_.outlive(stream);
}

template <class F>
void Bases<F>::load(size_t at, size_t count, const Affine<F>* points, const Stream& stream) {
    if (at > count_ || count > count_ - at)
        throw ArgumentError{"bases: more than there is room for"};
    copy(points_.get() + at, points, count, stream);
    loaded(at + count, stream);
}

// Encoded points are as long as decoded ones, so that they need no place beside.
template <class F>
void Bases<F>::load_encoded(size_t at, size_t count, const void* points, const Stream& stream) {
    if (at > count_ || count > count_ - at)
        throw ArgumentError{"bases: more than there is room for"};
    copy(points_.get() + at, static_cast<const Affine<F>*>(points), count, stream);
    decode_points(points_.get() + at, count, at, stream);
    loaded(at + count, stream);
}

template <class F>
void Bases<F>::loaded(size_t end, const Stream& stream) {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        multiples_missing_ = plan_.multiples > 1;
    }
    if (end == count_) make_multiples(stream);
    synchronize(stream);
}

template <class F>
void Bases<F>::make_multiples(const Stream& stream) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!multiples_missing_) return;
    for (int m = 1; m < plan_.multiples; m++) {
        multiply_by_power_of_two<F><<<blocks_for(count_, POINT_BLOCK), POINT_BLOCK, 0, stream>>>(
            points_.get() + size_t(m - 1) * count_, uint32_t(count_),
            plan_.window_bits * plan_.sets, points_.get() + size_t(m) * count_);
        check_launch("multiply_by_power_of_two");
    }
    synchronize(stream);
    multiples_missing_ = false;
}

template <class F>
MsmPlan Bases<F>::plan_for(size_t count) const {
    const MsmPlan plain = MsmPlan::choose(count, 1);
    return plan_.multiples == 1 || plain.work(count) < plan_.work(count) ? plain : plan_;
}

// Adds the entries of every bucket; fills points and begins such that bucket b has one point, at
// begins[b], or none.
template <class F>
void accumulate(const Bases<F>& bases, Entries& entries, const Stream& stream,
                DeviceBuffer<Affine<F>>& points, DeviceBuffer<uint32_t>& begins) {
    const size_t first = entries.total(1), second = entries.total(2);
    points = DeviceBuffer<Affine<F>>(first, stream);
    DeviceBuffer<Affine<F>> other(second, stream);
    const size_t most_pairs = std::max<size_t>(entries.total(0) - first, 1);
    DeviceBuffer<Pair> pairs(most_pairs, stream);
    DeviceBuffer<uint32_t> target(most_pairs, stream);
    BatchAdder<F> adder(most_pairs, stream);
    DeviceBuffer<uint32_t> current(entries.buckets() + 1, stream);
    begins = DeviceBuffer<uint32_t>(entries.buckets() + 1, stream);
    copy(current.get(), entries.begins.get(), current.count(), stream);

    const Affine<F>* in = bases.points();
    const uint32_t* references = entries.references.get();
    for (int level = 0; level == 0 || entries.total(level) > entries.occupied(); level++) {
        const size_t count = entries.total(level);
        if (count == 0) {
            std::swap(current, begins);
            return;
        }
        entries.level_begins(level + 1, begins);
        Affine<F>* out = (level % 2 == 0 ? points : other).get();
        pair_up<F><<<blocks_for(count, POINT_BLOCK), POINT_BLOCK, 0, stream>>>(
            entries.keys.get(), references, current.get(), begins.get(), uint32_t(count), in, out,
            pairs.get(), target.get(), entries.spare_keys.get());
        check_launch("pair_up");
        std::swap(entries.keys, entries.spare_keys);
        adder.add(in, pairs.get(), target.get(), count - entries.total(level + 1), out);
        std::swap(current, begins);
        in = out;
        references = nullptr;
    }
    if (in == other.get()) std::swap(points, other);
    std::swap(current, begins);
}

// The weighted sums of bucket sets, as terms: row r of a set is to be taken 2^shift[r] times.
template <class F>
struct SetSums {
    std::vector<Xyzz<F>> rows;  // rows[r * sets + set]
    std::vector<int> shifts;
};

template <class F>
SetSums<F> sum_sets(const DeviceBuffer<Affine<F>>& points, const DeviceBuffer<uint32_t>& begins,
                    int log_buckets, size_t sets, const Stream& stream) {
    // Runs of eight keep the work at two additions a bucket; of four, further up, the latency low.
    constexpr int FIRST_RUN = 3, RUN = 2;
    int log_items = log_buckets, shift = 0;
    int run = std::min(FIRST_RUN, log_items);
    log_items -= run;
    size_t threads = sets << log_items;
    DeviceBuffer<Xyzz<F>> sums(threads, stream), weighted(threads, stream);
    sum_buckets<F><<<blocks_for(threads, POINT_BLOCK), POINT_BLOCK, 0, stream>>>(
        points.get(), begins.get(), uint32_t(threads), 1u << run, sums.get(), weighted.get());
    check_launch("sum_buckets");
    SetSums<F> result;
    result.shifts.push_back(0);
    while (log_items > 0) {
        shift += run;
        run = std::min(RUN, log_items);
        log_items -= run;
        threads = sets << log_items;
        const size_t rows = result.shifts.size();
        DeviceBuffer<Xyzz<F>> next_sums(threads, stream), next(threads * (rows + 1), stream);
        sum_runs<F><<<dim3(blocks_for(threads, POINT_BLOCK), uint32_t(rows + 1)), POINT_BLOCK, 0,
                      stream>>>(sums.get(), weighted.get(), uint32_t(threads), 1u << run,
                                uint32_t(rows), next_sums.get(), next.get());
        check_launch("sum_runs");
        sums = std::move(next_sums);
        weighted = std::move(next);
        result.shifts.push_back(shift);
    }
    result.rows.resize(result.shifts.size() * sets);
    stream.fetch(result.rows.data(), weighted.get(), result.rows.size());
    return result;
}

// What is left of the scratch memory beside that of the batch additions.
template <class F>
size_t scratch_for_entries(const Stream& stream) {
    return stream.scratch_bytes() - stream.scratch_bytes() / BatchAdder<F>::SCRATCH_SHARE;
}

// How much of a multiplication is done in one go.
struct Portion {
    size_t scalars;
    int sets;
};

template <class F>
Portion portion(const MsmPlan& plan, size_t count, const Stream& stream) {
    // An entry: key, reference and their doubles for sorting, a half of a pair and its target,
    // and the points of the first two levels.
    constexpr size_t ENTRY_BYTES = 4 * 4 + 6 + sizeof(Affine<F>) * 3 / 4;
    // A bucket: its limits, what it rounds up in the levels, and its share in the sums of runs.
    constexpr size_t BUCKET_BYTES = 4 * 4 + sizeof(Affine<F>) * 3 / 4 + sizeof(Xyzz<F>) * 3 / 8;
    const size_t scratch = scratch_for_entries<F>(stream);
    const size_t entry = ENTRY_BYTES * size_t(plan.multiples);
    const size_t buckets = BUCKET_BYTES * plan.buckets_per_set();
    const size_t most = std::clamp<size_t>((scratch - std::min(buckets, scratch / 2)) / entry, 1,
                                           INDEX_MASK / size_t(plan.multiples));
    const size_t parts = (count + most - 1) / most;
    Portion p;
    p.scalars = (count + parts - 1) / parts;
    p.sets = int(std::clamp<size_t>(std::min(scratch / (p.scalars * entry + buckets),
                                             INDEX_MASK / (p.scalars * size_t(plan.multiples))),
                                    1, size_t(plan.sets)));
    return p;
}

template <class F>
Xyzz<F> msm(const Bases<F>& bases, const Scalars& scalars, const MsmPlan& plan,
            const Stream& stream) {
    if (scalars.base_of == nullptr && (scalars.first_base > bases.count() ||
                                       scalars.count > bases.count() - scalars.first_base)) {
        throw ArgumentError{"msm: more scalars than bases"};
    }
    if (scalars.count == 0) return Xyzz<F>::infinity();
    if (plan.multiples > 1) bases.make_multiples(stream);
    const Portion go = portion<F>(plan, scalars.count, stream);
    // terms[k] is to be taken 2^k times.
    std::vector<Xyzz<F>> terms(size_t(plan.sets * plan.window_bits), Xyzz<F>::infinity());
    for (size_t at = 0; at < scalars.count; at += go.scalars) {
        const Scalars part = scalars.part(at, std::min(go.scalars, scalars.count - at));
        for (int first = 0; first < plan.sets; first += go.sets) {
            const int sets = std::min(go.sets, plan.sets - first);
            Entries entries(plan, part, bases.count(), first, sets, stream);
            DeviceBuffer<Affine<F>> points;
            DeviceBuffer<uint32_t> begins;
            accumulate(bases, entries, stream, points, begins);
            const SetSums<F> sums =
                sum_sets(points, begins, plan.window_bits - 1, size_t(sets), stream);
            for (size_t r = 0; r < sums.shifts.size(); r++) {
                for (int s = 0; s < sets; s++) {
                    auto& term = terms[size_t((first + s) * plan.window_bits + sums.shifts[r])];
                    term = term.plus(sums.rows[r * size_t(sets) + size_t(s)]);
                }
            }
        }
    }
    Xyzz<F> result = Xyzz<F>::infinity();
    for (size_t k = terms.size(); k-- > 0;) result = result.doubled().plus(terms[k]);
    return result;
}

template <class F>
Xyzz<F> msm_bits(const Bases<F>& bases, const uint32_t* bits, size_t count, const Stream& stream) {
    if (count > bases.count()) throw ArgumentError{"msm: more bits than bases"};
    if (count == 0) return Xyzz<F>::infinity();
    const size_t words = (count + 31) / 32;
    DeviceBuffer<uint32_t> places(words + 1, stream);
    count_bits<<<blocks_for(words + 1, POINT_BLOCK), POINT_BLOCK, 0, stream>>>(
        bits, uint32_t(count), uint32_t(words), places.get());
    check_launch("count_bits");
    exclusive_sum(places.get(), places.get(), words + 1, stream);
    uint32_t ones = 0;
    stream.fetch(&ones, places.get() + words, 1);
    if (ones == 0) return Xyzz<F>::infinity();
    DeviceBuffer<uint32_t> references(ones, stream);
    list_bits<<<blocks_for(words, POINT_BLOCK), POINT_BLOCK, 0, stream>>>(
        bits, uint32_t(words), places.get(), references.get());
    check_launch("list_bits");
    places.reset();

    // A base: half of a pair and its target, and the points of the first two levels.
    constexpr size_t BASE_BYTES = 6 + sizeof(Affine<F>) * 3 / 4;
    const size_t most =
        std::min<size_t>(std::max<size_t>(scratch_for_entries<F>(stream) / BASE_BYTES, 2), ones);
    const size_t most_pairs = most / 2 + 1;
    DeviceBuffer<Affine<F>> points(most / 2 + 1, stream), other(most / 4 + 1, stream);
    DeviceBuffer<Pair> pairs(most_pairs, stream);
    DeviceBuffer<uint32_t> target(most_pairs, stream);
    BatchAdder<F> adder(most_pairs, stream);
    Xyzz<F> result = Xyzz<F>::infinity();
    for (size_t first = 0; first < ones; first += most) {
        size_t left = std::min(most, ones - first);
        const Affine<F>* in = bases.points();
        const uint32_t* list = references.get() + first;
        for (int level = 0; level == 0 || left > FEW_POINTS; level++) {
            Affine<F>* out = (level % 2 == 0 ? points : other).get();
            pair_neighbours<F><<<blocks_for((left + 1) / 2, POINT_BLOCK), POINT_BLOCK, 0, stream>>>(
                list, uint32_t(left), in, out, pairs.get(), target.get());
            check_launch("pair_neighbours");
            adder.add(in, pairs.get(), target.get(), left / 2, out);
            left = (left + 1) / 2;
            in = out;
            list = nullptr;
        }
        const uint32_t blocks = std::min(blocks_for(left, POINT_BLOCK), 64u);
        DeviceBuffer<Xyzz<F>> partial(blocks, stream);
        sum_points<F><<<blocks, POINT_BLOCK, 0, stream>>>(in, uint32_t(left), partial.get());
        check_launch("sum_points");
        std::vector<Xyzz<F>> sums(blocks);
        stream.fetch(sums.data(), partial.get(), blocks);
        for (const auto& s : sums) result = result.plus(s);
    }
    return result;
}

}  // namespace interlock
