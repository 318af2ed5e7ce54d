/* Launches that are not a direct hit: first launches, launches to be rebuilt, not proven yet, or traced.
 *
 * Whatever goes wrong here, the program's own launch is made exactly as asked. A changed launch that the driver refuses
 * is repeated as asked, at once. Any other error is the program's own and is returned.
 */
#include <errno.h>
#include <string.h>

#include "../../core/core.h"
#include "../../core/sync_access.h"
#include "../../core/window.h"
#include "../../sys/sys.h"
#include "critical_streams.h"
#include "device.h"
#include "facts.h"
#include "follow.h"
#include "handle.h"
#include "launch_slow.h"
#include "page.h"
#include "priority.h"
#include "request.h"
#include "resolve.h"
#include "this_thread.h"
#include "traced.h"
#include "vendor_ops.h"
#include "windows.h"

static struct overlap_cache_line *no_chain;
struct overlap_cache launch_cache = OVERLAP_CACHE_EMPTY(&no_chain);
__thread struct this_thread this_thread __attribute__((tls_model("initial-exec")));
static __thread bool always_slow __attribute__((tls_model("initial-exec")));
static __thread bool thread_shares __attribute__((tls_model("initial-exec"))); /* no shard is left for this thread */
static __thread uint32_t own_id __attribute__((tls_model("initial-exec")));
/* A row of the page << 16 | the row for the same launches on a raised stream; 0: none. */
static __thread uint32_t last_raised __attribute__((tls_model("initial-exec")));

/* ---- Counting ---- */

RARE void launch_forked(bool used) {
    this_thread.shard = this_thread.own = NULL;
    own_id = last_raised = 0;
    thread_shares = always_slow = false;
    arms_forked();
    critical_forked();
    window_forked();
    if (driver_ready(VENDOR_CUDA) || driver_ready(VENDOR_HIP)) {
        facts_forked = facts_forked || used;
        device_forked();
        overlap_cache_forget_all(&launch_cache);
    }
}

uint32_t thread_id(void) {
    if (!own_id)
        own_id = overlap_thread_id();
    return own_id;
}

RARE static struct overlap_shard *shard_of_thread(void) {
    const int saved = errno;
    if (this_thread.own)
        return this_thread.own;
    bool made = overlap_page_start();
    struct overlap_page *page = __atomic_load_n(&overlap_current_page, __ATOMIC_ACQUIRE);
    struct overlap_shard *shard = overlap_shard_shared(page);
    if (made && !thread_shares) { /* else retry at the next launch, or all shards are taken */
        uint32_t more;
        do {
            more = __atomic_load_n(&page->more_shards, __ATOMIC_ACQUIRE);
            shard = overlap_shard_claim(page, thread_id(), overlap_thread_alive);
        } while (overlap_shard_is_shared(page, shard) && overlap_page_grow(more));
        const bool shares = overlap_shard_is_shared(page, shard);
        thread_shares = shares && overlap_page_is_full();
        this_thread.own = shares ? NULL : shard;
        this_thread.shard = always_slow ? NULL : this_thread.own;
    }
    errno = saved;
    return shard;
}

RARE void launch_opened(void) {
    overlap_page_opened();
    if (!overlap_armed())
        return;
    thread_id();
    shard_of_thread();
    windows();
}

__attribute__((cold, noinline)) static void count_first(size_t offset) {
    struct overlap_shard *shard = shard_of_thread();
    overlap_shard_add(overlap_current_page, shard, (uint64_t *)((char *)shard + offset));
}

/* offset: of the counter in a shard. A thread that owns a shard needs no atomic operation. */
static inline void count_at(size_t offset) {
    if (__builtin_expect(this_thread.own != NULL, 1))
        overlap_add_own((uint64_t *)((char *)this_thread.own + offset), 1);
    else
        count_first(offset);
}

inline void launch_count(enum overlap_counter counter) {
    count_at(offsetof(struct overlap_shard, counters) + 8 * (size_t)counter);
}

