#include "circuit/quotient.cuh"

#include "field/inverse.cuh"

namespace interlock {
namespace {

constexpr uint32_t BLOCK = 256;

__global__ void __launch_bounds__(BLOCK)
    multiply_values(Fr* __restrict__ a, const Fr* __restrict__ b, uint32_t count) {
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
Quotient::Quotient(const Circuit& circuit, const Witness& witness, const Stream& stream)
    : log_domain_(circuit.log_domain()),
      a_(size_t(1) << log_domain_, stream),
      b_(size_t(1) << log_domain_, stream) {
    circuit.evaluate(witness.values(), 0, a_.get(), b_.get(), stream);
    synchronize(stream);
    a_.outlive(stream);
    b_.outlive(stream);
    last_ = Step::EVALUATED;
}

void Quotient::multiply(const Transform& forward, const Transform& backward, const Stream& stream) {
    require_step(Step::EVALUATED);
    last_ = Step::FAILED;  // unless it succeeds
    DeviceBuffer<Fr> work(a_.count(), stream);
    for (Fr* values : {a_.get(), b_.get()}) {
        backward.run(values, work.get(), Domain::SUBGROUP, stream);
        forward.run(values, work.get(), Domain::COSET, stream);
    }
    multiply_values<<<blocks_for(a_.count(), BLOCK), BLOCK, 0, stream>>>(a_.get(), b_.get(),
                                                                         uint32_t(a_.count()));
    check_launch("multiply_values");
    backward.run(a_.get(), work.get(), Domain::COSET, stream);
    synchronize(stream);
    last_ = Step::MULTIPLIED;
}

void Quotient::evaluate_c(const Circuit& circuit, const Witness& witness, const Stream& stream) {
    require_step(Step::MULTIPLIED);
    if (circuit.log_domain() != log_domain_) {
        throw ArgumentError{"quotient: another circuit than at first"};
    }
    last_ = Step::FAILED;
    circuit.evaluate(witness.values(), 2, b_.get(), nullptr, stream);
    synchronize(stream);
    last_ = Step::C_EVALUATED;
}

void Quotient::finish(const Transform& backward, const Stream& stream) {
    require_step(Step::C_EVALUATED);
    last_ = Step::FAILED;
    DeviceBuffer<Fr> work(a_.count(), stream);
    backward.run(b_.get(), work.get(), Domain::SUBGROUP, stream);
    subtract_and_scale<<<blocks_for(a_.count(), BLOCK), BLOCK, 0, stream>>>(
        a_.get(), b_.get(), inverse(vanishing(log_domain_)), uint32_t(a_.count()));
    check_launch("subtract_and_scale");
    synchronize(stream);
    b_.reset();
    last_ = Step::FINISHED;
}

const DeviceBuffer<Fr>& Quotient::coefficients() const {
    require_step(Step::FINISHED);
    return a_;
}

void Quotient::require_step(Step step) const {
    if (last_ == Step::FAILED) throw ArgumentError{"quotient: a step of it failed: make a new one"};
    if (last_ != step) {
        throw ArgumentError{"quotient: steps are create, multiply, evaluate_c, finish, in order"};
    }
}

}  // namespace interlock
