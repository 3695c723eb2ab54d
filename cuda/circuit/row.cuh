// One linear combination of a constraint system in flat form (see interlock_system in
// api/interlock_cuda.h, whose plain structs are used here): on the device, and on the host for
// tests.
#pragma once

#include "api/interlock_cuda.h"
#include "field/field.cuh"

namespace interlock {

// References to variables.
constexpr uint32_t KIND_SHIFT = 30;
constexpr uint32_t NUMBER_MASK = (1u << KIND_SHIFT) - 1;

// Numbers of the coefficients that need no multiplication.
constexpr uint32_t COEFFICIENT_ONE = 0, COEFFICIENT_MINUS_ONE = 1;

// The tables of a system and the values of a witness, where whoever evaluates can read them. Bit i
// of bits is bit i%32 of word i/32.
struct SystemTables {
    const interlock_instance* instances;
    const uint32_t *ports, *row_places, *row_ends;
    const interlock_term* terms;
    const Fr* coefficients;
};
struct WitnessValues {
    const Fr* inputs;
    const uint32_t* bits;
    const Fr* full;
};

// The value of matrix 0, 1 or 2 (A, B or C) in a row of an instance, both counted from the
// template's first.
IL_HD inline Fr evaluate_row(const SystemTables& s, const WitnessValues& w,
                             const interlock_template& t, uint32_t instance, uint32_t row,
                             uint32_t matrix) {
    const interlock_instance first = s.instances[t.first_instance + instance];
    const uint32_t* ports = s.ports + t.first_port + size_t(instance) * t.ports;
    const size_t combination = 3 * size_t(t.first_row + row) + matrix;
    const uint32_t end = s.row_ends[combination];
    Fr sum = Fr::zero();
    for (uint32_t k = combination == 0 ? 0 : s.row_ends[combination - 1]; k < end; k++) {
        const interlock_term term = s.terms[k];
        uint32_t kind = term.variable >> KIND_SHIFT, number = term.variable & NUMBER_MASK;
        if (kind == INTERLOCK_PORT) {
            const uint32_t variable = ports[number];
            kind = variable >> KIND_SHIFT, number = variable & NUMBER_MASK;
        } else {
            number += kind == INTERLOCK_BIT    ? first.aux
                      : kind == INTERLOCK_FULL ? first.full
                                               : first.input;
        }
        if (kind == INTERLOCK_BIT) {
            if (w.bits[number / 32] >> (number % 32) & 1) {
                sum = sum + s.coefficients[term.coefficient];
            }
            continue;
        }
        if (kind == INTERLOCK_INPUT && number == 0) {  // the constant one
            sum = sum + s.coefficients[term.coefficient];
            continue;
        }
        Fr x = kind == INTERLOCK_FULL ? w.full[number] : w.inputs[number];
        if (term.coefficient > COEFFICIENT_MINUS_ONE) x = x * s.coefficients[term.coefficient];
        sum = term.coefficient == COEFFICIENT_MINUS_ONE ? sum - x : sum + x;
    }
    return sum;
}

// Where the value goes among those of all constraints.
IL_HD inline size_t row_constraint(const SystemTables& s, const interlock_template& t,
                                   uint32_t instance, uint32_t row) {
    return size_t(s.instances[t.first_instance + instance].constraint) +
           s.row_places[t.first_row + row];
}

}  // namespace interlock
