/* The doors. Every row of driver.def becomes three functions around one body: the exported symbol, the one that dlsym
 * gives out, and the one that cuGetProcAddress gives out. So launches can be counted by way, and each way calls what is
 * behind itself. On x86-64 they are in assembler (thunks_x86_64.S, launch_x86_64.S).
 */
#ifdef __x86_64__
#include "launch_x86_64.h"
#else
#include "launch_portable.h"
#endif

#define SITE ((uintptr_t)__builtin_return_address(0))
#define USED static __attribute__((used)) /* by the assembler below */

#define DRIVER_LAUNCH LAUNCH_THUNKS
#define DRIVER THUNKS
#define DRIVER_VOID THUNKS_VOID
#include "driver.def"
#undef DRIVER

/* Where the thunks are, as distances: addresses would have to be filled in by the loader at the start of every process. */
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

void *cuda_thunk(enum overlap_way way, enum hook hook) {
    return (int)hook < LISTED ? (void *)((uintptr_t)entry_offsets + (uintptr_t)(intptr_t)entry_offsets[way][hook])
                              : UNLISTED(way, (int)hook - LISTED);
}
