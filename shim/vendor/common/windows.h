/* Overlap windows: which calls order what is core's (window.h, WINDOWS.md); here is who calls it. windows.c knows
 * streams and asks for launches; order.c, capture.c and copy.c have the bodies of calls that order.
 */
#pragma once

#include "../../core/window.h"
#include "vendor.h"

#pragma GCC visibility push(hidden)

/* The priority of a stream without us, as it is kept in struct overlap_part: not asked for yet; it changes, so it is asked for
 * each time; or this number and the priority. */
enum stream_priority { STREAM_PRIORITY_UNKNOWN = 0, STREAM_PRIORITY_CHANGES = 1, STREAM_PRIORITY_0 = 1 << 30 };

/* ---- windows.c ---- */

/* The model of this process; NULL: nobody here asks for windows, or there is no memory for it. */
extern struct overlap_order *window_model; /* the same, once anybody has asked */
struct overlap_order *windows_begin(void);
static inline struct overlap_order *windows(void) {
    struct overlap_order *order = __atomic_load_n(&window_model, __ATOMIC_ACQUIRE);
    return __builtin_expect(order != NULL, 1) ? order : windows_begin();
}

/* ---- sleep.c: while nothing can follow from the model, calls that order go to the driver at once ---- */

/* 0: awake; LIGHT: waits of the host are still looked at, for critical.c; DEEP: nothing is, or there is no model. */
enum { WINDOW_LIGHT = 1, WINDOW_DEEP = 2 };
extern uint32_t window_sleeps;
static inline bool window_asleep(void) {
    return __atomic_load_n(&window_sleeps, __ATOMIC_ACQUIRE);
}
static inline bool window_asleep_deeply(void) {
    return __atomic_load_n(&window_sleeps, __ATOMIC_ACQUIRE) == WINDOW_DEEP;
}
void window_sleeps_from_the_start(void);
/* A period of counting is over; the host has seen something to be over. */
void window_rests(struct overlap_order *order);
void window_quiet(struct overlap_order *order);
/* Something was told that must be followed: a capture, an unknown wait. Communication is launched, or was. */
void window_wake(struct overlap_order *order);
static inline void window_stir(struct overlap_order *order) {
    if (__builtin_expect(__atomic_load_n(&window_sleeps, __ATOMIC_SEQ_CST), 0)) /* in order with what was told before */
        window_wake(order);
}
void window_loud(struct overlap_order *order);
/* The call was made while the model slept, which it does no more. */
vendor_result window_missed_record(vendor_event event, vendor_result result);
vendor_result window_missed_wait(vendor_stream stream, enum default_stream whose, vendor_result result);
void window_sleep_forked(void);

/* ---- windows.c ---- */

/* The stream that a call means; NULL: nothing is known of it. whose: what the default stream is to that call. */
struct overlap_stream *window_stream_other(struct overlap_order *order, vendor_stream stream,
                                           enum default_stream whose);
static inline struct overlap_stream *window_stream(struct overlap_order *order, vendor_stream stream,
                                                   enum default_stream whose) {
    struct overlap_stream *found =
        (uintptr_t)stream > STREAM_PER_THREAD ? overlap_order_find(order, (uint64_t)(uintptr_t)stream) : NULL;
    return __builtin_expect(found != NULL, 1) ? found : window_stream_other(order, stream, whose);
}

/* The program has made a stream. */
void window_stream_made(enum vendor vendor, uintptr_t site, vendor_stream stream);

/* Is it the legacy default stream? */
static inline bool window_is_legacy(vendor_stream stream, enum default_stream whose) {
    return (uintptr_t)stream == STREAM_LEGACY || (stream == NULL && !default_is_thread(whose));
}

/* The current context, or 0. */
uint64_t window_context(enum vendor vendor);

