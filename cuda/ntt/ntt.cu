#include "ntt/ntt.cuh"

#include <algorithm>
#include <vector>

#include "field/inverse.cuh"
#include "ntt/pass.cuh"

namespace interlock {
namespace {

constexpr uint32_t BLOCK = 128;

// How a block is laid out, by the logarithm of the elements that a thread keeps in registers. Four
// leave room for 20 warps on a multiprocessor and suit passes of up to 2^8 rows; with 2^9 rows
// their tile would be one column wide, and eight have fewer products to do. Many small blocks,
// rather than a few large ones, keep the multipliers busy while others load, store or wait for one
// another; but more of them leave too few registers to load known factors ahead.
template <int LOG_PER_THREAD>
struct Shape {
    static constexpr uint32_t PER_THREAD = 1u << LOG_PER_THREAD;
    static constexpr uint32_t BLOCKS_PER_SM = LOG_PER_THREAD == 2 ? 5 : 3;
    static constexpr int LOG_TILE = 7 + LOG_PER_THREAD;
    static constexpr uint32_t TILE = 1u << LOG_TILE;
    // Shared memory keeps the two 16-byte halves of the elements apart, with a gap after every
    // eighth element so that accesses with a stride meet different banks.
    static constexpr uint32_t PLANE = TILE + TILE / 8 + 32;
    static constexpr size_t SHARED_BYTES = 2 * PLANE * sizeof(uint4);
};

constexpr int COSET_LOW_BITS = 14;

template <uint32_t PLANE>
__device__ __forceinline__ Fr get(const uint4* shared, uint32_t at) {
    Fr e;
    const uint4 a = shared[at], b = shared[PLANE + at];
    e.v[0] = a.x, e.v[1] = a.y, e.v[2] = a.z, e.v[3] = a.w;
    e.v[4] = b.x, e.v[5] = b.y, e.v[6] = b.z, e.v[7] = b.w;
    return e;
}

template <uint32_t PLANE>
__device__ __forceinline__ void put(uint4* shared, uint32_t at, const Fr& e) {
    shared[at] = make_uint4(e.v[0], e.v[1], e.v[2], e.v[3]);
    shared[PLANE + at] = make_uint4(e.v[4], e.v[5], e.v[6], e.v[7]);
}

// The gap of a sum is the sum of the gaps where the terms have no bit in common.
__device__ __forceinline__ uint32_t gapped(uint32_t at) { return at + at / 8; }

__device__ __forceinline__ Fr coset_power(const Tables& tables, uint32_t exponent) {
    return load(tables.coset_high + (exponent >> COSET_LOW_BITS)) *
           load(tables.coset_low + (exponent & ((1u << COSET_LOW_BITS) - 1)));
}

// One butterfly of decimation in frequency: (a + b, (a - b) * w).
template <int LOG_PER_THREAD>
__device__ __forceinline__ void butterfly(Fr& a, Fr& b, const Root& w) {
    Fr d;
    if constexpr (LOG_PER_THREAD == 2) {
        Fr::sum_and_difference(a, b, a, d);
    } else {
        // More instructions, but registers spill with the other.
        d = Fr::unreduced_difference(a, b);
        a = a + b;
    }
    b = w * d;
}
__device__ __forceinline__ void butterfly(Fr& a, Fr& b) {
    const Fr d = a - b;
    a = a + b;
    b = d;
}

// Power e of the root of order 2^(log_half + 1).
__device__ __forceinline__ Root root_power(const Tables& tables, int log_half, uint32_t e) {
    return {tables.roots + (1u << log_half) + e};
}

// Kept small on purpose: a step is a few products, and what happens once an element goes in rolled
// loops. With every butterfly of a pass unrolled, the multiprocessors wait for instructions half of
// the time.
template <int LOG_PER_THREAD>
__global__ void __launch_bounds__(BLOCK, Shape<LOG_PER_THREAD>::BLOCKS_PER_SM)
    transform_pass(const Fr* in, Fr* out, Pass pass, Tables tables) {
    constexpr uint32_t PER_THREAD = Shape<LOG_PER_THREAD>::PER_THREAD;
    constexpr uint32_t PLANE = Shape<LOG_PER_THREAD>::PLANE;
    extern __shared__ uint4 shared[];
    const uint32_t columns = 1u << pass.log_columns, rows = 1u << pass.log_rows;
    const uint32_t column = threadIdx.x & (columns - 1), unit = threadIdx.x >> pass.log_columns;
    const uint32_t first_column = blockIdx.x << pass.log_columns;
    const int log_row_stride = pass.log_size - pass.log_rows;
    const auto place = [&](uint32_t row) { return gapped((row << pass.log_columns) + column); };

    if (pass.scale_in) {
#pragma unroll 1
        for (uint32_t row = unit; row < rows; row += rows / PER_THREAD) {
            const uint32_t at = first_column + column + (row << log_row_stride);
            put<PLANE>(shared, place(row), in[at] * coset_power(tables, at));
        }
        __syncthreads();
    }

    // Steps of LOG_PER_THREAD levels of decimation in frequency, the last of what remains. A step
    // transforms blocks of 2^log_length rows, of which a thread has a few, log_gap apart.
    Fr x[PER_THREAD];
    bool from_memory = !pass.scale_in;
    const auto fetch = [&](uint32_t first, int log_gap) {
        if (from_memory) {
            // Plain loads: the last pass works in place.
            const Fr* from = in + first_column + column + (first << log_row_stride);
#pragma unroll
            for (uint32_t j = 0; j < PER_THREAD; j++) x[j] = from[j << (log_gap + log_row_stride)];
        } else {
            const uint32_t from = place(first);
#pragma unroll
            for (uint32_t j = 0; j < PER_THREAD; j++) {
                x[j] = get<PLANE>(shared, from + gapped(j << (log_gap + pass.log_columns)));
            }
        }
        from_memory = false;
    };
    int log_length = pass.log_rows;
#pragma unroll 1
    for (; log_length > LOG_PER_THREAD; log_length -= LOG_PER_THREAD) {
        const int log_gap = log_length - LOG_PER_THREAD;
        const uint32_t offset = unit & ((1u << log_gap) - 1);
        const uint32_t first = ((unit >> log_gap) << log_length) + offset;
        fetch(first, log_gap);
#pragma unroll
        for (int level = 0; level < LOG_PER_THREAD; level++) {
            const uint32_t half = PER_THREAD >> (level + 1);
#pragma unroll
            for (uint32_t j = 0; j < half; j++) {
                // The root of the block's order to the power of the place in its half.
                const Root w = root_power(tables, log_length - level - 1, offset + (j << log_gap));
#pragma unroll
                for (uint32_t b = j; b < PER_THREAD; b += 2 * half) {
                    butterfly<LOG_PER_THREAD>(x[b], x[b + half], w);
                }
            }
        }
        // Each thread puts its results where it fetched from. After the first step a warp has
        // whole blocks to itself: 32 threads with 2^LOG_PER_THREAD elements each hold a tile's
        // 2^LOG_PER_THREAD-th part, or more.
        const uint32_t to = place(first);
#pragma unroll
        for (uint32_t j = 0; j < PER_THREAD; j++) {
            put<PLANE>(shared, to + gapped(j << (log_gap + pass.log_columns)), x[j]);
        }
        if (log_length == pass.log_rows) {
            __syncthreads();
        } else {
            __syncwarp();
        }
    }
    // The last step, of log_length levels, has neighbouring rows; its roots are constants.
    fetch(unit << LOG_PER_THREAD, 0);
#pragma unroll
    for (int level = 0; level < LOG_PER_THREAD; level++) {
        const uint32_t half = PER_THREAD >> (level + 1);
        if (LOG_PER_THREAD - level > log_length) continue;
#pragma unroll
        for (uint32_t j = 0; j < half; j++) {
            const Root w = root_power(tables, LOG_PER_THREAD - level - 1, j);
#pragma unroll
            for (uint32_t b = j; b < PER_THREAD; b += 2 * half) {
                if (j != 0) {
                    butterfly<LOG_PER_THREAD>(x[b], x[b + half], w);
                } else {
                    butterfly(x[b], x[b + half]);
                }
            }
        }
    }

    // Row r holds output bit-reversed r. Outputs change places through shared memory, column by
    // column, so that they leave in the order of memory.
    const uint32_t pitch = rows + rows / 32 + (columns < 8 ? 8 / columns : 1);
    const auto reversed = [&](uint32_t row) {
        const uint32_t k = __brev(row) >> (32 - pass.log_rows);
        return k + k / 32;
    };
    const uint32_t to = column * pitch + reversed(unit << LOG_PER_THREAD);
    __syncthreads();
#pragma unroll
    for (uint32_t j = 0; j < PER_THREAD; j++) put<PLANE>(shared, to + reversed(j), x[j]);
    __syncthreads();

    const bool last_pass = pass.log_stride + pass.log_rows == pass.log_size;
    if (pass.log_stride == 0 && !last_pass) {
        // First of several passes: a block's outputs are one stretch of memory, output k of column
        // p at p*rows + k, times w^(p*k).
        const uint32_t begin = first_column << pass.log_rows;
#pragma unroll 1
        for (uint32_t n = threadIdx.x; n < rows * columns; n += blockDim.x) {
            const uint32_t c = n >> pass.log_rows, k = n & (rows - 1);
            Fr w;
            if (tables.first != nullptr) {
                w = load(tables.first + begin + n);
            } else {
                const uint32_t e = (first_column + c) * k;
                w = load(tables.high + (e >> tables.low_bits)) *
                    load(tables.low + (e & ((1u << tables.low_bits) - 1)));
            }
            store(out + begin + n, w * get<PLANE>(shared, c * pitch + k + k / 32));
        }
        return;
    }
    // Output k of column i = q + p*stride goes to q + (p*rows + k)*stride, times w^(p*k*stride).
    // The exponent is a multiple of the first pass's rows, so that high alone has its power.
    const uint32_t i = first_column + column;
    const uint32_t p = i >> pass.log_stride, q = i & ((1u << pass.log_stride) - 1);
    const int log_unit = pass.log_stride - tables.low_bits;
#pragma unroll 1
    for (uint32_t k = unit; k < rows; k += rows / PER_THREAD) {
        Fr y = get<PLANE>(shared, column * pitch + k + k / 32);
        if (!last_pass) y = load(tables.high + (p * k << log_unit)) * y;
        const uint32_t at = q + (((p << pass.log_rows) + k) << pass.log_stride);
        if (pass.scale_out) y = y * coset_power(tables, at);
        store(out + at, y);
    }
}

// Transforms of one or two levels, by the definition, in one thread.
constexpr int MAX_LOG_TINY = 2;
__global__ void transform_tiny(Fr* data, int log_size, Tables tables, bool scale_in, bool scale_out,
                               Fr scale) {
    Fr x[1 << MAX_LOG_TINY], y[1 << MAX_LOG_TINY];
    const uint32_t n = 1u << log_size, half = n / 2;
    for (uint32_t i = 0; i < n; i++) {
        x[i] = data[i];
        if (scale_in) x[i] = x[i] * coset_power(tables, i);
    }
    for (uint32_t k = 0; k < n; k++) {
        y[k] = Fr::zero();
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t e = i * k % n;
            const Fr t = root_power(tables, log_size - 1, e % half) * x[i];
            y[k] = e < half ? y[k] + t : y[k] - t;
        }
        y[k] = y[k] * scale;
        if (scale_out) y[k] = y[k] * coset_power(tables, k);
    }
    for (uint32_t k = 0; k < n; k++) data[k] = y[k];
}

// out[i] = factor * base^(i << shift).
__global__ void __launch_bounds__(BLOCK)
    powers(Fr factor, Fr base, uint32_t count, int shift, Fr* __restrict__ out) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) store(out + i, factor * base.pow(uint64_t(i) << shift));
}

