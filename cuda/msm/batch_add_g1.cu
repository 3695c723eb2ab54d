#include "msm/batch_add_kernels.cuh"

namespace interlock {

template class BatchAdder<Fp>;

}  // namespace interlock
