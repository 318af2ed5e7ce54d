/* Streams of communication. Those that communication libraries create for themselves are raised when the policy says
 * so, as the published method does: no collective runs on those of NCCL (they carry copies and events), so this alone
 * raises no communication launch. And, as another option, streams on which communication was launched. */
#include "windows.h"

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

/* ---- Streams that we have raised ---- */

uint32_t stream_legacy_changed;

uint64_t stream_key(CUstream stream, bool per_thread) {
    const uintptr_t value = (uintptr_t)stream;
    if (value == CU_STREAM_PER_THREAD || (value == 0 && per_thread))
        return (uint64_t)overlap_thread_id() << 8 | CU_STREAM_PER_THREAD;
    return value ? value : CU_STREAM_LEGACY;
}

/* Streams of which we have set the priority, or tried to, once each. More than these stay as they are. */
enum { TRIED = 64 };
static struct tried {
    uint64_t key;    /* 0: free */
    uint32_t raised; /* the driver has taken it */
} tried[TRIED];

static struct tried *tried_find(uint64_t key) {
    for (int i = 0; i < TRIED; i++)
        if (__atomic_load_n(&tried[i].key, __ATOMIC_ACQUIRE) == key)
            return &tried[i];
    return NULL;
}

/* A place for a stream that has none; NULL: there is no more. */
static struct tried *tried_new(uint64_t key) {
    for (int i = 0; i < TRIED; i++) {
        uint64_t none = 0;
        if (__atomic_compare_exchange_n(&tried[i].key, &none, key, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
            __atomic_store_n(&tried[i].raised, 0, __ATOMIC_RELEASE);
            return &tried[i];
        }
    }
    return NULL;
}

static void note_raised(CUstream stream) {
    struct tried *place = tried_new(stream_key(stream, false));
    if (place)
        __atomic_store_n(&place->raised, 1, __ATOMIC_RELEASE);
    launch_count(OVERLAP_COUNTER_STREAMS_RAISED);
}

bool stream_is_raised(CUstream stream, bool per_thread) {
    struct tried *place = tried_find(stream_key(stream, per_thread));
    return place && __atomic_load_n(&place->raised, __ATOMIC_ACQUIRE);
}

void stream_carries(CUstream stream, bool per_thread) {
    type_cuStreamSetAttribute *set = real_own(per_thread ? HOOK_cuStreamSetAttribute_ptsz : HOOK_cuStreamSetAttribute);
    const uint64_t key = stream_key(stream, per_thread);
    CUstreamAttrValue value = {{0}};
    struct tried *place = set && !tried_find(key) ? tried_new(key) : NULL;
    const struct overlap_policy *policy = place ? device_policy(device_current()) : NULL;
    if (!policy || !device_priority(policy->stream_priority, policy->stream_priority_value, &value.priority))
        return;
    if (key == CU_STREAM_LEGACY)
        __atomic_store_n(&stream_legacy_changed, 1, __ATOMIC_RELAXED);
    if (set(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) == CUDA_SUCCESS) {
        __atomic_store_n(&graph_may_be_raised, 1, __ATOMIC_RELAXED); /* captured nodes have the stream's */
        __atomic_store_n(&place->raised, 1, __ATOMIC_RELEASE);
        launch_count(OVERLAP_COUNTER_STREAMS_RAISED);
    }
}

static void forget(CUstream stream) {
    struct tried *place = tried_find(stream_key(stream, false));
    if (place)
        __atomic_store_n(&place->key, 0, __ATOMIC_RELEASE);
}

/* ---- Calls ---- */

static CUresult created(const CUstream *stream, uint32_t flags, CUresult result) {
    if (result == CUDA_SUCCESS && stream)
        window_stream_made(*stream, flags);
    return result;
}

CUresult stream_create_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream *stream, uint32_t flags) {
    REAL_OR_RETURN(cuStreamCreate);
    type_cuStreamCreateWithPriority *create = real_own(HOOK_cuStreamCreateWithPriority);
    int raised = 0;
    if (create && wanted(site, &raised) && raised != 0 && create(stream, flags, raised) == CUDA_SUCCESS) {
        note_raised(*stream);
        return created(stream, flags, CUDA_SUCCESS);
    }
    return created(stream, flags, real(stream, flags));
}

CUresult stream_create_priority_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream *stream,
                                     uint32_t flags, int priority) {
    REAL_OR_RETURN(cuStreamCreateWithPriority);
    int raised = priority;
    if (wanted(site, &raised) && raised != priority && real(stream, flags, raised) == CUDA_SUCCESS) {
        note_raised(*stream);
        return created(stream, flags, CUDA_SUCCESS);
    }
    return created(stream, flags, real(stream, flags, priority));
}

CUresult stream_create_green_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream *stream,
                                  CUgreenCtx context, uint32_t flags, int priority) {
    REAL_OR_RETURN(cuGreenCtxStreamCreate);
    int raised = priority;
    if (wanted(site, &raised) && raised != priority && real(stream, context, flags, raised) == CUDA_SUCCESS) {
        note_raised(*stream);
        return created(stream, flags, CUDA_SUCCESS);
    }
    return created(stream, flags, real(stream, context, flags, priority));
}

/* Its address may be another stream's at once. */
CUresult stream_destroy_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream stream) {
    REAL_OR_RETURN(cuStreamDestroy);
    struct overlap_order *order = windows();
    forget(stream);
    if (order && (uintptr_t)stream > CU_STREAM_PER_THREAD)
        overlap_order_stream_gone(order, (uint64_t)(uintptr_t)stream);
    return real(stream);
}

CUresult stream_set_attribute_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream stream, int attribute,
                                   const CUstreamAttrValue *value) {
    REAL_OR_RETURN(cuStreamSetAttribute);
    CUresult result;
    if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY && (uintptr_t)stream <= CU_STREAM_LEGACY)
        __atomic_store_n(&stream_legacy_changed, 1, __ATOMIC_RELAXED);
    result = real(stream, attribute, value);
    struct tried *place = result == CUDA_SUCCESS && attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY
                              ? tried_find(stream_key(stream, hook_is_per_thread(hook)))
                              : NULL;
    if (place) /* the program's now */
        __atomic_store_n(&place->raised, 0, __ATOMIC_RELEASE);
    return result;
}