// The table of roots (pass.cuh), from the powers of the root of order 2^MAX_LOG_ROWS. Entry 0 is
// none.
__global__ void __launch_bounds__(BLOCK)
    cut_roots(const Fr* __restrict__ powers, PieceFactors factors, KnownChunk* __restrict__ out) {
    const uint32_t n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n == 0 || n >= ROOTS) return;
    const int log_half = 31 - __clz(int(n));
    const uint32_t e = n - (1u << log_half);
    Root::store(out + n, load(powers + (e << (MAX_LOG_ROWS - 1 - log_half))), factors);
}

// out[(p << low_bits) + k] = w^(p * k), times the factor that low has: the twiddle factors between
// the first pass and the second, in the order in which they are used.
__global__ void __launch_bounds__(BLOCK)
    first_twiddles(const Fr* __restrict__ low, const Fr* __restrict__ high, int low_bits,
                   uint32_t count, Fr* __restrict__ out) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const uint32_t e = (i >> low_bits) * (i & ((1u << low_bits) - 1));
    store(out + i, load(high + (e >> low_bits)) * load(low + (e & ((1u << low_bits) - 1))));
}

__global__ void __launch_bounds__(BLOCK)
    multiply_all(Fr* __restrict__ data, uint32_t count, Fr factor) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) data[i] = data[i] * factor;
}

