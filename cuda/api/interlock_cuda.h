/* The C interface of libinterlock_cuda.so.
 *
 * Every call returns INTERLOCK_OK or the kind of its failure, and fills *error (which may be null)
 * with what happened. No C++ exception crosses the interface, nothing exits the process, and the
 * library keeps no state but the contexts that it hands out. A context is for one thread at a time;
 * different contexts are independent.
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
#define INTERLOCK_CUDA_VERSION 1

enum {
    INTERLOCK_OK = 0,
    INTERLOCK_BAD_ARGUMENT = 1,  /* refused before any work */
    INTERLOCK_OUT_OF_MEMORY = 2, /* bytes_asked and bytes_free say how much was missing */
    INTERLOCK_NO_DEVICE = 3,     /* no driver, a driver too old, or no such device */
    INTERLOCK_DEVICE_FAILED = 4, /* a launch or a copy failed; the context works on */
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
    char uuid[40]; /* GPU-xxxxxxxx-..., as nvidia-smi prints it */
    uint64_t memory_bytes;
    int32_t major, minor; /* compute capability */
    int32_t multiprocessors;
} interlock_device;

typedef struct interlock_context interlock_context;
typedef struct interlock_bases interlock_bases;

INTERLOCK_API int interlock_version(void);

/* The number of devices; 0 with INTERLOCK_OK if a driver is there but no device. */
INTERLOCK_API int interlock_device_count(int32_t* count, interlock_error* error);
INTERLOCK_API int interlock_device_info(int32_t index, interlock_device* info,
                                        interlock_error* error);

/* A context owns a stream of one device, and the tables and working memory of its calls. */
INTERLOCK_API int interlock_context_create(int32_t device, interlock_context** context,
                                           interlock_error* error);
INTERLOCK_API void interlock_context_destroy(interlock_context* context);

/* Device memory, and page-locked host memory, which copies at the full rate of the link. */
INTERLOCK_API int interlock_device_alloc(interlock_context* context, uint64_t bytes, void** memory,
                                         interlock_error* error);
INTERLOCK_API int interlock_device_free(interlock_context* context, void* memory,
                                        interlock_error* error);
INTERLOCK_API int interlock_host_alloc(interlock_context* context, uint64_t bytes, void** memory,
                                       interlock_error* error);
INTERLOCK_API int interlock_host_free(interlock_context* context, void* memory,
                                      interlock_error* error);
/* Copies between any two of host and device; returns when done. */
INTERLOCK_API int interlock_copy(interlock_context* context, void* to, const void* from,
                                 uint64_t bytes, interlock_error* error);

/* In place on 2^log_size elements of Fr in device memory, natural order at both ends. inverse: 0 or
 * 1. coset: 0 for the subgroup, 1 for its coset by 7. log_size is 1 to 27. Takes as much working
 * memory again. Returns when done. */
INTERLOCK_API int interlock_ntt(interlock_context* context, void* values, int32_t log_size,
                                int32_t inverse, int32_t coset, interlock_error* error);

/* Brings bases to the device, from host or device memory, to stay. group: 1 for G1, 2 for G2.
 * multiples: how many multiples of each base may be kept beside it, 1 for none; more memory, less
 * work. At most 2^31-1 points, multiples counted. */
INTERLOCK_API int interlock_bases_create(interlock_context* context, int32_t group,
                                         const void* points, uint64_t count, int32_t multiples,
                                         interlock_bases** bases, interlock_error* error);
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

#ifdef __cplusplus
}
#endif

#endif
