#include "bench/circuit.cuh"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>

#include "api/interlock_cuda.h"
#include "bench/samples.cuh"
#include "circuit/gather.cuh"
#include "circuit/quotient.cuh"
#include "curve/generators.cuh"
#include "msm/encoding.cuh"
#include "msm/msm.cuh"
#include "ntt/ntt.cuh"
#include "setup/digits.cuh"

namespace interlock {
namespace {

// Numbers at random, always the same.
class Random {
  public:
    explicit Random(uint64_t seed) : seed_(seed) {}
    uint32_t below(uint32_t n) { return uint32_t(mix(seed_ ^ mix(next_++)) >> 11) % n; }
    Fr element() { return sample<FrParams>(seed_, next_++); }

  private:
    uint64_t seed_, next_ = 0;
};

constexpr uint32_t reference(uint32_t kind, uint32_t number) { return kind << KIND_SHIFT | number; }

void set_bit(std::vector<uint64_t>& words, size_t i) { words[i / 64] |= uint64_t(1) << (i % 64); }
bool bit(const std::vector<uint64_t>& words, size_t i) { return words[i / 64] >> (i % 64) & 1; }

// A circuit of random rows a*b = c, c a variable of its own, and a witness that satisfies it.
struct Sample {
    std::vector<interlock_template> templates;
    std::vector<interlock_instance> instances;
    std::vector<uint32_t> ports, row_places, row_ends;
    std::vector<interlock_term> terms;
    std::vector<Fr> coefficients, inputs, full;
    std::vector<uint64_t> is_bit, dense_a, dense_b, dense_b_inputs, bits;
    size_t constraints = 0, aux = 0;
    int log_domain = 1;

    explicit Sample(uint64_t seed) : random_(seed) {
        coefficients = {Fr::one(), -Fr::one(), random_.element(), random_.element()};
        inputs = {Fr::one()};
        for (int i = 0; i < 70; i++) inputs.push_back(random_.element());
        dense_b_inputs.resize(2);
        for (size_t i = 0; i < inputs.size(); i++) {
            if (random_.below(3) == 0) set_bit(dense_b_inputs, i);
        }
        // Instances: fewer than a warp's lanes, one more, and many.
        add_template(5, 1, 40);
        add_template(37, 33, 3);
        add_template(3, 70, 5);
        add_template(9, 6, 130);
        const size_t words = (aux + 63) / 64;
        dense_a.resize(words), dense_b.resize(words);
        for (size_t i = 0; i < aux; i++) {
            if (random_.below(8) != 0) set_bit(dense_a, i);
            // None at all in some words.
            if (i / 64 % 5 != 2 && random_.below(3) == 0) set_bit(dense_b, i);
        }
        while (constraints + inputs.size() > size_t(1) << log_domain) log_domain++;
    }

    interlock_system system() const {
        interlock_system s = {};
        s.constraints = constraints, s.inputs = inputs.size(), s.aux = aux, s.full = full.size();
        s.log_domain = log_domain;
        s.template_count = uint32_t(templates.size());
        s.instance_count = instances.size(), s.port_count = ports.size();
        s.row_count = row_places.size(), s.term_count = terms.size();
        s.coefficient_count = coefficients.size();
        s.templates = templates.data(), s.instances = instances.data(), s.ports = ports.data();
        s.row_places = row_places.data(), s.row_ends = row_ends.data(), s.terms = terms.data();
        s.coefficients = coefficients.data();
        s.is_bit = is_bit.data(), s.dense_a = dense_a.data(), s.dense_b = dense_b.data();
        s.dense_b_inputs = dense_b_inputs.data();
        return s;
    }

    // What evaluation on the device must give.
    std::vector<Fr> values(uint32_t matrix) const {
        std::vector<Fr> v(size_t(1) << log_domain, Fr::zero());
        for (const interlock_template& t : templates) {
            for (uint32_t i = 0; i < t.instances; i++) {
                for (uint32_t r = 0; r < t.rows; r++) {
                    v[row_constraint(tables(), t, i, r)] = row(t, i, r, matrix);
                }
            }
        }
        if (matrix == 0) std::copy(inputs.begin(), inputs.end(), v.begin() + long(constraints));
        return v;
    }