// The root of order 2^log_order, or its inverse.
Fr root(int log_order, Direction direction) {
    Fr w;
    for (int i = 0; i < Fr::LIMBS; i++) w.v[i] = FrParams::root_of_unity(i);
    for (int i = log_order; i < 32; i++) w = w.squared();
    return direction == Direction::FORWARD ? w : inverse(w);
}

// 2^-log_size.
Fr inverse_of_size(int log_size) {
    Fr n = Fr::one();
    for (int i = 0; i < log_size; i++) n = n.doubled();
    return inverse(n);
}

DeviceBuffer<Fr> power_table(Fr factor, Fr base, int log_count, int shift, const Stream& stream) {
    const uint32_t count = 1u << log_count;
    DeviceBuffer<Fr> table(count, stream);
    powers<<<blocks_for(count, BLOCK), BLOCK, 0, stream>>>(factor, base, count, shift, table.get());
    check_launch("powers");
    return table;
}

// Rows of each pass, as logarithms: as few passes as hold, cut evenly.
std::vector<int> cut(int log_size) {
    const int passes = (log_size + MAX_LOG_ROWS - 1) / MAX_LOG_ROWS;
    std::vector<int> rows;
    for (int i = 0, left = log_size; i < passes; i++) {
        rows.push_back((left + passes - i - 1) / (passes - i));
        left -= rows.back();
    }
    return rows;
}

