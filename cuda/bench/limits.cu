// Every launch passes through here (the linker's --wrap). While they are recorded, each is timed by
// two events, and its work is counted from its arguments: how many multiply-adds and bytes the
// algorithm asks for, whatever the kernel does besides.
#include "bench/limits.cuh"

#include <cuda_runtime.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "bench/samples.cuh"
#include "bench/throughput.cuh"
#include "circuit/quotient.cuh"
#include "msm/msm.cuh"
#include "ntt/ntt.cuh"
#include "ntt/pass.cuh"
#include "setup/digits.cuh"
#include "setup/setup.cuh"

namespace interlock {
namespace {

// Multiplications are counted in double-limb multiply-adds (32 x 32 + 64 bits); a single one takes
// half the time of one. Field::mul_device and square_device say where the numbers come from: a
// product in Fp is 12 rows of 12 for the factors, 12 of 12 for the reduction, and 12 single ones;
// in Fr, 8 of 8 and 8 of 6, or 3 of 6 if a factor is known (known.cuh).
constexpr double FP = 2 * 12 * 12 + 12 / 2.0, FP_SQUARE = 222 + 12 / 2.0, FR = 8 * 8 + 8 * 6,
                 FR_KNOWN = 8 * 8 + 3 * 6;

struct Work {
    double multiply_adds = 0, bytes = 0;
};

// Costs in the field of a group's coordinates: Fp2 has three products in one, two in a square.
struct FieldCost {
    double product, square, bytes;
    double mixed() const { return 8 * product + 2 * square; }      // Xyzz plus Affine
    double complete() const { return 12 * product + 2 * square; }  // Xyzz plus Xyzz
    double doubling() const { return 6 * product + 3 * square; }
};
constexpr FieldCost G1_COST = {FP, FP_SQUARE, sizeof(Fp)};
constexpr FieldCost G2_COST = {3 * FP, 2 * FP, sizeof(Fp2)};

// The arguments of a launch.
class Arguments {
  public:
    explicit Arguments(void** list) : list_(list) {}
    template <class T>
    const T& as(int i) const {
        return *static_cast<const T*>(list_[i]);
    }
    double count(int i) const { return as<uint32_t>(i); }

