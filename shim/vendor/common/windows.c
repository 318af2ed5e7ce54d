/* Overlap windows for launches: find the stream of a launch, query its window position, and count the result.
 *
 * Successive launches are mostly on the same stream with no ordering call in between. So each thread caches the last
 * answer, which holds until the version of the model changes or the thread makes that stream wait for something new.
 */
#include "../../core/core.h"
#include "../../core/sync_access.h"
#include "../../core/window.h"
#include "../../sys/sys.h"
#include "arms.h"
#include "critical_streams.h"
#include "device.h"
#include "facts.h"
#include "follow.h"
#include "graph_exec.h"
#include "launch_slow.h"
#include "page.h"
#include "priority.h"
#include "resolve.h"
#include "sleep.h"
#include "this_thread.h"
#include "vendor_ops.h"
#include "windows.h"

struct overlap_sync_model *window_model;
static const uint64_t no_version = 1;
const uint64_t *window_version = &no_version; /* differs from the version of a thread without an answer */
static uint32_t grant_size;                   /* launches that one query reserves */
static uint32_t state;                        /* 0: not initialised, 1: being initialised, 2: no model, 3: model */
static uint64_t first;                        /* the first context seen */
static uint32_t several;                      /* other contexts were seen */
static uint32_t forgotten; /* decisions were invalidated because launches on the legacy default stream matter */

/* True if a policy of the table acts inside windows, or if the report needs them; false where every shaping rule
 * says `always`. *from_start: the model must be awake before the first communication launch. */
static bool wanted(const struct overlap_settings *settings, bool *from_start) {
    const struct overlap_view view = overlap_table_view(settings->table);
    bool wants = settings->trace;
    *from_start = critical_is_wanted(settings);
    for (uint32_t p = 0; p < view.table->policy_count; p++) {
        const struct overlap_policy *policy = &view.policies[p];
        bool shapes = false;
        for (uint32_t r = policy->first_rule; r < policy->first_rule + policy->rule_count; r++)
            if (view.rules[r].shape != OVERLAP_SHAPE_LEAVE) {
                shapes = true;
                *from_start |= view.rules[r].when != OVERLAP_WHEN_ALWAYS;
            }
        wants |= !shapes || policy->priority == OVERLAP_PRIORITY_AUTO;
    }
    return wants || *from_start;
}

