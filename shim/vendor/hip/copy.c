/* Bodies of copy.def. */
#include "hip.h"

#include "../../core/core.h"
#include "../common/copy_calls.h"
#include "../common/this_thread.h"

#ifdef __x86_64__
extern const int32_t hip_table[] __attribute__((visibility("hidden"))); /* thunks_x86_64.S */
void *hip_copy_enter(struct copy_call *call) __attribute__((visibility("hidden")));
hipError_t hip_copy_leave(struct copy_call *call, hipError_t result) __attribute__((visibility("hidden")));

void *hip_copy_enter(struct copy_call *call) {
    const enum overlap_route route = (enum overlap_route)(call->thunk >> 16);
    const enum hook hook = (enum hook)(call->thunk & UINT16_MAX);
    uintptr_t site = call->site;
    if (route == OVERLAP_ROUTE_dispatch_table) {
        site = hip_table_site(site);
    } else {
        const struct hip_target target = hip_target((uint32_t)call->thunk, site);
        call->copy.model = NULL;
        call->noted = target.noted;
        if (target.function)
            return target.function;
    }
    return copy_enter(call, route, hook, site, hip_table[hook - HOOK_CUDA_COUNT]);
}

hipError_t hip_copy_leave(struct copy_call *call, hipError_t result) {
    if (call->noted) /* the call may not have passed through the table */
        this_thread.from = 0;
    copy_after(&call->copy, VENDOR_HIP, result);
    return result;
}
#else
#include "copy.def"
#endif
