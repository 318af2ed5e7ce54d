/* Launches that are not a direct hit: seen for the first time, to be rebuilt, not proven yet, or traced.
 *
 * Whatever goes wrong in here, the program's own launch is made exactly as it asked. The one rule about errors: a
 * changed launch that the driver refuses is made again as asked, at once; any other error is the program's own and is
 * returned.
 */
#include <errno.h>
#include <string.h>

#include "launch.h"
#include "windows.h"

struct overlap_cache launch_cache;
__thread struct this_thread this_thread __attribute__((tls_model("initial-exec")));
/* Its own, also while this_thread.shard is hidden from the hot path, which then asks us about every launch. */
static __thread struct overlap_shard *own_shard __attribute__((tls_model("initial-exec")));
static __thread bool hidden __attribute__((tls_model("initial-exec")));
static __thread bool thread_shares __attribute__((tls_model("initial-exec"))); /* more threads than shards */

enum { ATTRIBUTES = 24 };

/* ---- Counting ---- */

void overlap_vendor_forked(void) {
    this_thread.shard = own_shard = NULL;
    thread_shares = hidden = false;
    window_forked();
    if (driver_ready()) {
        device_forked();
        overlap_cache_forget_all(&launch_cache);
    }
}

static struct overlap_shard *shard_of_thread(void) {
    const int saved = errno;
    if (own_shard)
        return own_shard;
    bool made = overlap_page_start();
    struct overlap_page *page = __atomic_load_n(&overlap_current_page, __ATOMIC_ACQUIRE);
    struct overlap_shard *shard = &page->shards[OVERLAP_SHARDS - 1];
    if (made && !thread_shares) { /* else asked again next time, or there are too many of us */
        shard = overlap_shard_claim(page, overlap_thread_id(), overlap_thread_alive);
        thread_shares = overlap_shard_is_shared(page, shard);
        own_shard = thread_shares ? NULL : shard;
        this_thread.shard = hidden ? NULL : own_shard;
    }
    errno = saved;
    return shard;
}

__attribute__((cold, noinline)) static void count_first(size_t offset) {
    struct overlap_shard *shard = shard_of_thread();
    overlap_shard_add(overlap_current_page, shard, (uint64_t *)((char *)shard + offset));
}

/* offset: of the counter in a shard. A thread with a shard of its own needs no atomic operation. */
static inline void count_at(size_t offset) {
    if (__builtin_expect(own_shard != NULL, 1))
        overlap_add_own((uint64_t *)((char *)own_shard + offset), 1);
    else
        count_first(offset);
}

inline void launch_count(enum overlap_counter counter) {
    count_at(offsetof(struct overlap_shard, counters) + 8 * (size_t)counter);
}

static inline void count_launch(enum overlap_way way, uint32_t reason) {
    count_at(offsetof(struct overlap_shard, launches) + 8 * (OVERLAP_REASONS * (size_t)way + reason));
}

void launch_count_reason(enum overlap_way way, uint32_t reason) {
    count_launch(way, reason);
}

/* A cell may become negative: the sum over all shards does not. */
static void change_cell(struct overlap_shard *shard, uint64_t *cell, uint64_t change) {
    if (overlap_shard_is_shared(overlap_current_page, shard))
        __atomic_fetch_add(cell, change, __ATOMIC_RELAXED);
    else
        overlap_add_own(cell, change);
}

void launch_move_reason(enum overlap_way way, uint32_t from, uint32_t to, uint64_t count) {
    struct overlap_shard *shard = shard_of_thread();
    /* First more, then less: a reader in between finds too many, not too few. */
    change_cell(shard, &shard->launches[way][to], count);
    change_cell(shard, &shard->launches[way][from], 0 - count);
}

void launch_take_back(enum overlap_counter counter, uint64_t count) {
    struct overlap_shard *shard = shard_of_thread();
    change_cell(shard, &shard->counters[counter], 0 - count);
}

void launch_followed(bool on) {
    hidden = on;
    this_thread.shard = on ? NULL : own_shard;
}

