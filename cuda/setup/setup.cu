#include "setup/setup.cuh"

#include <algorithm>
#include <array>

#include "curve/generators.cuh"
#include "msm/batch_add.cuh"
#include "setup/digits.cuh"

namespace interlock {
namespace {

constexpr uint32_t BLOCK = 128;

// A window's part of the table: multiples by 0 (infinity) to HALF_WINDOW.
constexpr uint32_t ROW = HALF_WINDOW + 1;
constexpr uint32_t TABLE = WINDOWS * ROW;

// Points made in one go.
template <class F>
constexpr size_t PASS = (size_t(1) << 22) * sizeof(Fp) / sizeof(F);

// Entries most+1 .. 2*most of every window are entry `most` plus entries 1 .. most.
__global__ void __launch_bounds__(BLOCK)
    pair_up_table(uint32_t most, Pair* __restrict__ pairs, uint32_t* __restrict__ target) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= WINDOWS * most) return;
    const uint32_t row = i / most * ROW, k = 1 + i % most;
    pairs[i] = {row + most, row + k};
    target[i] = row + most + k;
}

// From Montgomery form to shifted digits, in place. *first_zero becomes the least index of a zero.
__global__ void __launch_bounds__(BLOCK)
    cut_into_digits(Fr* __restrict__ scalars, uint32_t count, uint32_t* __restrict__ first_zero) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    const Fr k = load(scalars + i).to_canonical();
    if (k.is_zero()) atomicMin(first_zero, i);
    store(scalars + i, shift_digits(k));
}

// The table's entry for a scalar's digit of a window.
__device__ __forceinline__ uint32_t entry(const Fr* digits, uint32_t i, uint32_t window) {
    const Digit d = digit(digits[i].v[window / 2], window);
    return (window * ROW + d.multiple) | (d.negative ? NEGATE : 0);
}

// Pairs each sum so far (at sums + i) with the entry of a window, for the sum at next + i. The
// first pair of a scalar is the entries of windows 0 and 1.
__global__ void __launch_bounds__(BLOCK)
    pair_up_digits(const Fr* __restrict__ digits, uint32_t count, uint32_t window, uint32_t sums,
                   uint32_t next, Pair* __restrict__ pairs, uint32_t* __restrict__ target) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    pairs[i] = {window == 1 ? entry(digits, i, 0) : sums + i, entry(digits, i, window)};
    target[i] = next + i;
}

// Every coordinate as the encoding has it. Coefficients of Fp2 lie in memory
// with the real one first, and in the encoding with the imaginary one first.
__global__ void __launch_bounds__(BLOCK)
    encode(const Fp* __restrict__ coordinates, uint32_t count, bool swap, Fp* __restrict__ out) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    store(out + i, encoded(load(coordinates + (swap ? i ^ 1 : i))));
}

// The table and working memory for passes of up to `most` scalars.
template <class F>
class Multiplier {
  public:
    Multiplier(size_t most, const Stream& stream)
        : stream_(stream),
          most_(uint32_t(most)),
          adder_(std::max<size_t>(most, WINDOWS * HALF_WINDOW / 2), stream),
          points_(TABLE + 2 * most, stream),
          pairs_(std::max<size_t>(most, WINDOWS * HALF_WINDOW / 2), stream),
          target_(pairs_.count(), stream),
          digits_(most, stream),
          first_zero_(1, stream) {
        make_table();
    }

