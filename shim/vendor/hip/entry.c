/* Thunks. Every row of driver.def becomes four functions around one body: the exported symbol, those that dlsym and
 * hipGetProcAddress return, and the one in the runtime's own dispatch table, if the table has the entry. Once it is
 * there, the other three only record the caller. (C++ names have no entry in the table. Whether their functions call
 * through it is up to the runtime; once there is a table, what they reach is part of their launch: launch.c.)
 */
#include "../../core/core.h"
#include "../common/thread.h"
#include "hip.h"

#include "launch_portable.h"

#define SITE ((uintptr_t)__builtin_return_address(0))
#define USED static __attribute__((used)) /* by the assembler below */

static hipError_t not_initialized(void) {
    return VENDOR_NOT_INITIALIZED;
}

struct hip_target hip_target(uint32_t thunk, uintptr_t site) {
    const enum route route = (enum route)(thunk >> 16);
    const enum hook hook = (enum hook)(thunk & UINT16_MAX);
    struct hip_target target = {NULL, 0};
    if (route == ROUTE_SYMBOL && __builtin_expect(calls_other_runtime(site), 0)) {
        target.function = other_runtime_function(hook, site);
        if (!target.function)
            target.function = (void *)not_initialized;
    } else if (__builtin_expect(real_known(hook, ROUTE_TABLE) != NULL, 0)) {
        target.function = real_function(route, hook, site);
        target.noted = target.function && !this_thread.from;
        if (target.noted)
            this_thread.from = site;
    }
    return target;
}

#define DRIVER_LAUNCH LAUNCH_THUNKS
#define DRIVER THUNKS
#define DRIVER_VOID THUNKS_VOID
#include "driver.def"
#undef DRIVER

/* Offsets of the thunks, as in cuda/entry.c. */
extern const int32_t hip_entry_offsets[][LISTED] __attribute__((visibility("hidden")));
#define DISTANCE(thunk) DISTANCE_(thunk)
#define DISTANCE_(thunk) ".long " #thunk " - hip_entry_offsets\n"
__asm__(".pushsection .rodata\n.balign 4\n.globl hip_entry_offsets\n.hidden hip_entry_offsets\nhip_entry_offsets:\n"
#define DRIVER(name, body, parameters, ...) LIST(DISTANCE(name))
#define DRIVER_LAUNCH(name, body, parameters, ...) DISTANCE(SYMBOL(name))
#include "driver.def"
#undef DRIVER
#define DRIVER(name, body, parameters, ...) LIST(DISTANCE(dlsym_##name))
#define DRIVER_LAUNCH(name, body, parameters, ...) DISTANCE(dlsym_##name)
#include "driver.def"
#undef DRIVER
#define DRIVER(name, body, parameters, ...) LIST(DISTANCE(proc_##name))
#define DRIVER_LAUNCH(name, body, parameters, ...) DISTANCE(proc_##name)
#include "driver.def"
#undef DRIVER
#define DRIVER(name, body, parameters, ...) LIST(DISTANCE(table_##name))
#define DRIVER_LAUNCH(name, body, parameters, ...) DISTANCE(table_##name)
#include "driver.def"
#undef DRIVER
        ".popsection");

void *hip_thunk(enum route route, enum hook hook) {
    const int row = route == ROUTE_TABLE ? 3 : (int)route, at = (int)hook - HOOK_CUDA_COUNT;
    return at < LISTED ? (void *)((uintptr_t)hip_entry_offsets + (uintptr_t)(intptr_t)hip_entry_offsets[row][at])
                       : UNLISTED(row, at - LISTED);
}