    Fr aux_value(size_t i) const {
        if (bit(is_bit, i)) return bit(bits, i) ? Fr::one() : Fr::zero();
        size_t rank = 0;
        for (size_t j = 0; j < i; j++) rank += !bit(is_bit, j);
        return full[rank];
    }

    // The scalars of a query's points, in order, and which of them belong to bits.
    void query(Query q, std::vector<Fr>& scalars, std::vector<bool>& of_bit) const {
        for (size_t i = 0; i < inputs.size(); i++) {
            if (q == Query::A || (q == Query::B && bit(dense_b_inputs, i))) {
                scalars.push_back(inputs[i]), of_bit.push_back(false);
            }
        }
        for (size_t i = 0; i < aux; i++) {
            if (q == Query::L || bit(q == Query::A ? dense_a : dense_b, i)) {
                scalars.push_back(aux_value(i)), of_bit.push_back(bit(is_bit, i));
            }
        }
    }

    void load(Witness& witness, const Stream& stream) const {
        copy(witness.inputs.get(), inputs.data(), inputs.size(), stream);
        copy(witness.full.get(), full.data(), full.size(), stream);
        copy(witness.bits.get(), bits.data(), bits.size(), stream);
        synchronize(stream);
    }

  private:
    SystemTables tables() const {
        return {instances.data(), ports.data(), row_places.data(),
                row_ends.data(),  terms.data(), coefficients.data()};
    }
    Fr row(const interlock_template& t, uint32_t i, uint32_t r, uint32_t matrix) const {
        const WitnessValues w = {inputs.data(), reinterpret_cast<const uint32_t*>(bits.data()),
                                 full.data()};
        return evaluate_row(tables(), w, t, i, r, matrix);
    }

    // Some rows have many terms. Each instance has `free_bits` bits, and rows and 3 other variables
    // in between.
    void add_template(uint32_t rows, uint32_t count, uint32_t free_bits) {
        constexpr uint32_t PORTS = 4, FREE = 3, INPUTS = 2;
        interlock_template t = {};
        t.rows = rows, t.first_row = uint32_t(row_places.size());
        t.instances = count, t.first_instance = uint32_t(instances.size());
        t.ports = PORTS, t.first_port = uint32_t(ports.size());
        // The kinds of an instance's variables, shuffled.
        std::vector<bool> kinds(free_bits, true);
        kinds.resize(free_bits + FREE + rows, false);
        for (size_t i = kinds.size(); i > 1; i--) {
            const size_t j = random_.below(uint32_t(i));
            const bool k = kinds[i - 1];
            kinds[i - 1] = kinds[j], kinds[j] = k;
        }
        std::vector<uint32_t> bit_places;
        for (uint32_t i = 0; i < kinds.size(); i++) {
            if (kinds[i]) bit_places.push_back(i);
        }
        for (uint32_t r = 0; r < rows; r++) {
            row_places.push_back(rows - 1 - r);
            for (uint32_t matrix = 0; matrix < 2; matrix++) {
                const uint32_t n = random_.below(10) == 0 ? 90 : random_.below(4);
                for (uint32_t k = 0; k < n; k++) {
                    uint32_t variable = 0;
                    switch (random_.below(4)) {
                        case 0: variable = reference(INTERLOCK_INPUT, random_.below(INPUTS)); break;
                        case 1:
                            variable =
                                reference(INTERLOCK_BIT, bit_places[random_.below(free_bits)]);
                            break;
                        case 2:
                            variable = reference(INTERLOCK_FULL, random_.below(FREE + r));
                            break;
                        default: variable = reference(INTERLOCK_PORT, random_.below(PORTS));
                    }
                    terms.push_back({variable, random_.below(uint32_t(coefficients.size()))});
                }
                row_ends.push_back(uint32_t(terms.size()));
            }
            terms.push_back({reference(INTERLOCK_FULL, FREE + r), COEFFICIENT_ONE});
            row_ends.push_back(uint32_t(terms.size()));
        }
        templates.push_back(t);
        for (uint32_t i = 0; i < count; i++) {
            interlock_instance at = {};
            at.constraint = uint32_t(constraints), at.aux = uint32_t(aux);
            at.full = uint32_t(full.size());
            at.input = random_.below(uint32_t(inputs.size() - INPUTS));
            ports.push_back(reference(INTERLOCK_INPUT, 0));
            ports.push_back(reference(INTERLOCK_INPUT, random_.below(uint32_t(inputs.size()))));
            // Variables of instances before this one, where there are some.
            std::vector<uint32_t> bits_before;
            for (uint32_t v = 0; v < aux; v++) {
                if (bit(is_bit, v)) bits_before.push_back(v);
            }
            ports.push_back(
                bits_before.empty()
                    ? reference(INTERLOCK_INPUT, 0)
                    : reference(INTERLOCK_BIT,
                                bits_before[random_.below(uint32_t(bits_before.size()))]));
            ports.push_back(full.empty()
                                ? reference(INTERLOCK_INPUT, 0)
                                : reference(INTERLOCK_FULL, random_.below(uint32_t(full.size()))));
            instances.push_back(at);
            for (bool is : kinds) {
                is_bit.resize(aux / 64 + 1), bits.resize(aux / 64 + 1);
                if (is) set_bit(is_bit, aux);
                if (is && random_.below(2) == 0) set_bit(bits, aux);
                aux++;
            }
            for (uint32_t k = 0; k < FREE + rows; k++) full.push_back(random_.element());
            for (uint32_t r = 0; r < rows; r++) {
                full[at.full + FREE + r] = row(t, i, r, 0) * row(t, i, r, 1);
            }
            constraints += rows;
        }
    }

