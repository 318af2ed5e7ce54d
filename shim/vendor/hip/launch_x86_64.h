/* The thunks of launch calls are in launch_x86_64.S. */
#pragma once

#include "../../core/core.h"
#include "../common/hot_x86_64.h"
#include "launch.h"

/* thunks_x86_64.S */
#define THUNKS(name, body, parameters, ...)
#define THUNKS_VOID(name, body)

/* C handles what the assembler does not; the stubs of thunks_x86_64.S lead to it. */
#define LAUNCH_THUNKS(name, body, parameters, ...) SLOW_##name(body, parameters, __VA_ARGS__)
#define SLOW_hipLaunchKernel(body, ...) SLOW_BODY(slow_hip_host_body, hip_host_body_miss, __VA_ARGS__)
#define SLOW_hipLaunchKernel_spt(...) /* the same body */
#define SLOW_hipModuleLaunchKernel(body, ...) SLOW_BODY(slow_hip_module_body, hip_module_body_miss, __VA_ARGS__)
#define SLOW_hipExtLaunchKernel(body, ...) SLOW_BODY(slow_hip_ext_body, hip_ext_body_miss, __VA_ARGS__)
#define SLOW_hipExtModuleLaunchKernel(body, ...) SLOW_BODY(slow_hip_items_body, hip_items_body_miss, __VA_ARGS__)
#define SLOW__Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j(...)
#define SLOW_BODY(name, body, parameters, ...)                                                                         \
    HIDDEN hipError_t name(ENTRY, PARAMETERS_OF parameters);                                                           \
    __attribute__((cold, noinline)) hipError_t name(ENTRY, PARAMETERS_OF parameters) {                                 \
        return body(route, hook, site, __VA_ARGS__);                                                                   \
    }
#define HIDDEN __attribute__((visibility("hidden")))

/* Thunks of other calls have a fixed size and are contiguous, so only those of launches are listed. The list names
 * the exported ones by a symbol that another library cannot interpose. */
enum {
    LISTED = HOOK__Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j + 1 -
    HOOK_CUDA_COUNT
};
#define SYMBOL(name) symbol_##name
#define LIST(line)
#define UNLISTED(row, at)                                                                                              \
    (void *)(uintptr_t)(hip_thunks + (ptrdiff_t)HIP_THUNKS * (at) +                                                    \
                        ((row) == 3 ? 0 : HIP_THUNKS - EXPORTED_THUNK - (ptrdiff_t)OTHER_THUNK * (row)))
