/* Make launches on NVIDIA: as asked, with another size, or at a priority. */
#include "../../core/core.h"
#include "../../core/sync_model.h"
#include "../common/capture.h"
#include "../common/comm_streams.h"
#include "../common/critical_streams.h"
#include "../common/launch_slow.h"
#include "../common/priority.h"
#include "../common/raised.h"
#include "../common/request.h"
#include "../common/windows.h"
#include "launch.h"

enum { ATTRIBUTES = 24 };

CUresult launch_cooperative_body(ENTRY, CUfunction function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                                 uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared, CUstream stream,
                                 void **parameters) {
    return launch_given_word(route, hook, site, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                             stream, parameters, NULL, OVERLAP_LAUNCH_COOPERATIVE, 0);
}

CUresult cuda_launch_with(struct request *request, uint32_t dynamic) {
    const CUlaunchConfig *c = &request->config;
    void *real = real_function(request->route, request->hook, request->site);
    if (!real)
        return CUDA_ERROR_NOT_INITIALIZED;
    switch (request->hook) {
    case HOOK_cuLaunchKernel:
    case HOOK_cuLaunchKernel_ptsz:
        return ((type_cuLaunchKernel *)real)(request->function, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX,
                                             c->blockDimY, c->blockDimZ, dynamic, c->hStream, request->parameters,
                                             request->extra);
    case HOOK_cuLaunchCooperativeKernel:
    case HOOK_cuLaunchCooperativeKernel_ptsz:
        return ((type_cuLaunchCooperativeKernel *)real)(request->function, c->gridDimX, c->gridDimY, c->gridDimZ,
                                                        c->blockDimX, c->blockDimY, c->blockDimZ, dynamic, c->hStream,
                                                        request->parameters);
    default: {
        /* Patch our own copy in place: copying it again right after it was written stalls the processor. */
        const uint32_t asked = c->sharedMemBytes;
        request->config.sharedMemBytes = dynamic;
        CUresult result = ((type_cuLaunchKernelEx *)real)(c, request->function, request->parameters, request->extra);
        request->config.sharedMemBytes = asked;
        return result;
    }
    }
}

static CUresult launch_as_asked(struct request *request) {
    return cuda_launch_with(request, request->config.sharedMemBytes);
}

/* The function that can launch at a priority; NULL: none. */
static inline type_cuLaunchKernelEx *raises_by(const struct request *request, enum default_stream null_stream) {
    if (request->hook == HOOK_cuLaunchKernelEx || request->hook == HOOK_cuLaunchKernelEx_ptsz)
        return real_function(request->route, request->hook, request->site);
    return real_export(default_is_thread(null_stream) ? HOOK_cuLaunchKernelEx_ptsz : HOOK_cuLaunchKernelEx);
}

/* Launch at a priority. False: the request cannot carry one. The program's attributes are copied because its array
 * may have no room behind them. */
static inline __attribute__((always_inline)) bool launch_at_priority(struct request *request, int priority,
                                                                     CUresult *result) {
    type_cuLaunchKernelEx *const real = raises_by(request, hook_default(request->hook));
    CUlaunchAttribute attributes[ATTRIBUTES], *const asked = request->config.attrs;
    const uint32_t asked_count = request->config.numAttrs;
    uint32_t count = 0;
    if (!real || asked_count > ATTRIBUTES - 2 || (asked_count && !asked))
        return false;
    for (uint32_t i = 0; i < asked_count; i++)
        if (asked[i].id != CU_LAUNCH_ATTRIBUTE_PRIORITY)
            attributes[count++] = asked[i];
    if (request->hook == HOOK_cuLaunchCooperativeKernel || request->hook == HOOK_cuLaunchCooperativeKernel_ptsz)
        attributes[count++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value.cooperative = 1};
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attributes[count].pad = 0;
    attributes[count++].value.priority = priority;
    request->config.attrs = attributes;
    request->config.numAttrs = count;
    *result = real(&request->config, request->function, request->parameters, request->extra);
    request->config.attrs = asked;
    request->config.numAttrs = asked_count;
    return true;
}

