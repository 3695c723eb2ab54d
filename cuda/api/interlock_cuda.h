/* The C interface of libinterlock_cuda.so.
 *
 * Every call returns INTERLOCK_OK or the kind of its failure, and fills *error (which may be null)
 * with what happened. No C++ exception crosses the interface, nothing exits the process, and the
 * library keeps no state but the objects that it hands out.
 *
 * A device may be used by any number of threads at once. A context, a stream of a device, is for
 * one thread at a time; different contexts run beside each other. What is made through one context
 * may be used through every other of the same device, by one that writes it or any number that
 * read. Calls return when their work on the device is done.
 *
 * Field elements and points lie in memory as gnark-crypto keeps them: Montgomery form, 64-bit words
 * little endian, affine points as x then y, infinity as (0, 0). Fr 32 bytes, G1 96, G2 192.
 */
#ifndef INTERLOCK_CUDA_H
#define INTERLOCK_CUDA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define INTERLOCK_API __attribute__((visibility("default")))

/* Raised with every change that a caller must know of. */
#define INTERLOCK_CUDA_VERSION 4

enum {
    INTERLOCK_OK = 0,
    INTERLOCK_BAD_ARGUMENT = 1,  /* refused before any work */
    INTERLOCK_OUT_OF_MEMORY = 2, /* bytes_asked and bytes_free say how much was missing */
    INTERLOCK_NO_DEVICE = 3,     /* no driver, a driver too old, or no such device */
    INTERLOCK_DEVICE_FAILED = 4, /* a launch or a copy failed; the device works on */
    INTERLOCK_DEVICE_LOST = 5    /* the CUDA context is poisoned: the process must end */
};

typedef struct {
    int32_t kind;      /* one of the above */
    int32_t cuda_code; /* cudaError_t, 0 if it came from elsewhere */
    uint64_t bytes_asked;
    uint64_t bytes_free;
    char message[256];
} interlock_error;

typedef struct {
    char name[256];
    char uuid[48];        /* GPU-xxxxxxxx-..., as nvidia-smi prints it */
    char pci_address[16]; /* 0000:41:00.0 */
    uint64_t memory_bytes;
    int32_t major, minor; /* compute capability */
    int32_t multiprocessors;
    int32_t driver_version; /* the CUDA version that the driver serves: 13000 for 13.0 */
} interlock_device_info;

typedef struct interlock_device interlock_device;
typedef struct interlock_context interlock_context;
typedef struct interlock_bases interlock_bases;
typedef struct interlock_circuit interlock_circuit;
typedef struct interlock_witness interlock_witness;
typedef struct interlock_quotient interlock_quotient;

INTERLOCK_API int interlock_version(void);

/* The number of devices; 0 with INTERLOCK_OK if a driver is there but no device. */
INTERLOCK_API int interlock_count_devices(int32_t* count, interlock_error* error);
/* Takes nothing of the device. */
INTERLOCK_API int interlock_describe_device(int32_t index, interlock_device_info* info,
                                            interlock_error* error);
/* What of a device's memory is free now. It starts the device, which takes some hundred MB of it
 * until the process ends. */
INTERLOCK_API int interlock_free_memory(int32_t index, uint64_t* free_bytes,
                                        interlock_error* error);

/* Opens a device. All memory that the library takes on it comes from one pool, which never grows
 * beyond memory_bytes (0: the device's). Tables for transforms stay there, at most 256 MB. What one
 * multi-exponentiation takes for itself is bounded by scratch_bytes (0: 27 GB, or a quarter of
 * memory_bytes if that is less): one of which a hundred bytes for each scalar and multiple, in G2
 * two hundred, are more is done in parts, which takes longer. */
#define INTERLOCK_LEAST_SCRATCH_BYTES ((uint64_t)64 << 20)
INTERLOCK_API int interlock_device_open(int32_t index, uint64_t memory_bytes,
                                        uint64_t scratch_bytes, interlock_device** device,
                                        interlock_error* error);
INTERLOCK_API void interlock_device_close(interlock_device* device);
/* What the device's pool holds now, and the most it held since the device was opened. */
INTERLOCK_API int interlock_device_memory(interlock_device* device, uint64_t* used_bytes,
                                          uint64_t* peak_bytes, interlock_error* error);

INTERLOCK_API int interlock_context_create(interlock_device* device, interlock_context** context,
                                           interlock_error* error);
INTERLOCK_API void interlock_context_destroy(interlock_context* context);

/* How long the device was at work on the last call through this context that ran kernels, by the
 * device's clock, from the begin of its first kernel to the end of its last. */
INTERLOCK_API double interlock_kernel_milliseconds(const interlock_context* context);

/* Device memory, and page-locked host memory, which copies at the full rate of the link. */
INTERLOCK_API int interlock_device_alloc(interlock_context* context, uint64_t bytes, void** memory,
                                         interlock_error* error);
INTERLOCK_API int interlock_device_free(interlock_context* context, void* memory,
                                        interlock_error* error);