  private:
    void** list_;
};

// Steps of log_step levels while more remain, one product for two elements and level; then a step
// of the rest, whose butterflies with the root 1 have none (ntt.cu).
double products_of_levels(int log_rows, int log_step) {
    double products = 0;
    int left = log_rows;
    for (; left > log_step; left -= log_step) products += 0.5 * log_step;
    for (double half = double(1u << left) / 2; half >= 1; half /= 2) {
        products += (half - 1) / (2 * half);
    }
    return products;
}

Work of_transform_pass(const std::string& name, const Arguments& a) {
    const Pass& pass = a.as<Pass>(2);
    const Tables& tables = a.as<Tables>(3);
    const double n = double(size_t(1) << pass.log_size);
    const bool first = pass.log_stride == 0,
               last = pass.log_stride + pass.log_rows == pass.log_size,
               whole = tables.first != nullptr;
    const double known =
        products_of_levels(pass.log_rows, name.find("<3>") != std::string::npos ? 3 : 2);
    double products = 0;
    if (!last) products += first && !whole ? 2 : 1;
    if (pass.scale_in) products += 2;
    if (pass.scale_out) products += 2;
    const double elements = first && !last && whole ? 3 : 2;  // read, written, and the table's
    return {n * (known * FR_KNOWN + products * FR), n * elements * sizeof(Fr)};
}

Work of_digits(const Arguments& a) {
    const MsmPlan& plan = a.as<MsmPlan>(6);
    const int first_set = a.as<int>(9), sets = a.as<int>(10);
    int windows = 0;
    for (int w = 0; w < plan.windows(); w++) {
        windows += w % plan.sets >= first_set && w % plan.sets < first_set + sets;
    }
    const double n = a.count(3);
    return {a.as<bool>(5) ? n * FR : 0, n * (sizeof(Fr) + 8.0 * windows)};
}

// Runs of items, each added to a sum, and the sum to a total; the first of both are copied.
Work of_sum_runs(const FieldCost& f, const Arguments& a) {
    const double threads = a.count(2), run = a.count(3), rows = a.count(4);
    return {threads * ((rows + 1) * (run - 1) + std::max(run - 2, 0.0)) * f.complete(),
            threads * run * (rows + 1) * 4 * f.bytes};
}

// name: the kernel's, without namespaces and arguments. Kernels that are not here take no time
// worth speaking of.
bool work_of(const std::string& name, const std::string& kernel, const Arguments& a, Work& w) {
    const FieldCost f = name.find("Fp2") != std::string::npos ? G2_COST : G1_COST;
    const double pair = 2 * sizeof(uint32_t), index = sizeof(uint32_t), fr = sizeof(Fr);
    const std::map<std::string, std::function<Work()>> kernels = {
        {"transform_pass", [&] { return of_transform_pass(name, a); }},
        {"first_twiddles", [&] { return Work{a.count(3) * FR, a.count(3) * fr}; }},
        {"multiply_values", [&] { return Work{a.count(2) * FR, a.count(2) * 3 * fr}; }},
        {"subtract_and_scale", [&] { return Work{a.count(3) * FR, a.count(3) * 3 * fr}; }},
        {"digits", [&] { return of_digits(a); }},
        {"DeviceRadixSortHistogramKernel", [&] { return Work{0, a.count(2) * index}; }},
        {"DeviceRadixSortOnesweepKernel", [&] { return Work{0, a.count(8) * 4 * index}; }},
        // Keys and references in, half as many pairs, targets and keys out.
        {"pair_up", [&] { return Work{0, a.count(4) * (2 * index + (pair + 2 * index) / 2)}; }},
        {"pair_neighbours", [&] { return Work{0, a.count(1) * (index + (pair + index) / 2)}; }},
        {"pair_up_digits", [&] { return Work{0, a.count(1) * (fr + pair + index)}; }},
        {"cut_into_digits", [&] { return Work{a.count(1) * FR, a.count(1) * 2 * fr}; }},
        {"denominators",
         [&] { return Work{a.count(2) * f.product, a.count(2) * (pair + 3 * f.bytes)}; }},
        // Without the inversions themselves, one for eight values.
        {"invert_all", [&] { return Work{a.count(1) * 3 * f.product, a.count(1) * 5 * f.bytes}; }},
        {"add_pairs",
         [&] {
             return Work{a.count(3) * (4 * f.product + f.square),
                         a.count(3) * (pair + index + 7 * f.bytes)};
         }},
        {"sum_buckets",
         [&] {
             const double buckets = a.count(2) * a.count(3);
             return Work{buckets * (f.mixed() + f.complete()), buckets * (2 * f.bytes + index)};
         }},
        {"sum_runs", [&] { return of_sum_runs(f, a); }},
        {"sum_points", [&] { return Work{a.count(1) * f.mixed(), a.count(1) * 2 * f.bytes}; }},
        {"multiply_by_power_of_two",
         [&] { return Work{a.count(1) * a.as<int>(2) * f.doubling(), a.count(1) * 4 * f.bytes}; }},
        // Both coordinates into Montgomery form: Fp2's two parts by a product in Fp each.
        {"decode",
         [&] {
             return Work{a.count(1) * 2 * f.bytes / sizeof(Fp) * FP, a.count(1) * 4 * f.bytes};
         }},
        {"encode", [&] { return Work{a.count(1) * FP, a.count(1) * 2 * sizeof(Fp)}; }},
    };
    const auto at = kernels.find(kernel);
    if (at == kernels.end()) return false;
    w = at->second();
    return true;
}

struct Launch {
    std::string kernel;
    bool counted;
    Work work;
    cudaEvent_t begin, end;
};

std::mutex mutex;
std::map<cudaKernel_t, const void*> functions;
std::vector<Launch>* recording = nullptr;

std::string name_of(cudaKernel_t kernel) {
    const std::lock_guard<std::mutex> lock(mutex);
    const char* mangled = nullptr;
    const auto at = functions.find(kernel);
    if (at == functions.end() || cudaFuncGetName(&mangled, at->second) != cudaSuccess) return "?";
    int status = 0;
    char* plain = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
    const std::string name = plain != nullptr ? plain : mangled;
    std::free(plain);
    return name;
}

// "void interlock::(anonymous namespace)::digits(...)" without all but "digits".
std::string short_name(std::string name) {
    const std::string anonymous = "(anonymous namespace)::";
    for (size_t at; (at = name.find(anonymous)) != std::string::npos;) {
        name.erase(at, anonymous.size());
    }
    name = name.substr(0, name.find_first_of("<("));
    const size_t at = name.find_last_of(": ");
    return at == std::string::npos ? name : name.substr(at + 1);
}

// Peaks of this device, measured.
struct Peaks {
    double multiply_adds, bytes;  // in a millisecond
};

struct Sum {
    int launches = 0;
    double ms = 0;
    Work work;
    bool counted = true;
};

// Runs some work once unrecorded, then recorded, and reports its kernels. counted gives the work of
// kernels whose arguments do not say it.
void report(const std::string& of, const Peaks& peaks, const Stream& stream,
            const std::function<void()>& work, const std::map<std::string, Work>& counted = {}) {
    work();
    synchronize(stream);
    std::vector<Launch> launches;
    recording = &launches;
    work();
    recording = nullptr;
    synchronize(stream);
    std::map<std::string, Sum> sums;
    double total = 0;
    for (const Launch& l : launches) {
        float ms = 0;
        check(cudaEventElapsedTime(&ms, l.begin, l.end), "asking for a kernel's time");
        (void)cudaEventDestroy(l.begin), (void)cudaEventDestroy(l.end);
        Sum& s = sums[l.kernel];
        s.launches++, s.ms += ms, total += ms;
        s.counted = s.counted && l.counted;
        s.work.multiply_adds += l.work.multiply_adds, s.work.bytes += l.work.bytes;
    }
    for (const auto& [kernel, w] : counted) {
        sums[kernel].work = w, sums[kernel].counted = true;
    }
    std::vector<std::pair<std::string, Sum>> sorted(sums.begin(), sums.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.second.ms > b.second.ms; });
    std::fprintf(stderr, "%s\n", of.c_str());
    for (const auto& [kernel, s] : sorted) {
        std::printf(
            "{\"what\":\"limit\",\"of\":\"%s\",\"kernel\":\"%s\",\"launches\":%d,\"ms\":%.3f,"
            "\"share_of_time\":%.3f",
            of.c_str(), kernel.c_str(), s.launches, s.ms, s.ms / total);
        std::fprintf(stderr, "  %-32s %4d launches %9.3f ms %5.1f %%", kernel.c_str(), s.launches,
                     s.ms, 100 * s.ms / total);
        if (s.counted) {
            const double multiply = s.work.multiply_adds / s.ms / peaks.multiply_adds,
                         bandwidth = s.work.bytes / s.ms / peaks.bytes;
            std::printf(",\"share_of_multiply\":%.3f,\"share_of_bandwidth\":%.3f", multiply,
                        bandwidth);
            std::fprintf(stderr, "   multiply %5.1f %%   bandwidth %5.1f %%", 100 * multiply,
                         100 * bandwidth);
        }
        std::printf("}\n");
        std::fprintf(stderr, "\n");
    }
    std::fflush(stdout);
}

void transforms(int log_size, const Peaks& peaks, const Stream& stream) {
    const size_t n = size_t(1) << log_size;
    DeviceBuffer<Fr> data(n, stream), work(n, stream);
    fill_samples(data.get(), n, 11, stream);
    for (Twiddles twiddles : {Twiddles::WHOLE, Twiddles::SPLIT}) {
        const Transform forward(log_size, Direction::FORWARD, twiddles, stream);
        for (Domain domain : {Domain::SUBGROUP, Domain::COSET}) {
            report("ntt 2^" + std::to_string(log_size) +
                       (twiddles == Twiddles::WHOLE ? ", whole tables" : ", split tables") +
                       (domain == Domain::COSET ? ", coset" : ""),
                   peaks, stream, [&] { forward.run(data.get(), work.get(), domain, stream); });
        }
    }
}

template <class F>
void multiplications(const char* group, int log_size, const Peaks& peaks, const Stream& stream) {
    const std::string of = std::string(group) + " 2^" + std::to_string(log_size);
    const size_t n = size_t(1) << log_size;
    DeviceBuffer<Affine<F>> points(n, stream);
    fill_bases(points.get(), n, 77, stream);
    DeviceBuffer<Fr> scalars(n, stream);
    fill_samples(scalars.get(), n, 21, stream);
    for (int multiples : {1, 4}) {
        const MsmPlan plan = MsmPlan::choose(n, multiples);
        Bases<F> bases(n, plan, stream);
        if (multiples > 1) {
            report("multiples of bases, " + of, peaks, stream,
                   [&] { bases.load(0, n, points.get(), stream); });
        } else {
            bases.load(0, n, points.get(), stream);
        }
        const Scalars s = {scalars.get(), n, ScalarForm::MONTGOMERY};
        report("msm " + of + (multiples > 1 ? ", with multiples" : ""), peaks, stream,
               [&] { (void)msm(bases, s, plan, stream); });
        // Random limbs are random bits.
        if (multiples > 1) continue;
        const auto* bits = reinterpret_cast<const uint32_t*>(scalars.get());
        report("msm of bits, " + of, peaks, stream,
               [&] { (void)msm_bits(bases, bits, n, stream); });
    }
    // As parameter files hold them.
    DeviceBuffer<uint8_t> encoded(n * ENCODED_BYTES<F>, stream);
    report("generator multiples, " + of, peaks, stream,
           [&] { generator_multiples<F>(scalars.get(), n, encoded.get(), stream); });
    Bases<F> bases(n, MsmPlan::choose(n, 1), stream);
    report("loading bases, " + of, peaks, stream,
           [&] { bases.load_encoded(0, n, encoded.get(), stream); });
}

// Instances of one template of 64 rows: in A three variables, one with a coefficient, and a bit; in
// B two variables; in C one.
bool evaluation(int log_constraints, const Peaks& peaks, const Stream& stream) {
    constexpr uint32_t ROWS = 64, FULL = ROWS + 3, BITS = ROWS, AUX = FULL + BITS;
    const auto instances = uint32_t((size_t(1) << log_constraints) / ROWS);
    const auto reference = [](uint32_t kind, uint32_t number) {
        return kind << KIND_SHIFT | number;
    };
    const std::vector<Fr> coefficients = {Fr::one(), -Fr::one(), sample<FrParams>(5, 0)};
    std::vector<interlock_term> terms;
    std::vector<uint32_t> places, ends;
    for (uint32_t r = 0; r < ROWS; r++) {
        places.push_back(r);
        terms.push_back({reference(INTERLOCK_FULL, r), 2});
        terms.push_back({reference(INTERLOCK_FULL, r + 1), 0});
        terms.push_back({reference(INTERLOCK_FULL, r + 2), 1});
        terms.push_back({reference(INTERLOCK_BIT, FULL + r), 0});
        ends.push_back(uint32_t(terms.size()));
        terms.push_back({reference(INTERLOCK_FULL, r + 1), 0});
        terms.push_back({reference(INTERLOCK_FULL, r + 3), 0});
        ends.push_back(uint32_t(terms.size()));
        terms.push_back({reference(INTERLOCK_FULL, r + 2), 0});
        ends.push_back(uint32_t(terms.size()));
    }
    std::vector<interlock_instance> list;
    std::vector<uint32_t> ports;
    std::vector<uint64_t> is_bit((size_t(AUX) * instances + 63) / 64), bits(is_bit.size());
    for (uint32_t i = 0; i < instances; i++) {
        list.push_back({i * ROWS, i * AUX, i * FULL, 0});
        ports.push_back(reference(INTERLOCK_INPUT, 0));
        for (size_t k = size_t(i) * AUX + FULL; k < size_t(i + 1) * AUX; k++) {
            is_bit[k / 64] |= uint64_t(1) << (k % 64);
            if (mix(k) & 1) bits[k / 64] |= uint64_t(1) << (k % 64);
        }
    }
    const interlock_template t = {ROWS, 0, instances, 0, 1, 0};
    const uint64_t dense_b_inputs = 0;
    interlock_system s = {};
    s.constraints = size_t(ROWS) * instances, s.inputs = 1, s.aux = size_t(AUX) * instances;
    s.full = size_t(FULL) * instances, s.log_domain = log_constraints + 1, s.template_count = 1;
    s.instance_count = list.size(), s.port_count = ports.size(), s.row_count = ROWS;
    s.term_count = terms.size(), s.coefficient_count = coefficients.size();
    s.templates = &t, s.instances = list.data(), s.ports = ports.data();
    s.row_places = places.data(), s.row_ends = ends.data(), s.terms = terms.data();
    s.coefficients = coefficients.data();
    s.is_bit = s.dense_a = s.dense_b = is_bit.data(), s.dense_b_inputs = &dense_b_inputs;
    const Circuit circuit(s, stream);
    Witness witness(circuit, stream);
    const Fr one = Fr::one();
    copy(witness.inputs.get(), &one, 1, stream);
    fill_samples(witness.full.get(), s.full, 91, stream);
    copy(witness.bits.get(), bits.data(), bits.size(), stream);
    const size_t domain = size_t(1) << s.log_domain;
    DeviceBuffer<Fr> a(domain, stream), b(domain, stream);

    // A and B in one launch, then C: the values once, the witness once for each launch.
    const double rows = double(s.constraints);
    const double witness_bytes = double(s.full) * sizeof(Fr) + double(s.aux) / 8;
    report("evaluation of 2^" + std::to_string(log_constraints) + " constraints", peaks, stream,
           [&] {
               circuit.evaluate(witness.values(), 0, a.get(), b.get(), stream);
               circuit.evaluate(witness.values(), 2, b.get(), nullptr, stream);
           },
           {{"evaluate_rows", {rows * FR, 3 * rows * sizeof(Fr) + 2 * witness_bytes}}});

    // What it computed, in some rows.
    std::vector<Fr> full(s.full), got(s.constraints);
    stream.fetch(full.data(), witness.full.get(), full.size());
    stream.fetch(got.data(), a.get(), got.size());
    const SystemTables tables = {list.data(), ports.data(), places.data(),
                                 ends.data(), terms.data(), coefficients.data()};
    const WitnessValues values = {&one, reinterpret_cast<const uint32_t*>(bits.data()),
                                  full.data()};
    bool right = true;
    for (uint32_t i = 0; i < 1000; i++) {
        const auto instance = uint32_t(mix(i) % instances), row = i % ROWS;
        const Fr want = evaluate_row(tables, values, t, instance, row, 0);
        right = right && got[size_t(instance) * ROWS + row] == want;
    }
    const Transform forward(s.log_domain, Direction::FORWARD, Twiddles::SPLIT, stream);
    const Transform backward(s.log_domain, Direction::INVERSE, Twiddles::SPLIT, stream);
    report("quotient over a domain of 2^" + std::to_string(s.log_domain), peaks, stream,
           [&] {
               Quotient quotient(circuit, witness, stream);
               quotient.multiply(forward, backward, stream);
               quotient.evaluate_c(circuit, witness, stream);
               quotient.finish(backward, stream);
           },
           {{"evaluate_rows", {rows * FR, 3 * rows * sizeof(Fr) + 2 * witness_bytes}}});
    return right;
}

}  // namespace

