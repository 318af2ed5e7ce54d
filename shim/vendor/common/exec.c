/* Graphs that hold communication: launching one is launching communication. And graphs that wait for events, for memory or
 * for other processes: what is launched behind them is behind all of that. Looked into when they are instantiated, once
 * anything of the kind was seen; the bodies of conditional nodes are not. */
#include "node.h"
#include "state.h"

uint32_t exec_may_communicate, exec_may_wait;

enum { PROBES = 16 };
#define CLAIMED (UINT32_C(1) << 31) /* of flags: a thread fills the place */
static uint32_t lost;               /* flags of those that found no place */

void exec_forked(void) {
    for (size_t i = 0; state && i < EXEC_SLOTS; i++)
        state->execs[i].flags = 0;
}

static size_t place(uint64_t key, uint64_t probe) {
    return ((overlap_order_hash(key) >> 40) + probe) & (EXEC_SLOTS - 1);
}

/* Fills a place that had these flags; false: another thread has taken it. */
static bool fill(size_t at, uint32_t before, uint64_t key, uint32_t flags) {
    if (before & CLAIMED || !__atomic_compare_exchange_n(&state->execs[at].flags, &before, CLAIMED, false,
                                                         __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return false;
    __atomic_store_n(&state->execs[at].exec, key, __ATOMIC_RELEASE);
    __atomic_store_n(&state->execs[at].flags, flags, __ATOMIC_RELEASE);
    return true;
}

/* An instance with flags gets a slot; where none is free, that of another one. Those may have ended (on AMD no call says so); of
 * those that wait it stays known that there are some. */
static bool keep(uint64_t key, uint32_t flags) {
    static uint32_t next;
    if (!state)
        return false;
    for (uint64_t probe = 0; probe < PROBES; probe++)
        if (fill(place(key, probe), 0, key, flags))
            return true;
    const size_t at = place(key, __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % PROBES);
    const uint32_t before = __atomic_load_n(&state->execs[at].flags, __ATOMIC_ACQUIRE);
    __atomic_fetch_or(&lost, before & (EXEC_WAITS | EXEC_UNKNOWN), __ATOMIC_RELEASE);
    return fill(at, before, key, flags);
}

/* The flags of an instance, or NULL. */
static uint32_t *find(uint64_t key) {
    if (!state)
        return NULL;
    for (uint64_t probe = 0; probe < PROBES; probe++)
        if (__atomic_load_n(&state->execs[place(key, probe)].exec, __ATOMIC_ACQUIRE) == key)
            return &state->execs[place(key, probe)].flags;
    return NULL;
}

/* Launches of one instance follow each other, on whatever streams (cuGraphLaunch; taken for true on AMD): each waits for an
 * event that the one before recorded. Addresses of events are even. */
static uint64_t event_of(const void *exec) {
    return (uint64_t)(uintptr_t)exec | 1;
}

static void exec_launched(struct overlap_order *order, const void *exec, struct overlap_stream *stream,
                          uint32_t flags) {
    if (overlap_stream_here(stream) != stream) { /* part of another graph now */
        if (flags & (EXEC_WAITS | EXEC_UNKNOWN))
            __atomic_store_n(&exec_may_wait, 1, __ATOMIC_RELAXED);
    } else if (stream)
        window_waits(order, stream, event_of(exec));
    overlap_order_action(order, overlap_stream_here(stream));
    if (flags & EXEC_UNKNOWN) {
        overlap_order_unknown(order, stream);
        window_stir(order);
    }
    if (flags & (EXEC_WAITS | EXEC_UNKNOWN))
        overlap_order_behind_all(order, stream);
}

static void exec_ends(struct overlap_order *order, const void *exec, struct overlap_stream *stream) {
    if (overlap_stream_here(stream) == stream)
        overlap_order_recorded(order, overlap_order_recording(order, event_of(exec), stream), stream, true);
    window_after(order);
}

static void note(enum vendor vendor, const void *exec, vendor_graph graph, uint32_t flags) {
    const uint64_t key = (uint64_t)(uintptr_t)exec;
    if (windows() &&
        (__atomic_load_n(&exec_may_communicate, __ATOMIC_RELAXED) || __atomic_load_n(&exec_may_wait, __ATOMIC_RELAXED)))
        flags |= node_graph_holds(vendor, graph);
    uint32_t *known = find(key);
    if (known) /* of another instance that had this address, perhaps */
        __atomic_store_n(known, flags, __ATOMIC_RELEASE);
    else if (flags && !keep(key, flags))
        __atomic_fetch_or(&lost, flags & (EXEC_WAITS | EXEC_UNKNOWN), __ATOMIC_RELEASE);
}

void exec_made(enum vendor vendor, const void *exec, vendor_graph graph, uint32_t ours) {
    if (windows())
        overlap_order_event_gone(windows(), event_of(exec));
    note(vendor, exec, graph, ours);
}

void exec_updated(enum vendor vendor, const void *exec, vendor_graph graph) {
    note(vendor, exec, graph, exec_flags(exec) & ~(uint32_t)(EXEC_COMMUNICATES | EXEC_WAITS | EXEC_UNKNOWN));
}

/* Its address may be another instance's at once. */
vendor_result exec_destroy_body(enum overlap_way way, enum hook hook, uintptr_t site, vendor_exec exec) {
    BEHIND((vendor_exec exec));
    uint32_t *known = exec ? find((uint64_t)(uintptr_t)exec) : NULL;
    const uint32_t flags = known ? __atomic_exchange_n(known, 0, __ATOMIC_ACQ_REL) : 0;
    const vendor_result result = real(exec);
    if (result != VENDOR_SUCCESS && flags)
        __atomic_store_n(known, flags, __ATOMIC_RELEASE);
    return result;
}

uint32_t exec_flags(const void *exec) {
    const uint32_t *known = find((uint64_t)(uintptr_t)exec);
    return known ? __atomic_load_n(known, __ATOMIC_ACQUIRE) : __atomic_load_n(&lost, __ATOMIC_ACQUIRE);
}

/* Its kernels are not seen one by one; how often graphs run is at least said. */
vendor_result graph_launch_body(enum overlap_way way, enum hook hook, uintptr_t site, vendor_exec graph,
                                vendor_stream stream) {
    BEHIND((vendor_exec graph, vendor_stream stream));
    const enum default_stream whose = hook_default(hook);
    struct overlap_order *order = windows();
    const uint32_t flags = order ? exec_flags(graph) : 0;
    if (overlap_armed())
        launch_count(OVERLAP_COUNTER_GRAPH_LAUNCHES);
    vendor_result result = real(graph, stream);
    if (!order || result != VENDOR_SUCCESS || (window_asleep() && !(flags & (EXEC_COMMUNICATES | EXEC_UNKNOWN))))
        return result;
    struct overlap_stream *its = window_stream(order, stream, whose);
    exec_launched(order, graph, its, flags);
    critical_graph(its);
    if (flags & EXEC_COMMUNICATES)
        window_communicates(stream, whose);
    exec_ends(order, graph, its);
    return result;
}
