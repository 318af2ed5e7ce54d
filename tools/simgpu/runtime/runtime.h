/* What the parts of the runtime know of each other. The interface itself is api.def; entry.c makes the functions. */
#ifndef SIMGPU_RUNTIME_H
#define SIMGPU_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime_abi.h"

#define RT_API __attribute__((visibility("default")))

/* The driver's functions: [1] are the forms for per-thread default streams, [0] all others. */
struct rt_calls {
#define CALL(field, base, version, parameters) CUresult(*field) parameters;
#define CALL_STREAM(field, base, version, per_thread, parameters) CUresult(*field) parameters;
#include "driver.def"
#undef CALL
#undef CALL_STREAM
};
extern struct rt_calls rt_calls[2];

/* The bodies that api.def names. */
#define RT_UNWRAP(...) __VA_ARGS__
#define OWN(name, result, parameters) RT_API result name parameters;
#define BODY(name, parameters, ...) cudaError_t rt_##name parameters;
#define BODY_STREAM(name, suffix, parameters, ...) cudaError_t rt_##name(bool per_thread, RT_UNWRAP parameters);
#define DRIVER(name, function, parameters, ...)
#define DRIVER_STREAM(name, suffix, function, parameters, ...)
#include "api.def"
#undef OWN
#undef BODY
#undef BODY_STREAM
#undef DRIVER
#undef DRIVER_STREAM

/* driver.c */
cudaError_t rt_start(void);

/* device.c */
cudaError_t rt_ready(void);      /* the driver is there and this thread has a context */
bool rt_ready_again(void);       /* after "no context": somebody took it away, and now there is one again */
cudaError_t rt_device(int *out); /* of this thread */
cudaError_t rt_context_of(int device, CUcontext *context);

/* entry.c */
cudaError_t rt_done(cudaError_t result);

/* binary.c: what nvcc's code registers. */
cudaError_t rt_kernel(const void *function, CUkernel *kernel);

#endif