    Random random_;
};

std::string check_evaluation(const Stream& stream) {
    const Sample s(1);
    const Circuit circuit(s.system(), stream);
    Witness witness(circuit, stream);
    s.load(witness, stream);
    const size_t n = size_t(1) << s.log_domain;
    DeviceBuffer<Fr> first(n, stream), second(n, stream);
    for (uint32_t matrix = 0; matrix < 3; matrix++) {
        const bool two = matrix < 2;
        circuit.evaluate(witness.values(), matrix, first.get(), two ? second.get() : nullptr,
                         stream);
        for (uint32_t m = matrix; m < matrix + (two ? 2 : 1); m++) {
            const std::vector<Fr> want = s.values(m);
            std::vector<Fr> got(n);
            stream.fetch(got.data(), (m == matrix ? first : second).get(), n);
            for (size_t i = 0; i < n; i++) {
                if (got[i] != want[i]) {
                    return "matrix " + std::to_string(m) + ", row " + std::to_string(i);
                }
            }
        }
    }
    return "";
}

std::string check_refusals(const Stream& stream) {
    const Sample s(2);
    const auto refused = [&](const interlock_system& system) {
        try {
            const Circuit circuit(system, stream);
        } catch (const ArgumentError&) {
            return true;
        }
        return false;
    };
    interlock_system system = s.system();
    system.full--;
    if (!refused(system)) return "another number of variables that are no bits";
    system = s.system();
    system.constraints++;
    if (!refused(system)) return "constraints without a row";
    std::vector<interlock_term> terms = s.terms;
    terms.back().coefficient = uint32_t(s.coefficients.size());
    system = s.system();
    system.terms = terms.data();
    if (!refused(system)) return "a coefficient that is none";
    std::vector<uint32_t> ports = s.ports;
    ports.back() = reference(INTERLOCK_BIT, uint32_t(s.aux));
    system = s.system();
    system.ports = ports.data();
    if (!refused(system)) return "a port to no variable";
    std::vector<interlock_instance> instances = s.instances;
    instances.back().full++;
    system = s.system();
    system.instances = instances.data();
    if (!refused(system)) return "an instance whose variables are past the end";
    return "";
}

// A(x)*B(x) - C(x) = (x^n - 1)*H(x), and H's last coefficient is zero.
std::string check_quotient(const Stream& stream) {
    const Sample s(3);
    const Circuit circuit(s.system(), stream);
    Witness witness(circuit, stream);
    s.load(witness, stream);
    const size_t n = size_t(1) << s.log_domain;
    const Transform forward(s.log_domain, Direction::FORWARD, Twiddles::SPLIT, stream);
    const Transform backward(s.log_domain, Direction::INVERSE, Twiddles::SPLIT, stream);
    // For C with a new copy of the witness, as where memory is short.
    Quotient quotient(circuit, witness, stream);
    witness = Witness(circuit, stream);
    quotient.multiply(forward, backward, stream);
    s.load(witness, stream);
    quotient.evaluate_c(circuit, witness, stream);
    quotient.finish(backward, stream);
    const DeviceBuffer<Fr>& h = quotient.coefficients();
    const Fr x = sample<FrParams>(17, 0);
    DeviceBuffer<Fr> values(n, stream), work(n, stream);
    Fr at_x[3];
    for (uint32_t m = 0; m < 3; m++) {
        const std::vector<Fr> v = s.values(m);
        copy(values.get(), v.data(), n, stream);
        backward.run(values.get(), work.get(), Domain::SUBGROUP, stream);
        at_x[m] = evaluate(values.get(), n, x, stream);
    }
    const Fr z = x.pow(n) - Fr::one();
    if (at_x[0] * at_x[1] - at_x[2] != z * evaluate(h.get(), n, x, stream)) {
        return "not (A*B - C)/Z at a point";
    }
    Fr last;
    stream.fetch(&last, h.get() + n - 1, 1);
    return last.is_zero() ? "" : "the last coefficient is not zero";
}

struct Range {
    size_t from, count;
};

// All of a query, and parts whose ends lie anywhere.
std::vector<Range> ranges(size_t points, uint64_t seed) {
    std::vector<Range> r = {{0, points}, {0, 1}, {points - 1, 1}, {points, 0}, {3, 0}};
    Random random(seed);
    for (int i = 0; i < 12; i++) {
        const size_t from = random.below(uint32_t(points));
        r.push_back({from, 1 + random.below(uint32_t(points - from))});
    }
    for (size_t from : {size_t(5), size_t(64), size_t(69), size_t(71)}) {
        r.push_back({from, std::min<size_t>(64, points - from)});
    }
    return r;
}

const char* name_of(Query q) { return q == Query::L ? "L" : q == Query::A ? "A" : "B"; }

std::string check_gather(const Stream& stream) {
    const Sample s(4);
    const Circuit circuit(s.system(), stream);
    Witness witness(circuit, stream);
    s.load(witness, stream);
    for (Query q : {Query::L, Query::A, Query::B}) {
        std::vector<Fr> scalars;
        std::vector<bool> of_bit;
        s.query(q, scalars, of_bit);
        if (circuit.points(q).count != scalars.size())
            return std::string("points of ") + name_of(q);
        for (const Range& range : ranges(scalars.size(), 51)) {
            const std::string where = std::string("query ") + name_of(q) + ", points " +
                                      std::to_string(range.from) + " and " +
                                      std::to_string(range.count) + " in all";
            const Gathered g = gather(circuit, witness, q, range.from, range.count, stream);
            std::vector<uint32_t> bits(g.bits.count()), places(g.full);
            std::vector<Fr> full(g.full);
            stream.fetch(bits.data(), g.bits.get(), bits.size());
            stream.fetch(places.data(), g.places.get(), g.full);
            stream.fetch(full.data(), g.scalars.get(), g.full);
            std::map<uint32_t, Fr> at;
            for (size_t k = 0; k < g.full; k++) {
                if (!at.emplace(places[k], full[k]).second) return where + ": a point twice";
            }
            std::vector<uint32_t> want_bits(bits.size(), 0);
            size_t want_full = 0;
            for (uint32_t p = 0; p < range.count; p++) {
                const Fr& scalar = scalars[range.from + p];
                if (of_bit[range.from + p]) {
                    if (!scalar.is_zero()) want_bits[p / 32] |= 1u << (p % 32);
                    continue;
                }
                want_full++;
                if (at.count(p) == 0 || at[p] != scalar) return where + ": a scalar";
            }
            if (at.size() != want_full) return where + ": number of scalars";
            if (bits != want_bits) return where + ": bits";
        }
    }
    return "";
}

template <class F>
Affine<F> multiple_of_generator(const Fr& k) {
    return multiply(generator<F>(), k.to_canonical().v, Fr::LIMBS).to_affine();
}

// The sum of scalars times the multiples of the generator that sample bases are.
Fr weighted(const std::vector<Fr>& scalars, const Range& range, uint64_t seed) {
    Fr sum = Fr::zero();
    for (size_t i = 0; i < range.count; i++) {
        Fr k = Fr::zero();
        k.v[0] = sample_multiple(seed, i);
        sum = sum + scalars[range.from + i] * k.to_montgomery();
    }
    return sum;
}

// The handles of one proof, closed in the end.
struct Handles {
    interlock_device* device = nullptr;
    interlock_context* context = nullptr;
    interlock_circuit* circuit = nullptr;
    interlock_witness* witness = nullptr;
    interlock_quotient* quotient = nullptr;
    interlock_bases* bases[3] = {};  // of G1 and G2, at 1 and 2