template <int LOG_PER_THREAD>
void reserve_shared_memory() {
    check(cudaFuncSetAttribute(reinterpret_cast<const void*>(transform_pass<LOG_PER_THREAD>),
                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                               int(Shape<LOG_PER_THREAD>::SHARED_BYTES)),
          "reserving shared memory");
}

template <int LOG_PER_THREAD>
void launch_pass(const Fr* in, Fr* out, Pass pass, const Tables& tables, const Stream& stream) {
    using S = Shape<LOG_PER_THREAD>;
    pass.log_columns = std::min(S::LOG_TILE - pass.log_rows, pass.log_size - pass.log_rows);
    const uint32_t threads = 1u << (pass.log_rows + pass.log_columns - LOG_PER_THREAD);
    const uint32_t blocks = 1u << (pass.log_size - pass.log_rows - pass.log_columns);
    transform_pass<LOG_PER_THREAD>
        <<<blocks, threads, S::SHARED_BYTES, stream>>>(in, out, pass, tables);
    check_launch("transform_pass");
}

}  // namespace

Transform::Transform(int log_size, Direction direction, Twiddles twiddles, const Stream& stream)
    : log_size_(log_size), direction_(direction) {
    if (log_size < 1 || log_size > MAX_LOG_NTT) {
        throw ArgumentError{"ntt: the size must be 2^1 to 2^27"};
    }
    const bool inverse_direction = direction == Direction::INVERSE;
    const Fr scale = inverse_direction ? inverse_of_size(log_size) : Fr::one();
    const Fr w = root(log_size, direction);
    low_bits_ = cut(log_size)[0];
    low_ = power_table(scale, w, low_bits_, 0, stream);
    high_ = power_table(Fr::one(), w, log_size - low_bits_, low_bits_, stream);
    const DeviceBuffer<Fr> small =
        power_table(Fr::one(), root(MAX_LOG_ROWS, direction), MAX_LOG_ROWS - 1, 0, stream);
    roots_ = DeviceBuffer<KnownChunk>(ROOTS * KNOWN_CHUNKS, stream);
    cut_roots<<<blocks_for(ROOTS, BLOCK), BLOCK, 0, stream>>>(small.get(), PieceFactors::make(),
                                                              roots_.get());
    check_launch("cut_roots");
    Fr shift;
    for (int i = 0; i < Fr::LIMBS; i++) shift.v[i] = FrParams::generator(i);
    if (inverse_direction) shift = inverse(shift);
    coset_low_ = power_table(Fr::one(), shift, std::min(log_size, COSET_LOW_BITS), 0, stream);
    coset_high_ = power_table(Fr::one(), shift, std::max(log_size - COSET_LOW_BITS, 0),
                              COSET_LOW_BITS, stream);
    if (twiddles == Twiddles::WHOLE && log_size > MAX_LOG_ROWS) {
        const uint32_t count = 1u << log_size;
        first_ = DeviceBuffer<Fr>(count, stream);
        first_twiddles<<<blocks_for(count, BLOCK), BLOCK, 0, stream>>>(
            low_.get(), high_.get(), low_bits_, count, first_.get());
        check_launch("first_twiddles");
    }
    reserve_shared_memory<2>();
    reserve_shared_memory<3>();
    synchronize(stream);
    for (auto* table : {&low_, &high_, &first_, &coset_low_, &coset_high_}) table->outlive(stream);
    roots_.outlive(stream);
}

