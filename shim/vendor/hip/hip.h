/* Shared by the files of vendor/hip: the translation between AMD's HIP runtime and the shared part. */
#pragma once

#include "../common/resolve.h"
#include "../common/this_thread.h"
#include "../common/vendor_ops.h"
#include "hip_abi.h"

#pragma GCC visibility push(hidden)

/* Types of the entry points: type_hipInit and so on. */
#define DRIVER(name, body, parameters, ...) typedef hipError_t type_##name parameters;
#include "driver.def"
#undef DRIVER

/* Bodies; several rows may share one. */
#define PARAMETERS_OF(...) __VA_ARGS__
#define DRIVER(name, body, parameters, ...) hipError_t body(ENTRY, PARAMETERS_OF parameters);
#define DRIVER_VOID(name, body) hipError_t body(ENTRY);
#define DRIVER_LAUNCH(name, body, parameters, ...)
#include "driver.def"
#undef DRIVER

/* The operations that the shared part calls, one row each. */
#define OPERATION(name, result, parameters, cuda, hip) result hip parameters;
#include "../common/vendor_ops.def"
#undef OPERATION

/* In a body: the runtime's function; returns an error if there is none. */
#define REAL_OR_RETURN(name)                                                                                           \
    type_##name *real = (type_##name *)real_function(route, hook, site);                                               \
    if (!real)                                                                                                         \
    return VENDOR_NOT_INITIALIZED

/* Functions that we call ourselves. Valid once driver_ready(VENDOR_HIP) has returned true. */
struct hip_calls {
#define CALL(result, name, parameters) result(*name) parameters;
#include "api.def"
#undef CALL
};
extern struct hip_calls hip;

/* Our own calls, and attempts that are repeated as the program asked, must not change the result of
 * hipGetLastError(). Up to HIP 6 that is the result of the last call, from 7 on that of the last call that failed.
 * After a failed call of the program we call nothing. */
#define HIP_ASK(call)                                                                                                  \
    __extension__({                                                                                                    \
        const hipError_t pending_ = hip_pending();                                                                     \
        hip_settle(pending_, call);                                                                                    \
    })

/* ---- launch.c ---- */

/* Parameters that only some launch calls have. */
struct hip_more {
    uint32_t items[3]; /* for calls that give work-items instead of workgroups */
    uint32_t flags;
    hipEvent_t start, stop;         /* recorded before and after the kernel; may be NULL */
    hipLaunchConfig_t config;       /* hipLaunchKernelExC */
    const hipLaunchConfig_t *asked; /* hipLaunchKernelExC: the program's own */
};

/* Launch what the thread's table does not hold. */
hipError_t hip_launch(struct request *request);

/* True if the call's handle is a hipFunction_t; else it is a host function that stands for a kernel. */
bool hip_launches_function(enum hook hook);

/* ---- dispatch_table.c ---- */

/* The caller of a call that came through the table. */
static inline uintptr_t hip_table_site(uintptr_t site) {
    const uintptr_t from = this_thread.from;
    this_thread.from = 0;
    return from ? from : site;
}

/* The same for a launch, which may be part of another one: HIP_UNNOTED is set if no caller was recorded. Addresses
 * do not use that bit. */
#define HIP_UNNOTED (UINT64_C(1) << 63)
static inline uintptr_t hip_table_launch_site(uintptr_t site) {
    return this_thread.from ? hip_table_site(site) : site | HIP_UNNOTED;
}

/* ---- entry.c ---- */

/* Where a call goes that did not come through the table: to the body (NULL), or unchanged to another function.
 * noted: this call has recorded its caller for the table and must clear it, because it may not pass through the
 * table. thunk: route << 16 | hook. */
struct hip_target {
    void *function;
    uint64_t noted;
};
struct hip_target hip_target(uint32_t thunk, uintptr_t site);

#pragma GCC visibility pop