bool cuda_is_refusal(CUresult result) {
    return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES ||
           result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION ||
           result == CUDA_ERROR_INVALID_CLUSTER_SIZE; /* returned for a cluster that fits nowhere */
}

/* ---- Communication ---- */

/* The driver has refused our priority: launch as asked. */
__attribute__((cold, noinline)) static CUresult launch_without_priority(struct request *request) {
    CUresult result = launch_as_asked(request);
    launch_count(OVERLAP_COUNTER_REFUSED);
    if (result == CUDA_SUCCESS) /* the driver refused the attribute: stop setting it in this process */
        priority_refused();
    return result;
}

/* The priority that the program gives the launch by an attribute, else its stream's. */
static inline int priority_of(const struct request *request, int stream) {
    for (uint32_t i = 0; request->config.attrs && i < request->config.numAttrs; i++)
        if (request->config.attrs[i].id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
            stream = request->config.attrs[i].value.priority;
    return stream;
}

/* Under `auto`, a priority that the program sets ends it: this launch and all later ones keep the program's. */
static bool is_programs(const struct request *request, uint64_t word, int own, uint32_t *reason) {
    /* 0 is the least priority and the default. */
    if (!(word & OVERLAP_WORD_AUTO) || own >= 0 ||
        stream_is_raised(request->config.hStream, hook_default(request->hook)))
        return false;
    priority_program_sets();
    *reason = OVERLAP_REASON_program_sets_priority;
    return true;
}

/* Read the priority of the launch's stream; false: must not be queried, or unknown. While a blocking stream
 * captures, querying the legacy stream invalidates the capture (seen on driver 580). Querying whether the legacy
 * stream captures does not, and fails. */
__attribute__((noinline)) static bool query_priority(const struct request *request, int *priority) {
    const enum default_stream null_stream = hook_default(request->hook);
    const uintptr_t stream = (uintptr_t)request->config.hStream;
    CUresult (*ask)(CUstream, int *) =
        default_is_thread(null_stream) ? driver.cuStreamGetPriority_ptsz : driver.cuStreamGetPriority;
    int status;
    if (critical_find(request->config.hStream)) { /* raised by us; before that it had the least */
        *priority = 0;
        return true;
    }
    if (stream == CU_STREAM_LEGACY || (stream == 0 && !default_is_thread(null_stream))) {
        *priority = 0;
        if (!OVERLAP_RELAXED(stream_legacy_changed))
            return true;
        if (!driver.cuStreamIsCapturing || driver.cuStreamIsCapturing(request->config.hStream, &status) != CUDA_SUCCESS)
            return false;
    }
    return ask && ask(request->config.hStream, priority) == CUDA_SUCCESS;
}

/* The same, cached for a stream of the model (tracked; NULL: none). A stream keeps the priority it was created with
 * unless the program sets another (stream.c). */
static inline bool stream_priority(const struct request *request, struct overlap_stream *tracked, int *priority) {
    uint32_t known = tracked ? OVERLAP_RELAXED(tracked->part.priority) : STREAM_PRIORITY_CHANGES;
    if (__builtin_expect(known > STREAM_PRIORITY_CHANGES, 1)) {
        *priority = (int)(known - STREAM_PRIORITY_0);
        return true;
    }
    if (!query_priority(request, priority))
        return false;
    /* Compare-and-swap: not if the program changes it meanwhile. */
    if (!known && (uintptr_t)request->config.hStream > STREAM_PER_THREAD)
        __atomic_compare_exchange_n(&tracked->part.priority, &known, STREAM_PRIORITY_0 + (uint32_t)*priority, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return true;
}

/* If a capture turned the launch into a graph node, record the priority that the node would have without us. */
static inline CUresult record_captured(const struct request *request, int own, CUresult result) {
    if (__builtin_expect(OVERLAP_RELAXED(capture_begun), 0) && result == CUDA_SUCCESS)
        graph_keep_captured(request->config.hStream, hook_default(request->hook), own);
    return result;
}

/* Launch communication at the priority of its word unless it has that already. *raised: the launch got another
 * priority than its stream's. */
static inline __attribute__((always_inline)) CUresult launch_communication(struct request *request,
                                                                           struct overlap_stream *tracked,
                                                                           uint64_t word, uint32_t *reason,
                                                                           bool *raised) {
    int priority = overlap_word_priority(word), stream;
    CUresult result;
    *raised = false;
    if (!stream_priority(request, tracked, &stream))
        return launch_as_asked(request);
    const int own = priority_of(request, stream);
    if (is_programs(request, word, own, reason) || own == priority || !launch_at_priority(request, priority, &result))
        return record_captured(request, own, launch_as_asked(request));
    if (__builtin_expect(result == CUDA_SUCCESS, 1)) {
        *raised = stream != priority;
        graph_raises(priority);
        return record_captured(request, own, result);
    }
    return cuda_is_refusal(result) ? launch_without_priority(request) : result;
}

static inline CUresult count_communication(const struct request *request, struct overlap_sync_model *model,
                                           struct overlap_stream *tracked, uint64_t word, uint32_t reason, bool raised,
                                           CUresult result) {
    if (model && result == CUDA_SUCCESS)
        window_communicates_on(model, tracked, request->config.hStream, hook_default(request->hook));
    launch_communicated(request, word, reason, raised);
    return result;
}

__attribute__((noinline)) static CUresult launch_raised_slow(struct request *request, struct overlap_sync_model *model,
                                                             struct overlap_stream *tracked, uint64_t word) {
    bool raised;
    uint32_t reason = OVERLAP_REASON_communication;
    const CUresult result = launch_communication(request, tracked, word, &reason, &raised);
    return count_communication(request, model, tracked, word, reason, raised, result);
}

__attribute__((cold, noinline)) static CUresult launch_raised_failed(struct request *request,
                                                                     struct overlap_sync_model *model,
                                                                     struct overlap_stream *tracked, uint64_t word,
                                                                     CUresult result) {
    if (cuda_is_refusal(result))
        result = launch_without_priority(request);
    return count_communication(request, model, tracked, word, OVERLAP_REASON_communication, false, result);
}

/* Fast path. Most communication is launched by cuLaunchKernel or cuLaunchKernelEx without attributes, on a stream of
 * another priority, in a process that has not captured. */
CUresult launch_raised(struct request *request, uint64_t word) {
    const int priority = overlap_word_priority(word);
    const enum default_stream null_stream = hook_default(request->hook);
    struct overlap_sync_model *const model = __atomic_load_n(&window_model, __ATOMIC_ACQUIRE);
    struct overlap_stream *const tracked = model ? window_stream(model, request->config.hStream, null_stream) : NULL;
    type_cuLaunchKernelEx *const real = raises_by(request, null_stream);
    int own;
    if (__builtin_expect(request->config.numAttrs || !real || OVERLAP_RELAXED(capture_begun) ||
                             overlap_word_reason(word) != OVERLAP_REASON_communication ||
                             !stream_priority(request, tracked, &own) || own == priority ||
                             (own < 0 && word & OVERLAP_WORD_AUTO),
                         0))
        return launch_raised_slow(request, model, tracked, word);
    CUlaunchAttribute attribute;
    attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attribute.pad = 0;
    attribute.value.priority = priority;
    request->config.attrs = &attribute;
    request->config.numAttrs = 1;
    const CUresult result = real(&request->config, request->function, request->parameters, request->extra);
    request->config.attrs = NULL;
    request->config.numAttrs = 0;
    if (__builtin_expect(result != CUDA_SUCCESS, 0))
        return launch_raised_failed(request, model, tracked, word, result);
    graph_raises(priority);
    if (model)
        window_communicates_on(model, tracked, request->config.hStream, null_stream);
    launch_communicated(request, word, OVERLAP_REASON_communication, true);
    return CUDA_SUCCESS;
}

/* While the thread has no shard, or hides it, and for a trace. */
RARE static CUresult communicate_raised(struct request *request, uint64_t word, uint32_t *reason, bool *raised) {
    return launch_communication(request, NULL, word, reason, raised);
}

CUresult cuda_communicate(struct request *request, uint64_t word, uint32_t *reason, bool *raised) {
    return word & OVERLAP_WORD_RAISE ? communicate_raised(request, word, reason, raised) : launch_as_asked(request);
}
