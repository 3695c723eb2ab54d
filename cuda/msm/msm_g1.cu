#define INTERLOCK_CALLED_PRODUCTS
#include "msm/msm_kernels.cuh"

namespace interlock {

template class Bases<Fp>;
template Affine<Fp> msm(const Bases<Fp>&, const Fr*, size_t, ScalarForm, cudaStream_t);
template Affine<Fp> msm_bits(const Bases<Fp>&, const uint32_t*, size_t, cudaStream_t);

}  // namespace interlock
