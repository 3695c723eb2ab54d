#include "bench/setup.cuh"

#include <cstdio>
#include <cstring>
#include <vector>

#include "bench/samples.cuh"
#include "bench/timer.cuh"
#include "curve/generators.cuh"
#include "setup/digits.cuh"
#include "setup/setup.cuh"

namespace interlock {
namespace {

// The encoding of k times the generator.
template <class F>
Affine<F> encoded_multiple(const Fr& k) {
    return encoded_point(multiply(generator<F>(), k.to_canonical().v, Fr::LIMBS).to_affine());
}

template <class F>
bool right(const Fr& scalar, const uint8_t* encoded) {
    const Affine<F> want = encoded_multiple<F>(scalar);
    return std::memcmp(&want, encoded, sizeof(want)) == 0;
}

// The scalar (modulo the order) whose words of 16 bits are `word`; the highest is zero.
Fr repeated(uint32_t word) {
    Fr k = Fr::zero();
    for (int i = 0; i < Fr::LIMBS; i++) k.v[i] = i + 1 < Fr::LIMBS ? word << 16 | word : word;
    return k.to_montgomery();
}

template <class F>
bool check_group(const Stream& stream) {
    std::vector<Fr> scalars = {Fr::one(), Fr::one().doubled(), -Fr::one()};
    for (uint32_t word : {1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
        scalars.push_back(repeated(word));
    }
    for (uint64_t i = 0; i < 300; i++) scalars.push_back(sample<FrParams>(31, i));
    std::vector<uint8_t> points(scalars.size() * ENCODED_BYTES<F>);
    generator_multiples<F>(scalars.data(), scalars.size(), points.data(), stream);
    for (size_t i = 0; i < scalars.size(); i++) {
        if (!right<F>(scalars[i], points.data() + i * ENCODED_BYTES<F>)) return false;
    }
    scalars[123] = Fr::zero();
    try {
        generator_multiples<F>(scalars.data(), scalars.size(), points.data(), stream);
    } catch (const ArgumentError& e) {
        return e.what.find("scalar 123 is zero") != std::string::npos;
    }
    return false;
}

template <class F>
bool measure_group(int group, int log_count, const Stream& stream) {
    const size_t n = (size_t(1) << log_count) + 12345;  // the last pass is a part of one
    DeviceBuffer<Fr> scalars(n, stream);
    fill_samples(scalars.get(), n, 41, stream);
    DeviceBuffer<uint8_t> points(n * ENCODED_BYTES<F>, stream);
    const double ms = median_ms(
        stream, 2, [&] { generator_multiples<F>(scalars.get(), n, points.get(), stream); });
    bool ok = true;
    for (uint64_t i = 0; i < 64; i++) {
        const size_t at = i == 0 ? n - 1 : mix(i) % n;
        std::vector<uint8_t> got(ENCODED_BYTES<F>);
        check(cudaMemcpyAsync(got.data(), points.get() + at * got.size(), got.size(),
                              cudaMemcpyDefault, stream),
              "copy");
        synchronize(stream);
        ok = ok && right<F>(sample<FrParams>(41, at), got.data());
    }
    std::printf(
        "{\"what\":\"generator_multiples_g%d\",\"log\":%d,\"ms\":%.1f,\"million_per_second\":%.1f,"
        "\"ok\":%s}\n",
        group, log_count, ms, double(n) / ms * 1e-3, ok ? "true" : "false");
    std::fflush(stdout);
    return ok;
}

}  // namespace

bool check_generator_multiples(const Stream& stream) {
    return check_group<Fp>(stream) && check_group<Fp2>(stream);
}

bool measure_generator_multiples(const Stream& stream) {
    return measure_group<Fp>(1, 24, stream) && measure_group<Fp2>(2, 22, stream);
}

}  // namespace interlock