static inline void count_launch(enum overlap_route route, uint32_t row) {
    count_at(offsetof(struct overlap_shard, routes) + 8 * (size_t)route);
    count_at(offsetof(struct overlap_shard, launches) + 8 * (size_t)row);
}

__attribute__((cold, noinline)) uint32_t launch_other_row(uint64_t word, uint32_t reason) {
    const uint32_t row = overlap_word_row(word), step = overlap_row_step(reason);
    if (word & OVERLAP_WORD_WINDOWED && step && row >= OVERLAP_REASONS)
        return row + step;
    return overlap_row_of_reason(overlap_current_page, row, reason);
}

/* Without a report the sample is not read, so stop sampling. Strict seccomp forbids reading the clock, too (it disables
 * x86's RDTSC). */
__attribute__((cold, noinline)) void launch_sample(struct overlap_shard *shard) {
    if (!overlap_page_is_kept()) {
        __atomic_store_n(&shard->sample_at, UINT64_MAX, __ATOMIC_RELAXED);
        return;
    }
    overlap_sample_take(overlap_current_page, shard, overlap_clock());
}

RARE void launch_count_row(enum overlap_route route, uint32_t row) {
    count_launch(route, row);
}

/* A shard's counter may become negative; the sum over all shards does not. */
RARE void launch_count_many(enum overlap_counter counter, uint64_t count) {
    struct overlap_shard *shard = shard_of_thread();
    uint64_t *cell = &shard->counters[counter];
    if (overlap_shard_is_shared(overlap_current_page, shard))
        __atomic_fetch_add(cell, count, __ATOMIC_RELAXED);
    else
        overlap_add_own(cell, count);
}

RARE void launch_take_back(enum overlap_counter counter, uint64_t count) {
    launch_count_many(counter, 0 - count);
}

RARE void launch_set_slow(bool on) {
    always_slow = on;
    this_thread.shard = on ? NULL : this_thread.own;
}

/* ---- Making launches ---- */

static inline vendor_result with_size(struct request *request, uint32_t dynamic) {
    return OPERATION_OF(hook_vendor(request->hook), launch_with)(request, dynamic);
}

static inline vendor_result as_asked(struct request *request) {
    return with_size(request, request->config.sharedMemBytes);
}

static bool is_refusal(const struct request *request, vendor_result result) {
    return OPERATION_OF(hook_vendor(request->hook), is_refusal)(result);
}

/* During capture a success proves nothing, because the driver checks the launch later. */
static bool captures(const struct request *request) {
    return OPERATION_OF(hook_vendor(request->hook), captures)(request->config.hStream, hook_default(request->hook));
}

/* Slow path of launch_communicated(): the thread owns no shard yet. */
RARE void launch_communicated_first(const struct request *request, uint32_t row, bool raised) {
    struct overlap_shard *shard = shard_of_thread();
    launch_count(OVERLAP_COUNTER_COMMUNICATION);
    if (raised)
        launch_count(OVERLAP_COUNTER_RAISED);
    count_launch(request->counted, row);
    if (overlap_sample_is_due(shard))
        launch_sample(shard);
    arms_communicated(request);
}

__attribute__((cold, noinline)) void launch_leave_alone(const struct request *request, uint64_t cache_handle,
                                                        bool launched) {
    struct handle *handle = handle_find(request->function);
    if (handle)
        handle_mark(handle, HANDLE_REFUSED);
    overlap_cache_forget(&launch_cache, cache_handle);
    if (launched)
        launch_count(OVERLAP_COUNTER_REFUSED);
}

__attribute__((cold, noinline)) bool launch_prepare(const struct request *request, uint64_t *word,
                                                    uint64_t cache_handle) {
    struct handle *handle = handle_find(request->function);
    if (!handle || !OPERATION_OF(hook_vendor(request->hook), prepare)(handle, *word))
        return false;
    overlap_cache_replace(&launch_cache, cache_handle, key_of(request), *word, *word | OVERLAP_WORD_RAISED_LIMIT);
    *word |= OVERLAP_WORD_RAISED_LIMIT;
    return true;
}

