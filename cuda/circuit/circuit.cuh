// A constraint system on the device, and witnesses of it.
#pragma once

#include <vector>

#include "circuit/row.cuh"
#include "device/device.cuh"

namespace interlock {

// Queries whose points belong to variables.
enum class Query { L, A, B };

// The points of a query: first some inputs, then the auxiliary variables of a bitmap, in order.
struct QueryPoints {
    size_t inputs;
    const uint32_t* input_of;  // on the device: the input of each; null: input i is point i
    const uint64_t* dense;     // on the device; null: all auxiliary variables
    const uint32_t* rank;      // on the device: set bits before each word
    const std::vector<uint32_t>* host_rank;  // the same on the host, and in the end how many
    size_t count;                            // of all points
};

class Circuit {
  public:
    // Copies the system. An ArgumentError says what of it refers to nothing. The memory outlives
    // the stream.
    Circuit(const interlock_system& system, const Stream& stream);

    size_t constraints() const { return constraints_; }
    size_t inputs() const { return inputs_; }
    size_t aux() const { return aux_; }
    size_t full() const { return full_; }
    int log_domain() const { return log_domain_; }
    size_t bytes() const;

    QueryPoints points(Query query) const;
    const uint64_t* is_bit() const { return is_bit_.get(); }
    // Variables that are no bits before each word of is_bit, on the device and on the host.
    const uint32_t* full_rank() const { return full_rank_.get(); }
    const std::vector<uint32_t>& host_full_rank() const { return host_full_rank_; }

    // Evaluates some matrices for a witness: matrix `first` to first_values, the one after it to
    // second_values unless that is null; 2^log_domain values each, with the rows of the inputs
    // (input i times 0 = 0) after the constraints and zeros up to the end.
    void evaluate(const WitnessValues& witness, uint32_t first, Fr* first_values, Fr* second_values,
                  const Stream& stream) const;

    // A template's part in the grid of the evaluation.
    struct Job {
        interlock_template t;
        uint32_t first_block, row_blocks, log_lanes;
    };

  private:
    SystemTables tables() const;

    size_t constraints_, inputs_, aux_, full_;
    int log_domain_;
    uint32_t blocks_ = 0;
    size_t b_input_count_ = 0;
    DeviceBuffer<Job> jobs_;
    DeviceBuffer<interlock_instance> instances_;
    DeviceBuffer<uint32_t> ports_, row_places_, row_ends_;
    DeviceBuffer<interlock_term> terms_;
    DeviceBuffer<Fr> coefficients_;
    DeviceBuffer<uint64_t> is_bit_, dense_a_, dense_b_;
    DeviceBuffer<uint32_t> full_rank_, rank_a_, rank_b_, b_inputs_;
    std::vector<uint32_t> host_full_rank_, host_rank_a_, host_rank_b_;
};

// The values of a circuit's variables: the inputs, a bit for each auxiliary variable, and those
// that are no bits. All zero at first. The memory outlives the stream.
class Witness {
  public:
    Witness(const Circuit& circuit, const Stream& stream);

    // Whether it has the sizes of the circuit's.
    bool fits(const Circuit& circuit) const;
    WitnessValues values() const;

    DeviceBuffer<Fr> inputs, full;
    DeviceBuffer<uint64_t> bits;
};

}  // namespace interlock
