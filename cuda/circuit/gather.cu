#include "circuit/gather.cuh"

#include <algorithm>

namespace interlock {
namespace {

constexpr uint32_t BLOCK = 256;

__global__ void __launch_bounds__(BLOCK)
    gather_inputs(const Fr* __restrict__ inputs, const uint32_t* __restrict__ input_of,
                  uint32_t from, uint32_t count, Fr* __restrict__ scalars,
                  uint32_t* __restrict__ places) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    store(scalars + i, load(inputs + (input_of != nullptr ? input_of[from + i] : from + i)));
    places[i] = i;
}

// What of a circuit and a witness gather_aux reads.
struct AuxValues {
    const uint64_t *is_bit, *bits, *dense;  // dense null: all
    const uint32_t *rank, *full_rank;
    const Fr* full;
    uint32_t aux;
};

// A thread for each auxiliary variable of words [first_word, end_word). Variables whose place in
// the query's list is one of [begin, end) go to point offset + place - begin. *taken counts the
// scalars.
__global__ void __launch_bounds__(BLOCK)
    gather_aux(AuxValues v, uint32_t first_word, uint32_t end_word, uint32_t begin, uint32_t end,
               uint32_t offset, uint32_t* __restrict__ bits, Fr* __restrict__ scalars,
               uint32_t* __restrict__ places, uint32_t* __restrict__ taken) {
    const uint32_t word = first_word + (blockIdx.x * BLOCK + threadIdx.x) / 64;
    if (word >= end_word) return;  // whole warps
    constexpr uint32_t ALL = 0xffffffffu;
    const uint32_t j = threadIdx.x % 64, lane = threadIdx.x % 32;
    const uint64_t below = (uint64_t(1) << j) - 1, is_bit = v.is_bit[word];
    bool mine;
    uint32_t place;
    if (v.dense != nullptr) {
        const uint64_t dense = v.dense[word];
        mine = dense >> j & 1;
        place = v.rank[word] + __popcll(dense & below);
    } else {
        place = 64 * word + j;
        mine = place < v.aux;
    }
    mine = mine && place >= begin && place < end;
    const uint32_t some = __ballot_sync(ALL, mine);
    if (some == 0) return;
    const uint32_t point = offset + place - begin;

    // The warp's points follow each other, so that their bits lie in two words at most.
    const bool bit = is_bit >> j & 1;
    const uint32_t first = __shfl_sync(ALL, point, __ffs(some) - 1) / 32;
    const uint32_t one = mine && bit && (v.bits[word] >> j & 1) ? uint32_t(1) << (point % 32) : 0;
    const uint32_t low = __reduce_or_sync(ALL, point / 32 == first ? one : 0);
    const uint32_t high = __reduce_or_sync(ALL, point / 32 == first ? 0 : one);
    if (lane == 0 && low != 0) atomicOr(bits + first, low);
    if (lane == 0 && high != 0) atomicOr(bits + first + 1, high);

    const uint32_t full = __ballot_sync(ALL, mine && !bit);
    if (full == 0) return;
    uint32_t slot = 0;
    if (lane == 0) slot = atomicAdd(taken, __popc(full));
    slot = __shfl_sync(ALL, slot, 0) + __popc(full & ((1u << lane) - 1));
    if (!mine || bit) return;
    store(scalars + slot, load(v.full + v.full_rank[word] + __popcll(~is_bit & below)));
    places[slot] = point;
}

}  // namespace

Gathered gather(const Circuit& circuit, const Witness& witness, Query query, size_t from,
                size_t count, const Stream& stream) {
    const QueryPoints points = circuit.points(query);
    if (from > points.count || count > points.count - from) {
        throw ArgumentError{"sum over a query: more points than the query has"};
    }
    const size_t inputs = from < points.inputs ? std::min(count, points.inputs - from) : 0;
    // The list of the query's auxiliary variables: those asked for, and the words that have them.
    const size_t begin = from + inputs - points.inputs, end = begin + (count - inputs);
    size_t first_word = 0, end_word = 0;
    if (begin < end && points.host_rank == nullptr) {
        first_word = begin / 64, end_word = (end + 63) / 64;
    } else if (begin < end) {
        const std::vector<uint32_t>& rank = *points.host_rank;
        first_word = size_t(std::upper_bound(rank.begin(), rank.end(), begin) - rank.begin()) - 1;
        end_word = size_t(std::lower_bound(rank.begin(), rank.end(), end) - rank.begin());
    }
    const std::vector<uint32_t>& full_rank = circuit.host_full_rank();
    const size_t most =
        inputs + std::min<size_t>(count - inputs, full_rank[end_word] - full_rank[first_word]);

    Gathered g = {DeviceBuffer<uint32_t>((count + 31) / 32, stream), DeviceBuffer<Fr>(most, stream),
                  DeviceBuffer<uint32_t>(most, stream), inputs};
    clear(g.bits.get(), g.bits.count(), stream);
    if (inputs > 0) {
        gather_inputs<<<blocks_for(inputs, BLOCK), BLOCK, 0, stream>>>(
            witness.inputs.get(), points.input_of, uint32_t(from), uint32_t(inputs),
            g.scalars.get(), g.places.get());
        check_launch("gather_inputs");
    }
    if (begin < end) {
        DeviceBuffer<uint32_t> taken(1, stream);
        const auto before = uint32_t(inputs);
        copy(taken.get(), &before, 1, stream);
        const AuxValues values = {
            circuit.is_bit(),    witness.bits.get(), points.dense,           points.rank,
            circuit.full_rank(), witness.full.get(), uint32_t(circuit.aux())};
        gather_aux<<<blocks_for((end_word - first_word) * 64, BLOCK), BLOCK, 0, stream>>>(
            values, uint32_t(first_word), uint32_t(end_word), uint32_t(begin), uint32_t(end),
            uint32_t(inputs), g.bits.get(), g.scalars.get(), g.places.get(), taken.get());
        check_launch("gather_aux");
        uint32_t full = 0;
        stream.fetch(&full, taken.get(), 1);
        g.full = full;
    }
    return g;
}

}  // namespace interlock
