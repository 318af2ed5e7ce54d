/* What the parts of the HIP runtime know of each other. The interface itself is api.def; entry.c makes the functions.
 *
 * It stands on the engine of the simulated CUDA driver (../sim.h), which is part of the same library: its functions
 * are called directly, and none of them is exported.
 */
#ifndef SIMGPU_HIP_H
#define SIMGPU_HIP_H

#include "../sim.h"
#include "engine_api.h"
#include "hip_abi.h"

#define HIP_API __attribute__((visibility("default")))

/* The functions that api.def names: what is behind each, and what stands in the tables (entry.c). */
#define HIP_UNWRAP(...) __VA_ARGS__
#define HIP(at, node, in, name, parameters, ...) hipError_t hip_##name parameters, table_##name parameters;
#define HIP_BOTH(at, node, in, at_spt, node_spt, in_spt, name, parameters, ...)                                        \
    hipError_t hip_##name(bool per_thread, HIP_UNWRAP parameters), table_##name parameters,                            \
        table_##name##_spt parameters;
#define ENGINE(at, node, in, name, parameters, arguments, call) hipError_t table_##name parameters;
#define ENGINE_BOTH(at, node, in, at_spt, node_spt, in_spt, name, parameters, arguments, function, suffix, given)      \
    hipError_t table_##name parameters, table_##name##_spt parameters;
#define OTHER(at, node, in, type, name, parameters, ...)                                                               \
    type hip_##name parameters;                                                                                        \
    type table_##name parameters;
#define COMPILER OTHER
#define OUTSIDE OTHER
#include "api.def"
#undef HIP
#undef HIP_BOTH
#undef ENGINE
#undef ENGINE_BOTH
#undef OTHER
#undef COMPILER
#undef OUTSIDE

/* device.c */
hipError_t hip_start(void); /* there are devices */
hipError_t hip_ready(void); /* and this thread works on one */
hipError_t hip_context_of(int device, CUcontext *context);
int hip_device_of(hipStream_t stream); /* of this thread, for a default stream */

/* error.c */
int hip_major(void); /* the number in the library's name: 7, or what a test has made of it (tests/hip_runtimes.py) */
hipError_t hip_done(hipError_t result);

/* check.c */
hipError_t hip_waited(hipError_t result); /* of a call that waits: the process ends if a queue has died */

/* binary.c: what hipcc's code registers. */
hipError_t hip_function(const void *host, int device, hipFunction_t *function);
void hip_forget_device(int device);

/* function.c */
hipError_t hip_image_of(hipFunction_t handle, const struct kernel_image **image, const struct gpu **gpu);
hipError_t hip_image(const void *host, const struct kernel_image **image, const struct gpu **gpu);
int hip_occupancy(const struct kernel_image *image, const struct gpu *gpu, int threads, size_t dynamic);

/* table.c */
typedef void (*any_function)(void);
enum { MEMBERS = 517, COMPILER_MEMBERS = 9 };
any_function hip_in_runtime(int position);
any_function hip_in_compiler(int position);

#endif
