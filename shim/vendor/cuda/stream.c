/* Streams that communication libraries create for themselves, raised when the policy says so, as the published method
 * does. No collective runs on those of NCCL (they carry copies and events), so this alone raises no communication
 * launch. */
#include "cuda.h"

/* The priority for a stream that this caller creates; false: leave it. */
static bool wanted(uintptr_t site, int *priority) {
    const struct overlap_settings *settings = overlap_armed();
    const struct overlap_policy *policy = settings ? device_policy(device_current()) : NULL;
    if (!policy || policy->stream_priority == OVERLAP_PRIORITY_INHERIT)
        return false;
    char library[256];
    library_of(site, library, sizeof library);
    struct overlap_view view = overlap_table_view(settings->table);
    return overlap_match_any(&view, policy->stream_creators, library) &&
           device_priority(policy->stream_priority, policy->stream_priority_value, priority);
}

CUresult stream_create(enum overlap_way way, enum hook hook, uintptr_t site, CUstream *stream, uint32_t flags,
                       int priority, bool with_priority) {
    void *real = real_function(way, hook, site);
    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    type_cuStreamCreateWithPriority *create = real_own(HOOK_cuStreamCreateWithPriority);
    int raised = priority;
    if (create && wanted(site, &raised) && raised != priority && create(stream, flags, raised) == CUDA_SUCCESS) {
        launch_count(OVERLAP_COUNTER_STREAMS_RAISED);
        return CUDA_SUCCESS;
    }
    return with_priority ? ((type_cuStreamCreateWithPriority *)real)(stream, flags, priority)
                         : ((type_cuStreamCreate *)real)(stream, flags);
}
