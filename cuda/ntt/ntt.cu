#include "ntt/ntt.cuh"

#include <algorithm>
#include <vector>

#include "field/inverse.cuh"

namespace interlock {
namespace {

constexpr int MAX_LOG_ROWS = 9;
constexpr int LOG_PER_THREAD = 3;
constexpr uint32_t PER_THREAD = 1u << LOG_PER_THREAD;

// Elements of a block: 64 KiB of shared memory, 256 threads of 8 elements, two blocks to a
// multiprocessor by registers.
constexpr int LOG_TILE = 11;
constexpr uint32_t TILE = 1u << LOG_TILE;
constexpr uint32_t BLOCK = TILE / PER_THREAD;
constexpr uint32_t BLOCKS_PER_SM = 2;

// Shared memory keeps the two 16-byte halves of the elements apart, with a gap in every 32 elements
// so that accesses with a stride meet different banks.
constexpr uint32_t PLANE = TILE + TILE / 8 + 32;
constexpr size_t SHARED_BYTES = 2 * PLANE * sizeof(uint4);

constexpr int COSET_LOW_BITS = 14;

struct Tables {
    const Fr *low, *high, *small, *coset_low, *coset_high;
    int low_bits;
};

struct Pass {
    int log_size;              // of the whole transform
    int log_rows;              // of this pass
    int log_stride;            // product of the rows of the passes before
    int log_columns;           // of a block
    bool scale_in, scale_out;  // by the coset's powers
};

__device__ __forceinline__ Fr get(const uint4* shared, uint32_t at) {
    Fr e;
    const uint4 a = shared[at], b = shared[PLANE + at];
    e.v[0] = a.x, e.v[1] = a.y, e.v[2] = a.z, e.v[3] = a.w;
    e.v[4] = b.x, e.v[5] = b.y, e.v[6] = b.z, e.v[7] = b.w;
    return e;
}

__device__ __forceinline__ void put(uint4* shared, uint32_t at, const Fr& e) {
    shared[at] = make_uint4(e.v[0], e.v[1], e.v[2], e.v[3]);
    shared[PLANE + at] = make_uint4(e.v[4], e.v[5], e.v[6], e.v[7]);
}

__device__ __forceinline__ uint32_t gapped(uint32_t at) { return at + at / 32 * 4; }

__device__ __forceinline__ Fr coset_power(const Tables& tables, uint32_t exponent) {
    return load(tables.coset_high + (exponent >> COSET_LOW_BITS)) *
           load(tables.coset_low + (exponent & ((1u << COSET_LOW_BITS) - 1)));
}

// One butterfly of decimation in frequency: (a + b, (a - b) * w).
__device__ __forceinline__ void butterfly(Fr& a, Fr& b, const Fr& w) {
    const Fr d = a - b;
    a = a + b;
    b = d * w;
}
__device__ __forceinline__ void butterfly(Fr& a, Fr& b) {
    const Fr d = a - b;
    a = a + b;
    b = d;
}

// LAST is the number of levels that remain after the steps of three: 1, 2 or 3.
template <int LAST>
__global__ void __launch_bounds__(BLOCK, BLOCKS_PER_SM)
    transform_pass(const Fr* in, Fr* out, Pass pass, Tables tables) {
    extern __shared__ uint4 shared[];
    const uint32_t columns = 1u << pass.log_columns, rows = 1u << pass.log_rows;
    const uint32_t column = threadIdx.x & (columns - 1), unit = threadIdx.x >> pass.log_columns;
    const uint32_t i = (blockIdx.x << pass.log_columns) + column;
    const int log_row_stride = pass.log_size - pass.log_rows;

    Fr x[PER_THREAD];
#pragma unroll
    for (uint32_t j = 0; j < PER_THREAD; j++) {
        const uint32_t row = unit + (j << (pass.log_rows - LOG_PER_THREAD));
        const uint32_t at = i + (row << log_row_stride);
        x[j] = in[at];  // a plain load: the last pass works in place
        if (pass.scale_in) x[j] = x[j] * coset_power(tables, at);
    }

    // Steps of three levels; blocks of 2^log_length rows are transformed by themselves.
    int log_length = pass.log_rows;
#pragma unroll 1
    for (; log_length > LAST; log_length -= 3) {
        const int log_gap = log_length - 3;
        const uint32_t offset = unit & ((1u << log_gap) - 1);
        const uint32_t first = ((unit >> log_gap) << log_length) + offset;
        if (log_length != pass.log_rows) {
            __syncthreads();
#pragma unroll
            for (uint32_t j = 0; j < PER_THREAD; j++) {
                x[j] = get(shared, gapped(((first + (j << log_gap)) << pass.log_columns) + column));
            }
            __syncthreads();
        }
#pragma unroll
        for (int level = 0; level < 3; level++) {
            const uint32_t half = PER_THREAD >> (level + 1);
#pragma unroll
            for (uint32_t j = 0; j < half; j++) {
                // w of order 2^(log_length-level), to the power of the place in the half block.
                const uint32_t e = (offset + (j << log_gap)) << (MAX_LOG_ROWS - log_length + level);
                const Fr w = load(tables.small + e);
#pragma unroll
                for (uint32_t b = 0; b < PER_THREAD; b += 2 * half) {
                    butterfly(x[b + j], x[b + j + half], w);
                }
            }
        }
#pragma unroll
        for (uint32_t j = 0; j < PER_THREAD; j++) {
            put(shared, gapped(((first + (j << log_gap)) << pass.log_columns) + column), x[j]);
        }
    }

    // The last step: rows 8*unit .. 8*unit+7, in blocks of 2^LAST.
    if (pass.log_rows > LAST) {
        __syncthreads();
#pragma unroll
        for (uint32_t j = 0; j < PER_THREAD; j++) {
            x[j] =
                get(shared, gapped((((unit << LOG_PER_THREAD) + j) << pass.log_columns) + column));
        }
    }
#pragma unroll
    for (int level = 0; level < LAST; level++) {
        const uint32_t half = 1u << (LAST - 1 - level);
#pragma unroll
        for (uint32_t j = 0; j < half; j++) {
            Fr w;
            if (j != 0) w = load(tables.small + (j << (MAX_LOG_ROWS - LAST + level)));
#pragma unroll
            for (uint32_t b = 0; b < PER_THREAD; b += 2 * half) {
                if (j != 0) {
                    butterfly(x[b + j], x[b + j + half], w);
                } else {
                    butterfly(x[b + j], x[b + j + half]);
                }
            }
        }
    }

    // Row r of the block holds output bit-reversed r. i = q + p*stride goes to
    // q + (p*rows + k)*stride, times w^(p*k*stride).
    const uint32_t p = i >> pass.log_stride, q = i & ((1u << pass.log_stride) - 1);
    const bool last_pass = pass.log_stride + pass.log_rows == pass.log_size;
    const bool transpose = pass.log_stride == 0 && !last_pass;
    const uint32_t pitch = rows + rows / 32 + (columns < 8 ? 8 / columns : 1);
    if (transpose) __syncthreads();
#pragma unroll
    for (uint32_t j = 0; j < PER_THREAD; j++) {
        const uint32_t k = __brev((unit << LOG_PER_THREAD) + j) >> (32 - pass.log_rows);
        Fr y = x[j];
        if (!last_pass) {
            const uint32_t e = (p * k) << pass.log_stride;
            Fr w = load(tables.high + (e >> tables.low_bits));
            if (pass.log_stride == 0) {
                w = w * load(tables.low + (e & ((1u << tables.low_bits) - 1)));
            }
            y = y * w;
        }
        if (transpose) {
            put(shared, column * pitch + k + k / 32, y);
        } else {
            const uint32_t at = q + (((p << pass.log_rows) + k) << pass.log_stride);
            if (pass.scale_out) y = y * coset_power(tables, at);
            store(out + at, y);
        }
    }
    if (!transpose) return;
    // First pass: the block's outputs are one stretch of memory.
    __syncthreads();
    const uint32_t begin = blockIdx.x << (pass.log_columns + pass.log_rows);
    for (uint32_t at = threadIdx.x; at < rows * columns; at += blockDim.x) {
        const uint32_t c = at >> pass.log_rows, k = at & (rows - 1);
        store(out + begin + at, get(shared, c * pitch + k + k / 32));
    }
}

// Transforms of fewer than PER_THREAD elements, by the definition, in one thread.
__global__ void transform_tiny(Fr* data, int log_size, Tables tables, bool scale_in, bool scale_out,
                               Fr scale) {
    Fr x[PER_THREAD / 2], y[PER_THREAD / 2];
    const uint32_t n = 1u << log_size;
    for (uint32_t i = 0; i < n; i++) {
        x[i] = data[i];
        if (scale_in) x[i] = x[i] * coset_power(tables, i);
    }
    for (uint32_t k = 0; k < n; k++) {
        y[k] = Fr::zero();
        for (uint32_t i = 0; i < n; i++) {
            y[k] = y[k] + x[i] * tables.small[(i * k % n) << (MAX_LOG_ROWS - log_size)];
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

DeviceBuffer<Fr> power_table(Fr factor, Fr base, int log_count, int shift, cudaStream_t stream) {
    const uint32_t count = 1u << log_count;
    DeviceBuffer<Fr> table(count, stream);
    powers<<<blocks_for(count, BLOCK), BLOCK, 0, stream>>>(factor, base, count, shift, table.get());
    check_launch("powers");
    return table;
}

// Rows of each pass: as few passes as hold, cut evenly.
std::vector<int> cut(int log_size) {
    const int passes = (log_size + MAX_LOG_ROWS - 1) / MAX_LOG_ROWS;
    std::vector<int> rows;
    for (int i = 0, left = log_size; i < passes; i++) {
        rows.push_back((left + passes - i - 1) / (passes - i));
        left -= rows.back();
    }
    return rows;
}

using PassKernel = void (*)(const Fr*, Fr*, Pass, Tables);

PassKernel kernel_for(int log_rows) {
    static constexpr PassKernel kernels[] = {transform_pass<3>, transform_pass<1>,
                                             transform_pass<2>};
    return kernels[log_rows % 3];
}

}  // namespace

Transform::Transform(int log_size, Direction direction, cudaStream_t stream)
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
    small_ = power_table(Fr::one(), root(MAX_LOG_ROWS, direction), MAX_LOG_ROWS, 0, stream);
    Fr shift;
    for (int i = 0; i < Fr::LIMBS; i++) shift.v[i] = FrParams::generator(i);
    if (inverse_direction) shift = inverse(shift);
    coset_low_ = power_table(Fr::one(), shift, std::min(log_size, COSET_LOW_BITS), 0, stream);
    coset_high_ = power_table(Fr::one(), shift, std::max(log_size - COSET_LOW_BITS, 0),
                              COSET_LOW_BITS, stream);
    for (PassKernel kernel : {kernel_for(3), kernel_for(1), kernel_for(2)}) {
        check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                   cudaFuncAttributeMaxDynamicSharedMemorySize, int(SHARED_BYTES)),
              "reserving shared memory");
    }
    synchronize(stream);
}

void Transform::run(Fr* data, Fr* work, Domain domain, cudaStream_t stream) const {
    const Tables tables = {low_.get(),       high_.get(),       small_.get(),
                           coset_low_.get(), coset_high_.get(), low_bits_};
    const bool coset = domain == Domain::COSET;
    const bool scale_in = coset && direction_ == Direction::FORWARD;
    const bool scale_out = coset && direction_ == Direction::INVERSE;
    const Fr scale = direction_ == Direction::INVERSE ? inverse_of_size(log_size_) : Fr::one();
    if (log_size_ < LOG_PER_THREAD) {
        transform_tiny<<<1, 1, 0, stream>>>(data, log_size_, tables, scale_in, scale_out, scale);
        check_launch("transform_tiny");
        return;
    }
    const std::vector<int> rows = cut(log_size_);
    const Fr* in = data;
    int log_stride = 0;
    for (size_t i = 0; i < rows.size(); i++) {
        const bool first = i == 0, last = i + 1 == rows.size();
        const int log_columns = std::min(LOG_TILE - rows[i], log_size_ - rows[i]);
        const Pass pass = {log_size_,   rows[i],           log_stride,
                           log_columns, scale_in && first, scale_out && last};
        // The last pass writes where it reads, so that the result lies in data either way.
        Fr* out = last ? data : (in == data ? work : data);
        const uint32_t threads = 1u << (rows[i] + log_columns - LOG_PER_THREAD);
        const uint32_t blocks = 1u << (log_size_ - rows[i] - log_columns);
        kernel_for(rows[i])<<<blocks, threads, SHARED_BYTES, stream>>>(in, out, pass, tables);
        check_launch("transform_pass");
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
