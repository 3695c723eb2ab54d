#define INTERLOCK_CALLED_PRODUCTS
#include "msm/msm_kernels.cuh"

namespace interlock {

template class Bases<Fp>;
template Xyzz<Fp> msm(const Bases<Fp>&, const Scalars&, const MsmPlan&, const Stream&);
template Xyzz<Fp> msm_bits(const Bases<Fp>&, const uint32_t*, size_t, const Stream&);

}  // namespace interlock
