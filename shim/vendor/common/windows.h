/* Overlap windows in the frontends. core (window.h, WINDOWS.md) keeps the happens-before model; this layer calls it.
 * windows.c maps streams and queries the model for launches; sync_calls.c, capture.c and copy_calls.c hold the bodies of the calls
 * that order work.
 */
#pragma once

#include "../../core/window.h"
#include "vendor.h"

#pragma GCC visibility push(hidden)

/* How struct overlap_part stores the priority that a stream has without us: not read yet; variable, so read it each
 * time; or STREAM_PRIORITY_0 plus the priority. */
enum stream_priority { STREAM_PRIORITY_UNKNOWN = 0, STREAM_PRIORITY_CHANGES = 1, STREAM_PRIORITY_0 = 1 << 30 };

/* ---- windows.c ---- */

/* windows() returns the model of this process, or NULL if no policy or report needs windows or if memory is short.
 * The first call creates the model; window_model itself is NULL until then. */
extern struct overlap_sync_model *window_model;
struct overlap_sync_model *windows_begin(void);
static inline struct overlap_sync_model *windows(void) {
    struct overlap_sync_model *model = __atomic_load_n(&window_model, __ATOMIC_ACQUIRE);
    return __builtin_expect(model != NULL, 1) ? model : windows_begin();
}

/* ---- sleep.c: while nothing depends on the model, calls that order work go straight to the driver ---- */

/* 0: awake. LIGHT: host waits still go to critical_streams.c. DEEP: they do not, or there is no model. */
enum { WINDOW_LIGHT = 1, WINDOW_DEEP = 2 };
extern uint32_t window_sleeps;
static inline bool window_asleep(void) {
    return __atomic_load_n(&window_sleeps, __ATOMIC_ACQUIRE);
}
static inline bool window_asleep_deeply(void) {
    return __atomic_load_n(&window_sleeps, __ATOMIC_ACQUIRE) == WINDOW_DEEP;
}
void window_sleeps_from_the_start(void);
/* window_rests(): a counting period has ended. window_quiet(): the host has seen some work to be finished. Both may
 * put the model to sleep. */
void window_rests(struct overlap_sync_model *model);
void window_quiet(struct overlap_sync_model *model);
/* window_wake() and window_stir(): the model was given something that it must track, such as a capture or an unknown
 * wait. window_loud(): communication is or was launched. */
void window_wake(struct overlap_sync_model *model);
static inline void window_stir(struct overlap_sync_model *model) {
    /* seq_cst: ordered after the update of the model that precedes this call. */
    if (__builtin_expect(__atomic_load_n(&window_sleeps, __ATOMIC_SEQ_CST), 0))
        window_wake(model);
}
void window_loud(struct overlap_sync_model *model);
/* The call began while the model slept and returned after it woke. */
vendor_result window_missed_record(vendor_event event, vendor_result result);
vendor_result window_missed_wait(vendor_stream stream, enum default_stream whose, vendor_result result);
void window_sleep_forked(void);

/* ---- windows.c ---- */

/* Return the stream that a call means, or NULL if it is untracked. whose: which default stream NULL means in that
 * call. */
struct overlap_stream *window_stream_other(struct overlap_sync_model *model, vendor_stream stream,
                                           enum default_stream whose);
static inline struct overlap_stream *window_stream(struct overlap_sync_model *model, vendor_stream stream,
                                                   enum default_stream whose) {
    struct overlap_stream *found =
        (uintptr_t)stream > STREAM_PER_THREAD ? overlap_sync_find(model, (uint64_t)(uintptr_t)stream) : NULL;
    return __builtin_expect(found != NULL, 1) ? found : window_stream_other(model, stream, whose);
}

void window_stream_made(enum vendor vendor, uintptr_t site, vendor_stream stream);

static inline bool window_is_legacy(vendor_stream stream, enum default_stream whose) {
    return (uintptr_t)stream == STREAM_LEGACY || (stream == NULL && !default_is_thread(whose));
}

/* Return the current context, or 0. */
uint64_t window_context(enum vendor vendor);