INTERLOCK_API int interlock_host_alloc(interlock_context* context, uint64_t bytes, void** memory,
                                       interlock_error* error);
INTERLOCK_API int interlock_host_free(interlock_context* context, void* memory,
                                      interlock_error* error);
/* Copies between any two of host and device. */
INTERLOCK_API int interlock_copy(interlock_context* context, void* to, const void* from,
                                 uint64_t bytes, interlock_error* error);

/* In place on 2^log_size elements of Fr in device memory, natural order at both ends. inverse: 0 or
 * 1. coset: 0 for the subgroup, 1 for its coset by 7. log_size is 1 to 27. Takes as much working
 * memory again. */
INTERLOCK_API int interlock_ntt(interlock_context* context, void* values, int32_t log_size,
                                int32_t inverse, int32_t coset, interlock_error* error);

/* Makes room for up to capacity bases. group: 1 for G1, 2 for G2. multiples: how many multiples of
 * each base may be kept beside it, 1 for none; more memory, less work. At most 2^31-1 points,
 * multiples counted. */
INTERLOCK_API int interlock_bases_create(interlock_context* context, int32_t group,
                                         uint64_t capacity, int32_t multiples,
                                         interlock_bases** bases, interlock_error* error);
/* Overwrites bases [at, at+count). points lie in host or device memory: as in memory (encoded = 0),
 * or as parameter files hold them (encoded = 1): big endian, x before y, in G2 the imaginary
 * coefficient before the real one, not compressed. An encoded point with a flag bit set, a
 * coordinate not below the modulus or at infinity is refused as INTERLOCK_BAD_ARGUMENT, whose
 * message gives its index. Multiples are made by the load that fills the last base of the capacity,
 * or on the first use after a load. */
INTERLOCK_API int interlock_bases_load(interlock_context* context, interlock_bases* bases,
                                       uint64_t at, uint64_t count, const void* points,
                                       int32_t encoded, interlock_error* error);
INTERLOCK_API void interlock_bases_destroy(interlock_bases* bases);

/* The sum of scalars[i] * base i over the first count bases, as an affine point to *result on the
 * host. scalars, in host or device memory, are elements of Fr: in Montgomery form, or canonical
 * (montgomery = 0). */
INTERLOCK_API int interlock_msm(interlock_context* context, const interlock_bases* bases,
                                const void* scalars, uint64_t count, int32_t montgomery,
                                void* result, interlock_error* error);

/* The sum of the bases among the first count whose bit is set. Bit i is bit i%64 of the 64-bit word
 * i/64 of bits, in host or device memory. */
INTERLOCK_API int interlock_msm_bits(interlock_context* context, const interlock_bases* bases,
                                     const void* bits, uint64_t count, void* result,
                                     interlock_error* error);

/* Multiples of the generator of a group, encoded as parameter files hold points: scalars[i]*G to
 * points + i*96 (group 1) or *192 (group 2). scalars (Montgomery) and points lie in host or device
 * memory. A scalar of zero is refused. */
INTERLOCK_API int interlock_generator_multiples(interlock_context* context, int32_t group,
                                                const void* scalars, uint64_t count, void* points,
                                                interlock_error* error);

/* ---- constraint systems ----
 *
 * A reference to a variable is 32 bits: kind in the top two, index in the others. */
#define INTERLOCK_INPUT 0u /* public input; number 0 of the circuit is the constant one */
#define INTERLOCK_BIT 1u   /* auxiliary variable that is a bit, by its number among all auxiliary */
#define INTERLOCK_FULL 2u  /* other auxiliary variable, by its number among those alone */
#define INTERLOCK_PORT 3u  /* in terms only: a port of the instance */

typedef struct {
    uint32_t variable;    /* indexes of kinds 0 to 2 count from the instance's first */
    uint32_t coefficient; /* its number; 0 is one and 1 is minus one */
} interlock_term;

/* A template: rows that are repeated for each of its instances. */
typedef struct {
    uint32_t rows, first_row; /* rows [first_row, first_row+rows) of the tables */
    uint32_t instances, first_instance;
    uint32_t ports;      /* of each instance; port 0 is the constant one */
    uint32_t first_port; /* of its first instance in the list of ports */
} interlock_template;

typedef struct {
    uint32_t constraint;       /* number of its first */
    uint32_t aux, full, input; /* numbers of its first variables */
} interlock_instance;

/* Everything lies in host memory and is copied. */
typedef struct {
    uint64_t constraints, inputs, aux, full; /* inputs with the constant one */
    int32_t log_domain;
    uint32_t template_count;
    uint64_t instance_count, port_count, row_count, term_count, coefficient_count;
    const interlock_template* templates;
    const interlock_instance* instances;
    const uint32_t* ports;      /* references of kinds 0 to 2 with absolute indexes */
    const uint32_t* row_places; /* of each row: its constraint, counted from the instance's first */
    const uint32_t* row_ends;   /* 3 of each row: where its terms in A, in B, in C end in terms */
    const interlock_term* terms;
    const void* coefficients; /* Fr */
    /* Bitmaps, 64-bit words: which auxiliary variables are bits, which occur in A and in B; which
     * inputs occur in B. */
    const uint64_t *is_bit, *dense_a, *dense_b, *dense_b_inputs;
} interlock_system;

