/* What the files of vendor/hip share, besides what both vendors' do (common/vendor.h). Which file does what:
 *   entry.c   the doors: one thunk per entry point and way in, made from driver.def
 *   table.c   the runtime's own table of functions, where it hands one out
 *   lookup.c  what hipGetProcAddress and hipGetDriverEntryPoint hand out
 *   answers.c what the shared half asks about HIP
 *   launch.c  launches: from a call to a request, and back to a call
 *   graph.c   nodes of graphs that the program builds itself; graphs become executable
 *   module.c  calls that make and end kernels; code.c: registers that the runtime leaves out
 *   query.c   what the program asks about occupancy
 *   stream.c  streams, and the compute units that they may use
 *   waits.c   calls that order streams and are not the same on NVIDIA
 */
#pragma once

#include "../common/windows.h"
#include "hip_abi.h"

#pragma GCC visibility push(hidden)

/* Types of the entry points: type_hipInit and so on. */
#define DRIVER(name, body, parameters, ...) typedef hipError_t type_##name parameters;
#include "driver.def"
#undef DRIVER

/* Bodies, one per row, or several rows' one. */
#define PARAMETERS_OF(...) __VA_ARGS__
#define DRIVER(name, body, parameters, ...)                                                                            \
    hipError_t body(enum overlap_way way, enum hook hook, uintptr_t site, PARAMETERS_OF parameters);
#define DRIVER_VOID(name, body) hipError_t body(enum overlap_way way, enum hook hook, uintptr_t site);
#define DRIVER_LAUNCH(name, body, parameters, ...)
#include "driver.def"
#undef DRIVER

/* In a body: the runtime's function, or out. */
#define REAL_OR_RETURN(name)                                                                                           \
    type_##name *real = (type_##name *)real_function(way, hook, site);                                                 \
    if (!real)                                                                                                         \
    return VENDOR_NOT_INITIALIZED

/* Our own calls. Valid after real_ready(VENDOR_HIP) said true. */
struct hip_calls {
#define CALL(result, name, parameters) result(*name) parameters;
#include "api.def"
#undef CALL
};
extern struct hip_calls hip;

/* Calls of ours, and tries that are made again as the program asked, leave no error behind for hipGetLastError(): up to HIP 6
 * that is what the last call has answered, from 7 on the last one that failed. Nothing of ours comes behind a call of the
 * program that has failed. */
#define HIP_ASK(call)                                                                                                  \
    __extension__({                                                                                                    \
        const hipError_t pending_ = hip_pending();                                                                     \
        hip_settle(pending_, call);                                                                                    \
    })

/* ---- launch.c ---- */

/* What a launch call says besides what every launch says. */
struct hip_more {
    uint32_t items[3]; /* of calls that give work-items and not workgroups */
    uint32_t flags;
    hipEvent_t start, stop;         /* recorded before and behind the kernel; or NULL */
    hipLaunchConfig_t config;       /* of hipLaunchKernelExC */
    const hipLaunchConfig_t *asked; /* likewise, the program's own */
};

/* Everything that is not a direct hit in the cache. word: what the hot path has found, or 0. */
hipError_t hip_launch(struct request *request, uint64_t word);

/* module.c: 1: a library of the program has ended. */
extern uint32_t hip_unregistered;

/* Is the function of such a call a hipFunction_t? Else it is a function of the program that stands for a kernel. */
bool hip_launches_function(enum hook hook);

/* ---- table.c ---- */

/* Who has called, for a call that comes by the table. */
static inline uintptr_t hip_table_site(uintptr_t site) {
    const uintptr_t from = this_thread.from;
    this_thread.from = 0;
    return from ? from : site;
}

/* The same for a launch, which may be part of another one: marked where no caller was noted. Addresses have fewer bits. */
#define HIP_UNNOTED (UINT64_C(1) << 63)
static inline uintptr_t hip_table_launch_site(uintptr_t site) {
    return this_thread.from ? hip_table_site(site) : site | HIP_UNNOTED;
}

/* ---- entry.c ---- */

/* Where a call goes that comes by another way than the table: to the body (NULL), or with the program's arguments to another function.
 * noted: its caller is noted for the table meanwhile, by this call: it may not come by there. thunk: way << 16 | hook. */
struct hip_route {
    void *function;
    uint64_t noted;
};
struct hip_route hip_route(uint32_t thunk, uintptr_t site);

/* ---- code.c ---- */

/* The kernels of an image that was loaded as this module, for this architecture (gfx90a). size: UINT64_MAX where the image
 * says itself how long it is. */
void code_learn(hipModule_t module, const void *image, uint64_t size, const char *architecture);
/* A module is gone: what images told of it, up to this one. How many were read so far. */
void code_forget(hipModule_t module, uint32_t learned);
uint32_t code_learned(void);
/* Registers of a kernel of a module, by its descriptor; 0: unknown, as in every compressed module. */
uint32_t code_registers(hipModule_t module, const char *kernel);

#pragma GCC visibility pop