__attribute__((cold, noinline)) static struct overlap_sync_model *begin(void) {
    uint32_t none = 0;
    const struct overlap_settings *settings = overlap_armed();
    if (!settings || !(driver_ready(VENDOR_CUDA) || driver_ready(VENDOR_HIP)))
        return NULL; /* retry at a later call */
    if (__atomic_compare_exchange_n(&state, &none, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        bool from_start;
        const bool wants = wanted(settings, &from_start);
        struct overlap_sync_model *model = wants ? overlap_map(sizeof *model) : NULL;
        if (wants && !model)
            overlap_say("there is no memory for overlap windows: rules with `when: overlapping` shape nothing here",
                        NULL, NULL);
        if (model) {
            grant_size = settings->trace ? 1 : 64;
            model->version = 2; /* 0: no cached answer; 1: no_version */
            model->pause = overlap_pause;
        }
        if (!model || !from_start)
            window_start_asleep();
        __atomic_store_n(&window_model, model, __ATOMIC_RELEASE);
        __atomic_store_n(&window_version, model ? &model->version : &no_version, __ATOMIC_RELEASE);
        __atomic_store_n(&state, model ? 3 : 2, __ATOMIC_RELEASE);
        if (model)
            critical_begin(model);
    }
    return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == 3 ? window_model : NULL;
}

struct overlap_sync_model *windows_begin(void) {
    const uint32_t now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    return now == 3 ? window_model : now == 2 ? NULL : begin();
}

/* ---- Streams ---- */

static void note_context(uint64_t context) {
    /* Plain load first: this runs at each launch if there are several contexts. */
    uint64_t one = OVERLAP_RELAXED(first);
    if (one == 0 && __atomic_compare_exchange_n(&first, &one, context, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    if (one != context && !OVERLAP_RELAXED(several))
        __atomic_store_n(&several, 1, __ATOMIC_RELAXED);
}

static bool only_one(enum vendor vendor) {
    return !OVERLAP_RELAXED(several) && !(driver_ready(VENDOR_CUDA) && driver_ready(VENDOR_HIP)) &&
           device_only_one(vendor);
}

uint64_t window_context(enum vendor vendor) {
    const uint64_t known = OVERLAP_RELAXED(first);
    if (known && only_one(vendor))
        return known;
    const uint64_t context = driver_ready(vendor) ? OPERATION_OF(vendor, context)() : 0;
    if (context)
        note_context(context);
    return context;
}

static struct overlap_stream *make_stream(struct overlap_sync_model *model, enum vendor vendor, vendor_stream stream,
                                          bool unseen) {
    uint64_t context = 0;
    uint32_t flags = 0;
    if (!driver_ready(vendor) || !OPERATION_OF(vendor, stream_facts)(stream, unseen, &context, &flags))
        return NULL;
    note_context(context);
    struct overlap_stream *const tracked =
        overlap_sync_stream(model, (uint64_t)(uintptr_t)stream, context,
                            flags & STREAM_NON_BLOCKING ? OVERLAP_STREAM_NON_BLOCKING : OVERLAP_STREAM_BLOCKING);
    if (tracked)
        __atomic_store_n(&tracked->part.handle, 1, __ATOMIC_RELAXED);
    return tracked;
}

RARE void window_stream_created(enum vendor vendor, uintptr_t site, vendor_stream stream) {
    struct overlap_sync_model *model = windows();
    arms_captures((uint64_t)(uintptr_t)stream, false); /* of an earlier stream at this address, gone with its context */
    if (!model)
        return;
    /* An earlier stream at this address may have been destroyed with its context. */
    critical_stream_destroyed(model, stream);
    overlap_sync_stream_gone(model, (uint64_t)(uintptr_t)stream);
    critical_stream_created(vendor, site, make_stream(model, vendor, stream, false));
}

struct overlap_stream *window_stream_lookup(struct overlap_sync_model *model, vendor_stream stream,
                                            enum default_stream null_stream) {
    uint64_t key = (uint64_t)(uintptr_t)stream;
    if (key > STREAM_PER_THREAD)
        return make_stream(model, default_vendor(null_stream), stream, true);
    const uint64_t context = window_context(default_vendor(null_stream));
    if (!context)
        return NULL;
    if (window_is_legacy(stream, null_stream))
        return overlap_sync_stream(model, context | 1, context, OVERLAP_STREAM_LEGACY);
    key = (context | 2) ^ (uint64_t)thread_id() << 42; /* contexts are even 42-bit numbers or 47-bit addresses */
    return overlap_sync_stream(model, key, context, OVERLAP_STREAM_BLOCKING);
}

/* ---- Computation ---- */

static inline void find(struct overlap_sync_model *model, struct overlap_stream *of, uint32_t wanted,
                        struct overlap_window_answer *found) {
    overlap_window_query(model, of, wanted, found);
    if (found->undone[OVERLAP_NO_OVERLAP_SAME_STREAM])
        launch_take_back(OVERLAP_COUNTER_SAME_STREAM, found->undone[OVERLAP_NO_OVERLAP_SAME_STREAM]);
    if (found->undone[OVERLAP_NO_OVERLAP_WAITED_FOR])
        launch_take_back(OVERLAP_COUNTER_WAITED_FOR, found->undone[OVERLAP_NO_OVERLAP_WAITED_FOR]);
}

/* True if a cached answer for this stream stays valid. The current context, which selects the default stream, can
 * change without a call that we see. */
static inline bool lasts(vendor_stream stream, enum default_stream null_stream) {
    return (uintptr_t)stream > STREAM_PER_THREAD || only_one(default_vendor(null_stream));
}

__attribute__((noinline)) static void query(struct overlap_sync_model *model, vendor_stream stream,
                                            enum default_stream null_stream) {
    struct this_thread *const thread = &this_thread;
    struct overlap_stream *const before = thread->of;
    const int64_t left = thread->left;
    thread->version = 0;
    thread->of = NULL; /* a signal handler that queries now must not return the launches again */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (before && thread->position == OVERLAP_POSITION_INSIDE && left > 0)
        overlap_window_return(before, thread->serial, thread->newest, (uint32_t)left);
    const uint64_t version = __atomic_load_n(&model->version, __ATOMIC_ACQUIRE), asked = ++thread->asked;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* a signal handler that waits from here on increments `asked` */
    struct overlap_stream *const of =
        before && (uintptr_t)stream > STREAM_PER_THREAD && overlap_stream_has(before, (uint64_t)(uintptr_t)stream)
            ? before
            : window_stream(model, stream, null_stream);
    struct overlap_window_answer found;
    find(model, of, grant_size, &found);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    thread->stream = stream;
    thread->null_stream = null_stream;
    thread->position = found.position;
    thread->left = found.granted;
    thread->step = overlap_row_step(window_reason(found.position));
    thread->unknown = found.unknown;
    thread->newest = found.newest;
    thread->serial = found.serial;
    struct overlap_stream *const here = thread->of = overlap_stream_here(of);
    thread->outside[0] = here && found.position == OVERLAP_POSITION_OUTSIDE && OVERLAP_LOAD(here->computation) >= 0
                             ? &here->launched
                             : NULL;
    thread->outside[1] = NULL;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    /* Publish the version last. A signal handler that interrupts this function finds no cached answer and may mix
     * its own with ours; then `asked` differs and no answer is kept. */
    thread->version = lasts(stream, null_stream) && thread->asked == asked ? version : 0;
}

/* Return the counter for this thread's launches outside windows, or a dummy if they are not counted. Launches whose
 * reason is not not_overlapping keep that reason. */
static uint64_t *counter_outside(struct overlap_sync_model *model, bool filling) {
    static __thread uint64_t not_counted __attribute__((tls_model("initial-exec")));
    uint64_t *counter = this_thread.outside[filling];
    if (!counter && (filling || this_thread.position == OVERLAP_POSITION_OUTSIDE))
        counter = overlap_window_outside(model, this_thread.of, filling);
    return this_thread.outside[filling] = counter ? counter : &not_counted;
}

bool window_cache_position(vendor_stream stream, uint32_t null_stream) {
    struct overlap_sync_model *const model = window_model;
    if (!model || !this_thread.shard || !lasts(stream, (enum default_stream)null_stream))
        return false;
    query(model, stream, (enum default_stream)null_stream);
    if (!this_thread.outside[0] && this_thread.position != OVERLAP_POSITION_INSIDE)
        counter_outside(model, false);
    return window_is_cached(stream, null_stream); /* a signal handler may have queried another stream since */
}

enum overlap_window_position window_count_launch(vendor_stream stream, enum default_stream null_stream, uint64_t word) {
    struct overlap_sync_model *model = windows();
    if (!model)
        return OVERLAP_POSITION_OUTSIDE;
    if (!window_is_cached(stream, null_stream))
        query(model, stream, null_stream);
    /* A launch that does not depend on the window does not consume it. */
    const enum overlap_window_position position = this_thread.position;
    if (position != OVERLAP_POSITION_INSIDE) {
        if (word & OVERLAP_WORD_WINDOWED)
            overlap_add_own(counter_outside(model, false), 1);
        if (word & OVERLAP_WORD_WATCHED)
            overlap_add_own(counter_outside(model, true), 1);
    } else if (word & OVERLAP_WORD_WINDOWED)
        window_take_one();
    return position;
}

RARE enum overlap_window_position window_position(vendor_stream stream, enum default_stream null_stream,
                                                  bool *unknown) {
    struct overlap_sync_model *model = windows();
    *unknown = false;
    if (!model)
        return OVERLAP_POSITION_OUTSIDE;
    if (!window_is_cached(stream, null_stream))
        query(model, stream, null_stream);
    *unknown = this_thread.unknown;
    return this_thread.position;
}

RARE struct overlap_window_answer window_query(vendor_stream stream, enum default_stream null_stream) {
    struct overlap_sync_model *model = windows();
    struct overlap_window_answer found = {0};
    if (model)
        find(model, window_stream(model, stream, null_stream), 0, &found);
    return found;
}

/* ---- Communication ---- */

RARE void window_legacy_invalidate(void) {
    if (!OVERLAP_RELAXED(forgotten) && !__atomic_exchange_n(&forgotten, 1, __ATOMIC_RELAXED)) {
        invalidate_decisions();
        overlap_cache_forget_all(&launch_cache);
    }
}

bool window_legacy_matters(void) {
    return OVERLAP_RELAXED(forgotten);
}

void window_communicates_on(struct overlap_sync_model *model, struct overlap_stream *tracked, vendor_stream stream,
                            enum default_stream null_stream) {
    window_wake_for_communication(model);
    const bool follows = !follow_skips;
    const struct overlap_before before = overlap_window_communicates(model, tracked, follows && follow_computed());
    if (overlap_stream_here(tracked) != tracked)
        __atomic_store_n(&exec_may_communicate, 1, __ATOMIC_RELAXED);
    if (before.launched)
        /* They were counted as not_overlapping. Their kernels are not recorded, so only the totals change. */
        launch_count_many(OVERLAP_COUNTER_LAUNCHED_BEFORE, before.launched);
    if (before.filling)
        priority_one_wave_beside();
    window_check_legacy(model);
    window_wake_if_asleep(model);
    if (critical_matters())
        critical_waited(model, default_vendor(null_stream), tracked, OVERLAP_CRITICAL_COMMUNICATION, true);
    if (follows)
        follow_begin(tracked, stream, null_stream, before.launched || before.filling);
    else
        follow_skips--;
}

void window_communicates(vendor_stream stream, enum default_stream null_stream) {
    struct overlap_sync_model *model = windows();
    if (model)
        window_communicates_on(model, window_stream(model, stream, null_stream), stream, null_stream);
}

void window_host_waited(struct overlap_sync_model *model, const struct overlap_completion *completion) {
    overlap_sync_complete(model, completion);
    follow_host();
    window_sleep_after_wait(model);
}

RARE void window_set_sequence(vendor_stream stream, enum default_stream null_stream, uint64_t sequence) {
    struct overlap_sync_model *model = windows();
    if (model)
        overlap_window_set_sequence(model, window_stream(model, stream, null_stream), sequence);
}

uint64_t window_last_serial(void) {
    return window_model ? OVERLAP_RELAXED(window_model->serials) : 0;
}

RARE void window_context_gone(const void *context, uint64_t last_serial) {
    struct overlap_sync_model *model = window_model;
    uint64_t key = (uint64_t)(uintptr_t)context;
    if (!model || !key)
        return;
    arms_context_gone(key);
    overlap_sync_context_gone(model, key, last_serial);
    __atomic_compare_exchange_n(&first, &key, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Handle the end of a primary context whose handle is no longer known: all work counts as finished, and a stream
 * entry is dropped when a new stream gets its address. */
RARE void window_device_over(enum vendor vendor, uint64_t context) {
    struct overlap_sync_model *model = windows();
    const uint64_t only = only_one(vendor) ? OVERLAP_RELAXED(first) : 0;
    arms_context_gone(context);
    /* Also drop what its streams wait for: the primary context may return at the same address. */
    if (model && only)
        overlap_sync_context_gone(model, only, UINT64_MAX);
    if (model)
        overlap_sync_complete(model, &(struct overlap_completion){.all = true});
}

/* A forked child has one thread only. */
RARE void window_forked(void) {
    window_version = &no_version;
    if (window_model)
        overlap_unmap(window_model, sizeof *window_model);
    window_model = NULL;
    state = several = forgotten = 0;
    first = 0;
    window_sleep_forked();
    this_thread.version = 0;
    this_thread.of = NULL;
    follow_forget();
}