/* A call has ended that may have made launches on the legacy default stream matter: from then on all are looked at. */
void window_legacy_counts(void);
static inline void window_after(struct overlap_order *order) {
    if (__builtin_expect(__atomic_load_n(&order->legacy_matters, __ATOMIC_RELAXED), 0))
        window_legacy_counts();
}

/* overlap_order_waits(), with what this thread has been told. True: communication that nobody was in a hurry for. */
static inline bool window_waits(struct overlap_order *order, struct overlap_stream *stream, uint64_t key) {
    struct this_thread *const thread = &this_thread;
    const uint32_t waited = overlap_order_waits(order, stream, key);
    if (waited & OVERLAP_WAITED_STALE && (!thread->of || thread->of == overlap_stream_here(stream))) {
        thread->version = 0;
        thread->asked++; /* the question that we have interrupted, if we are a signal handler's */
    }
    return waited & OVERLAP_WAITED_PATIENTLY;
}

/* A computation launch whose word has one of WINDOW_BITS is made now: where, and may the window be taken for it? Counts what
 * is outside. */
enum overlap_where window_asks(vendor_stream stream, enum default_stream whose, uint64_t word);

/* The same for the hot path, which counts by itself: the thread is told where the stream is. False: it cannot be, or somebody wants to see
 * every launch. */
bool window_ask_here(vendor_stream stream, uint32_t whose);

/* Is what the thread has been told last still true for this stream? */
static inline bool window_told(vendor_stream stream, uint32_t whose) {
    return this_thread.version == __atomic_load_n(window_version, __ATOMIC_ACQUIRE) && this_thread.stream == stream &&
           this_thread.whose == whose && this_thread.left > 0;
}

/* One of the launches that the thread may still make inside is made. */
static inline void window_take_one(void) {
    overlap_add_own((uint64_t *)&this_thread.left, UINT64_MAX);
}

/* Why a launch outside is left alone. */
static inline uint32_t window_reason(enum overlap_where where) {
    return where == OVERLAP_WHERE_EXPIRED       ? OVERLAP_REASON_window_expired
           : where == OVERLAP_WHERE_SAME_STREAM ? OVERLAP_REASON_same_stream
                                                : OVERLAP_REASON_not_overlapping;
}

/* Where a launch is that counts nowhere: what the thread has been told last, if that is still true. unknown: outside, because the
 * stream waits for something that is not known. */
enum overlap_where window_where(vendor_stream stream, enum default_stream whose, bool *unknown);

/* The same, with all that is known, for those who use up nothing. */
struct overlap_found window_look(vendor_stream stream, enum default_stream whose);

/* The host has seen something to be over. */
void window_saw(struct overlap_order *order, const struct overlap_seen *seen);

/* A communication launch, or one of a graph that holds some, has been made. Under which way it was counted. */
void window_communicates(vendor_stream stream, enum default_stream whose);
/* The same for one whose stream has been found; NULL: nothing is known of it. */
void window_communicates_on(struct overlap_order *order, struct overlap_stream *its, vendor_stream stream,
                            enum default_stream whose);

/* ...it has this number in the trace. */
void window_numbered(vendor_stream stream, enum default_stream whose, uint64_t sequence);

/* Have launches on the legacy default stream turned out to matter? */
bool window_legacy_matters(void);

/* A context is gone; the primary one of some device; everything, in a forked child. */
/* Around the call that ends a context: what the first returns is for the second. */
uint64_t window_seen(void);
void window_context_gone(const void *context, uint64_t seen);
void window_device_over(enum vendor vendor);
void window_forked(void);

/* ---- critical.c: streams that somebody waits for ---- */

enum { CRITICAL_STREAMS = 16 }; /* raised at the same time */
struct critical_stream {
    uint64_t handle; /* 0: free */
    struct overlap_stream *its;
    struct overlap_page_stream *record; /* or NULL */
    int priority;
};

