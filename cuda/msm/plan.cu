#include <cmath>

#include "msm/msm.cuh"

namespace interlock {

// An entry costs one batched addition, which is six multiplications, and its share of sorting and
// pairing; a bucket two additions in XYZZ coordinates and the copies of odd entries: fitted to
// times on an H200, which does 27 multiplications in a nanosecond. What decides for few scalars is
// an estimate: a level of batch additions takes 90 us however few they are, the sums of runs 70 us
// for every two bits of a bucket's number.
double MsmPlan::work(size_t count) const {
    const double entry = 9, bucket = 30, level = 90e3 * 27, bit = 35e3 * 27;
    const double in_bucket = double(count) * multiples / double(buckets_per_set()) + 1;  // of a set
    return entry * double(count) * windows() + bucket * double(buckets_per_set()) * sets +
           level * (1 + std::log2(in_bucket)) + bit * (window_bits - 1);
}

MsmPlan MsmPlan::with_window(int window_bits, int multiples) {
    MsmPlan plan = {window_bits, 1, 1};
    const int windows = plan.windows();
    plan.sets = (windows + multiples - 1) / multiples;
    plan.multiples = (windows + plan.sets - 1) / plan.sets;
    return plan;
}

MsmPlan MsmPlan::choose(size_t count, int multiples) {
    MsmPlan best = with_window(4, multiples);
    for (int c = 5; c <= 24; c++) {
        const MsmPlan plan = with_window(c, multiples);
        if (plan.work(count) < best.work(count)) best = plan;
    }
    return best;
}

}  // namespace interlock
