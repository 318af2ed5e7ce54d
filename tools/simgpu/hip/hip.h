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

/* The functions that api.def names. */
#define HIP_UNWRAP(...) __VA_ARGS__
#define HIP(name, parameters, ...) hipError_t hip_##name parameters;
#define HIP_BOTH(name, parameters, ...) hipError_t hip_##name(bool per_thread, HIP_UNWRAP parameters);
#define ENGINE(name, parameters, arguments, call)
#define ENGINE_BOTH(name, parameters, arguments, function, suffix, given)
#define OTHER(type, name, parameters, ...) type hip_##name parameters;
#define COMPILER(type, name, parameters, ...) type hip_##name parameters;
#define OUTSIDE(type, name, parameters, ...) type hip_##name parameters;
#include "api.def"
#undef HIP
#undef HIP_BOTH
#undef ENGINE
#undef ENGINE_BOTH
#undef OTHER
#undef COMPILER
#undef OUTSIDE

/* context.c */
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
#define MEMBER(name, node, releases, position) MEMBER_##name = (position) - 1,
#define COMPILER(name, node, releases, position)
#define OUTSIDE(name, node, releases)
enum hip_member {
#include "names.def"
};
#undef MEMBER
#undef COMPILER
#define MEMBER(name, node, releases, position)
#define COMPILER(name, node, releases, position) MEMBER_##name = (position) - 1,
enum hip_compiler_member {
#include "names.def"
};
#undef MEMBER
#undef COMPILER
#undef OUTSIDE
any_function hip_in_runtime(enum hip_member member);
any_function hip_in_compiler(enum hip_compiler_member member);

#endif
