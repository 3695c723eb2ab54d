// The coefficients of H = (A*B - C)/Z, where A, B and C interpolate the values of a witness's
// constraints on the domain and Z vanishes there.
#pragma once

#include "circuit/circuit.cuh"
#include "ntt/ntt.cuh"

namespace interlock {

// 2^log_domain coefficients, in natural order; the last is zero if the witness satisfies the
// circuit. forward and backward are transforms of the domain. Takes three domains of memory until
// it returns, one of them until the buffer goes.
DeviceBuffer<Fr> quotient(const Circuit& circuit, const Witness& witness, const Transform& forward,
                          const Transform& backward, const Stream& stream);

}  // namespace interlock