    // One pass; `first` is the number of its first scalar among all.
    void run(const Fr* scalars, size_t first, uint32_t count, uint8_t* out) {
        check(
            cudaMemcpyAsync(digits_.get(), scalars, count * sizeof(Fr), cudaMemcpyDefault, stream_),
            "copying scalars");
        check(cudaMemsetAsync(first_zero_.get(), 0xff, sizeof(uint32_t), stream_), "clearing");
        cut_into_digits<<<blocks_for(count, BLOCK), BLOCK, 0, stream_>>>(digits_.get(), count,
                                                                         first_zero_.get());
        check_launch("cut_into_digits");
        uint32_t sums = TABLE, next = TABLE + most_;
        for (uint32_t window = 1; window < WINDOWS; window++) {
            pair_up_digits<<<blocks_for(count, BLOCK), BLOCK, 0, stream_>>>(
                digits_.get(), count, window, sums, next, pairs_.get(), target_.get());
            check_launch("pair_up_digits");
            adder_.add(points_.get(), pairs_.get(), target_.get(), count, points_.get());
            std::swap(sums, next);
        }
        // Encoded into the place of the sums before the last.
        constexpr uint32_t PARTS = sizeof(Affine<F>) / sizeof(Fp);
        const uint32_t coordinates = count * PARTS;
        auto* bytes = reinterpret_cast<Fp*>(points_.get() + next);
        encode<<<blocks_for(coordinates, BLOCK), BLOCK, 0, stream_>>>(
            reinterpret_cast<const Fp*>(points_.get() + sums), coordinates, PARTS == 4, bytes);
        check_launch("encode");
        check(cudaMemcpyAsync(out, bytes, count * ENCODED_BYTES<F>, cudaMemcpyDefault, stream_),
              "copying points");
        uint32_t zero = 0;
        stream_.fetch(&zero, first_zero_.get(), 1);
        if (zero != UINT32_MAX) {
            throw ArgumentError{"multiples of the generator: scalar " +
                                std::to_string(first + zero) + " is zero"};
        }
    }

  private:
    void make_table() {
        std::array<Affine<F>, 2 * WINDOWS> begin;  // multiples by 0 and 1 of every window
        Xyzz<F> power = Xyzz<F>::from(generator<F>());
        for (uint32_t window = 0; window < WINDOWS; window++) {
            begin[2 * window] = Affine<F>::infinity();
            begin[2 * window + 1] = power.to_affine();
            for (int bit = 0; bit < WINDOW_BITS; bit++) power = power.doubled();
        }
        check(cudaMemcpy2DAsync(points_.get(), ROW * sizeof(Affine<F>), begin.data(),
                                2 * sizeof(Affine<F>), 2 * sizeof(Affine<F>), WINDOWS,
                                cudaMemcpyHostToDevice, stream_),
              "copying the generator's multiples");
        for (uint32_t most = 1; most < HALF_WINDOW; most *= 2) {
            const uint32_t count = WINDOWS * most;
            pair_up_table<<<blocks_for(count, BLOCK), BLOCK, 0, stream_>>>(most, pairs_.get(),
                                                                           target_.get());
            check_launch("pair_up_table");
            adder_.add(points_.get(), pairs_.get(), target_.get(), count, points_.get());
        }
        synchronize(stream_);  // begin is copied
    }

    const Stream& stream_;
    uint32_t most_;
    BatchAdder<F> adder_;
    DeviceBuffer<Affine<F>> points_;  // the table, then two arrays of sums
    DeviceBuffer<Pair> pairs_;
    DeviceBuffer<uint32_t> target_;
    DeviceBuffer<Fr> digits_;
    DeviceBuffer<uint32_t> first_zero_;
};

}  // namespace

template <class F>
void generator_multiples(const Fr* scalars, size_t count, uint8_t* points, const Stream& stream) {
    if (count == 0) return;
    Multiplier<F> multiplier(std::min(count, PASS<F>), stream);
    for (size_t first = 0; first < count; first += PASS<F>) {
        multiplier.run(scalars + first, first, uint32_t(std::min(PASS<F>, count - first)),
                       points + first * ENCODED_BYTES<F>);
    }
}

template void generator_multiples<Fp>(const Fr*, size_t, uint8_t*, const Stream&);
template void generator_multiples<Fp2>(const Fr*, size_t, uint8_t*, const Stream&);

}  // namespace interlock
