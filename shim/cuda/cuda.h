/* Shared by the files of cuda: the translation between NVIDIA's driver API and the shared part. */
#pragma once

#include "../gpu/resolve.h"
#include "../gpu/vendor_ops.h"
#include "cuda_abi.h"

#pragma GCC visibility push(hidden)

/* Types of the entry points: type_cuInit and so on. */
#define DRIVER(name, body, ...) typedef CUresult type_##name(PARAMETERS(__VA_ARGS__));
#include "driver.def"
#undef DRIVER

/* Bodies; several rows may share one. */
#define DRIVER(name, body, ...) CUresult body(ENTRY, PARAMETERS(__VA_ARGS__));
#define DRIVER_VOID(name, body) CUresult body(ENTRY);
#define DRIVER_LAUNCH(name, body, ...) /* launch.h */
#include "driver.def"
#undef DRIVER

/* The operations that the shared part calls, one row each. */
#define OPERATION(name, result, parameters, cuda, hip) result cuda parameters;
#include "../gpu/vendor_ops.def"
#undef OPERATION

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
/* Makes the context of the launch that is being decided current, for questions about the current one. False: it is. */
bool cuda_enter_launch(void);
void cuda_leave_launch(void);

/* ---- attribute.c: attributes of kernels that we change (struct setting) ---- */

/* The bit of a device. 0: there is none. */
uint32_t setting_bit(const struct handle *handle, int device);
/* Returns a copy. */
struct setting setting_read(const struct setting *setting);
/* The program's value on the device of a bit, if it is known. */
int setting_value(const struct setting *setting, uint32_t bit);
/* The program's value on these devices is `own`. Under the lock. */
void setting_own(struct setting *setting, uint32_t bits, int own);

/* ---- carveout.c; device: for CUkernels ---- */

/* Asks for the largest carve-out, unless the program has a preference of its own. */
void carveout_raise(struct handle *handle, int device);
/* Takes ours back in all forms that affect a launch of this handle, for good. True: it was not done before. */
bool carveout_leave(struct handle *handle);
/* The driver has accepted the program's setting. False: ours may have come after it. */
bool carveout_program_sets(struct handle *handle, int device, int set);
/* Replaces the driver's answer by the program's value. */
void carveout_answer(struct handle *handle, int device, int *answer);

/* ---- limit.c; device: for CUkernels ---- */

/* Makes sure that a launch on this device, which is current, may use so many bytes. False: the driver refuses. */
bool limit_raise(struct handle *handle, const struct device *device, uint32_t dynamic);
/* The value that the driver gets when the program sets the limit; then, what the program has set. */
int limit_for_driver(struct handle *handle, int device, int asked);
void limit_program_sets(struct handle *handle, int device, int set);
/* Replaces the driver's answer by the program's value. */
void limit_answer(struct handle *handle, int device, int *answer);
/* The program's own limit if we have raised it, else UINT32_MAX. */
uint32_t limit_own(struct handle *handle, int device);

#pragma GCC visibility pop
