/* Streams of communication. Those that communication libraries create for themselves are raised when the policy says
 * so, as the published method does: no collective runs on those of NCCL (they carry copies and events), so this alone
 * raises no communication launch. And, as another option, streams on which communication was launched. */
#include "cuda.h"

/* The priority for a stream that this caller creates; false: leave it. */
static bool wanted(uintptr_t site, int *priority) {
    const struct overlap_settings *settings = overlap_armed();
    const struct overlap_policy *policy = settings ? device_policy(device_current()) : NULL;
    if (!policy || policy->stream_priority == OVERLAP_PRIORITY_INHERIT || policy->stream_creators.count == 0)
        return false;
    char library[256];
    library_of(outer_site(site), library, sizeof library);
    struct overlap_view view = overlap_table_view(settings->table);
    return overlap_match_any(&view, policy->stream_creators, library) &&
           device_priority(policy->stream_priority, policy->stream_priority_value, priority);
}

CUresult stream_create_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream *stream, uint32_t flags) {
    REAL_OR_RETURN(cuStreamCreate);
    type_cuStreamCreateWithPriority *create = real_own(HOOK_cuStreamCreateWithPriority);
    int raised = 0;
    if (create && wanted(site, &raised) && raised != 0 && create(stream, flags, raised) == CUDA_SUCCESS) {
        launch_count(OVERLAP_COUNTER_STREAMS_RAISED);
        return CUDA_SUCCESS;
    }
    return real(stream, flags);
}

CUresult stream_create_priority_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream *stream,
                                     uint32_t flags, int priority) {
    REAL_OR_RETURN(cuStreamCreateWithPriority);
    int raised = priority;
    if (wanted(site, &raised) && raised != priority && real(stream, flags, raised) == CUDA_SUCCESS) {
        launch_count(OVERLAP_COUNTER_STREAMS_RAISED);
        return CUDA_SUCCESS;
    }
    return real(stream, flags, priority);
}

CUresult stream_create_green_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream *stream,
                                  CUgreenCtx context, uint32_t flags, int priority) {
    REAL_OR_RETURN(cuGreenCtxStreamCreate);
    int raised = priority;
    if (wanted(site, &raised) && raised != priority && real(stream, context, flags, raised) == CUDA_SUCCESS) {
        launch_count(OVERLAP_COUNTER_STREAMS_RAISED);
        return CUDA_SUCCESS;
    }
    return real(stream, context, flags, priority);
}

/* ---- Streams that turn out to carry communication ---- */

/* Tried once each, whatever the driver says. More than these stay as they are. */
enum { TRIED = 64 };
uint32_t stream_legacy_changed;
static uint64_t tried[TRIED];

void stream_carries(CUstream stream, bool per_thread) {
    type_cuStreamSetAttribute *set = real_own(per_thread ? HOOK_cuStreamSetAttribute_ptsz : HOOK_cuStreamSetAttribute);
    CUstreamAttrValue value = {{0}};
    if (!set)
        return;
    for (int i = 0; i < TRIED; i++) {
        uint64_t known = __atomic_load_n(&tried[i], __ATOMIC_RELAXED), mine = (uint64_t)(uintptr_t)stream + 1;
        if (known == mine)
            return;
        if (known || !__atomic_compare_exchange_n(&tried[i], &known, mine, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
        const struct overlap_policy *policy = device_policy(device_current());
        if ((uintptr_t)stream <= CU_STREAM_LEGACY)
            __atomic_store_n(&stream_legacy_changed, 1, __ATOMIC_RELAXED);
        if (policy && device_priority(policy->stream_priority, policy->stream_priority_value, &value.priority) &&
            set(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) == CUDA_SUCCESS)
            launch_count(OVERLAP_COUNTER_STREAMS_RAISED);
        return;
    }
}

static void forget(CUstream stream) {
    for (int i = 0; i < TRIED; i++) {
        uint64_t mine = (uint64_t)(uintptr_t)stream + 1;
        __atomic_compare_exchange_n(&tried[i], &mine, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

/* Its address may be another stream's at once. */
CUresult stream_destroy_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream stream) {
    REAL_OR_RETURN(cuStreamDestroy);
    forget(stream);
    return real(stream);
}

CUresult stream_set_attribute_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream stream, int attribute,
                                   const CUstreamAttrValue *value) {
    REAL_OR_RETURN(cuStreamSetAttribute);
    if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY && (uintptr_t)stream <= CU_STREAM_LEGACY)
        __atomic_store_n(&stream_legacy_changed, 1, __ATOMIC_RELAXED);
    return real(stream, attribute, value);
}
