/* Launches that the thread's table does not hold: first launches, launches whose answer may have changed, those that the
 * driver has not accepted yet.
 *
 * Whatever goes wrong here, the program's own launch is made exactly as asked. A changed launch that the driver refuses
 * is repeated as asked, at once. Any other error is the program's own and is returned.
 */
#include <errno.h>
#include <string.h>

#include "../../core/core.h"
#include "../../sys/sys.h"
#include "device.h"
#include "facts.h"
#include "handle.h"
#include "hot.h"
#include "launch_slow.h"
#include "page.h"
#include "request.h"
#include "resolve.h"
#include "state.h"
#include "streams.h"
#include "this_thread.h"
#include "vendor_ops.h"

static struct overlap_cache_line *no_chain;
struct overlap_cache launch_cache = OVERLAP_CACHE_EMPTY(&no_chain);
__thread struct this_thread this_thread __attribute__((tls_model("initial-exec")));
static __thread bool always_slow __attribute__((tls_model("initial-exec")));
static __thread bool thread_shares __attribute__((tls_model("initial-exec"))); /* no shard is left for this thread */
static __thread uint32_t own_id __attribute__((tls_model("initial-exec")));

/* ---- Counting ---- */

/* Without a shard, or while every launch is to come here, the hot path finds no table. */
static void use_shard(void) {
    this_thread.shard = always_slow ? NULL : this_thread.own;
    this_thread.launcher = this_thread.shard ? launcher_of(this_thread.shard) : NULL;
}

RARE void launch_forked(bool used) {
    this_thread.own = NULL;
    own_id = 0;
    thread_shares = always_slow = false;
    use_shard();
    streams_forked();
    if (driver_ready(VENDOR_CUDA) || driver_ready(VENDOR_HIP)) {
        facts_forked = facts_forked || used;
        device_forked();
        overlap_cache_forget_all(&launch_cache);
        invalidate_decisions();
    }
}

uint32_t thread_id(void) {
    if (!own_id)
        own_id = overlap_thread_id();
    return own_id;
}

/* NULL: there is no memory for a page. A thread that takes over a shard takes over its table, which is cleared: another
 * thread's answers may be of another context. */
