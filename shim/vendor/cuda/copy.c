/* Bodies of copy.def. */
#include "cuda.h"

#include "../../core/core.h"
#include "../common/copy_calls.h"

#ifdef __x86_64__
extern const int32_t cuda_bodies[] __attribute__((visibility("hidden"))); /* thunks_x86_64.S */
void *cuda_copy_enter(struct copy_call *call) __attribute__((visibility("hidden")));
vendor_result cuda_copy_leave(struct copy_call *call, vendor_result result) __attribute__((visibility("hidden")));

void *cuda_copy_enter(struct copy_call *call) {
    const enum hook hook = (enum hook)(call->thunk & UINT16_MAX);
    return copy_enter(call, (enum overlap_route)(call->thunk >> 16), hook, call->site, cuda_bodies[hook]);
}

vendor_result cuda_copy_leave(struct copy_call *call, vendor_result result) {
    copy_after(&call->copy, VENDOR_CUDA, result);
    return result;
}
#else
#include "copy.def"
#endif
