/* Streams of NVIDIA: creation without a priority, and attributes. The rest is in ../gpu/stream_calls.c. */
#include "../core/core.h"
#include "../gpu/launch.h"
#include "../gpu/streams.h"
#include "../gpu/calls.h"
#include "cuda.h"
#include "../gpu/raise.h"

CUresult cuda_stream_set_priority(CUstream stream, int priority) {
    type_cuStreamSetAttribute *set = real_export(HOOK_cuStreamSetAttribute);
    CUstreamAttrValue value = {{0}};
    value.priority = priority;
    const int mode = cuda_relax(); /* another stream may be capturing */
    const CUresult result = set ? set(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) : CUDA_ERROR_NOT_SUPPORTED;
    cuda_restore(mode);
    return result;
}

CUresult stream_create_body(ENTRY, CUstream *stream, uint32_t flags) {
    REAL_OR_RETURN(cuStreamCreate);
    type_cuStreamCreateWithPriority *create = real_export(HOOK_cuStreamCreateWithPriority);
    bool raised;
    const CUresult result = stream_create_at(VENDOR_CUDA, site, stream, flags, 0, create, &raised);
    return raised ? result : stream_created(VENDOR_CUDA, site, stream, flags, 0, real(stream, flags));
}

/* The stream has the program's own priority from now on. `touched` stays: another thread may be between the driver's
 * answer and ours. */
static void is_programs(struct stream *stream, int priority) {
    __atomic_store_n(&stream->own, priority, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->raised, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->wanted, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->created, 0, __ATOMIC_RELAXED);
    invalidate_decisions();
    if (priority != 0 &&
        OVERLAP_RELAXED(stream->carries)) /* it has carried launches: who sets priorities has decided */
        stream_carries(stream, false, false);
}

CUresult stream_set_attribute_body(ENTRY, CUstream stream, int attribute, const CUstreamAttrValue *value) {
    REAL_OR_RETURN(cuStreamSetAttribute);
    if (attribute != CU_LAUNCH_ATTRIBUTE_PRIORITY || !value || !streams_tracked())
        return real(stream, attribute, value);
    struct stream *const known = stream_get(stream, hook_default(hook));
    const bool held = known != &no_stream && stream_hold(known);
    const CUresult result = real(stream, attribute, value);
    if (held && result == CUDA_SUCCESS)
        is_programs(known, stream_priority_in_range(VENDOR_CUDA, known->context, value->priority));
    if (held)
        stream_release(known);
    return result;
}

/* As stream_get_priority_body(). */
CUresult stream_get_attribute_body(ENTRY, CUstream stream, int attribute, CUlaunchAttributeValue *shown) {
    REAL_OR_RETURN(cuStreamGetAttribute);
    const CUresult result = real(stream, attribute, shown);
    if (result == CUDA_SUCCESS && shown && attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY && streams_tracked()) {
        const struct stream *const known = stream_find(stream, hook_default(hook));
        if (__atomic_load_n(&known->touched, __ATOMIC_SEQ_CST))
            shown->priority = OVERLAP_RELAXED(known->own);
    }
    return result;
}

/* The copy of a raised stream gets the program's priority at once. */
CUresult stream_copy_attributes_body(ENTRY, CUstream to, CUstream from) {
    REAL_OR_RETURN(cuStreamCopyAttributes);
    if (!streams_tracked() || to == from)
        return real(to, from);
    const enum default_stream null_stream = hook_default(hook);
    struct stream *const source = stream_find(from, null_stream), *const target = stream_find(to, null_stream);
    const bool target_first = stream_number(target) < stream_number(source); /* two threads may copy there and back */
    bool held = target_first && stream_hold(target);
    const bool stays = stream_hold(source);
    held = held || (!target_first && stream_hold(target));
    /* The default stream of a thread has another handle in calls of ours; and a question about one may end a capture. */
    const bool is_default = (uintptr_t)to <= STREAM_PER_THREAD;
    const bool ours = OVERLAP_RELAXED(source->raised) && OVERLAP_RELAXED(source->touched); /* not under `observe` */
    if (held && !is_default && ours) /* what threads read meanwhile is not the driver's */
        __atomic_store_n(&target->touched, 1, __ATOMIC_SEQ_CST);
    const CUresult result = real(to, from);
    int own = OVERLAP_RELAXED(source->own);
    const CUstream named = !to && default_is_thread(null_stream) ? (CUstream)STREAM_PER_THREAD : to;
    const bool copied = result == CUDA_SUCCESS && ours ? cuda_stream_set_priority(named, own) == CUDA_SUCCESS
                                                       : !is_default && driver.cuStreamGetPriority &&
                                                             driver.cuStreamGetPriority(to, &own) == CUDA_SUCCESS;
    if (held && result == CUDA_SUCCESS && copied && !is_default)
        is_programs(target, own);
    if (held)
        stream_release(target);
    if (stays)
        stream_release(source);
    return result;
}
