/* Streams whose priority is set after their creation, and those of green contexts. */
#include "../../core/core.h"
#include "../../core/sync_access.h"
#include "../common/comm_streams.h"
#include "../common/critical_streams.h"
#include "../common/raised.h"
#include "../common/vendor_ops.h"
#include "../common/windows.h"
#include "cuda.h"

uint32_t stream_legacy_changed;

static bool set_priority(CUstream stream, int priority) {
    type_cuStreamSetAttribute *set = real_own(HOOK_cuStreamSetAttribute);
    CUstreamAttrValue value = {{0}};
    value.priority = priority;
    const int mode = cuda_relax(); /* another stream may be capturing */
    const bool done = set && set(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) == CUDA_SUCCESS;
    cuda_restore(mode);
    return done;
}

enum stream_raising cuda_stream_raise(CUstream stream, int priority) {
    int now = 0;
    if (cuda_captures(stream, STREAM_OF_CONTEXT))
        return STREAM_LATER;
    if (!driver.cuStreamGetPriority || driver.cuStreamGetPriority(stream, &now) != CUDA_SUCCESS)
        return STREAM_FIXED;
    if (now != 0) /* 0: the least, and the default */
        return STREAM_PROGRAMS;
    if (!set_priority(stream, priority))
        return STREAM_FIXED;
    graph_raises(priority); /* nodes captured from it get the stream's priority */
    return STREAM_RAISED;
}

bool cuda_stream_lower(CUstream stream) {
    return !cuda_captures(stream, STREAM_OF_CONTEXT) && set_priority(stream, 0);
}

/* ---- Calls ---- */

CUresult stream_create_body(ENTRY, CUstream *stream, uint32_t flags) {
    BEHIND((CUstream * stream, uint32_t flags));
    type_cuStreamCreateWithPriority *create = real_own(HOOK_cuStreamCreateWithPriority);
    int raised = 0;
    if (create && stream_wanted(VENDOR_CUDA, site, &raised) && raised != 0 &&
        create(stream, flags, raised) == CUDA_SUCCESS) {
        stream_note_raised(*stream);
        return stream_created(VENDOR_CUDA, site, stream, CUDA_SUCCESS);
    }
    return stream_created(VENDOR_CUDA, site, stream, real(stream, flags));
}

CUresult stream_create_green_body(ENTRY, CUstream *stream, CUgreenCtx context, uint32_t flags, int priority) {
    REAL_OR_RETURN(cuGreenCtxStreamCreate);
    int raised = priority;
    stream_prioritised(site, priority);
    if (stream_wanted(VENDOR_CUDA, site, &raised) && raised != priority &&
        real(stream, context, flags, raised) == CUDA_SUCCESS) {
        stream_note_raised(*stream);
        return stream_created(VENDOR_CUDA, site, stream, CUDA_SUCCESS);
    }
    return stream_created(VENDOR_CUDA, site, stream, real(stream, context, flags, priority));
}

/* The program sets the stream's priority. */
static void priority_changes(CUstream stream) {
    struct overlap_sync_model *const model = windows();
    struct overlap_stream *const tracked =
        model && stream ? overlap_sync_find(model, (uint64_t)(uintptr_t)stream) : NULL;
    if (tracked)
        __atomic_store_n(&tracked->part.priority, STREAM_PRIORITY_CHANGES, __ATOMIC_RELAXED);
}

CUresult stream_set_attribute_body(ENTRY, CUstream stream, int attribute, const CUstreamAttrValue *value) {
    REAL_OR_RETURN(cuStreamSetAttribute);
    CUresult result;
    if (attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY && (uintptr_t)stream <= CU_STREAM_LEGACY)
        __atomic_store_n(&stream_legacy_changed, 1, __ATOMIC_RELAXED);
    result = real(stream, attribute, value);
    if (result == CUDA_SUCCESS && attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
        priority_changes(stream);
        stream_is_programs(stream, hook_default(hook));
        critical_program_set_priority(stream);
        stream_prioritised(site, value->priority);
    }
    return result;
}

/* ---- Reads of a stream that we have raised: return the priority that the program left it ---- */

CUresult stream_get_priority_body(ENTRY, CUstream stream, int *priority) {
    REAL_OR_RETURN(cuStreamGetPriority);
    const CUresult result = real(stream, priority);
    if (result == CUDA_SUCCESS && critical_find(stream))
        *priority = 0;
    return result;
}

CUresult stream_get_attribute_body(ENTRY, CUstream stream, int attribute, CUlaunchAttributeValue *shown) {
    REAL_OR_RETURN(cuStreamGetAttribute);
    const CUresult result = real(stream, attribute, shown);
    if (result == CUDA_SUCCESS && attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY && critical_find(stream))
        shown->priority = 0;
    return result;
}

/* Copy what the program has set. A capturing stream is not changed, so `to` may get our priority. */
CUresult stream_copy_attributes_body(ENTRY, CUstream to, CUstream from) {
    REAL_OR_RETURN(cuStreamCopyAttributes);
    const struct critical_stream *const raised = to == from ? NULL : critical_find(from);
    const int priority = raised ? OVERLAP_LOAD(raised->priority) : 0;
    const bool lowered = raised && cuda_stream_lower(from);
    const CUresult result = real(to, from);
    if (lowered)
        set_priority(from, priority);
    if (result == CUDA_SUCCESS && to != from)
        priority_changes(to);
    if (result == CUDA_SUCCESS && to != from && critical_find(to))
        critical_program_set_priority(to);
    if (result == CUDA_SUCCESS && raised && !lowered && !cuda_stream_lower(to))
        critical_priority_copied(to, hook_default(hook), raised);
    return result;
}
