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

/* Where the thunks are, as distances: addresses would have to be filled in by the loader at the start of every process. On
 * x86-64 only those of launches, which come first: all others have one size there, and follow each other. */
#ifdef __x86_64__
enum { LISTED = HOOK_cuLaunchKernelEx_ptsz + 1 };
#define DISTANCES(of, way)
#define DISTANCES_OF_LAUNCHES(of, way) ".long " #way "_" #of " - entry_offsets\n"
#else
enum { LISTED = HOOK_CUDA_COUNT };
#define DISTANCES(of, way) ".long " #way "_" #of " - entry_offsets\n"
#define DISTANCES_OF_LAUNCHES DISTANCES
#endif
extern const int32_t entry_offsets[][LISTED] __attribute__((visibility("hidden")));
__asm__(".pushsection .rodata\n.balign 4\n.globl entry_offsets\n.hidden entry_offsets\nentry_offsets:\n"
#define DRIVER(name, body, parameters, ...) DISTANCES(name, dlsym)
#define DRIVER_LAUNCH(name, body, parameters, ...) DISTANCES_OF_LAUNCHES(name, dlsym)
#include "driver.def"
#undef DRIVER
#define DRIVER(name, body, parameters, ...) DISTANCES(name, proc)
#define DRIVER_LAUNCH(name, body, parameters, ...) DISTANCES_OF_LAUNCHES(name, proc)
#include "driver.def"
#undef DRIVER
        ".popsection");

void *cuda_thunk(enum overlap_way way, enum hook hook) {
#ifdef __x86_64__
    if ((int)hook >= LISTED)
        return (void *)(uintptr_t)(cuda_thunks + THUNK_SIZE * (CUDA_THUNKS * ((int)hook - LISTED) + (int)way));
#endif
    return (void *)((uintptr_t)entry_offsets + (uintptr_t)(intptr_t)entry_offsets[way - OVERLAP_WAY_dlsym][hook]);
}
