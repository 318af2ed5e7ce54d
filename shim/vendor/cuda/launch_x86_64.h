/* The thunks of cuLaunchKernel and cuLaunchKernelEx are in launch_x86_64.S; this file holds what it assumes. */
#pragma once

#include "../../core/core.h"
#include "../common/hot_x86_64.h"
#include "launch.h"

/* thunks_x86_64.S */
#define THUNKS(name, body, parameters, ...)
#define THUNKS_VOID(name, body)

/* The C form of the whole path handles what the assembler does not. The stubs of thunks_x86_64.S lead to it: one
 * body for all rows that share it. */
#define HIDDEN __attribute__((visibility("hidden")))
#define LAUNCH_THUNKS(name, body, parameters, ...) SLOW_##name(body, parameters, __VA_ARGS__)
#define SLOW_BODY(name, body, parameters, ...)                                                                         \
    HIDDEN CUresult name(ENTRY, PARAMETERS_OF parameters);                                                             \
    __attribute__((cold, noinline)) CUresult name(ENTRY, PARAMETERS_OF parameters) {                                   \
        return body(route, hook, site, __VA_ARGS__);                                                                   \
    }
#define SLOW_cuLaunchKernel(body, ...) SLOW_BODY(slow_launch_body, launch_body_miss, __VA_ARGS__)
#define SLOW_cuLaunchKernelEx(body, ...) SLOW_BODY(slow_launch_ex_body, launch_ex_body, __VA_ARGS__)
#define SLOW_cuLaunchKernel_ptsz(...) /* the same body */
#define SLOW_cuLaunchKernelEx_ptsz(...)

/* Entered if the assembler has found a word. For cuLaunchKernel it passes the word in the upper halves of the two
 * stack arguments that are only 32 bits wide, and row and route in bits that the word does not use. Jumped to, so
 * SITE is still the program's return address. */
HIDDEN CUresult launch_from_hot(CUfunction, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint64_t, uint64_t,
                                CUstream, void **, void **);
CUresult launch_from_hot(CUfunction function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
                         uint32_t block_y, uint64_t block_z_low, uint64_t shared_high, CUstream stream,
                         void **launch_parameters, void **extra) {
    const uint64_t word = block_z_low >> 32 | (shared_high & ~(uint64_t)UINT32_MAX);
    const uint32_t row_and_route = word >> OVERLAP_WORD_UNUSED_SHIFT & 15;
    return launch_given_word((enum overlap_route)(row_and_route & 3), (enum hook)(row_and_route >> 2),
                             (uintptr_t)__builtin_return_address(0), function, grid_x, grid_y, grid_z, block_x, block_y,
                             (uint32_t)block_z_low, (uint32_t)shared_high, stream, launch_parameters, extra, 0,
                             word & ~((uint64_t)15 << OVERLAP_WORD_UNUSED_SHIFT));
}
_Static_assert(OVERLAP_WORD_UNUSED_SHIFT == 43 && HOOK_cuLaunchKernelEx_ptsz == 3 &&
                   LAUNCH_cuLaunchKernelEx_ptsz == 3 &&
                   (int)HOOK_cuLaunchKernel_ptsz == (int)LAUNCH_cuLaunchKernel_ptsz,
               "row and route");

/* The same for cuLaunchKernelEx, which leaves a register for the thunk. */
HIDDEN CUresult launch_ex_from_hot(const CUlaunchConfig *, CUfunction, void **, void **, uint64_t, uint32_t);
CUresult launch_ex_from_hot(const CUlaunchConfig *config, CUfunction function, void **launch_parameters, void **extra,
                            uint64_t word, uint32_t thunk) {
    return launch_ex_given_word((enum overlap_route)(thunk >> 16), (enum hook)(thunk & UINT16_MAX),
                                (uintptr_t)__builtin_return_address(0), config, function, launch_parameters, extra, 0,
                                word);
}

_Static_assert(offsetof(CUlaunchConfig, blockDimX) == 12 && offsetof(CUlaunchConfig, sharedMemBytes) == 24 &&
                   offsetof(CUlaunchConfig, attrs) == 40 && offsetof(CUlaunchConfig, numAttrs) == 48,
               "configuration");

/* Thunks of other calls have a fixed size and are contiguous, so only those of launches are listed. The list names
 * the exported ones by a symbol that another library cannot interpose. */
enum { LISTED = HOOK_cuLaunchKernelEx_ptsz + 1 };
#define SYMBOL(name) symbol_##name
#define LIST(line)
#define UNLISTED(row, at)                                                                                              \
    (void *)(uintptr_t)(cuda_thunks + (ptrdiff_t)CUDA_THUNKS * ((at) + 1) - EXPORTED_THUNK -                           \
                        (ptrdiff_t)OTHER_THUNK * (int)(row))
