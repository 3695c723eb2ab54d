// Constraint systems, witnesses, and the sums of a proof.
#include "api/objects.cuh"
#include "circuit/gather.cuh"

using namespace interlock;

namespace {

void require_witness(const interlock_context* context, const interlock_circuit* circuit,
                     const interlock_witness* witness) {
    require(circuit != nullptr && circuit->device == context->device, "no circuit of this device");
    require(witness != nullptr && witness->device == context->device &&
                witness->witness.fits(circuit->circuit),
            "no witness of this circuit");
}

void require_quotient(const interlock_context* context, const interlock_quotient* quotient) {
    require(quotient != nullptr && quotient->device == context->device,
            "no quotient of this device");
}

const Transform& transform(const interlock_context* context, const interlock_quotient* quotient,
                           Direction direction) {
    return context->device->transform(quotient->quotient.log_domain(), direction, context->stream);
}

template <class F>
void sum_query(interlock_context* context, const interlock_circuit* circuit,
               const interlock_witness* witness, Query query, uint64_t from, const Bases<F>& bases,
               uint64_t count, void* result) {
    const Stream& stream = context->stream;
    timed(context, [&] {
        const Gathered g = gather(circuit->circuit, witness->witness, query, from, count, stream);
        const Scalars scalars = {g.scalars.get(), g.full, ScalarForm::MONTGOMERY, g.places.get()};
        const Xyzz<F> full = msm(bases, scalars, bases.plan_for(g.full), stream);
        put(result, full.plus(msm_bits(bases, g.bits.get(), count, stream)));
    });
}

}  // namespace

int interlock_circuit_create(interlock_context* context, const interlock_system* system,
                             interlock_circuit** circuit, interlock_error* error) {
    return guarded_on(context, error, [&] {
        require(system != nullptr && circuit != nullptr, "circuit: no system or no place for it");
        *circuit = nullptr;
        *circuit = new interlock_circuit{context->device, Circuit(*system, context->stream)};
    });
}

void interlock_circuit_destroy(interlock_circuit* circuit) { destroy(circuit); }

uint64_t interlock_circuit_bytes(const interlock_circuit* circuit) {
    return circuit != nullptr ? circuit->circuit.bytes() : 0;
}

uint64_t interlock_witness_bytes(const interlock_circuit* circuit) {
    if (circuit == nullptr) return 0;
    const Circuit& c = circuit->circuit;
    return (c.inputs() + c.full()) * sizeof(Fr) + (c.aux() + 63) / 64 * 8;
}

int interlock_witness_create(interlock_context* context, const interlock_circuit* circuit,
                             interlock_witness** witness, interlock_error* error) {
    return guarded_on(context, error, [&] {
        require(witness != nullptr, "witness: no place for it");
        *witness = nullptr;
        require(circuit != nullptr && circuit->device == context->device,
                "witness: no circuit of this device");
        *witness =
            new interlock_witness{context->device, Witness(circuit->circuit, context->stream)};
    });
}

int interlock_witness_load(interlock_context* context, interlock_witness* witness, int32_t part,
                           uint64_t at, uint64_t count, const void* values,
                           interlock_error* error) {
    return guarded_on(context, error, [&] {
        require(witness != nullptr && witness->device == context->device,
                "witness: none of this device");
        require(values != nullptr || count == 0, "witness: no values");
        const auto load = [&](auto& to) {
            require(at <= to.count() && count <= to.count() - at,
                    "witness: more values than it has");
            using Value = std::remove_pointer_t<decltype(to.get())>;
            copy(to.get() + at, static_cast<const Value*>(values), count, context->stream);
        };
        switch (part) {
            case 0: load(witness->witness.inputs); break;
            case 1: load(witness->witness.bits); break;
            case 2: load(witness->witness.full); break;
            default: require(false, "witness: parts are 0 to 2");
        }
        synchronize(context->stream);
    });
}

void interlock_witness_destroy(interlock_witness* witness) { destroy(witness); }

int interlock_evaluate(interlock_context* context, const interlock_circuit* circuit,
                       const interlock_witness* witness, int32_t matrix, void* values,
                       interlock_error* error) {
    return guarded_on(context, error, [&] {
        require_witness(context, circuit, witness);
        require(matrix >= 0 && matrix <= 2, "evaluation: matrices are 0 to 2");
        require(values != nullptr, "evaluation: no place for the values");
        const size_t n = size_t(1) << circuit->circuit.log_domain();
        const Stream& stream = context->stream;
        DeviceBuffer<Fr> made(on_device(values) ? 0 : n, stream);
        Fr* out = made.count() > 0 ? made.get() : static_cast<Fr*>(values);
        timed(context, [&] {
            circuit->circuit.evaluate(witness->witness.values(), uint32_t(matrix), out, nullptr,
                                      stream);
            synchronize(stream);
        });
        if (made.count() > 0) stream.fetch(static_cast<Fr*>(values), out, n);
    });
}

