// Applies one operation of the field and curve layers to each record on standard input and writes
// the results to standard output, for the Go test beside this to compare with gnark-crypto.
//
// Record: operation (u32), then its operands, as they lie in memory (Montgomery form).
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "circuit/row.cuh"
#include "curve/generators.cuh"
#include "curve/point.cuh"
#include "field/known.cuh"
#include "setup/digits.cuh"

using namespace interlock;

namespace {

template <class T>
T get() {
    T t;
    if (std::fread(&t, sizeof(t), 1, stdin) != 1) {
        std::fputs("vectors: record cut short\n", stderr);
        std::exit(1);
    }
    return t;
}

template <class T>
void put(const T& t) {
    std::fwrite(&t, sizeof(t), 1, stdout);
}

// Operations 0 to 6 on a field.
template <class F>
bool field(uint32_t op) {
    switch (op) {
        case 0: {
            const F a = get<F>(), b = get<F>();
            put(a + b);
            return true;
        }
        case 1: {
            const F a = get<F>(), b = get<F>();
            put(a - b);
            return true;
        }
        case 2: {
            const F a = get<F>(), b = get<F>();
            put(a * b);
            return true;
        }
        case 3: put(get<F>().squared()); return true;
        case 4: put(-get<F>()); return true;
        case 5: put(get<F>().doubled()); return true;
        case 6: put(inverse(get<F>())); return true;
    }
    return false;
}

// A factor in Montgomery form times any number of 256 bits.
Fr known_product() {
    const Fr w = get<Fr>(), x = get<Fr>();
    constexpr uint32_t STRIDE = 3;
    KnownChunk chunks[KNOWN_CHUNKS * STRIDE];
    Known<STRIDE>::store(chunks, w, PieceFactors::make());
    return Known<STRIDE>{chunks} * x;
}

// The multiple of a point that the digits of a scalar add up to.
template <class F>
Affine<F> sum_of_digits(const Affine<F>& point, const Fr& k) {
    const Fr shifted = shift_digits(k.to_canonical());
    Xyzz<F> sum = Xyzz<F>::infinity(), power = Xyzz<F>::from(point);
    for (uint32_t window = 0; window < WINDOWS; window++) {
        const Digit d = digit(shifted.v[window / 2], window);
        const Affine<F> p = power.to_affine().negated_if(d.negative);
        sum = sum.plus(multiply(p, &d.multiple, 1));
        for (int bit = 0; bit < WINDOW_BITS; bit++) power = power.doubled();
    }
    return sum.to_affine();
}

// Operations 0 to 5 on a group.
template <class F>
bool group(uint32_t op, const Affine<F>& generator) {
    using A = Affine<F>;
    using X = Xyzz<F>;
    switch (op) {
        case 0: {
            const A a = get<A>(), b = get<A>();
            put(X::from(a).plus(b).to_affine());
            return true;
        }
        case 1: {  // through projective operands with ZZ other than 1
            const A a = get<A>(), b = get<A>();
            const X a3 = X::from(a).doubled().plus(a), b3 = X::from(b).doubled().plus(b);
            put(a3.plus(b3).to_affine());
            return true;
        }
        case 2: put(X::from(get<A>()).doubled().to_affine()); return true;
        case 3: {
            const A a = get<A>();
            const Fr k = get<Fr>();
            put(multiply(a, k.to_canonical().v, Fr::LIMBS).to_affine());
            return true;
        }
        case 4: put(generator); return true;
        case 5: {
            const A a = get<A>();
            const Fr k = get<Fr>();
            put(sum_of_digits(a, k));
            return true;
        }
    }
    return false;
}

template <class T>
std::vector<T> get_all() {
    std::vector<T> v(get<uint32_t>());
    for (T& t : v) t = get<T>();
    return v;
}

// A system in flat form and a witness, each table with its length before it: the values of A, B and
// C in every constraint.
void rows() {
    const auto constraints = get<uint32_t>();
    const auto templates = get_all<interlock_template>();
    const auto instances = get_all<interlock_instance>();
    const auto ports = get_all<uint32_t>(), row_places = get_all<uint32_t>(),
               row_ends = get_all<uint32_t>();
    const auto terms = get_all<interlock_term>();
    const auto coefficients = get_all<Fr>(), inputs = get_all<Fr>();
    const auto bits = get_all<uint32_t>();
    const auto full = get_all<Fr>();
    const SystemTables system = {instances.data(), ports.data(), row_places.data(),
                                 row_ends.data(),  terms.data(), coefficients.data()};
    const WitnessValues witness = {inputs.data(), bits.data(), full.data()};
    for (uint32_t matrix = 0; matrix < 3; matrix++) {
        std::vector<Fr> values(constraints);
        for (const interlock_template& t : templates) {
            for (uint32_t i = 0; i < t.instances; i++) {
                for (uint32_t r = 0; r < t.rows; r++) {
                    values.at(row_constraint(system, t, i, r)) =
                        evaluate_row(system, witness, t, i, r, matrix);
                }
            }
        }
        for (const Fr& v : values) put(v);
    }
}

}  // namespace

int main() {
    uint32_t op;
    while (std::fread(&op, sizeof(op), 1, stdin) == 1) {
        bool known = false;
        switch (op / 100) {
            case 0: known = field<Fr>(op % 100); break;
            case 1: known = field<Fp>(op % 100); break;
            case 2: known = field<Fp2>(op % 100); break;
            case 3: known = group<Fp>(op % 100, g1_generator()); break;
            case 4: known = group<Fp2>(op % 100, g2_generator()); break;
            case 5: {  // the constants of the NTT
                Fr w, g;
                for (int i = 0; i < Fr::LIMBS; i++) {
                    w.v[i] = FrParams::root_of_unity(i);
                    g.v[i] = FrParams::generator(i);
                }
                put(w), put(g);
                known = true;
                break;
            }
            case 6: put(encoded(get<Fp>())), known = true; break;
            case 7: rows(), known = true; break;
            case 8: put(known_product()), known = true; break;
        }
        if (!known) {
            std::fprintf(stderr, "vectors: unknown operation %u\n", op);
            return 1;
        }
    }
    return 0;
}