RARE static struct overlap_shard *shard_of_thread(void) {
    const int saved = errno;
    if (this_thread.own)
        return this_thread.own;
    bool made = overlap_page_start();
    struct overlap_page *page = __atomic_load_n(&overlap_current_page, __ATOMIC_ACQUIRE);
    struct overlap_shard *shard = page ? overlap_shard_shared(page) : NULL;
    if (made && !thread_shares) { /* else retry at the next launch, or all shards are taken */
        uint32_t more;
        do {
            more = __atomic_load_n(&page->more_shards, __ATOMIC_ACQUIRE);
            shard = overlap_shard_claim(page, thread_id(), overlap_thread_alive);
        } while (overlap_shard_is_shared(page, shard) && overlap_page_grow(more));
        const bool shares = overlap_shard_is_shared(page, shard);
        thread_shares = shares && overlap_page_is_full();
        this_thread.own = shares ? NULL : shard;
        if (this_thread.own && launcher_of(shard))
            launcher_take(launcher_of(shard));
        use_shard();
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
    streams_wanted();
}

__attribute__((cold, noinline)) static void count_first(size_t offset) {
    struct overlap_shard *shard = shard_of_thread();
    if (shard)
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

/* Without a report the sample is not read, so stop sampling. Strict seccomp forbids reading the clock, too (it disables
 * x86's RDTSC). */
__attribute__((cold, noinline)) static void sample(struct overlap_shard *shard) {
    if (!overlap_page_is_kept()) {
        __atomic_store_n(&shard->sample_at, UINT64_MAX, __ATOMIC_RELAXED);
        return;
    }
    overlap_sample_take(overlap_current_page, shard, overlap_clock());
}

RARE void launch_count_row(enum overlap_route route, uint32_t row) {
    count_launch(route, row);
}

void launch_count_special(uint64_t word, struct stream *stream) {
    if (word & OVERLAP_WORD_RAISED)
        launch_count(OVERLAP_COUNTER_RAISED);
    if (!(word & OVERLAP_WORD_COMMUNICATION))
        return;
    launch_count(OVERLAP_COUNTER_COMMUNICATION);
    if (this_thread.own && overlap_sample_is_due(this_thread.own))
        sample(this_thread.own);
    if (streams_wanted() & STREAMS_WINDOWS)
        window_opens(stream);
}

RARE void launch_set_slow(bool on) {
    always_slow = on;
    use_shard();
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

__attribute__((cold, noinline)) void launch_leave_alone(const struct request *request, uint64_t cache_handle,
                                                        bool launched) {
    struct handle *handle = handle_find(request->function);
    if (handle)
        handle_mark(handle, HANDLE_REFUSED);
    invalidate_decisions();
    overlap_cache_forget(&launch_cache, cache_handle);
    if (launched)
        launch_count(OVERLAP_COUNTER_REFUSED);
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
    struct handle *const handle = handle_find(request->function);
    const bool possible = handle && OPERATION_OF(hook_vendor(request->hook), prepare)(handle, *launched);
    vendor_result result = possible ? with_size(request, *launched) : VENDOR_INVALID_VALUE;
    if (__builtin_expect(result == VENDOR_SUCCESS, 1)) {
        if (!captures(request))
            overlap_cache_replace(&launch_cache, cache_handle, key_of(request), word, word | OVERLAP_WORD_DIRECT);
        return result;
    }
    if (!is_refusal(request, result))
        return result;
    *reason = OVERLAP_REASON_refused;
    *launched = request->config.sharedMemBytes;
    return launch_again(request, cache_handle, possible, reason);
}

/* ---- Any launch ---- */

uint64_t launch_word(const struct request *request, uint64_t *cache_handle, uint64_t *grid) {
    uint64_t word = 0;
    *cache_handle = cache_handle_of(request);
    if (overlap_cacheable(threads_of(request), request->config.sharedMemBytes))
        word = overlap_cache_find(&launch_cache, *cache_handle, key_of(request), blocks_of(request), grid);
    return word || !armed_and_ready(hook_vendor(request->hook)) ? word : facts_word(request, cache_handle, grid);
}

/* Why a launch with this decision is made as asked; the decision's own reason: it is not, or that is why. */
static uint32_t reason_here(uint64_t word, const struct stream *stream, const struct device *device) {
    const uint32_t decided = overlap_word_reason(word);
    if (word & OVERLAP_WORD_COMMUNICATION || decided == OVERLAP_REASON_invalid_as_asked)
        return decided;
    if (OVERLAP_RELAXED(stream->raised))
        return OVERLAP_REASON_raised;
    if (!(word & OVERLAP_WORD_CHANGED))
        return decided;
    if (OVERLAP_RELAXED(captures_open))
        return OVERLAP_REASON_captured;
    return word & OVERLAP_WORD_WINDOWED && !(device && window_is_open(device, stream)) ? OVERLAP_REASON_not_overlapping
                                                                                       : decided;
}

/* Keeps the answer in the thread's table, for as long as the epoch is what it was before the answer was found. */
static void remember(const struct request *request, uint64_t of, uint64_t word, uint64_t grid, struct stream *stream,
                     uint32_t serial, uint32_t epoch) {
    struct launcher *const launcher = this_thread.launcher;
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (!launcher || !of || (this_thread.filling && here < this_thread.filling)) /* in a signal handler */
        return;
    const uint64_t handle = cache_handle_of(request), key = key_of(request);
    struct known *const known = known_at(launcher, handle, of, key), *const beside = known_beside(launcher, known);
    this_thread.filling = here;
    if (known->epoch == epoch && !(known->function == handle && known->stream == of && known->key == key)) {
        __atomic_store_n(&beside->epoch, 0, __ATOMIC_RELAXED); /* the other launch moves over */
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        *beside = *known;
    }
    __atomic_store_n(&known->epoch, 0, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    known->function = handle;
    known->stream = of;
    known->key = key;
    known->least = (uint32_t)grid;
    known->range = (uint32_t)(grid >> 32) - (uint32_t)grid;
    known->word = word;
    known->record = stream;
    known->serial = serial;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(&known->epoch, epoch, __ATOMIC_RELAXED);
    this_thread.filling = 0;
}

static void count_work(const struct request *request, struct stream *stream) {
    if (!this_thread.launcher || stream == &no_stream)
        return;
    struct work *const work = work_slot(this_thread.launcher, stream);
    __atomic_store_n(&work->threads, work->threads + blocks_of(request) * threads_of(request), __ATOMIC_RELAXED);
}

/* Is this communication on more than a third of the multiprocessors? Raised, it takes them from computation at once; on
 * an H200 raised grids of 64 blocks cost up to 5.7 % of a kernel and its collective, grids of 24 up to 3.2 %
 * (docs/data/overlap.csv). */
static bool is_wide(const struct request *request, const struct device *device) {
    return blocks_of(request) > device->gpu.multiprocessors / OVERLAP_WIDE_PART;
}

vendor_result launch_slow(struct request *request) {
    const enum vendor vendor = hook_vendor(request->hook);
    const uint32_t epoch = __atomic_load_n(&launch_epoch, __ATOMIC_ACQUIRE);
    uint64_t cache_handle, grid = 0;
    if (!overlap_armed() || !real_function(request->route, request->hook, request->site))
        return as_asked(request);
    uint64_t word = launch_word(request, &cache_handle, &grid);
    if (!word)
        return as_asked(request);
    /* Before the call: after one that has failed the driver must not be asked anything. */
    const uint64_t of = stream_key(request->config.hStream, hook_default(request->hook));
    const bool captured = OVERLAP_RELAXED(captures_open);
    struct stream *const stream = streams_tracked() && !captured && !facts_forked
                                      ? stream_met(request->config.hStream, hook_default(request->hook))
                                      : &no_stream;
    const uint32_t serial = OVERLAP_LOAD(stream->serial);
    const struct device *const device = stream == &no_stream ? NULL : device_current(vendor);
    const bool communicates = word & OVERLAP_WORD_COMMUNICATION;
    const bool wide = communicates && device && is_wide(request, device);
    if (stream != &no_stream &&
        (!OVERLAP_RELAXED(stream->listed) || (communicates && !OVERLAP_RELAXED(stream->judged.communicates)) ||
         (wide && !OVERLAP_RELAXED(stream->judged.is_wide))))
        stream_carries(stream, communicates, wide);
    uint32_t reason = reason_here(word, stream, device), launched = request->config.sharedMemBytes;
    const bool changes = word & OVERLAP_WORD_CHANGED && reason == overlap_word_reason(word);
    vendor_result result;
    if (changes && !(word & OVERLAP_WORD_DIRECT)) {
        result = launch_unproven(request, word, cache_handle, &reason, &launched);
    } else {
        launched = changes ? (uint32_t)(word & OVERLAP_WORD_SIZE_MASK) : launched;
        result = with_size(request, launched);
    }
    const uint32_t row = reason == overlap_word_reason(word)
                             ? overlap_word_row(word)
                             : overlap_row_of_reason(overlap_current_page, overlap_word_row(word), reason);
    uint64_t answer = (word & (OVERLAP_WORD_COMMUNICATION | OVERLAP_WORD_VALID)) |
                      (uint64_t)row << OVERLAP_WORD_ROW_SHIFT |
                      (OVERLAP_RELAXED(stream->raised) ? OVERLAP_WORD_RAISED : 0);
    if (changes)
        answer |= (word & OVERLAP_WORD_SIZE_MASK) | OVERLAP_WORD_CHANGED;
    count_launch(request->counted, row);
    launch_count_special(answer, stream);
    if (!communicates)
        count_work(request, stream);
    if (cache_handle && grid && !captured && (!changes || word & OVERLAP_WORD_DIRECT))
        remember(request, of, answer, grid, stream, serial, epoch);
    return result;
}
