/* Thunks. Every row of driver.def becomes three functions around one body: the exported symbol, the function that dlsym
 * returns, and the one that cuGetProcAddress returns. So launches are counted by route, and each route calls its own
 * real function. On x86-64 they are in assembler (thunks_x86_64.S, launch_x86_64.S).
 */
#include "launch_portable.h"

#define SITE ((uintptr_t)__builtin_return_address(0))
#define USED static __attribute__((used)) /* by the assembler below */

#define DRIVER_LAUNCH LAUNCH_THUNKS
#define DRIVER THUNKS
#define DRIVER_VOID THUNKS_VOID
#include "driver.def"
#undef DRIVER

/* Offsets of the thunks. Addresses would need a relocation each at the start of every process. */
extern const int32_t entry_offsets[][LISTED] __attribute__((visibility("hidden")));
#define DISTANCE(thunk) DISTANCE_(thunk)
#define DISTANCE_(thunk) ".long " #thunk " - entry_offsets\n"
__asm__(".pushsection .rodata\n.balign 4\n.globl entry_offsets\n.hidden entry_offsets\nentry_offsets:\n"
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
        ".popsection");

void *cuda_thunk(enum overlap_route route, enum hook hook) {
    return (int)hook < LISTED ? (void *)((uintptr_t)entry_offsets + (uintptr_t)(intptr_t)entry_offsets[route][hook])
                              : UNLISTED(route, (int)hook - LISTED);
}