INTERLOCK_API int interlock_circuit_create(interlock_context* context,
                                           const interlock_system* system,
                                           interlock_circuit** circuit, interlock_error* error);
INTERLOCK_API void interlock_circuit_destroy(interlock_circuit* circuit);
/* Device memory that a circuit takes, and that each witness of it takes. */
INTERLOCK_API uint64_t interlock_circuit_bytes(const interlock_circuit* circuit);
INTERLOCK_API uint64_t interlock_witness_bytes(const interlock_circuit* circuit);

INTERLOCK_API int interlock_witness_create(interlock_context* context,
                                           const interlock_circuit* circuit,
                                           interlock_witness** witness, interlock_error* error);
/* Copies a part of a witness, in host memory, to the device: count elements of the public inputs
 * (part 0, Fr), of the bitmap of values (part 1, 64-bit words: bit i is auxiliary variable i, 0 if
 * that is no bit) or of the values that are not bits (part 2, Fr), from element `at` on. */
INTERLOCK_API int interlock_witness_load(interlock_context* context, interlock_witness* witness,
                                         int32_t part, uint64_t at, uint64_t count,
                                         const void* values, interlock_error* error);
INTERLOCK_API void interlock_witness_destroy(interlock_witness* witness);

/* A, B or C (matrix 0, 1, 2) of every constraint times the witness, to values in host or device
 * memory: 2^log_domain elements. For tests and measurements. */
INTERLOCK_API int interlock_evaluate(interlock_context* context, const interlock_circuit* circuit,
                                     const interlock_witness* witness, int32_t matrix, void* values,
                                     interlock_error* error);

/* The coefficients of H = (A*B - C)/Z for a witness, 2^log_domain elements in device memory, are
 * made in four steps. Only create and evaluate_c need the witness; where memory is short it may be
 * destroyed after each, and made anew.
 *
 *     create      evaluates A and B: takes two domains (of 2^log_domain elements each)
 *     multiply    takes a third while it runs
 *     evaluate_c  evaluates C, for the same circuit and witness, which may be a new copy of it
 *     finish      takes a third while it runs; then one is left
 *
 * Steps in another order, and sums over and copies of one that is not finished, are refused. Of a
 * quotient whose step failed halfway nothing but destroying it is left. */
INTERLOCK_API int interlock_quotient_create(interlock_context* context,
                                            const interlock_circuit* circuit,
                                            const interlock_witness* witness,
                                            interlock_quotient** quotient, interlock_error* error);
INTERLOCK_API int interlock_quotient_multiply(interlock_context* context,
                                              interlock_quotient* quotient, interlock_error* error);
INTERLOCK_API int interlock_quotient_evaluate_c(interlock_context* context,
                                                interlock_quotient* quotient,
                                                const interlock_circuit* circuit,
                                                const interlock_witness* witness,
                                                interlock_error* error);
INTERLOCK_API int interlock_quotient_finish(interlock_context* context,
                                            interlock_quotient* quotient, interlock_error* error);
/* Copies coefficients [at, at+count) to host memory. For tests. */
INTERLOCK_API int interlock_quotient_read(interlock_context* context,
                                          const interlock_quotient* quotient, uint64_t at,
                                          uint64_t count, void* values, interlock_error* error);
INTERLOCK_API void interlock_quotient_destroy(interlock_quotient* quotient);

/* Queries, in the order of parameter files. */
#define INTERLOCK_QUERY_H 0
#define INTERLOCK_QUERY_L 1
#define INTERLOCK_QUERY_A 2
#define INTERLOCK_QUERY_B_G1 3
#define INTERLOCK_QUERY_B_G2 4

/* The part of query H's sum that points [from, from+count) give: bases 0..count-1 are those points.
 * The result is an affine point on the host. */
INTERLOCK_API int interlock_sum_quotient(interlock_context* context,
                                         const interlock_quotient* quotient, uint64_t from,
                                         const interlock_bases* bases, uint64_t count, void* result,
                                         interlock_error* error);

/* The same for queries L, A and B. Points of L are those of all auxiliary variables; of A those of
 * all inputs, then of the auxiliary variables that occur in A; of B those of the inputs, then of
 * the auxiliary variables that occur in B. */
INTERLOCK_API int interlock_sum_query(interlock_context* context, const interlock_circuit* circuit,
                                      const interlock_witness* witness, int32_t query,
                                      uint64_t from, const interlock_bases* bases, uint64_t count,
                                      void* result, interlock_error* error);

#ifdef __cplusplus
}
#endif

#endif
