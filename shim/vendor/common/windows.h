/* Overlap windows of launches: map the streams of calls to the model (core/sync_model.h), and query it. */
#pragma once

#include "../../core/sync_access.h"
#include "../../core/window.h"
#include "hook.h"
#include "this_thread.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

/* windows() returns the model of this process, or NULL if no policy or report needs windows or if memory is short.
 * The first call creates the model; window_model itself is NULL until then. */
extern struct overlap_sync_model *window_model;
struct overlap_sync_model *windows_begin(void);
static inline struct overlap_sync_model *windows(void) {
    struct overlap_sync_model *model = __atomic_load_n(&window_model, __ATOMIC_ACQUIRE);
    return __builtin_expect(model != NULL, 1) ? model : windows_begin();
}

/* Return the stream that a call means, or NULL if it is untracked. null_stream: which default stream NULL means in that
 * call. */
struct overlap_stream *window_stream_lookup(struct overlap_sync_model *model, vendor_stream stream,
                                            enum default_stream null_stream);
static inline struct overlap_stream *window_stream(struct overlap_sync_model *model, vendor_stream stream,
                                                   enum default_stream null_stream) {
    struct overlap_stream *found =
        (uintptr_t)stream > STREAM_PER_THREAD ? overlap_sync_find(model, (uint64_t)(uintptr_t)stream) : NULL;
    return __builtin_expect(found != NULL, 1) ? found : window_stream_lookup(model, stream, null_stream);
}

void window_stream_created(enum vendor vendor, uintptr_t site, vendor_stream stream);

static inline bool window_is_legacy(vendor_stream stream, enum default_stream null_stream) {
    return (uintptr_t)stream == STREAM_LEGACY || (stream == NULL && !default_is_thread(null_stream));
}

/* Return the current context, or 0. */
uint64_t window_context(enum vendor vendor);

/* Invalidate all decisions, once, when launches on the legacy default stream begin to matter: from then on the slow
 * path handles each of them. window_check_legacy() is called after every call that may cause this. */
void window_legacy_invalidate(void);
static inline void window_check_legacy(struct overlap_sync_model *model) {
    if (__builtin_expect(OVERLAP_RELAXED(model->legacy_matters), 0))
        window_legacy_invalidate();
}

/* overlap_sync_waits(), and invalidate this thread's cached answer if it became stale. Returns true if the awaited
 * communication was waited for late. */
static inline bool window_waits(struct overlap_sync_model *model, struct overlap_stream *stream, uint64_t key) {
    struct this_thread *const thread = &this_thread;
    const uint32_t waited = overlap_sync_waits(model, stream, key);
    if (waited & OVERLAP_WAITED_STALE && (!thread->of || thread->of == overlap_stream_here(stream))) {
        thread->version = 0;
        thread->asked++; /* discards the query that we interrupted, if this is a signal handler */
    }
    return waited & OVERLAP_WAITED_PATIENTLY;
}

/* Return the window position of a computation launch whose word has one of WINDOW_BITS. A launch inside consumes one
 * launch of the window; a launch outside is counted. */
enum overlap_window_position window_count_launch(vendor_stream stream, enum default_stream null_stream, uint64_t word);

/* Query the model and cache the position of the stream for this thread. The hot path then counts by itself. False: the
 * answer cannot be cached, or every launch must take the slow path. */
bool window_cache_position(vendor_stream stream, uint32_t null_stream);

/* True if this thread's cached answer still holds for the stream. */
static inline bool window_is_cached(vendor_stream stream, uint32_t null_stream) {
    return this_thread.version == __atomic_load_n(window_version, __ATOMIC_ACQUIRE) && this_thread.stream == stream &&
           this_thread.null_stream == null_stream && this_thread.left > 0;
}

/* Consume one of the launches that were granted to this thread inside the window. */
static inline void window_take_one(void) {
    overlap_add_own((uint64_t *)&this_thread.left, UINT64_MAX);
}

/* The reason code of a launch outside a window. */
static inline uint32_t window_reason(enum overlap_window_position where) {
    return where == OVERLAP_POSITION_EXPIRED       ? OVERLAP_REASON_window_expired
           : where == OVERLAP_POSITION_SAME_STREAM ? OVERLAP_REASON_same_stream
                                                   : OVERLAP_REASON_not_overlapping;
}

/* Return the window position without counting or consuming anything; the cached answer if it still holds. *unknown:
 * the stream is outside because it waits for something untracked. */
enum overlap_window_position window_position(vendor_stream stream, enum default_stream null_stream, bool *unknown);

/* Query the model itself and return the full answer. Consumes nothing. */
struct overlap_window_answer window_query(vendor_stream stream, enum default_stream null_stream);

/* The host has waited for this work. */
void window_host_waited(struct overlap_sync_model *model, const struct overlap_completion *completion);

/* Record a communication launch, or the launch of a graph that contains communication. */
void window_communicates(vendor_stream stream, enum default_stream null_stream);
/* The same for a stream that was looked up already; NULL: untracked. */
void window_communicates_on(struct overlap_sync_model *model, struct overlap_stream *tracked, vendor_stream stream,
                            enum default_stream null_stream);

/* Store the trace sequence number of the communication launch just recorded. */
void window_set_sequence(vendor_stream stream, enum default_stream null_stream, uint64_t sequence);

/* True once launches on the legacy default stream matter. */
bool window_legacy_matters(void);

/* Contexts that end: pass the result of window_last_serial() before the driver's call to window_context_gone() after
 * it. window_device_over() is for a primary context (0: its handle is not known); window_forked() drops everything in a
 * forked child. */
uint64_t window_last_serial(void);
void window_context_gone(const void *context, uint64_t last_serial);
void window_device_over(enum vendor vendor, uint64_t context);
void window_forked(void);

/* What makes the word of a computation launch depend on overlap windows. */
#define WINDOW_BITS (OVERLAP_WORD_WINDOWED | OVERLAP_WORD_WATCHED | OVERLAP_WORD_ORDERS)

#pragma GCC visibility pop
