#include "circuit/quotient.cuh"

#include "field/inverse.cuh"

namespace interlock {
namespace {

constexpr uint32_t BLOCK = 256;

__global__ void __launch_bounds__(BLOCK)
    multiply(Fr* __restrict__ a, const Fr* __restrict__ b, uint32_t count) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) store(a + i, a[i] * load(b + i));
}

// a <- (a - c) * factor.
__global__ void __launch_bounds__(BLOCK)
    subtract_and_scale(Fr* __restrict__ a, const Fr* __restrict__ c, Fr factor, uint32_t count) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) store(a + i, (a[i] - load(c + i)) * factor);
}

// Z = x^n - 1 on the coset by 7, where it is the same everywhere: 7^n - 1.
Fr vanishing(int log_domain) {
    Fr power;
    for (int i = 0; i < Fr::LIMBS; i++) power.v[i] = FrParams::generator(i);
    for (int i = 0; i < log_domain; i++) power = power.squared();
    return power - Fr::one();
}

}  // namespace

// The polynomial of degree below n that has the values of A*B on the coset is C + (7^n - 1)*H,
// since A*B = C + Z*H. So C need not go to the coset: its coefficients are taken away afterwards,
// and its values are computed when those of B are no longer needed.
DeviceBuffer<Fr> quotient(const Circuit& circuit, const Witness& witness, const Transform& forward,
                          const Transform& backward, const Stream& stream) {
    const size_t n = size_t(1) << circuit.log_domain();
    const auto blocks = blocks_for(n, BLOCK);
    DeviceBuffer<Fr> a(n, stream), b(n, stream), work(n, stream);
    circuit.evaluate(witness.values(), 0, a.get(), b.get(), stream);
    for (Fr* values : {a.get(), b.get()}) {
        backward.run(values, work.get(), Domain::SUBGROUP, stream);
        forward.run(values, work.get(), Domain::COSET, stream);
    }
    multiply<<<blocks, BLOCK, 0, stream>>>(a.get(), b.get(), uint32_t(n));
    check_launch("multiply");
    backward.run(a.get(), work.get(), Domain::COSET, stream);
    Fr* c = b.get();
    circuit.evaluate(witness.values(), 2, c, nullptr, stream);
    backward.run(c, work.get(), Domain::SUBGROUP, stream);
    subtract_and_scale<<<blocks, BLOCK, 0, stream>>>(
        a.get(), c, inverse(vanishing(circuit.log_domain())), uint32_t(n));
    check_launch("subtract_and_scale");
    synchronize(stream);
    a.outlive(stream);
    return a;
}

}  // namespace interlock
