#define INTERLOCK_CALLED_PRODUCTS
#include "msm/msm_kernels.cuh"

namespace interlock {

template class Bases<Fp2>;
template Affine<Fp2> msm(const Bases<Fp2>&, const Fr*, size_t, ScalarForm, cudaStream_t);
template Affine<Fp2> msm_bits(const Bases<Fp2>&, const uint32_t*, size_t, cudaStream_t);

}  // namespace interlock
