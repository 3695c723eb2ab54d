#include "circuit/circuit.cuh"

#include <algorithm>
#include <string>

namespace interlock {
namespace {

constexpr uint32_t BLOCK = 128;
// Rows that a thread evaluates, one after the other.
constexpr uint32_t ROWS_PER_THREAD = 4;
constexpr uint32_t MAX_LOG_LANES = 5;

// Neighbouring rows differ: one of a hundred terms stands among dozens of one or two. So a warp
// takes the same row of 32 instances, where there are so many: its lanes then go the same way, and
// read the same terms and coefficients. Their results lie far apart, but each is a whole sector.
// The blocks of an instance's rows follow each other, so that its part of the witness is in the
// cache. Matrix first + blockIdx.y.
__global__ void __launch_bounds__(BLOCK)
    evaluate_rows(const Circuit::Job* __restrict__ jobs, uint32_t job_count, SystemTables tables,
                  WitnessValues witness, uint32_t first, Fr* first_values, Fr* second_values) {
    uint32_t low = 0, high = job_count;  // the last job that begins at this block or before
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (jobs[middle].first_block <= blockIdx.x) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const Circuit::Job job = jobs[low];
    const uint32_t block = blockIdx.x - job.first_block;
    const uint32_t instance =
        (block / job.row_blocks << job.log_lanes) + (threadIdx.x & ((1u << job.log_lanes) - 1));
    if (instance >= job.t.instances) return;
    const uint32_t step = BLOCK >> job.log_lanes;
    uint32_t row =
        block % job.row_blocks * (step * ROWS_PER_THREAD) + (threadIdx.x >> job.log_lanes);
    Fr* values = blockIdx.y == 0 ? first_values : second_values;
#pragma unroll 1
    for (uint32_t k = 0; k < ROWS_PER_THREAD && row < job.t.rows; k++, row += step) {
        const Fr value = evaluate_row(tables, witness, job.t, instance, row, first + blockIdx.y);
        store(values + row_constraint(tables, job.t, instance, row), value);
    }
}

void require(bool holds, const std::string& what) {
    if (!holds) throw ArgumentError{"constraint system: " + what};
}

// What one past the highest number of each kind is that a template's terms have.
struct Numbers {
    uint32_t end[4] = {};
    void add(uint32_t variable) {
        uint32_t& e = end[variable >> KIND_SHIFT];
        e = std::max(e, (variable & NUMBER_MASK) + 1);
    }
};

void check_template(const interlock_system& s, uint32_t number) {
    const interlock_template& t = s.templates[number];
    const std::string name = "template " + std::to_string(number);
    require(uint64_t(t.first_row) + t.rows <= s.row_count, name + ": rows past the tables' end");
    require(uint64_t(t.first_instance) + t.instances <= s.instance_count,
            name + ": instances past the list's end");
    require(t.first_port + uint64_t(t.instances) * t.ports <= s.port_count,
            name + ": ports past the list's end");
    if (t.rows == 0 || t.instances == 0) return;
    Numbers numbers;
    uint32_t places = 0;
    for (uint32_t r = t.first_row; r < t.first_row + t.rows; r++) {
        places = std::max(places, s.row_places[r]);
        const size_t c = 3 * size_t(r);
        for (uint32_t k = c == 0 ? 0 : s.row_ends[c - 1]; k < s.row_ends[c + 2]; k++) {
            require(s.terms[k].coefficient < s.coefficient_count, name + ": no such coefficient");
            numbers.add(s.terms[k].variable);
        }
    }
    require(numbers.end[INTERLOCK_PORT] <= t.ports, name + ": no such port");
    for (uint32_t i = t.first_instance; i < t.first_instance + t.instances; i++) {
        const interlock_instance& at = s.instances[i];
        require(uint64_t(at.constraint) + places < s.constraints &&
                    uint64_t(at.input) + numbers.end[INTERLOCK_INPUT] <= s.inputs &&
                    uint64_t(at.aux) + numbers.end[INTERLOCK_BIT] <= s.aux &&
                    uint64_t(at.full) + numbers.end[INTERLOCK_FULL] <= s.full,
                "instance " + std::to_string(i) + ": no such constraint or variable");
    }
}

void check_system(const interlock_system& s) {
    require(s.log_domain >= 1 && s.log_domain <= 27, "domains have 2^1 to 2^27 elements");
    const uint64_t domain = uint64_t(1) << s.log_domain;
    require(s.inputs >= 1 && s.constraints >= 1 && s.inputs <= domain &&
                s.constraints <= domain - s.inputs,
            "constraints and inputs do not fit the domain");
    require(s.aux <= NUMBER_MASK && s.full <= s.aux && s.coefficient_count >= 2 &&
                s.term_count <= UINT32_MAX && s.row_count <= UINT32_MAX / 3,
            "counts out of range");
    require(
        (s.template_count == 0 || s.templates != nullptr) &&
            (s.instance_count == 0 || s.instances != nullptr) &&
            (s.port_count == 0 || s.ports != nullptr) &&
            (s.row_count == 0 || (s.row_places != nullptr && s.row_ends != nullptr)) &&
            (s.term_count == 0 || s.terms != nullptr) && s.coefficients != nullptr &&
            (s.aux == 0 || (s.is_bit != nullptr && s.dense_a != nullptr && s.dense_b != nullptr)) &&
            s.dense_b_inputs != nullptr,
        "a null pointer");
    for (uint64_t c = 0; c < 3 * s.row_count; c++) {
        require(s.row_ends[c] <= s.term_count && (c == 0 || s.row_ends[c - 1] <= s.row_ends[c]),
                "row " + std::to_string(c / 3) + ": its terms end where there are none");
    }
    for (uint64_t i = 0; i < s.port_count; i++) {
        const uint32_t kind = s.ports[i] >> KIND_SHIFT, number = s.ports[i] & NUMBER_MASK;
        require(kind == INTERLOCK_INPUT  ? number < s.inputs
                : kind == INTERLOCK_BIT  ? number < s.aux
                : kind == INTERLOCK_FULL ? number < s.full
                                         : false,
                "port " + std::to_string(i) + ": no such variable");
    }
    uint64_t rows = 0;
    for (uint32_t i = 0; i < s.template_count; i++) {
        check_template(s, i);
        rows += uint64_t(s.templates[i].rows) * s.templates[i].instances;
    }
    require(rows == s.constraints, "the rows of all instances are not as many as the constraints");
}

// A bitmap without bits past its end.
std::vector<uint64_t> bitmap(const uint64_t* words, size_t bits) {
    std::vector<uint64_t> v(words, words + (bits + 63) / 64);
    if (bits % 64 != 0) v.back() &= (uint64_t(1) << bits % 64) - 1;
    return v;
}

// The set bits before each word, or those not set, and in the end how many.
std::vector<uint32_t> ranks(const std::vector<uint64_t>& words, size_t bits, bool set) {
    std::vector<uint32_t> r(words.size() + 1, 0);
    for (size_t j = 0; j < words.size(); j++) {
        const auto ones = uint32_t(__builtin_popcountll(words[j]));
        r[j + 1] = r[j] + (set ? ones : uint32_t(std::min<size_t>(64, bits - 64 * j)) - ones);
    }
    return r;
}

// Copies and waits, so that what is copied need not stay.
template <class T>
DeviceBuffer<T> uploaded(const T* values, size_t count, const Stream& stream) {
    DeviceBuffer<T> buffer(count, stream);
    copy(buffer.get(), values, count, stream);
    synchronize(stream);
    buffer.outlive(stream);
    return buffer;
}
template <class T>
DeviceBuffer<T> uploaded(const std::vector<T>& values, const Stream& stream) {
    return uploaded(values.data(), values.size(), stream);
}

}  // namespace

Circuit::Circuit(const interlock_system& s, const Stream& stream)
    : constraints_(s.constraints),
      inputs_(s.inputs),
      aux_(s.aux),
      full_(s.full),
      log_domain_(s.log_domain) {
    check_system(s);
    const std::vector<uint64_t> is_bit = bitmap(s.is_bit, aux_), a = bitmap(s.dense_a, aux_),
                                b = bitmap(s.dense_b, aux_);
    host_full_rank_ = ranks(is_bit, aux_, false);
    host_rank_a_ = ranks(a, aux_, true);
    host_rank_b_ = ranks(b, aux_, true);
    require(host_full_rank_.back() == full_, "as many variables are no bits as `full` says");
    std::vector<uint32_t> b_inputs;
    for (uint32_t i = 0; i < inputs_; i++) {
        if (s.dense_b_inputs[i / 64] >> (i % 64) & 1) b_inputs.push_back(i);
    }
    b_input_count_ = b_inputs.size();

    std::vector<Job> jobs;
    for (uint32_t i = 0; i < s.template_count; i++) {
        const interlock_template& t = s.templates[i];
        if (t.rows == 0 || t.instances == 0) continue;
        Job job = {t, blocks_, 0, 0};
        while (job.log_lanes < MAX_LOG_LANES && (2u << job.log_lanes) <= t.instances) {
            job.log_lanes++;
        }
        job.row_blocks = blocks_for(t.rows, (BLOCK >> job.log_lanes) * ROWS_PER_THREAD);
        blocks_ += job.row_blocks * blocks_for(t.instances, 1u << job.log_lanes);
        jobs.push_back(job);
    }
    jobs_ = uploaded(jobs, stream);
    instances_ = uploaded(s.instances, s.instance_count, stream);
    ports_ = uploaded(s.ports, s.port_count, stream);
    row_places_ = uploaded(s.row_places, s.row_count, stream);
    row_ends_ = uploaded(s.row_ends, 3 * s.row_count, stream);
    terms_ = uploaded(s.terms, s.term_count, stream);
    coefficients_ = uploaded(static_cast<const Fr*>(s.coefficients), s.coefficient_count, stream);
    is_bit_ = uploaded(is_bit, stream);
    dense_a_ = uploaded(a, stream);
    dense_b_ = uploaded(b, stream);
    full_rank_ = uploaded(host_full_rank_, stream);
    rank_a_ = uploaded(host_rank_a_, stream);
    rank_b_ = uploaded(host_rank_b_, stream);
    b_inputs_ = uploaded(b_inputs, stream);
}

size_t Circuit::bytes() const {
    return jobs_.bytes() + instances_.bytes() + ports_.bytes() + row_places_.bytes() +
           row_ends_.bytes() + terms_.bytes() + coefficients_.bytes() + is_bit_.bytes() +
           dense_a_.bytes() + dense_b_.bytes() + full_rank_.bytes() + rank_a_.bytes() +
           rank_b_.bytes() + b_inputs_.bytes();
}

SystemTables Circuit::tables() const {
    return {instances_.get(), ports_.get(), row_places_.get(),
            row_ends_.get(),  terms_.get(), coefficients_.get()};
}

QueryPoints Circuit::points(Query query) const {
    switch (query) {
        case Query::A:
            return {inputs_,       nullptr,       dense_a_.get(),
                    rank_a_.get(), &host_rank_a_, inputs_ + host_rank_a_.back()};
        case Query::B:
            return {b_input_count_, b_inputs_.get(), dense_b_.get(),
                    rank_b_.get(),  &host_rank_b_,   b_input_count_ + host_rank_b_.back()};
        default: return {0, nullptr, nullptr, nullptr, nullptr, aux_};
    }
}

void Circuit::evaluate(const WitnessValues& witness, uint32_t first, Fr* first_values,
                       Fr* second_values, const Stream& stream) const {
    const uint32_t matrices = second_values != nullptr ? 2 : 1;
    evaluate_rows<<<dim3(blocks_, matrices), BLOCK, 0, stream>>>(
        jobs_.get(), uint32_t(jobs_.count()), tables(), witness, first, first_values,
        second_values);
    check_launch("evaluate_rows");
    for (uint32_t m = 0; m < matrices; m++) {
        Fr* values = m == 0 ? first_values : second_values;
        size_t end = constraints_;
        if (first + m == 0) {
            copy(values + end, witness.inputs, inputs_, stream);
            end += inputs_;
        }
        clear(values + end, (size_t(1) << log_domain_) - end, stream);
    }
}

Witness::Witness(const Circuit& circuit, const Stream& stream)
    : inputs(circuit.inputs(), stream),
      full(circuit.full(), stream),
      bits((circuit.aux() + 63) / 64, stream) {
    clear(inputs.get(), inputs.count(), stream);
    clear(full.get(), full.count(), stream);
    clear(bits.get(), bits.count(), stream);
    synchronize(stream);
    inputs.outlive(stream);
    full.outlive(stream);
    bits.outlive(stream);
}

bool Witness::fits(const Circuit& c) const {
    return inputs.count() == c.inputs() && full.count() == c.full() &&
           bits.count() == (c.aux() + 63) / 64;
}

WitnessValues Witness::values() const {
    return {inputs.get(), reinterpret_cast<const uint32_t*>(bits.get()), full.get()};
}

}  // namespace interlock
