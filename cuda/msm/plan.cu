#include <cmath>

#include "msm/msm.cuh"

namespace interlock {
namespace {

// Time of a multiplication in field multiplications. An entry costs one batched addition, which is
// six of them, and its share of sorting and pairing; a bucket two additions in XYZZ coordinates and
// the copies of odd entries. A level of batch additions takes 90 us however few they are, and the
// sums of runs 70 us for every two bits of a bucket's number; the device does 27 multiplications in
// a nanosecond. Fitted to times on an H200.
double work(size_t count, const MsmPlan& plan) {
    const double entry = 9, bucket = 30, level = 90e3 * 27, bit = 35e3 * 27;
    const double in_bucket =
        double(count) * plan.multiples / double(plan.buckets_per_set()) + 1;  // of a set
    return entry * double(count) * plan.windows() +
           bucket * double(plan.buckets_per_set()) * plan.sets +
           level * (1 + std::log2(in_bucket)) + bit * (plan.window_bits - 1);
}

}  // namespace

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
        if (work(count, plan) < work(count, best)) best = plan;
    }
    return best;
}

}  // namespace interlock
