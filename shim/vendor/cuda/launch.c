/* Making launches on NVIDIA: as asked, with another size, or at a priority. */
#include "launch.h"

enum { ATTRIBUTES = 24 };

CUresult launch_cooperative_body(enum overlap_way way, enum hook hook, uintptr_t site, CUfunction function,
                                 uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x, uint32_t block_y,
                                 uint32_t block_z, uint32_t shared, CUstream stream, void **parameters) {
    return launch_found(way, hook, site, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                        parameters, NULL, OVERLAP_LAUNCH_COOPERATIVE, 0);
}

CUresult cuda_launch_with(struct request *request, uint32_t dynamic) {
    const CUlaunchConfig *c = &request->config;
    void *real = real_function(request->way, request->hook, request->site);
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
        /* In our own copy, and in place: copying it again right after it was written stalls the processor. */
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

/* The same launch with a priority of its own. False: it cannot be said. The program's attributes are copied: their
 * array ends where the program says. */
static inline __attribute__((always_inline)) bool launch_at_priority(struct request *request, int priority,
                                                                     CUresult *result) {
    type_cuLaunchKernelEx *real;
    if (request->hook == HOOK_cuLaunchKernelEx || request->hook == HOOK_cuLaunchKernelEx_ptsz)
        real = real_function(request->way, request->hook, request->site);
    else
        real = real_own(default_is_thread(hook_default(request->hook)) ? HOOK_cuLaunchKernelEx_ptsz
                                                                       : HOOK_cuLaunchKernelEx);
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
           result == CUDA_ERROR_INVALID_CLUSTER_SIZE; /* what a cluster that fits nowhere gets */
}

/* ---- Communication ---- */

/* The driver has refused a priority that we gave: the launch is made again as asked. */
__attribute__((cold, noinline)) static CUresult launch_without_priority(struct request *request) {
    CUresult result = launch_as_asked(request);
    launch_count(OVERLAP_COUNTER_REFUSED);
    if (result == CUDA_SUCCESS) /* so it was the attribute: never again in this process */
        priority_refused();
    return result;
}

/* The priority that the program gives a launch itself, by an attribute; else its stream's. */
static inline int priority_of(const struct request *request, int stream) {
    for (uint32_t i = 0; request->config.attrs && i < request->config.numAttrs; i++)
        if (request->config.attrs[i].id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
            stream = request->config.attrs[i].value.priority;
    return stream;
}

/* Under `auto`, a priority of the program's own ends it: this launch and all to come are the program's. */
static bool is_programs(const struct request *request, uint64_t word, int own, uint32_t *reason) {
    /* 0 is the least, and that of streams that nobody cared about. */
    if (!(word & OVERLAP_WORD_AUTO) || own >= 0 ||
        stream_is_raised(request->config.hStream, hook_default(request->hook)))
        return false;
    priority_program_sets();
    *reason = OVERLAP_REASON_program_sets_priority;
    return true;
}

/* The priority of the launch's stream; false: better not asked, or not told. While a blocking stream captures, asking the
 * legacy stream ends the capture (seen on driver 580); asking whether it captures does not, and fails. */
static inline bool stream_priority(const struct request *request, int *priority) {
    const enum default_stream whose = hook_default(request->hook);
    const uintptr_t stream = (uintptr_t)request->config.hStream;
    CUresult (*ask)(CUstream, int *) =
        default_is_thread(whose) ? driver.cuStreamGetPriority_ptsz : driver.cuStreamGetPriority;
    int status;
    if (critical_find(request->config.hStream)) { /* ours, where it had the least */
        *priority = 0;
        return true;
    }
    if (stream == CU_STREAM_LEGACY || (stream == 0 && !default_is_thread(whose))) {
        *priority = 0;
        if (!__atomic_load_n(&stream_legacy_changed, __ATOMIC_RELAXED))
            return true;
        if (!driver.cuStreamIsCapturing || driver.cuStreamIsCapturing(request->config.hStream, &status) != CUDA_SUCCESS)
            return false;
    }
    return ask && ask(request->config.hStream, priority) == CUDA_SUCCESS;
}

/* A node of a graph, if one came of the launch, does not show what it would have without us. */
static inline CUresult kept(const struct request *request, int own, CUresult result) {
    if (__builtin_expect(__atomic_load_n(&capture_begun, __ATOMIC_RELAXED), 0) && result == CUDA_SUCCESS)
        graph_keep_captured(request->config.hStream, hook_default(request->hook), own);
    return result;
}

/* A communication launch at the priority of its word, unless it has that already. *raised: it got another than its
 * stream's. */
static inline __attribute__((always_inline)) CUresult launch_communication(struct request *request, uint64_t word,
                                                                           uint32_t *reason, bool *raised) {
    int priority = overlap_word_priority(word), stream;
    CUresult result;
    *raised = false;
    if (!stream_priority(request, &stream))
        return launch_as_asked(request);
    const int own = priority_of(request, stream);
    if (is_programs(request, word, own, reason) || own == priority || !launch_at_priority(request, priority, &result))
        return kept(request, own, launch_as_asked(request));
    if (__builtin_expect(result == CUDA_SUCCESS, 1)) {
        *raised = stream != priority;
        graph_raises(priority);
        return kept(request, own, result);
    }
    return cuda_is_refusal(result) ? launch_without_priority(request) : result;
}

CUresult launch_raised(struct request *request, uint64_t word) {
    bool raised;
    uint32_t reason = OVERLAP_REASON_communication;
    CUresult result = launch_communication(request, word, &reason, &raised);
    if (window_model && result == CUDA_SUCCESS)
        window_communicates(request->config.hStream, hook_default(request->hook));
    launch_communicated(request, word, reason, raised);
    return result;
}

CUresult cuda_communicate(struct request *request, uint64_t word, uint32_t *reason, bool *raised) {
    return word & OVERLAP_WORD_RAISE ? launch_communication(request, word, reason, raised) : launch_as_asked(request);
}