bool measure_limits(int max_log, const Stream& stream) {
    const Peaks peaks = {measured_multiply_adds(stream) * 1e6, measured_bandwidth(stream) * 1e6};
    int device = 0, sms = 0, clock_khz = 0, memory_khz = 0, bus_bits = 0;
    check(cudaGetDevice(&device), "device");
    check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device), "attribute");
    check(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, device), "attribute");
    check(cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, device), "attribute");
    check(cudaDeviceGetAttribute(&bus_bits, cudaDevAttrGlobalMemoryBusWidth, device), "attribute");
    std::printf(
        "{\"what\":\"limits\",\"giga_multiply_adds_per_second\":%.1f,"
        "\"giga_bytes_per_second\":%.1f,\"nominal_giga_multiply_adds_per_second\":%.1f,"
        "\"nominal_giga_bytes_per_second\":%.1f}\n",
        peaks.multiply_adds * 1e-6, peaks.bytes * 1e-6, double(sms) * 32 * clock_khz * 1e-6,
        2.0 * memory_khz * bus_bits / 8 * 1e-6);
    for (int log_size : {24, 27}) {
        if (log_size <= max_log) transforms(log_size, peaks, stream);
    }
    const int log_g1 = std::min(max_log, 24), log_g2 = std::min(max_log, 22);
    multiplications<Fp>("g1", log_g1, peaks, stream);
    multiplications<Fp2>("g2", log_g2, peaks, stream);
    return evaluation(std::clamp(max_log - 1, 10, 24), peaks, stream);
}

}  // namespace interlock

