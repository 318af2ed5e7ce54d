/* Shared by the files of vendor/cuda: the translation between NVIDIA's driver API and the shared part. */
#pragma once

#include "../common/resolve.h"
#include "../common/vendor_ops.h"
#include "cuda_abi.h"

#pragma GCC visibility push(hidden)

/* Types of the entry points: type_cuInit and so on. */
#define DRIVER(name, body, parameters, ...) typedef CUresult type_##name parameters;
#include "driver.def"
#undef DRIVER

/* Bodies; several rows may share one. */
#define PARAMETERS_OF(...) __VA_ARGS__
#define DRIVER(name, body, parameters, ...) CUresult body(ENTRY, PARAMETERS_OF parameters);
#define DRIVER_VOID(name, body) CUresult body(ENTRY);
#define DRIVER_LAUNCH(name, body, parameters, ...)
#include "driver.def"
#undef DRIVER

/* The operations that the shared part calls, one row each. */
#define OPERATION(name, result, parameters, cuda, hip) result cuda parameters;
#include "../common/vendor_ops.def"
#undef OPERATION

/* In a body: the driver's function; REAL_OR_RETURN fails if there is none. */
#define REAL(name) ((type_##name *)real_function(route, hook, site))
#define REAL_OR_RETURN(name)                                                                                           \
    type_##name *real = REAL(name);                                                                                    \
    if (!real)                                                                                                         \
    return CUDA_ERROR_NOT_INITIALIZED

/* Functions that we call ourselves. Valid once driver_ready(VENDOR_CUDA) has returned true. */
struct driver_calls {
#define CALL(name, parameters) CUresult(*name) parameters;
#include "api.def"
#undef CALL
};
extern struct driver_calls driver;

/* ---- cuda_ops.c ---- */

/* Read or set an attribute with the API that fits the handle. device: for kernels. */
CUresult handle_get(const struct handle *handle, int attribute, int device, int *value);
CUresult handle_set(const struct handle *handle, int attribute, int device, int value);

/* The function of a CUkernel in the current context, or NULL. */
struct handle *cuda_function_of(const struct handle *kernel);

/* ---- carveout.c ---- */

/* Restore the program's carve-out for good in all forms that affect a launch of this handle. True: it was still
 * ours. */
bool carveout_withdraw(struct handle *handle);
/* The program has set its context's cache preference. */
void carveout_of_context(int config);
/* carveout_is_programs(): the program has set its own carve-out. carveout_answer(): replace the driver's answer by
 * the program's value. */
void carveout_is_programs(const void *value, int device, int set);
void carveout_answer(const void *value, int device, int *answer);

/* ---- limit.c: the program's view of the limit of dynamic shared memory. device: for kernels ---- */

/* Make sure that a launch on the current device may use so many bytes; false: the driver refuses. */
bool limit_raise(struct handle *handle, uint32_t dynamic);

/* Has any limit been raised in this process? */
bool limit_any_raised(void);

/* The program sets an attribute. limit_for_driver(): the value to pass to the driver. limit_program_sets(): the driver
 * has accepted it, so the program reads it back from now on. */
int limit_for_driver(const void *value, int device, int attribute, int asked);
void limit_program_sets(const void *value, int device, int attribute, int set);

/* The program has read an attribute: replace the driver's answer by the value that the program set. */
void limit_answer(const void *value, int device, int attribute, int *answer);

/* The program's own limit if we have raised it, else UINT32_MAX. */
uint32_t limit_own(const void *value, int device);

/* The kernel with this handle_born() is gone. */
void limit_forget(uint32_t born);

#pragma GCC visibility pop