int interlock_quotient_create(interlock_context* context, const interlock_circuit* circuit,
                              const interlock_witness* witness, interlock_quotient** quotient,
                              interlock_error* error) {
    return guarded_on(context, error, [&] {
        require(quotient != nullptr, "quotient: no place for it");
        *quotient = nullptr;
        require_witness(context, circuit, witness);
        timed(context, [&] {
            *quotient = new interlock_quotient{
                context->device, Quotient(circuit->circuit, witness->witness, context->stream)};
        });
    });
}

int interlock_quotient_multiply(interlock_context* context, interlock_quotient* quotient,
                                interlock_error* error) {
    return guarded_on(context, error, [&] {
        require_quotient(context, quotient);
        const Transform& forward = transform(context, quotient, Direction::FORWARD);
        const Transform& backward = transform(context, quotient, Direction::INVERSE);
        timed(context, [&] { quotient->quotient.multiply(forward, backward, context->stream); });
    });
}

int interlock_quotient_evaluate_c(interlock_context* context, interlock_quotient* quotient,
                                  const interlock_circuit* circuit,
                                  const interlock_witness* witness, interlock_error* error) {
    return guarded_on(context, error, [&] {
        require_quotient(context, quotient);
        require_witness(context, circuit, witness);
        timed(context, [&] {
            quotient->quotient.evaluate_c(circuit->circuit, witness->witness, context->stream);
        });
    });
}

int interlock_quotient_finish(interlock_context* context, interlock_quotient* quotient,
                              interlock_error* error) {
    return guarded_on(context, error, [&] {
        require_quotient(context, quotient);
        const Transform& backward = transform(context, quotient, Direction::INVERSE);
        timed(context, [&] { quotient->quotient.finish(backward, context->stream); });
    });
}

int interlock_quotient_read(interlock_context* context, const interlock_quotient* quotient,
                            uint64_t at, uint64_t count, void* values, interlock_error* error) {
    return guarded_on(context, error, [&] {
        require_quotient(context, quotient);
        const DeviceBuffer<Fr>& h = quotient->quotient.coefficients();
        require(at <= h.count() && count <= h.count() - at, "quotient: more than it has");
        require(values != nullptr || count == 0, "quotient: no place for the values");
        context->stream.fetch(static_cast<Fr*>(values), h.get() + at, count);
    });
}

void interlock_quotient_destroy(interlock_quotient* quotient) { destroy(quotient); }

int interlock_sum_quotient(interlock_context* context, const interlock_quotient* quotient,
                           uint64_t from, const interlock_bases* bases, uint64_t count,
                           void* result, interlock_error* error) {
    return guarded_on(context, error, [&] {
        require_quotient(context, quotient);
        const DeviceBuffer<Fr>& h = quotient->quotient.coefficients();
        require(from <= h.count() && count <= h.count() - from,
                "sum: more points than the quotient has coefficients");
        require(bases != nullptr && bases->device == context->device && bases->g1 != nullptr &&
                    count <= bases->count() && result != nullptr,
                "sum: no bases of G1 on this device, too few, or no place for the result");
        const Scalars scalars = {h.get() + from, count, ScalarForm::MONTGOMERY};
        timed(context, [&] {
            put(result, msm(*bases->g1, scalars, bases->g1->plan_for(count), context->stream));
        });
    });
}

int interlock_sum_query(interlock_context* context, const interlock_circuit* circuit,
                        const interlock_witness* witness, int32_t query, uint64_t from,
                        const interlock_bases* bases, uint64_t count, void* result,
                        interlock_error* error) {
    return guarded_on(context, error, [&] {
        require_witness(context, circuit, witness);
        require(query >= INTERLOCK_QUERY_L && query <= INTERLOCK_QUERY_B_G2,
                "sum: queries over variables are 1 to 4");
        const bool second_group = query == INTERLOCK_QUERY_B_G2;
        require(bases != nullptr && bases->device == context->device &&
                    (bases->g2 != nullptr) == second_group && count <= bases->count() &&
                    result != nullptr,
                "sum: no bases of the query's group on this device, too few, or no place for the "
                "result");
        const Query q = query == INTERLOCK_QUERY_L   ? Query::L
                        : query == INTERLOCK_QUERY_A ? Query::A
                                                     : Query::B;
        if (second_group) {
            sum_query(context, circuit, witness, q, from, *bases->g2, count, result);
        } else {
            sum_query(context, circuit, witness, q, from, *bases->g1, count, result);
        }
    });
}