/* 1: work is counted now; some stream is raised. Launches of computation tell critical_launch() where one is so. */
extern uint32_t critical_counts, critical_any;
/* 0: not looked yet; 1: no policy asks for it, so nothing below does anything; 2: one does. */
extern uint32_t critical_wanted;
static inline bool critical_matters(void) {
    return __atomic_load_n(&critical_wanted, __ATOMIC_RELAXED) != 1;
}

/* A bit for each stream that is raised, by a hash of its handle: most launches on others see by that alone that they need no look. */
enum { CRITICAL_BLOOM_BITS = 6 };
extern uint64_t critical_bloom;
static inline uint64_t critical_bit(uint64_t handle) {
    return UINT64_C(1) << (handle * OVERLAP_CACHE_FACTOR >> (64 - CRITICAL_BLOOM_BITS));
}
static inline bool critical_may_be(vendor_stream stream) {
    return __atomic_load_n(&critical_bloom, __ATOMIC_RELAXED) & critical_bit((uint64_t)(uintptr_t)stream);
}

/* Is there a policy that asks for it? */
bool critical_is_wanted(const struct overlap_settings *settings);

/* Counting begins, with the model. */
void critical_begin(struct overlap_order *order);

/* Computation is launched. Returns what is known of its stream where that is raised; else NULL. */
struct critical_stream *critical_launch(const struct request *request);
/* The same on a stream that is known to be raised, while no work is counted. False: it is raised no more. */
bool critical_launch_raised(const struct request *request, struct critical_stream *place);
/* The same stream, for who only wants to know. */
struct critical_stream *critical_find_any(vendor_stream stream);
static inline struct critical_stream *critical_find(vendor_stream stream) {
    return __builtin_expect(critical_may_be(stream), 0) ? critical_find_any(stream) : NULL;
}
/* A graph is launched on it. */
void critical_graph(struct overlap_stream *its);

/* Somebody waits for the stream (NULL: not known), why: enum overlap_critical. communication: what waits for it communicates. */
void critical_waited(struct overlap_order *order, enum vendor vendor, struct overlap_stream *its, uint32_t why,
                     bool communication);
/* It waits for an event; the host has waited for what it has seen now. */
void critical_feeds(struct overlap_order *order, enum vendor vendor, struct overlap_stream *its, uint64_t event);
static inline void critical_fed(struct overlap_order *order, enum vendor vendor, struct overlap_stream *its,
                                uint64_t event) {
    if (__builtin_expect(__atomic_load_n(&its->part.why, __ATOMIC_RELAXED), 0))
        critical_feeds(order, vendor, its, event);
}
void critical_host_waits(struct overlap_order *order, enum vendor vendor, const struct overlap_seen *seen);
/* While the model sleeps: what the host waits for, as far as it is known without it; it has asked whether something is over, and is that a
 * wait? Not where it has just been told so. */
void critical_see_stream(struct overlap_stream *its, struct overlap_seen *seen);
void critical_see_event(struct overlap_order *order, uint64_t event, struct overlap_seen *seen);
bool critical_polled(uint64_t what, bool is_over);
/* It has waited for an event of which nothing is known. */
void critical_strange(struct overlap_order *order);

/* The code at site makes a stream: is the one that it made before critical? Then *priority is the one for it. And it has made one; the
 * program has set the priority of one; one is gone. In a forked child all are. */
bool critical_creates(enum vendor vendor, uintptr_t site, int *priority);
void critical_made(enum vendor vendor, uintptr_t site, struct overlap_stream *its);
void critical_is_programs(vendor_stream stream);
/* ...or has got by a copy what we had given another one, and captures: it counts as raised until it can be lowered. */
void critical_copied(vendor_stream to, enum default_stream whose, const struct critical_stream *from);
void critical_gone(struct overlap_order *order, vendor_stream stream);
void critical_forked(void);

/* ---- traced.c ---- */

/* --trace: what a line says besides the launch, asked before it is made: behind a call of the program that has failed, nothing
 * may be asked. found: where it is. Then the launch is written down; its number. raised: at the word's priority. */
