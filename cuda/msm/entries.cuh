// The part of a multiplication that knows no curve: digits of scalars, entries sorted by bucket,
// and the sizes of the levels in which a bucket's entries are added pairwise.
#pragma once

#include <array>

#include "device/device.cuh"
#include "msm/msm.cuh"

namespace interlock {

// The entries of a range of bucket sets: references to bases (index, NEGATE), sorted by bucket.
class Entries {
  public:
    // A bucket's entries are halved, rounding up, from one level to the next.
    static constexpr int LEVELS = 32;

    // Entries of sets [first_set, first_set + sets), of bases of which there are base_count.
    Entries(const MsmPlan& plan, const Scalars& scalars, size_t base_count, int first_set, int sets,
            const Stream& stream);

    size_t buckets() const { return buckets_; }
    // Entries left at a level: the sum over buckets of ceil(n / 2^level).
    size_t total(int level) const { return totals_[level]; }
    // Buckets that have any entry.
    size_t occupied() const { return totals_[LEVELS - 1]; }

    // The bucket of each entry, and where each bucket begins (one more than there are buckets).
    DeviceBuffer<uint32_t> keys, references, begins;
    // Of the same size as keys: free for use.
    DeviceBuffer<uint32_t> spare_keys, spare_references;

    // next[b] = where bucket b begins at that level.
    void level_begins(int level, DeviceBuffer<uint32_t>& next) const;

  private:
    size_t buckets_;
    std::array<uint32_t, LEVELS> totals_;
    const Stream& stream_;
};

}  // namespace interlock
