// The coefficients of H = (A*B - C)/Z, where A, B and C interpolate the values of a witness's
// constraints on the domain and Z vanishes there.
#pragma once

#include "circuit/circuit.cuh"
#include "ntt/ntt.cuh"

namespace interlock {

// H in the making, in four steps. The witness is needed by two of them only, so that its memory may
// go in between: where memory is short, it comes and goes with them. A step returns when its work
// on the device is done. One that is out of order throws an ArgumentError and changes nothing; of
// one that fails halfway nothing is left to go on with, and it goes after a wait for the stream.
class Quotient {
  public:
    // Evaluates A and B: two domains of memory, which outlive the stream.
    Quotient(const Circuit& circuit, const Witness& witness, const Stream& stream);

    int log_domain() const { return log_domain_; }

    // Multiplies them. forward and backward are transforms of the domain. Takes a third domain
    // until it returns.
    void multiply(const Transform& forward, const Transform& backward, const Stream& stream);
    // Evaluates C, in the place of B, for the same witness.
    void evaluate_c(const Circuit& circuit, const Witness& witness, const Stream& stream);
    // Takes C away. Takes a third domain until it returns; then one is left.
    void finish(const Transform& backward, const Stream& stream);

    // 2^log_domain coefficients on the device, in natural order; the last is zero if the witness
    // satisfies the circuit. Throws an ArgumentError unless it is finished.
    const DeviceBuffer<Fr>& coefficients() const;

  private:
    enum class Step { EVALUATED, MULTIPLIED, C_EVALUATED, FINISHED, FAILED };
    void require_step(Step step) const;

    int log_domain_;
    Step last_ = Step::FAILED;
    DeviceBuffer<Fr> a_, b_;
};

}  // namespace interlock
