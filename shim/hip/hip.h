/* Shared by the files of hip: the translation between AMD's HIP runtime and the shared part. */
#pragma once

#include "../gpu/resolve.h"
#include "../gpu/thread.h"
#include "../gpu/vendor_ops.h"
#include "hip_abi.h"

#pragma GCC visibility push(hidden)

/* Types of the entry points: type_hipInit and so on. */
#define DRIVER(name, body, ...) typedef hipError_t type_##name(PARAMETERS(__VA_ARGS__));
#include "driver.def"
#undef DRIVER

/* Bodies; several rows may share one. */
#define DRIVER(name, body, ...) hipError_t body(ENTRY, PARAMETERS(__VA_ARGS__));
#define DRIVER_VOID(name, body) hipError_t body(ENTRY);
#define LAUNCH(name, body, ...) /* launch.h */
#define SAME(name, first, body, ...)
#include "driver.def"
#undef DRIVER

/* The operations that the shared part calls, one row each. */
#define OPERATION(name, result, parameters, cuda, hip) result hip parameters;
#include "../gpu/vendor_ops.def"
#undef OPERATION

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
        const hipError_t pending_ = hip_last_error();                                                                  \
        hip_restore_last_error(pending_, call);                                                                        \
    })

/* True if the call's handle is a hipFunction_t; else it is a host function that stands for a kernel. */
bool hip_launches_function(enum hook hook);

/* ---- Calls that the runtime makes itself (entry.c) ---- */

/* While it serves a call of the program, the runtime calls its own entry points: by name through the dynamic linker, and
 * through its dispatch table, where our hooks are, too. Only the program's call is decided and counted. */

/* Is this thread in a call that one of our hooks has passed to the runtime? frame: of the thunk. A siglongjmp out of that
 * call leaves the mark of a frame behind that is not above ours. */
static inline bool hip_is_inside(uintptr_t frame) {
    return this_thread.inside && frame < this_thread.inside;
}
/* Marks that. Returns what the caller puts back into this_thread.inside. */
static inline uintptr_t hip_enter(uintptr_t frame) {
    const uintptr_t before = this_thread.inside;
    this_thread.inside = frame;
    return before;
}

/* Return the function to which a call is passed straight through, or NULL if the call is the program's.
 * By name the caller tells, also in a thread of the runtime's own. It is this library if the runtime has jumped from one
 * entry point to the other. By the table the caller does not tell: a profiler may have been called in between. */
void *hip_passes_by_name(ENTRY);
void *hip_passes(ENTRY, uintptr_t frame);

#pragma GCC visibility pop
