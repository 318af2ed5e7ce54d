/* Streams whose priority is set after they were made, and those of green contexts. */
#include "../common/windows.h"
#include "cuda.h"

uint32_t stream_legacy_changed;

void stream_carries(CUstream stream, enum default_stream whose) {
    type_cuStreamSetAttribute *set =
        real_own(default_is_thread(whose) ? HOOK_cuStreamSetAttribute_ptsz : HOOK_cuStreamSetAttribute);
    CUstreamAttrValue value = {{0}};
    uint32_t *raised = set ? stream_try(stream, whose) : NULL;
    const struct overlap_policy *policy = raised ? device_policy(device_current(VENDOR_CUDA)) : NULL;
    if (!policy ||
        !device_priority(VENDOR_CUDA, policy->stream_priority, policy->stream_priority_value, &value.priority))
        return;
    if (stream_key(stream, whose) == CU_STREAM_LEGACY)
        __atomic_store_n(&stream_legacy_changed, 1, __ATOMIC_RELAXED);
    if (set(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) == CUDA_SUCCESS) {
        graph_raises(value.priority); /* captured nodes have the stream's */
        __atomic_store_n(raised, 1, __ATOMIC_RELEASE);
        launch_count(OVERLAP_COUNTER_STREAMS_RAISED);
    }
}

/* ---- Calls ---- */

CUresult stream_create_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream *stream, uint32_t flags) {
    BEHIND((CUstream * stream, uint32_t flags));
    type_cuStreamCreateWithPriority *create = real_own(HOOK_cuStreamCreateWithPriority);
    int raised = 0;
    if (create && stream_wanted(VENDOR_CUDA, site, &raised) && raised != 0 &&
        create(stream, flags, raised) == CUDA_SUCCESS) {
        stream_note_raised(*stream);
        return stream_created(VENDOR_CUDA, stream, CUDA_SUCCESS);
    }
    return stream_created(VENDOR_CUDA, stream, real(stream, flags));
}

CUresult stream_create_green_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream *stream,
                                  CUgreenCtx context, uint32_t flags, int priority) {
    REAL_OR_RETURN(cuGreenCtxStreamCreate);
    int raised = priority;
    stream_prioritised(site, priority);
    if (stream_wanted(VENDOR_CUDA, site, &raised) && raised != priority &&
        real(stream, context, flags, raised) == CUDA_SUCCESS) {
        stream_note_raised(*stream);
        return stream_created(VENDOR_CUDA, stream, CUDA_SUCCESS);
    }
    return stream_created(VENDOR_CUDA, stream, real(stream, context, flags, priority));
}

CUresult stream_set_attribute_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream stream, int attribute,
                                   const CUstreamAttrValue *value) {
    REAL_OR_RETURN(cuStreamSetAttribute);
    CUresult result;
    if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY && (uintptr_t)stream <= CU_STREAM_LEGACY)
        __atomic_store_n(&stream_legacy_changed, 1, __ATOMIC_RELAXED);
    result = real(stream, attribute, value);
    if (result == CUDA_SUCCESS && attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
        stream_is_programs(stream, hook_default(hook));
        stream_prioritised(site, value->priority);
    }
    return result;
}