    ~Handles() {
        interlock_quotient_destroy(quotient);
        interlock_witness_destroy(witness);
        interlock_circuit_destroy(circuit);
        for (interlock_bases* b : bases) interlock_bases_destroy(b);
        interlock_context_destroy(context);
        interlock_device_close(device);
    }
};

// Makes the quotient step by step. Whatever comes out of order, before and after each step, is
// refused, and does no harm.
std::string make_quotient(Handles& h) {
    interlock_error e = {};
    using Call = std::function<int()>;
    const std::vector<std::pair<const char*, Call>> steps = {
        {"multiply", [&] { return interlock_quotient_multiply(h.context, h.quotient, &e); }},
        {"evaluate_c",
         [&] {
             return interlock_quotient_evaluate_c(h.context, h.quotient, h.circuit, h.witness, &e);
         }},
        {"finish", [&] { return interlock_quotient_finish(h.context, h.quotient, &e); }}};
    const auto refusals = [&](size_t next) -> std::string {
        const std::string where = " after " + std::to_string(next + 1) + " steps is not refused";
        for (size_t i = 0; i < steps.size(); i++) {
            if (i != next && steps[i].second() != INTERLOCK_BAD_ARGUMENT) {
                return steps[i].first + where;
            }
        }
        if (next == steps.size()) return "";
        Fr element;
        G1Affine sum;
        if (interlock_quotient_read(h.context, h.quotient, 0, 1, &element, &e) !=
            INTERLOCK_BAD_ARGUMENT) {
            return "reading" + where;
        }
        return interlock_sum_quotient(h.context, h.quotient, 0, h.bases[1], 1, &sum, &e) !=
                       INTERLOCK_BAD_ARGUMENT
                   ? "a sum" + where
                   : "";
    };
    if (interlock_quotient_multiply(h.context, nullptr, &e) != INTERLOCK_BAD_ARGUMENT) {
        return "a step of no quotient is not refused";
    }
    if (interlock_quotient_create(h.context, h.circuit, h.witness, &h.quotient, &e) !=
        INTERLOCK_OK) {
        return e.message;
    }
    for (size_t i = 0; i < steps.size(); i++) {
        const std::string wrong = refusals(i);
        if (!wrong.empty()) return wrong;
        if (steps[i].second() != INTERLOCK_OK) return e.message;
        if (interlock_kernel_milliseconds(h.context) <= 0) return "no time of kernels";
    }
    return refusals(steps.size());
}

// Everything that a proof asks of the C interface.
std::string check_proof(const Stream& stream) {
    constexpr uint64_t SEED = 61;
    const Sample s(5);
    const interlock_system system = s.system();
    const size_t n = size_t(1) << s.log_domain, most = std::max(n, s.aux);
    DeviceBuffer<G1Affine> g1(most, stream);
    DeviceBuffer<G2Affine> g2(most, stream);
    fill_bases(g1.get(), most, SEED, stream);
    fill_bases(g2.get(), most, SEED, stream);

    interlock_error e = {};
    Handles h;
    if (interlock_device_open(0, uint64_t(1) << 30, 0, &h.device, &e) != INTERLOCK_OK ||
        interlock_context_create(h.device, &h.context, &e) != INTERLOCK_OK ||
        interlock_circuit_create(h.context, &system, &h.circuit, &e) != INTERLOCK_OK ||
        interlock_witness_create(h.context, h.circuit, &h.witness, &e) != INTERLOCK_OK ||
        interlock_witness_load(h.context, h.witness, 0, 0, s.inputs.size(), s.inputs.data(), &e) !=
            INTERLOCK_OK ||
        interlock_witness_load(h.context, h.witness, 1, 0, 1, s.bits.data(), &e) != INTERLOCK_OK ||
        interlock_witness_load(h.context, h.witness, 1, 1, s.bits.size() - 1, s.bits.data() + 1,
                               &e) != INTERLOCK_OK ||
        interlock_witness_load(h.context, h.witness, 2, 0, s.full.size(), s.full.data(), &e) !=
            INTERLOCK_OK ||
        interlock_bases_create(h.context, 1, most, 1, &h.bases[1], &e) != INTERLOCK_OK ||
        interlock_bases_load(h.context, h.bases[1], 0, most, g1.get(), 0, &e) != INTERLOCK_OK ||
        interlock_bases_create(h.context, 2, most, 3, &h.bases[2], &e) != INTERLOCK_OK ||
        interlock_bases_load(h.context, h.bases[2], 0, most, g2.get(), 0, &e) != INTERLOCK_OK) {
        return e.message;
    }
    const std::string wrong = make_quotient(h);
    if (!wrong.empty()) return wrong;
    if (interlock_witness_load(h.context, h.witness, 2, 1, s.full.size(), s.full.data(), &e) !=
        INTERLOCK_BAD_ARGUMENT) {
        return "more values than the witness has are not refused";
    }

    std::vector<Fr> values(n);
    if (interlock_evaluate(h.context, h.circuit, h.witness, 1, values.data(), &e) != INTERLOCK_OK) {
        return e.message;
    }
    if (values != s.values(1)) return "evaluation of B";

    std::vector<Fr> coefficients(n);
    if (interlock_quotient_read(h.context, h.quotient, 0, n, coefficients.data(), &e) !=
        INTERLOCK_OK) {
        return e.message;
    }
    G1Affine sum1;
    for (const Range& range : {Range{0, n - 1}, Range{7, 60}}) {
        if (interlock_sum_quotient(h.context, h.quotient, range.from, h.bases[1], range.count,
                                   &sum1, &e) != INTERLOCK_OK) {
            return e.message;
        }
        if (!(sum1 == multiple_of_generator<Fp>(weighted(coefficients, range, SEED)))) {
            return "query H";
        }
    }
    for (int query = INTERLOCK_QUERY_L; query <= INTERLOCK_QUERY_B_G2; query++) {
        std::vector<Fr> scalars;
        std::vector<bool> of_bit;
        s.query(query == INTERLOCK_QUERY_L   ? Query::L
                : query == INTERLOCK_QUERY_A ? Query::A
                                             : Query::B,
                scalars, of_bit);
        const bool second = query == INTERLOCK_QUERY_B_G2;
        for (const Range& range : {Range{0, scalars.size()}, Range{9, 100}, Range{2, 0}}) {
            G2Affine sum2;
            if (interlock_sum_query(
                    h.context, h.circuit, h.witness, query, range.from, h.bases[second ? 2 : 1],
                    range.count, second ? static_cast<void*>(&sum2) : &sum1, &e) != INTERLOCK_OK) {
                return e.message;
            }
            const Fr want = weighted(scalars, range, SEED);
            if (second ? !(sum2 == multiple_of_generator<Fp2>(want))
                       : !(sum1 == multiple_of_generator<Fp>(want))) {
                return "query " + std::to_string(query) + " from " + std::to_string(range.from);
            }
        }
        if (interlock_sum_query(h.context, h.circuit, h.witness, query, 1, h.bases[second ? 2 : 1],
                                scalars.size(), &sum1, &e) != INTERLOCK_BAD_ARGUMENT) {
            return "more points than the query has are not refused";
        }
    }
    return "";
}

template <class F>
std::string check_encoded_group(const Stream& stream) {
    constexpr size_t N = 300, AT = 20;
    DeviceBuffer<Affine<F>> points(N, stream);
    fill_bases(points.get(), N, 71, stream);
    std::vector<Affine<F>> want(N), bytes(N), got(N);
    stream.fetch(want.data(), points.get(), N);
    for (size_t i = 0; i < N; i++) bytes[i] = encoded_point(want[i]);
    Bases<F> bases(N + AT, MsmPlan::choose(N + AT, 1), stream);
    bases.load_encoded(AT, N, bytes.data(), stream);
    stream.fetch(got.data(), bases.points() + AT, N);
    if (std::memcmp(got.data(), want.data(), N * sizeof(Affine<F>)) != 0) return "from the host";
    copy(points.get(), bytes.data(), N, stream);
    bases.load_encoded(0, N, points.get(), stream);
    stream.fetch(got.data(), bases.points(), N);
    if (std::memcmp(got.data(), want.data(), N * sizeof(Affine<F>)) != 0) return "from the device";

    // What is wrong with point 123; the one after it is wrong too.
    const auto refused = [&](const std::vector<Affine<F>>& wrong, const char* why) {
        try {
            bases.load_encoded(AT, N, wrong.data(), stream);
        } catch (const ArgumentError& e) {
            return e.what.find("base " + std::to_string(AT + 123) + " ") != std::string::npos &&
                   e.what.find(why) != std::string::npos;
        }
        return false;
    };
    std::vector<Affine<F>> wrong = bytes;
    wrong[124] = Affine<F>::infinity();
    for (uint8_t flag : {0x80, 0x40, 0x20}) {
        wrong[123] = bytes[123];
        *reinterpret_cast<uint8_t*>(&wrong[123]) |= flag;
        if (!refused(wrong, "flag")) return "a flag is not refused";
    }
    wrong[123] = Affine<F>::infinity();
    if (!refused(wrong, "is at infinity")) return "infinity is not refused";
    // Every coordinate in turn is the modulus.
    Fp modulus;
    for (int i = 0; i < Fp::LIMBS; i++) {
        modulus.v[i] = __builtin_bswap32(Fp::modulus().v[Fp::LIMBS - 1 - i]);
    }
    for (size_t part = 0; part < sizeof(Affine<F>) / sizeof(Fp); part++) {
        wrong[123] = bytes[123];
        std::memcpy(reinterpret_cast<Fp*>(&wrong[123]) + part, &modulus, sizeof(modulus));
        if (!refused(wrong, "not below the modulus")) return "the modulus is not refused";
    }
    return "";
}

std::string check_encoded(const Stream& stream) {
    const std::string wrong = check_encoded_group<Fp>(stream);
    return wrong.empty() ? check_encoded_group<Fp2>(stream) : wrong;
}

}  // namespace

std::vector<CircuitCheck> circuit_checks() {
    return {{"encoded bases", check_encoded},
            {"evaluation of constraints", check_evaluation},
            {"constraint systems that are refused", check_refusals},
            {"quotient", check_quotient},
            {"scalars of queries", check_gather},
            {"sums of a proof", check_proof}};
}

}  // namespace interlock
