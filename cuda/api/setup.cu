// The C interface's call for development setup.
#include "setup/setup.cuh"

#include "api/objects.cuh"

using namespace interlock;

int interlock_generator_multiples(interlock_context* context, int32_t group, const void* scalars,
                                  uint64_t count, void* points, interlock_error* error) {
    return guarded_on(context, error, [&] {
        require(group == 1 || group == 2, "multiples of a generator: the group is 1 or 2");
        require(count == 0 || (scalars != nullptr && points != nullptr),
                "multiples of a generator: a null pointer");
        const auto* k = static_cast<const Fr*>(scalars);
        auto* out = static_cast<uint8_t*>(points);
        timed(context, [&] {
            if (group == 1) {
                generator_multiples<Fp>(k, count, out, context->stream);
            } else {
                generator_multiples<Fp2>(k, count, out, context->stream);
            }
        });
    });
}