struct trace_facts {
    const struct device *device;
    const char *kernel;
    struct overlap_found found;
};
void trace_ask(const struct request *request, struct trace_facts *facts);
uint64_t launch_trace(const struct request *request, uint32_t reason, uint32_t launched, bool raised, uint64_t word,
                      const struct trace_facts *facts);

/* ---- follow.c: can a communication launch overlap anything at all? ---- */

/* So many communication launches of the thread are not followed yet: nothing below is asked for them. */
extern __thread uint32_t follow_skips __attribute__((tls_model("initial-exec")));
/* The thread has launched communication: its next launches tell. overlapped: what was launched before has told already. */
void follow_begin(struct overlap_stream *its, vendor_stream stream, enum default_stream whose, bool overlapped);
/* The thread launches computation; only called while it follows. */
void follow_launch(vendor_stream stream, enum default_stream whose, uint64_t word);
/* The host has waited for something: nothing more can come beside communication that is over. */
void follow_host(void);
/* Has it launched computation on another stream since? */
bool follow_computed(void);
void follow_forget(void);

/* ---- order.c, copy.c, capture.c ---- */

/* A launch records this event by itself. */
void order_event_of_launch(vendor_event event);
/* Something was done on a stream. */
void copy_made(vendor_stream stream, enum default_stream whose);
/* A node was added that records an event; one that waits; dependencies were. */
void capture_node_records(vendor_event event);
void capture_node_waits(void);
void capture_dependencies_added(void);
/* 1: a stream has captured in this process. */
extern uint32_t capture_begun;
/* The stream waits for something that nobody here can see. */
vendor_result order_waits_unseen(enum hook hook, vendor_stream stream, vendor_result result);

/* ---- exec.c: graphs that hold communication ---- */

/* Communication was captured or added: graphs are looked into from now on. */
extern uint32_t exec_may_communicate;
/* Somebody makes nodes that wait for something: likewise. */
extern uint32_t exec_may_wait;
/* Of an instance: what it holds; priorities of its nodes count by our flag (EXEC_FLAGGED) or by the program's (EXEC_PROGRAMS);
 * EXEC_AT(): there are nodes of communication that we have raised to this priority, a negative one, and that run at it;
 * EXEC_OWN(): nodes that we have raised would have this one without us; EXEC_THERE(): other nodes have this one. */
enum exec_flag { EXEC_COMMUNICATES = 1, EXEC_WAITS = 2, EXEC_UNKNOWN = 4, EXEC_FLAGGED = 8, EXEC_PROGRAMS = 16 };
enum { EXEC_PRIORITIES = 7, EXEC_AT_SHIFT = 5, EXEC_OWN_SHIFT = 13, EXEC_THERE_SHIFT = 21 };
/* Of a priority, 0 to -5 on GPUs so far; the last one stands for all beyond it. */
#define EXEC_BIT(priority) (1U << ((priority) < -EXEC_PRIORITIES ? EXEC_PRIORITIES : (priority) > 0 ? 0 : -(priority)))
#define EXEC_AT(priority) (EXEC_BIT(priority) << EXEC_AT_SHIFT)
#define EXEC_OWN(priority) (EXEC_BIT(priority) << EXEC_OWN_SHIFT)
#define EXEC_OWN_ANY (((2U << EXEC_PRIORITIES) - 1) << EXEC_OWN_SHIFT)
#define EXEC_THERE(priority) (EXEC_BIT(priority) << EXEC_THERE_SHIFT)
/* A graph was instantiated. ours: the flags about priorities, which stay for good. An instance was updated by another graph. */
void exec_made(enum vendor vendor, const void *exec, vendor_graph graph, uint32_t ours);
void exec_updated(enum vendor vendor, const void *exec, vendor_graph graph);
uint32_t exec_flags(const void *exec);
void exec_forked(void);

#pragma GCC visibility pop