CUresult launch_cooperative_body(enum overlap_way way, enum hook hook, uintptr_t site, CUfunction function,
                                 uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x, uint32_t block_y,
                                 uint32_t block_z, uint32_t shared, CUstream stream, void **parameters) {
    return launch_found(way, hook, site, function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream,
                        parameters, NULL, OVERLAP_LAUNCH_COOPERATIVE, 0);
}

/* ---- Making launches ---- */

/* The call that the program made, with another size; NOT_INITIALIZED where there is no driver. */
static CUresult launch_with(struct request *request, uint32_t dynamic) {
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
    return launch_with(request, request->config.sharedMemBytes);
}

/* The same launch with a priority of its own. False: it cannot be said. The program's attributes are copied: their
 * array ends where the program says. */
static inline __attribute__((always_inline)) bool launch_at_priority(struct request *request, int priority,
                                                                     CUresult *result) {
    type_cuLaunchKernelEx *real;
    if (request->hook == HOOK_cuLaunchKernelEx || request->hook == HOOK_cuLaunchKernelEx_ptsz)
        real = real_function(request->way, request->hook, request->site);
    else
        real = real_own(hook_is_per_thread(request->hook) ? HOOK_cuLaunchKernelEx_ptsz : HOOK_cuLaunchKernelEx);
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

bool launch_is_refusal(CUresult result) {
    return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES ||
           result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION ||
           result == CUDA_ERROR_INVALID_CLUSTER_SIZE; /* what a cluster that fits nowhere gets */
}

/* When in doubt, the stream captures: then a success proves nothing, because the driver looks at it later. */
static bool is_capturing(const struct request *request) {
    CUresult (*ask)(CUstream, int *) =
        hook_is_per_thread(request->hook) ? driver.cuStreamIsCapturing_ptsz : driver.cuStreamIsCapturing;
    int status = CU_STREAM_CAPTURE_STATUS_NONE;
    return !ask || ask(request->config.hStream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* ---- Acting ---- */

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
        stream_is_raised(request->config.hStream, hook_is_per_thread(request->hook)))
        return false;
    priority_program_sets();
    *reason = OVERLAP_REASON_program_sets_priority;
    return true;
}

/* The priority of the launch's stream; false: better not asked, or not told. While a blocking stream captures, asking the
 * legacy stream ends the capture (seen on driver 580); asking whether it captures does not, and fails. */
static inline bool stream_priority(const struct request *request, int *priority) {
    const bool per_thread = hook_is_per_thread(request->hook);
    const uintptr_t stream = (uintptr_t)request->config.hStream;
    CUresult (*ask)(CUstream, int *) = per_thread ? driver.cuStreamGetPriority_ptsz : driver.cuStreamGetPriority;
    int status;
    if (stream == CU_STREAM_LEGACY || (stream == 0 && !per_thread)) {
        *priority = 0;
        if (!__atomic_load_n(&stream_legacy_changed, __ATOMIC_RELAXED))
            return true;
        if (!driver.cuStreamIsCapturing || driver.cuStreamIsCapturing(request->config.hStream, &status) != CUDA_SUCCESS)
            return false;
    }
    return ask && ask(request->config.hStream, priority) == CUDA_SUCCESS;
}

/* A communication launch at the priority of its word, unless it has that already. *raised: it got another than its
 * stream's. */
static inline __attribute__((always_inline)) CUresult launch_communication(struct request *request, uint64_t word,
                                                                           uint32_t *reason, bool *raised) {
    int priority = (int16_t)(word >> OVERLAP_WORD_PRIORITY_SHIFT), stream;
    CUresult result;
    *raised = false;
    if (!stream_priority(request, &stream))
        return launch_as_asked(request);
    const int own = priority_of(request, stream);
    if (is_programs(request, word, own, reason) || own == priority || !launch_at_priority(request, priority, &result))
        return launch_as_asked(request);
    if (__builtin_expect(result == CUDA_SUCCESS, 1)) {
        *raised = stream != priority;
        if (__builtin_expect(!__atomic_load_n(&graph_may_be_raised, __ATOMIC_RELAXED), 0))
            __atomic_store_n(&graph_may_be_raised, 1, __ATOMIC_RELAXED);
        return result;
    }
    return launch_is_refusal(result) ? launch_without_priority(request) : result;
}

CUresult launch_raised(struct request *request, uint64_t word) {
    bool raised;
    uint32_t reason = OVERLAP_REASON_communication;
    CUresult result = launch_communication(request, word, &reason, &raised);
    if (window_model && result == CUDA_SUCCESS)
        window_communicates(request->config.hStream, hook_is_per_thread(request->hook), request->counted);
    struct overlap_shard *const shard = own_shard;
    if (__builtin_expect(shard != NULL, 1)) { /* looked up once, and not for each */
        overlap_add_own(&shard->counters[OVERLAP_COUNTER_COMMUNICATION], 1);
        if (raised)
            overlap_add_own(&shard->counters[OVERLAP_COUNTER_RAISED], 1);
        overlap_add_own(&shard->launches[request->counted][reason], 1);
        return result;
    }
    launch_count(OVERLAP_COUNTER_COMMUNICATION);
    if (raised)
        launch_count(OVERLAP_COUNTER_RAISED);
    count_launch(request->counted, reason);
    return result;
}

__attribute__((cold, noinline)) void launch_leave_alone(const struct request *request, uint64_t place, bool launched) {
    struct handle *handle = handle_find(request->function);
    if (handle)
        handle_mark(handle, HANDLE_REFUSED);
    overlap_cache_forget(&launch_cache, place);
    if (launched)
        launch_count(OVERLAP_COUNTER_REFUSED);
}

__attribute__((cold, noinline)) bool launch_prepare(const struct request *request, uint64_t *word, uint64_t place) {
    struct handle *handle = handle_find(request->function);
    if (!handle || !limit_raise(handle, (uint32_t)(*word & OVERLAP_WORD_SIZE_MASK)))
        return false;
    const struct device *device = *word & OVERLAP_WORD_CARVEOUT ? device_current() : NULL;
    if (device)
        carveout_prefer(handle, device->ordinal);
    overlap_cache_replace(&launch_cache, place, key_of(request), *word, *word | OVERLAP_WORD_RAISED_LIMIT);
    *word |= OVERLAP_WORD_RAISED_LIMIT;
    return true;
}

/* A changed launch was refused, or could not even be tried. It was our doing unless it is refused as asked, too: taken, or
 * too late for the capture that our launch has spoiled. */
__attribute__((cold, noinline)) static CUresult launch_again(struct request *request, uint64_t place, bool tried,
                                                             uint32_t *reason) {
    CUresult result = launch_as_asked(request);
    if (!launch_is_refusal(result) || !tried)
        launch_leave_alone(request, place, tried);
    else
        *reason = OVERLAP_REASON_cannot_launch; /* wrong by itself, which says nothing about its kernel */
    return result;
}

/* Only the clusters that were checked get another size; see clusters_fit(). */
static bool is_other_cluster(const struct request *request, uint64_t word) {
    const struct handle *handle = word & OVERLAP_WORD_CLUSTER ? handle_find(request->function) : NULL;
    return (word & OVERLAP_WORD_CLUSTER) &&
           (!handle || __atomic_load_n(&handle->cluster, __ATOMIC_RELAXED) != cluster_of(&request->config) + 1);
}

/* A computation launch with another size that the driver has not taken yet. place: where its word is kept, 0: nowhere.
 */
static inline CUresult launch_unproven(struct request *request, uint64_t word, uint64_t place, uint32_t *reason,
                                       uint32_t *launched) {
    *launched = (uint32_t)(word & OVERLAP_WORD_SIZE_MASK);
    if (__builtin_expect(is_other_cluster(request, word), 0)) {
        *reason = OVERLAP_REASON_cluster;
        *launched = request->config.sharedMemBytes;
        return launch_as_asked(request);
    }
    bool possible = word & OVERLAP_WORD_RAISED_LIMIT || launch_prepare(request, &word, place);
    CUresult result = possible ? launch_with(request, *launched) : CUDA_ERROR_INVALID_VALUE;
    if (__builtin_expect(result == CUDA_SUCCESS, 1)) {
        if (!(word & (OVERLAP_WORD_TRACED | OVERLAP_WORD_CLUSTER)) && !is_capturing(request))
            overlap_cache_replace(&launch_cache, place, key_of(request), word,
                                  word | (word & WINDOW_BITS ? OVERLAP_WORD_PROVEN : OVERLAP_WORD_DIRECT));
        return result;
    }
    if (!launch_is_refusal(result))
        return result;
    *reason = OVERLAP_REASON_refused;
    *launched = request->config.sharedMemBytes;
    return launch_again(request, place, possible, reason);
}

CUresult launch_changed(struct request *request, uint64_t word) {
    uint32_t reason = (uint32_t)(word >> OVERLAP_WORD_REASON_SHIFT & 63), launched;
    CUresult result = launch_unproven(request, word, place_of(request), &reason, &launched);
    count_launch(request->counted, reason);
    return result;
}

uint64_t launch_word(const struct request *request, uint64_t *place) {
    uint64_t word = 0;
    *place = place_of(request);
    if (overlap_cacheable(threads_of(request), request->config.sharedMemBytes))
        word = overlap_cache_find(&launch_cache, *place, key_of(request), blocks_of(request));
    return word || !armed_and_ready() ? word : facts_word(request, place);
}

CUresult launch_slow(struct request *request, uint64_t word) {
    uint64_t place = place_of(request);
    if (__builtin_expect(!word, 0)) {
        if (!overlap_armed() || !real_function(request->way, request->hook, request->site))
            return launch_as_asked(request);
        word = launch_word(request, &place);
        if (!word)
            return launch_as_asked(request);
    }
    const bool per_thread = hook_is_per_thread(request->hook);
    uint32_t reason = (uint32_t)(word >> OVERLAP_WORD_REASON_SHIFT & 63);
    uint32_t launched = request->config.sharedMemBytes;
    bool raised = false, outside = false;
    CUresult result;
    struct overlap_found found = {0};
    if (__builtin_expect((word & OVERLAP_WORD_TRACED) != 0, 0))
        found = window_look(request->config.hStream, per_thread);
    if (!(word & OVERLAP_WORD_COMMUNICATION)) {
        follow_launch(request->config.hStream, per_thread, word);
        const enum overlap_where where =
            word & WINDOW_BITS ? window_asks(request->config.hStream, per_thread, word) : OVERLAP_WHERE_OUTSIDE;
        if (word & OVERLAP_WORD_WATCHED && where == OVERLAP_WHERE_INSIDE)
            priority_one_wave_beside();
        outside = word & OVERLAP_WORD_WINDOWED && where != OVERLAP_WHERE_INSIDE;
        reason = outside ? window_reason(where) : reason;
    }
    if (word & OVERLAP_WORD_COMMUNICATION) {
        if (word & OVERLAP_WORD_CARRIES)
            stream_carries(request->config.hStream, per_thread);
        result = word & OVERLAP_WORD_RAISE ? launch_communication(request, word, &reason, &raised)
                                           : launch_as_asked(request);
        if (result == CUDA_SUCCESS)
            window_communicates(request->config.hStream, per_thread, request->counted);
        launch_count(OVERLAP_COUNTER_COMMUNICATION);
        if (raised)
            launch_count(OVERLAP_COUNTER_RAISED);
        else if (priority_is_unhurried())
            launch_count(OVERLAP_COUNTER_UNHURRIED);
    } else if (outside) {
        result = launch_as_asked(request);
    } else if ((word & OVERLAP_WORD_CHANGED) && !(word & (OVERLAP_WORD_DIRECT | OVERLAP_WORD_PROVEN))) {
        result = launch_unproven(request, word, place, &reason, &launched);
    } else {
        launched = word & OVERLAP_WORD_CHANGED ? (uint32_t)(word & OVERLAP_WORD_SIZE_MASK) : launched;
        result = launch_with(request, launched);
    }
    count_launch(request->counted, reason);
    if (__builtin_expect((word & OVERLAP_WORD_TRACED) != 0, 0))
        launch_trace(request, reason, launched, raised, word, &found);
    return result;
}