/* Repeat a changed launch as asked after it was refused or could not be tried. The change was at fault unless the
 * driver refuses the launch as asked, too. It was also at fault if that call fails only because our launch has
 * invalidated the capture. */
__attribute__((cold, noinline)) static vendor_result launch_again(struct request *request, uint64_t cache_handle,
                                                                  bool tried, uint32_t *reason) {
    vendor_result result = as_asked(request);
    if (!is_refusal(request, result) || !tried)
        launch_leave_alone(request, cache_handle, tried);
    else
        *reason = OVERLAP_REASON_invalid_as_asked; /* the program's own error says nothing about the kernel */
    return result;
}

/* Launch computation with a size that the driver has not accepted yet. cache_handle: 0 if not cached. */
__attribute__((noinline)) static vendor_result
launch_unproven(struct request *request, uint64_t word, uint64_t cache_handle, uint32_t *reason, uint32_t *launched) {
    *launched = (uint32_t)(word & OVERLAP_WORD_SIZE_MASK);
    if (__builtin_expect(
            (word & OVERLAP_WORD_CLUSTER) && OPERATION_OF(hook_vendor(request->hook), cluster_is_other)(request), 0)) {
        *reason = OVERLAP_REASON_cluster;
        *launched = request->config.sharedMemBytes;
        return as_asked(request);
    }
    bool possible = word & OVERLAP_WORD_RAISED_LIMIT || launch_prepare(request, &word, cache_handle);
    vendor_result result = possible ? with_size(request, *launched) : VENDOR_INVALID_VALUE;
    if (__builtin_expect(result == VENDOR_SUCCESS, 1)) {
        if (!(word & (OVERLAP_WORD_TRACED | OVERLAP_WORD_CLUSTER)) && !captures(request))
            overlap_cache_replace(&launch_cache, cache_handle, key_of(request), word,
                                  word | (word & WINDOW_BITS ? OVERLAP_WORD_PROVEN : OVERLAP_WORD_DIRECT));
        return result;
    }
    if (!is_refusal(request, result))
        return result;
    *reason = OVERLAP_REASON_refused;
    *launched = request->config.sharedMemBytes;
    return launch_again(request, cache_handle, possible, reason);
}

vendor_result launch_changed(struct request *request, uint64_t word) {
    uint32_t reason = overlap_word_reason(word), launched;
    vendor_result result = launch_unproven(request, word, cache_handle_of(request), &reason, &launched);
    count_launch(request->counted, launch_row(word, reason, false));
    return result;
}

/* Launch computation as asked, possibly on a raised stream. Successive launches are mostly of few kernels, so the
 * row for the last kernel on such a stream is cached (last_raised). */
vendor_result launch_streamed(struct request *request, uint64_t word) {
    if (OVERLAP_LOAD(critical_counting) || !this_thread.shard)
        return launch_slow(request, word);
    uint32_t row = overlap_word_row(word);
    struct critical_stream *const entry = critical_find(request->config.hStream);
    if (entry && critical_launch_raised(request, entry)) {
        uint32_t last = last_raised; /* one load, one store: a signal handler may launch in between */
        if (last >> 16 != row)
            last_raised = last = row << 16 | launch_row(word, OVERLAP_REASON_critical, false);
        row = last & UINT16_MAX;
    }
    const vendor_result result = as_asked(request);
    count_launch(request->counted, row);
    return result;
}

vendor_result launch_windowed(struct request *request, uint64_t word) {
    const enum default_stream null_stream = hook_default(request->hook);
    if (OVERLAP_LOAD(critical_counting))
        return launch_slow(request, word);
    follow_launch(request->config.hStream, null_stream, word);
    const enum overlap_window_position position = window_count_launch(request->config.hStream, null_stream, word);
    if (position != OVERLAP_POSITION_INSIDE) {
        const vendor_result result = as_asked(request);
        count_launch(request->counted, overlap_word_row(word) + overlap_row_step(window_reason(position)));
        return result;
    }
    if (word & OVERLAP_WORD_WATCHED)
        priority_one_wave_beside();
    const vendor_result result = with_size(request, (uint32_t)(word & OVERLAP_WORD_SIZE_MASK));
    count_launch(request->counted, overlap_word_row(word));
    return result;
}

