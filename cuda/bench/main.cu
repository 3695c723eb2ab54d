// Checks the library on a device and measures it. One JSON line for each check and measurement on
// standard output; exit code 0 only if every check held.
//
//   interlock-cuda-bench [check] [throughput] [ntt] [msm] [bits] [setup] [limits] [sweep]
//                        [--min-log N] [--max-log N]
//
// check --max-log 6 is small enough for every tool of compute-sanitizer. --min-log is of transforms
// alone. Every measured result is checked too.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "api/interlock_cuda.h"
#include "bench/circuit.cuh"
#include "bench/limits.cuh"
#include "bench/samples.cuh"
#include "bench/setup.cuh"
#include "bench/throughput.cuh"
#include "bench/timer.cuh"
#include "curve/generators.cuh"
#include "msm/msm.cuh"
#include "ntt/ntt.cuh"

namespace interlock {
namespace {

int failures = 0;

bool expect(bool holds, const std::string& what) {
    if (!holds) failures++;
    if (!holds) std::printf("{\"what\":\"check\",\"of\":\"%s\",\"ok\":false}\n", what.c_str());
    return holds;
}

void passed(const char* what, int before) {
    if (failures == before) std::printf("{\"what\":\"check\",\"of\":\"%s\",\"ok\":true}\n", what);
    std::fflush(stdout);
}

std::vector<Fr> host_samples(size_t count, uint64_t seed) {
    std::vector<Fr> v(count);
    for (size_t i = 0; i < count; i++) v[i] = sample<FrParams>(seed, i);
    return v;
}

Fr constant(uint32_t (*limb)(int)) {
    Fr r;
    for (int i = 0; i < Fr::LIMBS; i++) r.v[i] = limb(i);
    return r;
}

Fr root_of_order(int log_order) {
    Fr w = constant([](int i) { return FrParams::root_of_unity(i); });
    for (int i = log_order; i < 32; i++) w = w.squared();
    return w;
}

Fr coset_shift() {
    return constant([](int i) { return FrParams::generator(i); });
}

// A transform of 2^log_size samples against the polynomial's values at some points of the domain,
// and its inverse against the samples.
void check_transform(int log_size, Domain domain, Twiddles twiddles, const Stream& stream) {
    const size_t n = size_t(1) << log_size;
    const std::string name =
        "ntt 2^" + std::to_string(log_size) + (domain == Domain::COSET ? " on the coset" : "");
    DeviceBuffer<Fr> data(n, stream), original(n, stream), work(n, stream);
    fill_samples(original.get(), n, 11, stream);
    copy(data.get(), original.get(), n, stream);
    const Transform forward(log_size, Direction::FORWARD, twiddles, stream);
    const Transform backward(log_size, Direction::INVERSE, twiddles, stream);
    forward.run(data.get(), work.get(), domain, stream);
    const Fr w = root_of_order(log_size);
    const size_t points = std::min<size_t>(n, log_size <= 6 ? 64 : log_size <= 16 ? 24 : 6);
    for (size_t j = 0; j < points; j++) {
        const size_t k = points == n ? j : j < 2 ? j * (n - 1) : size_t(mix(j)) % n;
        Fr x = w.pow(k);
        if (domain == Domain::COSET) x = x * coset_shift();
        const Fr want = evaluate(original.get(), n, x, stream);
        Fr got;
        stream.fetch(&got, data.get() + k, 1);
        if (!expect(got == want, name + " at " + std::to_string(k))) return;
    }
    backward.run(data.get(), work.get(), domain, stream);
    std::vector<Fr> a(n), b(n);
    stream.fetch(a.data(), data.get(), n);
    stream.fetch(b.data(), original.get(), n);
    expect(std::memcmp(a.data(), b.data(), n * sizeof(Fr)) == 0, name + " and back");
}

template <class F>
struct Group;
template <>
struct Group<Fp> {
    static constexpr int NUMBER = 1;
    static Affine<Fp> generator() { return g1_generator(); }
};
template <>
struct Group<Fp2> {
    static constexpr int NUMBER = 2;
    static Affine<Fp2> generator() { return g2_generator(); }
};

template <class F>
Affine<F> multiple_of_generator(const Fr& k) {
    return multiply(Group<F>::generator(), k.to_canonical().v, Fr::LIMBS).to_affine();
}

std::string msm_name(int group, size_t count, const MsmPlan& plan) {
    return "msm g" + std::to_string(group) + " of " + std::to_string(count) + ", window " +
           std::to_string(plan.window_bits) + ", multiples " + std::to_string(plan.multiples);
}

// Small multiplications with every special case against the sum of host multiples.
template <class F>
void check_small_msm(size_t count, const MsmPlan& plan, const Stream& stream) {
    constexpr int BASES = 7;
    std::vector<Affine<F>> points(count);
    std::vector<Fr> scalars = host_samples(count, 5);
    std::vector<uint32_t> bits((count + 31) / 32 + 1, 0);
    Affine<F> known[BASES];
    for (int i = 0; i < BASES; i++) {
        Fr k = Fr::zero();
        k.v[0] = uint32_t(i * i + 1);
        known[i] = multiple_of_generator<F>(k.to_montgomery());
    }
    known[5] = known[4].negated_if(true);
    known[6] = Affine<F>::infinity();
    Fr minus_one = -Fr::one();
    Xyzz<F> want = Xyzz<F>::infinity(), want_bits = Xyzz<F>::infinity();
    for (size_t i = 0; i < count; i++) {
        points[i] = known[mix(i) % BASES];
        if (i % 11 == 3) scalars[i] = Fr::zero();
        if (i % 11 == 4) scalars[i] = Fr::one();
        if (i % 11 == 5) scalars[i] = minus_one;
        if (i % 11 >= 8) scalars[i] = scalars[8 < count ? 8 : 0];
        want = want.plus(multiply(points[i], scalars[i].to_canonical().v, Fr::LIMBS));
        if (mix(i * 3) & 1) {
            bits[i / 32] |= 1u << (i % 32);
            want_bits = want_bits.plus(points[i]);
        }
    }
    if (count % 32 != 0) bits[count / 32] |= ~0u << (count % 32);  // to be ignored
    Bases<F> bases(count, plan, stream);
    bases.load(0, count, points.data(), stream);
    DeviceBuffer<Fr> on_device(count, stream);
    copy(on_device.get(), scalars.data(), count, stream);
    DeviceBuffer<uint32_t> bits_on_device(bits.size(), stream);
    copy(bits_on_device.get(), bits.data(), bits.size(), stream);
    const std::string name = msm_name(Group<F>::NUMBER, count, plan);
    const Scalars montgomery = {on_device.get(), count, ScalarForm::MONTGOMERY};
    expect(msm(bases, montgomery, plan, stream).to_affine() == want.to_affine(), name);
    expect(
        msm_bits(bases, bits_on_device.get(), count, stream).to_affine() == want_bits.to_affine(),
        name + ", bits");

    // Base i for scalar n-1-i, by an index map; and little scratch memory, so that it is done in
    // parts.
    std::vector<uint32_t> base_of(count);
    std::vector<Fr> backwards(count);
    for (size_t i = 0; i < count; i++) {
        base_of[i] = uint32_t(count - 1 - i);
        backwards[i] = scalars[base_of[i]];
    }
    DeviceBuffer<uint32_t> map(count, stream);
    copy(map.get(), base_of.data(), count, stream);
    DeviceBuffer<Fr> reversed(count, stream);
    copy(reversed.get(), backwards.data(), count, stream);
    const Scalars mapped = {reversed.get(), count, ScalarForm::MONTGOMERY, map.get()};
    expect(msm(bases, mapped, plan, stream).to_affine() == want.to_affine(), name + ", mapped");
    const Stream narrow(stream.pool(), 400 * sizeof(Affine<F>));
    synchronize(stream);
    expect(msm(bases, mapped, plan, narrow).to_affine() == want.to_affine(),
           name + ", mapped, in parts");
    expect(
        msm_bits(bases, bits_on_device.get(), count, narrow).to_affine() == want_bits.to_affine(),
        name + ", bits, in parts");

    for (Fr& s : scalars) s = s.to_canonical();
    copy(on_device.get(), scalars.data(), count, stream);
    const Scalars canonical = {on_device.get(), count, ScalarForm::CANONICAL};
    expect(msm(bases, canonical, plan, stream).to_affine() == want.to_affine(),
           name + ", canonical");
}

// The C interface: what it refuses, and one call of each kind.
void check_interface() {
    interlock_error error;
    int32_t devices = 0;
    expect(interlock_version() == INTERLOCK_CUDA_VERSION, "version");
    expect(interlock_count_devices(&devices, &error) == INTERLOCK_OK && devices > 0,
           "device count");
    interlock_device_info info;
    uint64_t free_bytes = 0;
    expect(interlock_describe_device(0, &info, &error) == INTERLOCK_OK, "device info");
    expect(interlock_free_memory(0, &free_bytes, &error) == INTERLOCK_OK &&
               free_bytes <= info.memory_bytes,
           "free memory");
    std::printf(
        "{\"what\":\"device\",\"name\":\"%s\",\"uuid_length\":%zu,\"pci_address\":\"%s\","
        "\"multiprocessors\":%d,\"memory\":%llu,\"free\":%llu,\"driver\":%d}\n",
        info.name, std::strlen(info.uuid), info.pci_address, info.multiprocessors,
        (unsigned long long)info.memory_bytes, (unsigned long long)free_bytes, info.driver_version);
    expect(interlock_describe_device(devices, &info, &error) == INTERLOCK_NO_DEVICE,
           "no such device");
    expect(interlock_free_memory(devices, &free_bytes, &error) == INTERLOCK_NO_DEVICE,
           "no such device");
    interlock_device* device = nullptr;
    interlock_context* context = nullptr;
    constexpr uint64_t LIMIT = uint64_t(256) << 20;
    expect(interlock_device_open(0, LIMIT, 1, &device, &error) == INTERLOCK_BAD_ARGUMENT,
           "too little scratch memory is refused");
    if (!expect(interlock_device_open(0, LIMIT, INTERLOCK_LEAST_SCRATCH_BYTES, &device, &error) ==
                        INTERLOCK_OK &&
                    interlock_context_create(device, &context, &error) == INTERLOCK_OK,
                "device and context")) {
        return;
    }

    void* memory = nullptr;
    expect(interlock_device_alloc(context, uint64_t(1) << 50, &memory, &error) ==
                   INTERLOCK_OUT_OF_MEMORY &&
               error.bytes_asked == uint64_t(1) << 50 && error.bytes_free > 0,
           "out of memory says what was asked and what is free");
    // Beyond the pool's limit, though the device has it; then what the limit allows.
    expect(interlock_device_alloc(context, LIMIT - (LIMIT >> 3), &memory, &error) == INTERLOCK_OK,
           "most of the pool");
    void* second = nullptr;
    expect(interlock_device_alloc(context, LIMIT / 2, &second, &error) == INTERLOCK_OUT_OF_MEMORY &&
               error.bytes_asked == LIMIT / 2 && error.bytes_free <= LIMIT >> 3,
           "an allocation beyond the limit fails");
    uint64_t used = 0, peak = 0;
    expect(interlock_device_memory(device, &used, &peak, &error) == INTERLOCK_OK &&
               used >= LIMIT - (LIMIT >> 3) && used <= LIMIT && peak >= used,
           "memory in use");
    expect(interlock_device_free(context, memory, &error) == INTERLOCK_OK &&
               interlock_device_alloc(context, LIMIT / 2, &memory, &error) == INTERLOCK_OK &&
               interlock_device_free(context, memory, &error) == INTERLOCK_OK,
           "memory again after a failure");
    expect(interlock_ntt(context, nullptr, 3, 0, 0, &error) == INTERLOCK_BAD_ARGUMENT,
           "ntt of nothing is refused");
    constexpr size_t N = 256;
    const std::vector<Fr> values = host_samples(N, 3);
    std::vector<Fr> back(N);
    expect(
        interlock_device_alloc(context, N * sizeof(Fr), &memory, &error) == INTERLOCK_OK &&
            interlock_copy(context, memory, values.data(), N * sizeof(Fr), &error) ==
                INTERLOCK_OK &&
            interlock_ntt(context, memory, 8, 0, 1, &error) == INTERLOCK_OK &&
            interlock_ntt(context, memory, 8, 1, 1, &error) == INTERLOCK_OK &&
            interlock_copy(context, back.data(), memory, N * sizeof(Fr), &error) == INTERLOCK_OK &&
            std::memcmp(back.data(), values.data(), N * sizeof(Fr)) == 0,
        "ntt through the interface");
    expect(interlock_device_free(context, memory, &error) == INTERLOCK_OK, "device free");
    uint64_t tables = 0;  // of the transforms, which stay
    expect(interlock_device_memory(device, &tables, &peak, &error) == INTERLOCK_OK &&
               tables < uint64_t(1) << 20,
           "memory of tables");

    const std::vector<G2Affine> points(N, g2_generator());
    interlock_bases* bases = nullptr;
    G2Affine result;
    Fr sum = Fr::zero();
    for (const Fr& v : values) sum = sum + v;
    expect(
        interlock_bases_create(context, 2, N, 1, &bases, &error) == INTERLOCK_OK &&
            interlock_bases_load(context, bases, 0, N, points.data(), 0, &error) == INTERLOCK_OK &&
            interlock_msm(context, bases, values.data(), N, 1, &result, &error) == INTERLOCK_OK &&
            result == multiple_of_generator<Fp2>(sum) && interlock_kernel_milliseconds(context) > 0,
        "msm through the interface");
    expect(interlock_msm(context, bases, values.data(), N + 1, 1, &result, &error) ==
               INTERLOCK_BAD_ARGUMENT,
           "more scalars than bases are refused");
    interlock_bases_destroy(bases);
    expect(interlock_bases_create(context, 1, uint64_t(1) << 30, 1, &bases, &error) ==
               INTERLOCK_OUT_OF_MEMORY,
           "bases beyond the limit fail");
    expect(interlock_copy(context, nullptr, nullptr, 0, &error) == INTERLOCK_OK &&
               interlock_device_memory(device, &used, &peak, &error) == INTERLOCK_OK &&
               used == tables,
           "nothing but tables is in use in the end");
    interlock_context_destroy(context);
    interlock_device_close(device);
}

void check_all(int max_log, const Stream& stream) {
    int before = failures;
    expect(compare_fields_with_host(4096, stream) == 0, "fields on device and host");
    passed("fields on device and host", before);

    before = failures;
    for (int log_size = 1; log_size <= std::min(max_log, 16); log_size++) {
        for (Twiddles twiddles : {Twiddles::WHOLE, Twiddles::SPLIT}) {
            check_transform(log_size, Domain::SUBGROUP, twiddles, stream);
            check_transform(log_size, Domain::COSET, twiddles, stream);
        }
    }
    passed("ntt, small", before);

    before = failures;
    for (size_t count : {1, 2, 3, 31, 64, 200, 1000}) {
        if (count >> max_log != 0) continue;
        for (int window : {4, 7, 10}) {
            for (int multiples : {1, 2, 3, 100}) {
                check_small_msm<Fp>(count, MsmPlan::with_window(window, multiples), stream);
            }
        }
    }
    if (max_log > 16) {
        check_small_msm<Fp>(500, MsmPlan::with_window(15, 1), stream);
        check_small_msm<Fp>(500, MsmPlan::with_window(17, 4), stream);
    }
    passed("msm g1, small", before);

    before = failures;
    for (size_t count : {1, 33, 200}) {
        if (count >> max_log != 0) continue;
        check_small_msm<Fp2>(count, MsmPlan::with_window(5, 1), stream);
        check_small_msm<Fp2>(count, MsmPlan::with_window(9, 3), stream);
    }
    passed("msm g2, small", before);

    before = failures;
    expect(check_generator_multiples(stream), "multiples of the generators");
    passed("multiples of the generators", before);

    for (const CircuitCheck& c : circuit_checks()) {
        before = failures;
        const std::string wrong = c.run(stream);
        expect(wrong.empty(), std::string(c.name) + ": " + wrong);
        passed(c.name, before);
    }

    before = failures;
    check_interface();
    passed("interface", before);
}

void measure_ntt(int min_log, int max_log, const Stream& stream) {
    for (int log_size : {19, 20, 22, 24, 26, 27}) {
        for (Twiddles twiddles : {Twiddles::WHOLE, Twiddles::SPLIT}) {
            if (log_size < min_log || log_size > max_log) continue;
            const int before = failures;
            check_transform(log_size, Domain::SUBGROUP, twiddles, stream);
            check_transform(log_size, Domain::COSET, twiddles, stream);
            const size_t n = size_t(1) << log_size;
            DeviceBuffer<Fr> data(n, stream), work(n, stream);
            fill_samples(data.get(), n, 11, stream);
            const Transform forward(log_size, Direction::FORWARD, twiddles, stream);
            const Transform backward(log_size, Direction::INVERSE, twiddles, stream);
            const auto time = [&](const Transform& t, Domain domain) {
                return median_ms(stream, 5, [&] { t.run(data.get(), work.get(), domain, stream); });
            };
            std::printf(
                "{\"what\":\"ntt\",\"log\":%d,\"twiddles\":\"%s\",\"forward_ms\":%.3f,"
                "\"inverse_ms\":%.3f,\"forward_coset_ms\":%.3f,"
                "\"inverse_coset_ms\":%.3f,\"ok\":%s}\n",
                log_size, twiddles == Twiddles::WHOLE ? "whole" : "split",
                time(forward, Domain::SUBGROUP), time(backward, Domain::SUBGROUP),
                time(forward, Domain::COSET), time(backward, Domain::COSET),
                failures == before ? "true" : "false");
            std::fflush(stdout);
        }
    }
}

// bases on the device are made anew for each plan only where it wants multiples.
template <class F>
void measure_msm(int log_size, const std::vector<MsmPlan>& plans, bool from_host,
                 const Stream& stream) {
    const size_t n = size_t(1) << log_size;
    constexpr uint64_t SEED = 77;
    DeviceBuffer<Affine<F>> points(n, stream);
    fill_bases(points.get(), n, SEED, stream);
    DeviceBuffer<Fr> scalars(n, stream);
    fill_samples(scalars.get(), n, 21, stream);
    const Affine<F> want = multiple_of_generator<F>(weighted_sum(scalars.get(), n, SEED, stream));
    for (const MsmPlan& plan : plans) {
        const auto begin = std::chrono::steady_clock::now();
        Bases<F> bases(n, plan, stream);
        bases.load(0, n, points.get(), stream);
        const std::chrono::duration<double> load = std::chrono::steady_clock::now() - begin;
        Affine<F> got;
        const double ms = median_ms(stream, log_size > 24 ? 2 : 4, [&] {
            const Scalars s = {scalars.get(), n, ScalarForm::MONTGOMERY};
            got = msm(bases, s, plan, stream).to_affine();
        });
        const bool ok = expect(got == want, msm_name(Group<F>::NUMBER, n, plan));
        std::printf(
            "{\"what\":\"msm_g%d\",\"log\":%d,\"window\":%d,\"multiples\":%d,\"ms\":%.3f,"
            "\"load_s\":%.2f,\"ok\":%s}\n",
            Group<F>::NUMBER, log_size, plan.window_bits, plan.multiples, ms, load.count(),
            ok ? "true" : "false");
        std::fflush(stdout);
    }
    if (!from_host) return;
    // As the reference figures were taken: scalars in pinned host memory.
    Fr* pinned = nullptr;
    check(cudaHostAlloc(reinterpret_cast<void**>(&pinned), n * sizeof(Fr), cudaHostAllocDefault),
          "pinned memory");
    stream.fetch(pinned, scalars.get(), n);
    const MsmPlan plan = plans.front();
    Bases<F> bases(n, plan, stream);
    bases.load(0, n, points.get(), stream);
    Affine<F> got;
    const double ms = median_ms(stream, log_size > 24 ? 2 : 4, [&] {
        copy(scalars.get(), pinned, n, stream);
        const Scalars s = {scalars.get(), n, ScalarForm::MONTGOMERY};
        got = msm(bases, s, plan, stream).to_affine();
    });
    const bool ok = expect(got == want, "msm with scalars from the host");
    std::printf(
        "{\"what\":\"msm_g%d_scalars_from_host\",\"log\":%d,\"window\":%d,\"multiples\":%d,"
        "\"ms\":%.3f,\"ok\":%s}\n",
        Group<F>::NUMBER, log_size, plan.window_bits, plan.multiples, ms, ok ? "true" : "false");
    (void)cudaFreeHost(pinned);
}

template <class F>
void measure_bits(int log_size, const Stream& stream) {
    const size_t n = size_t(1) << log_size;
    constexpr uint64_t SEED = 78;
    DeviceBuffer<Affine<F>> points(n, stream);
    fill_bases(points.get(), n, SEED, stream);
    Bases<F> bases(n, MsmPlan::choose(n, 1), stream);
    bases.load(0, n, points.get(), stream);
    points.reset();
    std::vector<uint32_t> bits(n / 32);
    uint64_t sum = 0;
    for (size_t i = 0; i < n / 32; i++) {
        bits[i] = uint32_t(mix(i));
        for (size_t k = 0; k < 32; k++) {
            if (bits[i] >> k & 1) sum += sample_multiple(SEED, 32 * i + k);
        }
    }
    Fr k = Fr::zero();
    k.v[0] = uint32_t(sum), k.v[1] = uint32_t(sum >> 32);
    const Affine<F> want = multiple_of_generator<F>(k.to_montgomery());
    DeviceBuffer<uint32_t> on_device(bits.size(), stream);
    copy(on_device.get(), bits.data(), bits.size(), stream);
    Affine<F> got;
    const double ms = median_ms(
        stream, 4, [&] { got = msm_bits(bases, on_device.get(), n, stream).to_affine(); });
    const bool ok = expect(got == want, "msm of bits");
    std::printf("{\"what\":\"msm_bits_g%d\",\"log\":%d,\"ms\":%.3f,\"ok\":%s}\n", Group<F>::NUMBER,
                log_size, ms, ok ? "true" : "false");
    std::fflush(stdout);
}

std::vector<MsmPlan> plans(int log_size, std::initializer_list<int> multiples) {
    std::vector<MsmPlan> p;
    for (int m : multiples) p.push_back(MsmPlan::choose(size_t(1) << log_size, m));
    return p;
}

int run(const std::set<std::string>& parts, int min_log, int max_log) {
    const auto wanted = [&](const char* part) { return parts.empty() || parts.count(part) != 0; };
    check(cudaSetDevice(0), "choosing the device");
    MemoryPool pool(0, 0);
    const Stream stream(pool, 0);
    if (wanted("check")) check_all(max_log, stream);
    if (wanted("throughput")) measure_throughput(stream);
    if (wanted("ntt")) measure_ntt(min_log, max_log, stream);
    if (wanted("msm")) {
        for (int log_size : {20, 22, 24, 26}) {
            if (log_size > max_log) continue;
            measure_msm<Fp>(log_size, plans(log_size, {1, 4}), true, stream);
        }
        for (int log_size : {20, 22, 24}) {
            if (log_size > max_log) continue;
            measure_msm<Fp2>(log_size, plans(log_size, {1}), true, stream);
        }
    }
    if (wanted("bits")) {
        for (int log_size : {20, 24, 26}) {
            if (log_size <= max_log) measure_bits<Fp>(log_size, stream);
        }
        for (int log_size : {20, 24}) {
            if (log_size <= max_log) measure_bits<Fp2>(log_size, stream);
        }
    }
    if (wanted("setup")) {
        expect(measure_generator_multiples(stream), "multiples of the generators, many");
    }
    if (wanted("limits")) expect(measure_limits(max_log, stream), "evaluation, many constraints");
    if (parts.count("sweep") != 0) {
        for (int log_size : {12, 14, 16, 18, 20, 22, 24, 26}) {
            if (log_size > max_log) continue;
            std::vector<MsmPlan> p = {MsmPlan::choose(size_t(1) << log_size, 1)};
            for (int window = 7; window <= 22; window++) {
                if (window >= log_size - 7 && window < log_size) {
                    p.push_back(MsmPlan::with_window(window, 1));
                }
            }
            measure_msm<Fp>(log_size, p, false, stream);
        }
    }
    return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace interlock

int main(int argc, char** argv) {
    std::set<std::string> parts;
    int min_log = 0, max_log = 27;
    for (int i = 1; i < argc; i++) {
        if (std::strcmp(argv[i], "--max-log") == 0 && i + 1 < argc) {
            max_log = std::atoi(argv[++i]);
        } else if (std::strcmp(argv[i], "--min-log") == 0 && i + 1 < argc) {
            min_log = std::atoi(argv[++i]);
        } else {
            parts.insert(argv[i]);
        }
    }
    try {
        return interlock::run(parts, min_log, max_log);
    } catch (const interlock::DeviceError& e) {
        std::fprintf(stderr, "%s (asked for %zu bytes, %zu free)\n", e.what.c_str(), e.bytes_asked,
                     e.bytes_free);
    } catch (const interlock::ArgumentError& e) {
        std::fprintf(stderr, "%s\n", e.what.c_str());
    }
    return 1;
}
