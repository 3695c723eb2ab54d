#include "msm/msm.cuh"

namespace interlock {
namespace {

// Work of a multiplication in field multiplications: an entry costs one batched addition, which is
// six of them, and its share of sorting and pairing; a bucket two additions in XYZZ coordinates and
// the copies of odd entries. Fitted to times on an H200.
double work(size_t count, const MsmPlan& plan) {
    const double entry = 9, bucket = 30;
    return entry * double(count) * plan.windows() +
           bucket * double(plan.buckets_per_set()) * plan.sets;
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