uint64_t launch_word(const struct request *request, uint64_t *cache_handle) {
    uint64_t word = 0;
    *cache_handle = cache_handle_of(request);
    if (overlap_cacheable(threads_of(request), request->config.sharedMemBytes))
        word = overlap_cache_find_hidden(&launch_cache, *cache_handle, key_of(request), blocks_of(request));
    return word || !armed_and_ready(hook_vendor(request->hook)) ? word : facts_word(request, cache_handle);
}

vendor_result launch_slow(struct request *request, uint64_t word) {
    uint64_t cache_handle = cache_handle_of(request);
    if (__builtin_expect(!word, 0)) {
        if (!overlap_armed() || !real_function(request->route, request->hook, request->site))
            return as_asked(request);
        word = launch_word(request, &cache_handle);
        if (!word)
            return as_asked(request);
    }
    const enum default_stream null_stream = hook_default(request->hook);
    uint32_t reason = overlap_word_reason(word);
    uint32_t launched = request->config.sharedMemBytes;
    bool raised = false, outside = false;
    const struct critical_stream *critical = NULL;
    vendor_result result;
    struct trace_facts facts;
    if (__builtin_expect((word & OVERLAP_WORD_TRACED) != 0, 0))
        trace_ask(request, &facts);
    if (!(word & OVERLAP_WORD_COMMUNICATION)) {
        follow_launch(request->config.hStream, null_stream, word);
        critical = word & OVERLAP_WORD_STREAMED || OVERLAP_LOAD(critical_counting) ? critical_launch(request) : NULL;
        const enum overlap_window_position position =
            word & WINDOW_BITS ? window_count_launch(request->config.hStream, null_stream, word)
                               : OVERLAP_POSITION_OUTSIDE;
        if (word & OVERLAP_WORD_WATCHED && position == OVERLAP_POSITION_INSIDE)
            priority_one_wave_beside();
        outside = word & OVERLAP_WORD_WINDOWED && position != OVERLAP_POSITION_INSIDE;
        reason = outside ? window_reason(position) : reason;
    }
    if (word & OVERLAP_WORD_COMMUNICATION) {
        result = OPERATION_OF(hook_vendor(request->hook), communicate)(request, word, &reason, &raised);
        if (result == VENDOR_SUCCESS)
            window_communicates(request->config.hStream, null_stream);
        if (!raised)
            priority_left();
    } else if (critical) { /* work that is waited for must not be slowed down */
        reason = OVERLAP_REASON_critical;
        word = (word & ~OVERLAP_WORD_OF_PRIORITY) | overlap_word_of_priority(OVERLAP_LOAD(critical->priority));
        result = as_asked(request);
    } else if (outside) {
        result = as_asked(request);
    } else if ((word & OVERLAP_WORD_CHANGED) && !(word & (OVERLAP_WORD_DIRECT | OVERLAP_WORD_PROVEN))) {
        result = launch_unproven(request, word, cache_handle, &reason, &launched);
    } else {
        launched = word & OVERLAP_WORD_CHANGED ? (uint32_t)(word & OVERLAP_WORD_SIZE_MASK) : launched;
        result = with_size(request, launched);
    }
    if (word & OVERLAP_WORD_COMMUNICATION)
        launch_communicated_first(request, launch_row(word, reason, raised), raised);
    else
        count_launch(request->counted, launch_row(word, reason, false));
    if (__builtin_expect((word & OVERLAP_WORD_TRACED) != 0, 0)) {
        const uint64_t number = launch_trace(request, reason, launched, raised || critical, word, &facts);
        if (word & OVERLAP_WORD_COMMUNICATION && result == VENDOR_SUCCESS)
            window_set_sequence(request->config.hStream, null_stream, number);
    }
    return result;
}
