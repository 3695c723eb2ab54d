#define INTERLOCK_CALLED_PRODUCTS
#include "msm/msm_kernels.cuh"

namespace interlock {

template class Bases<Fp2>;
template Xyzz<Fp2> msm(const Bases<Fp2>&, const Scalars&, const MsmPlan&, const Stream&);
template Xyzz<Fp2> msm_bits(const Bases<Fp2>&, const uint32_t*, size_t, const Stream&);

}  // namespace interlock
