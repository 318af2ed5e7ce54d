/* What the parts of the HIP runtime know of each other. The interface itself is api.def; entry.c makes the functions.
 *
 * It stands on the engine of the simulated CUDA driver (../sim.h), which is part of the same library: its functions
 * are called directly, and none of them is exported.
 */
#ifndef SIMGPU_HIP_H
#define SIMGPU_HIP_H

#include "../sim.h"
#include "hip_abi.h"

#define HIP_API __attribute__((visibility("default")))

/* The engine's functions that are called beside those of the rows ENGINE, whose prototypes those rows make. */
CUresult cuCtxPopCurrent(CUcontext *out);
CUresult cuCtxPushCurrent(CUcontext handle);
CUresult cuCtxSynchronize(void);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult cuEventQuery(CUevent handle);
CUresult cuEventSynchronize(CUevent handle);
CUresult cuInit(unsigned int flags);
CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned int flags);
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream);
CUresult cuStreamQuery(CUstream handle);
CUresult cuStreamQuery_ptsz(CUstream handle);
CUresult cuStreamSynchronize(CUstream handle);
CUresult cuStreamSynchronize_ptsz(CUstream handle);

/* The functions that api.def names: what is behind each, and what stands in the tables (entry.c). */
#define HIP_UNWRAP(...) __VA_ARGS__
#define HIP(at, node, name, parameters, ...) hipError_t hip_##name parameters, table_##name parameters;
#define HIP_BOTH(at, node, at_spt, node_spt, name, parameters, ...)                                                    \
    hipError_t hip_##name(bool per_thread, HIP_UNWRAP parameters), table_##name parameters,                            \
        table_##name##_spt parameters;
#define ENGINE(at, node, name, function, parameters, ...)                                                              \
    CUresult function parameters;                                                                                      \
    hipError_t table_##name parameters;
#define ENGINE_BOTH(at, node, at_spt, node_spt, name, function, parameters, ...)                                       \
    ENGINE(at, node, name, function, parameters, )                                                                     \
    ENGINE(at_spt, node_spt, name##_spt, function##_ptsz, parameters, )
#define CALL(at, node, name, parameters, arguments, call) hipError_t table_##name parameters;
#define OTHER(at, node, type, name, parameters, ...)                                                                   \
    type hip_##name parameters;                                                                                        \
    type table_##name parameters;
#define OUTSIDE OTHER
#include "api.def"
#undef HIP
#undef HIP_BOTH
#undef ENGINE
#undef ENGINE_BOTH
#undef CALL
#undef OTHER
#undef OUTSIDE

/* device.c */
hipError_t hip_start(void); /* there are devices */
hipError_t hip_ready(void); /* and this thread works on one */
hipError_t hip_context_of(int device, CUcontext *context);
int hip_device_of(hipStream_t stream); /* of this thread, for a default stream */

/* error.c */
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
enum { MEMBERS = 506 };
any_function hip_in_runtime(int position);

#endif