using namespace interlock;

extern "C" cudaError_t __real___cudaGetKernel(cudaKernel_t* kernel, const void* function);
extern "C" cudaError_t __wrap___cudaGetKernel(cudaKernel_t* kernel, const void* function) {
    const cudaError_t code = __real___cudaGetKernel(kernel, function);
    const std::lock_guard<std::mutex> lock(mutex);
    if (code == cudaSuccess) functions[*kernel] = function;
    return code;
}

extern "C" cudaError_t __real___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                 void** arguments, size_t shared_bytes,
                                                 cudaStream_t stream);
extern "C" cudaError_t __wrap___cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                 void** arguments, size_t shared_bytes,
                                                 cudaStream_t stream) {
    if (recording == nullptr) {
        return __real___cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
    }
    const std::string name = name_of(kernel);
    Launch l = {short_name(name), false, {}, nullptr, nullptr};
    l.counted = work_of(name, l.kernel, Arguments(arguments), l.work);
    check(cudaEventCreate(&l.begin), "creating an event");
    check(cudaEventCreate(&l.end), "creating an event");
    check(cudaEventRecord(l.begin, stream), "recording an event");
    const cudaError_t code =
        __real___cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
    check(cudaEventRecord(l.end, stream), "recording an event");
    recording->push_back(l);
    return code;
}