void Transform::run(Fr* data, Fr* work, Domain domain, const Stream& stream) const {
    const Tables tables = {low_.get(),        high_.get(),  first_.get(), coset_low_.get(),
                           coset_high_.get(), roots_.get(), low_bits_};
    const bool coset = domain == Domain::COSET;
    const bool scale_in = coset && direction_ == Direction::FORWARD;
    const bool scale_out = coset && direction_ == Direction::INVERSE;
    const Fr scale = direction_ == Direction::INVERSE ? inverse_of_size(log_size_) : Fr::one();
    if (log_size_ <= MAX_LOG_TINY) {
        transform_tiny<<<1, 1, 0, stream>>>(data, log_size_, tables, scale_in, scale_out, scale);
        check_launch("transform_tiny");
        return;
    }
    const std::vector<int> rows = cut(log_size_);
    const Fr* in = data;
    int log_stride = 0;
    for (size_t i = 0; i < rows.size(); i++) {
        const bool first = i == 0, last = i + 1 == rows.size();
        const Pass pass = {log_size_, rows[i], log_stride, 0, scale_in && first, scale_out && last};
        // The last pass writes where it reads, so that the result lies in data either way.
        Fr* out = last ? data : (in == data ? work : data);
        if (rows[i] == MAX_LOG_ROWS) {
            launch_pass<3>(in, out, pass, tables, stream);
        } else {
            launch_pass<2>(in, out, pass, tables, stream);
        }
        in = out;
        log_stride += rows[i];
    }
    // The inverse's 1/N is in the first of several passes' twiddle factors.
    if (rows.size() == 1 && direction_ == Direction::INVERSE) {
        const uint32_t count = 1u << log_size_;
        multiply_all<<<blocks_for(count, BLOCK), BLOCK, 0, stream>>>(data, count, scale);
        check_launch("multiply_all");
    }
}

}  // namespace interlock