/* Invalidate all decisions, once, when launches on the legacy default stream begin to matter: from then on the slow
 * path handles each of them. window_after() is called after every call that may cause this. */
void window_legacy_counts(void);
static inline void window_after(struct overlap_sync_model *model) {
    if (__builtin_expect(__atomic_load_n(&model->legacy_matters, __ATOMIC_RELAXED), 0))
        window_legacy_counts();
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

/* Return the window position of a computation launch whose word has one of WINDOW_BITS, consume one launch of the
 * window if it is inside, and count it if it is outside. */
enum overlap_where window_asks(vendor_stream stream, enum default_stream whose, uint64_t word);

/* The same for the hot path, which counts by itself: only caches the position of the stream for this thread. False:
 * the answer cannot be cached, or every launch must take the slow path. */
bool window_ask_here(vendor_stream stream, uint32_t whose);

/* True if this thread's cached answer still holds for the stream. */
static inline bool window_told(vendor_stream stream, uint32_t whose) {
    return this_thread.version == __atomic_load_n(window_version, __ATOMIC_ACQUIRE) && this_thread.stream == stream &&
           this_thread.whose == whose && this_thread.left > 0;
}

/* Consume one of the launches that were granted to this thread inside the window. */
static inline void window_take_one(void) {
    overlap_add_own((uint64_t *)&this_thread.left, UINT64_MAX);
}

/* The reason code of a launch outside a window. */
static inline uint32_t window_reason(enum overlap_where where) {
    return where == OVERLAP_WHERE_EXPIRED       ? OVERLAP_REASON_window_expired
           : where == OVERLAP_WHERE_SAME_STREAM ? OVERLAP_REASON_same_stream
                                                : OVERLAP_REASON_not_overlapping;
}

/* Return the window position without counting or consuming anything; the cached answer if it still holds. *unknown:
 * the stream is outside because it waits for something untracked. */
enum overlap_where window_where(vendor_stream stream, enum default_stream whose, bool *unknown);

/* Query the model itself and return the full answer. Consumes nothing. */
struct overlap_found window_look(vendor_stream stream, enum default_stream whose);

/* The host has seen this work to be finished. */
void window_saw(struct overlap_sync_model *model, const struct overlap_seen *seen);

/* Record a communication launch, or the launch of a graph that contains communication. */
void window_communicates(vendor_stream stream, enum default_stream whose);
/* The same for a stream that was looked up already; NULL: untracked. */
void window_communicates_on(struct overlap_sync_model *model, struct overlap_stream *its, vendor_stream stream,
                            enum default_stream whose);

/* Store the trace sequence number of the communication launch just recorded. */
void window_numbered(vendor_stream stream, enum default_stream whose, uint64_t sequence);

/* True once launches on the legacy default stream matter. */
bool window_legacy_matters(void);

/* Contexts that end: call window_seen() before the driver's call and pass its result to window_context_gone() after
 * it. window_device_over() is for the primary context of some device; window_forked() drops everything in a forked
 * child. */
uint64_t window_seen(void);
void window_context_gone(const void *context, uint64_t seen);
void window_device_over(enum vendor vendor);
void window_forked(void);

/* ---- critical_streams.c: streams that the host or communication waits for ---- */

enum { CRITICAL_STREAMS = 16 }; /* raised at the same time */
struct critical_stream {
    uint64_t handle; /* 0: free */
    struct overlap_stream *its;
    struct overlap_page_stream *record; /* may be NULL */
    int priority;
};

/* critical_counts: a counting period is running. critical_any: some stream is raised. If either is 1, computation
 * launches call critical_launch(). */
extern uint32_t critical_counts, critical_any;
/* 0: not checked yet; 1: no policy asks for critical streams, so everything below is a no-op; 2: one does. */
extern uint32_t critical_wanted;
static inline bool critical_matters(void) {
    return __atomic_load_n(&critical_wanted, __ATOMIC_RELAXED) != 1;
}

/* A Bloom filter of the raised streams, one bit for each by a hash of its handle: it spares most launches on other
 * streams the lookup. */
enum { CRITICAL_BLOOM_BITS = 6 };
extern uint64_t critical_bloom;
static inline uint64_t critical_bit(uint64_t handle) {
    return UINT64_C(1) << (handle * OVERLAP_CACHE_FACTOR >> (64 - CRITICAL_BLOOM_BITS));
}
static inline bool critical_may_be(vendor_stream stream) {
    return __atomic_load_n(&critical_bloom, __ATOMIC_RELAXED) & critical_bit((uint64_t)(uintptr_t)stream);
}

/* True if a policy of the table asks for critical streams. */
bool critical_is_wanted(const struct overlap_settings *settings);

/* Begin a counting period. */
void critical_begin(struct overlap_sync_model *model);

/* Record a computation launch. Returns the entry of its stream if that is raised, else NULL. */
struct critical_stream *critical_launch(const struct request *request);
/* The same for a stream that is raised, outside counting periods. False: the stream is no longer raised. */
bool critical_launch_raised(const struct request *request, struct critical_stream *entry);
/* Look the stream up without recording a launch; NULL: not raised. */
struct critical_stream *critical_find_any(vendor_stream stream);
static inline struct critical_stream *critical_find(vendor_stream stream) {
    return __builtin_expect(critical_may_be(stream), 0) ? critical_find_any(stream) : NULL;
}
/* Record a graph launch on the stream. */
void critical_graph(struct overlap_stream *its);

/* The host or another stream waits for `its` (NULL: untracked). why: enum overlap_critical. communication: the
 * waiter communicates. */
void critical_waited(struct overlap_sync_model *model, enum vendor vendor, struct overlap_stream *its, uint32_t why,
                     bool communication);
/* critical_feeds(): `its` waits for an event. critical_host_waits(): the host has waited for the work in *seen. */
void critical_feeds(struct overlap_sync_model *model, enum vendor vendor, struct overlap_stream *its, uint64_t event);
static inline void critical_fed(struct overlap_sync_model *model, enum vendor vendor, struct overlap_stream *its,
                                uint64_t event) {
    if (__builtin_expect(__atomic_load_n(&its->part.why, __ATOMIC_RELAXED), 0))
        critical_feeds(model, vendor, its, event);
}
void critical_host_waits(struct overlap_sync_model *model, enum vendor vendor, const struct overlap_seen *seen);
/* While the model sleeps. The first two set *seen to the awaited stream as far as it is still known.
 * critical_polled(): the host has queried `what`; returns whether that counts as a wait, which it does not if the
 * previous query already said that it is finished. */
void critical_see_stream(struct overlap_stream *its, struct overlap_seen *seen);
void critical_see_event(struct overlap_sync_model *model, uint64_t event, struct overlap_seen *seen);
bool critical_polled(uint64_t what, bool is_over);
/* The host has waited for an untracked event. */
void critical_strange(struct overlap_sync_model *model);

/* critical_creates(): true, with *priority set, if the stream that the code at `site` created before was critical.
 * critical_made(): that code has created a stream. critical_is_programs(): the program has set the stream's
 * priority. critical_gone(): the stream is destroyed. critical_forked(): so are all, in a forked child. */
bool critical_creates(enum vendor vendor, uintptr_t site, int *priority);
void critical_made(enum vendor vendor, uintptr_t site, struct overlap_stream *its);
void critical_is_programs(vendor_stream stream);
/* An attribute copy has given the capturing stream `to` the priority that we gave `from`: `to` counts as raised
 * until it can be lowered. */
void critical_copied(vendor_stream to, enum default_stream whose, const struct critical_stream *from);
void critical_gone(struct overlap_sync_model *model, vendor_stream stream);
void critical_forked(void);

/* ---- traced.c ---- */

/* --trace. trace_ask() gathers what a record holds besides the launch itself. It runs before the launch, because
 * after a call that failed the driver must not be queried. launch_trace() writes the record and returns its sequence
 * number. raised: launched at the word's priority. */
struct trace_facts {
    const struct device *device;
    const char *kernel;
    struct overlap_found found;
};
void trace_ask(const struct request *request, struct trace_facts *facts);
uint64_t launch_trace(const struct request *request, uint32_t reason, uint32_t launched, bool raised, uint64_t word,
                      const struct trace_facts *facts);

/* ---- follow.c: does a communication launch overlap anything at all? ---- */

/* Number of communication launches that this thread will not follow; nothing below is called for them. */
extern __thread uint32_t follow_skips __attribute__((tls_model("initial-exec")));
/* This thread has launched communication; follow its next launches. overlapped: earlier launches already overlap it. */
void follow_begin(struct overlap_stream *its, vendor_stream stream, enum default_stream whose, bool overlapped);
/* This thread launches computation. Only called while it follows. */
void follow_launch(vendor_stream stream, enum default_stream whose, uint64_t word);
/* The host has waited: communication that is finished cannot be overlapped any more. */
void follow_host(void);
/* True if this thread has since launched computation on another stream. */
bool follow_computed(void);
void follow_forget(void);

/* ---- sync_calls.c, copy_calls.c, capture.c ---- */

/* A launch call records this event itself. */
void order_event_of_launch(vendor_event event);
/* A copy, fill or similar call was made on a stream. */
void copy_made(vendor_stream stream, enum default_stream whose);
/* A node was added that records an event or waits for one; dependencies were added. */
void capture_node_records(vendor_event event);
void capture_node_waits(void);
void capture_dependencies_added(void);
/* 1: a stream has been captured in this process. */
extern uint32_t capture_begun;
/* The stream waits for something that this library cannot track. */
vendor_result order_waits_unseen(enum hook hook, vendor_stream stream, vendor_result result);

/* ---- graph_exec.c: graphs that contain communication ---- */

/* Communication was captured or added as a node: from now on graphs are inspected. */
extern uint32_t exec_may_communicate;
/* The program creates nodes that wait: from now on graphs are inspected. */
extern uint32_t exec_may_wait;
/* Flags of an executable graph: what it contains, and whether its node priorities are honoured because of our flag
 * (EXEC_FLAGGED) or the program's (EXEC_PROGRAMS). EXEC_AT(p): it contains communication nodes that we raised to p,
 * which is negative, and that run at p. EXEC_OWN(p): nodes that we raised would have priority p without us.
 * EXEC_THERE(p): other nodes have priority p. */
enum exec_flag { EXEC_COMMUNICATES = 1, EXEC_WAITS = 2, EXEC_UNKNOWN = 4, EXEC_FLAGGED = 8, EXEC_PROGRAMS = 16 };
enum { EXEC_PRIORITIES = 7, EXEC_AT_SHIFT = 5, EXEC_OWN_SHIFT = 13, EXEC_THERE_SHIFT = 21 };
/* The bit of a priority, which is 0 to -5 on GPUs so far; the last bit stands for all priorities beyond. */
#define EXEC_BIT(priority) (1U << ((priority) < -EXEC_PRIORITIES ? EXEC_PRIORITIES : (priority) > 0 ? 0 : -(priority)))
#define EXEC_AT(priority) (EXEC_BIT(priority) << EXEC_AT_SHIFT)
#define EXEC_OWN(priority) (EXEC_BIT(priority) << EXEC_OWN_SHIFT)
#define EXEC_OWN_ANY (((2U << EXEC_PRIORITIES) - 1) << EXEC_OWN_SHIFT)
#define EXEC_THERE(priority) (EXEC_BIT(priority) << EXEC_THERE_SHIFT)
/* exec_made(): the graph was instantiated as `exec`. ours: its priority flags, which are fixed at instantiation.
 * exec_updated(): `exec` was updated from another graph. */
void exec_made(enum vendor vendor, const void *exec, vendor_graph graph, uint32_t ours);
void exec_updated(enum vendor vendor, const void *exec, vendor_graph graph);
uint32_t exec_flags(const void *exec);

#pragma GCC visibility pop
