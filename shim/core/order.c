/* What orders what: streams, contexts, captures and what the host knows, as clocks. Events are in event.c, launches in
 * window.c; WINDOWS.md says what each call means. */
#include <stddef.h>
#include <string.h>

#include "critical.h"

#define DEAD UINT64_MAX /* key of a place whose stream is gone */
enum { SPINS = 1000, PATIENCE = 100000 };

__thread char overlap_thread_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* A holder that has lost its processor gets it back by our pausing. One that never comes back is not waited for twice. */
bool overlap_order_locked(struct overlap_order *order) {
    const uint64_t me = overlap_this_thread();
    const int patience = order->pause && !OVERLAP_LOAD(order->stuck) ? PATIENCE : SPINS;
    for (int i = 0; i < patience && OVERLAP_LOAD(order->lock) != me; i++) { /* ours: a signal interrupted us */
        uint64_t none = 0;
        if (!OVERLAP_LOAD(order->lock) &&
            __atomic_compare_exchange_n(&order->lock, &none, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            __atomic_store_n(&order->stuck, 0, __ATOMIC_RELAXED);
            return true;
        }
        if (i >= SPINS)
            order->pause();
    }
    if (OVERLAP_LOAD(order->lock) != me)
        __atomic_store_n(&order->stuck, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&order->lost, 1, __ATOMIC_RELEASE);
    return false;
}

void overlap_order_unlock(struct overlap_order *order) {
    __atomic_store_n(&order->lock, 0, __ATOMIC_RELEASE);
}

/* ---- Clocks ---- */

__attribute__((noinline)) void overlap_stream_passes_on(struct overlap_order *order, struct overlap_stream *stream,
                                                        uint32_t entry, uint64_t value) {
    struct overlap_context *const its = stream->context;
    if (overlap_context_of_entry(&order->eager, entry) !=
        its) /* the launches of its own are all over when it is synchronized */
        overlap_clock_raise(&its->known, entry, value);
    if (stream->kind == OVERLAP_STREAM_BLOCKING && overlap_clock_raise(&its->blocking, entry, value) &&
        entry < OVERLAP_CLOCK_COMMUNICATION && !OVERLAP_LOAD(order->legacy_matters))
        __atomic_store_n(&order->legacy_matters, 1, __ATOMIC_RELEASE);
}

/* A thread is noted before it looks at the clock; a wait looks for askers after it has raised the clock. So one of the two
 * sees the other. */
void overlap_stream_asked_first(struct overlap_stream *stream) {
    uint64_t asker = OVERLAP_LOAD(stream->asker);
    while (!__atomic_compare_exchange_n(&stream->asker, &asker, asker ? OVERLAP_SEVERAL : overlap_this_thread(), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool overlap_stream_changed_for(struct overlap_order *order, const struct overlap_stream *stream, uint64_t asker) {
    const struct overlap_context *const its = stream->context;
    const bool others = /* whose answers depend on its clock, too */
        stream->kind == OVERLAP_STREAM_LEGACY     ? __atomic_load_n(&its->blocks, __ATOMIC_SEQ_CST)
        : stream->kind == OVERLAP_STREAM_BLOCKING ? __atomic_load_n(&its->legacy, __ATOMIC_SEQ_CST) != NULL
                                                  : false;
    if (!others && asker == overlap_this_thread())
        return true;
    if (others || asker)
        overlap_order_changed(order);
    return false;
}

static uint64_t number_of_wait(struct overlap_order *order) {
    return __atomic_add_fetch(&order->waits, 1, __ATOMIC_RELAXED);
}

/* The legacy default stream waits for all blocking ones before it does anything. That these wait for it afterwards is in
 * overlap_stream_knows(). */
void overlap_order_legacy_action(struct overlap_order *order, struct overlap_stream *stream) {
    bool news = false;
    for (uint32_t left = OVERLAP_LOAD(stream->context->blocking.set); left; left &= left - 1) {
        const uint32_t e = overlap_entry_of(left);
        news |= overlap_stream_learns(order, stream, e, OVERLAP_LOAD(stream->context->blocking.entry[e]));
    }
    const uint64_t unknown = OVERLAP_LOAD(stream->context->blocking_unknown);
    news |= unknown > OVERLAP_LOAD(stream->context->settled) && overlap_raise(&stream->unknown, unknown);
    if (news)
        overlap_order_changed(order);
}

void overlap_order_behind_all(struct overlap_order *order, struct overlap_stream *stream) {
    stream = overlap_stream_here(stream);
    if (!stream)
        return;
    overlap_order_action(order, stream);
    bool news = false;
    for (uint32_t left = overlap_world_set(stream->world); left; left &= left - 1) {
        const uint32_t e = overlap_entry_of(left);
        news |= overlap_stream_learns(order, stream, e, overlap_world_now(stream->world, e));
    }
    if (news)
        overlap_order_changed(order);
}

void overlap_order_unknown(struct overlap_order *order, struct overlap_stream *stream) {
    stream = overlap_stream_here(stream);
    if (!stream)
        return;
    const uint64_t number = number_of_wait(order);
    overlap_raise(&stream->unknown, number);
    overlap_raise(&stream->context->unknown, number);
    if (stream->kind == OVERLAP_STREAM_BLOCKING && stream->world == &order->eager) {
        overlap_raise(&stream->context->blocking_unknown, number);
        __atomic_store_n(&order->legacy_matters, 1, __ATOMIC_RELEASE);
    }
    overlap_order_action(order, stream);
    overlap_order_changed(order);
}

/* ---- Streams ---- */

__attribute__((noinline)) struct overlap_stream *overlap_order_find_further(struct overlap_order *order, uint64_t key) {
    for (uint64_t probe = 0; probe < OVERLAP_ORDER_PROBES; probe++) {
        struct overlap_stream *stream = overlap_order_place(order, key, probe);
        const uint64_t owner = OVERLAP_LOAD(stream->key);
        if (owner == key)
            return OVERLAP_LOAD(stream->ready) ? stream : NULL;
        if (owner == 0)
            return NULL;
    }
    return NULL;
}

/* A free place for a key; the lock is held. */
static struct overlap_stream *take_place(struct overlap_order *order, uint64_t key) {
    for (uint64_t probe = 0; probe < OVERLAP_ORDER_PROBES; probe++) {
        struct overlap_stream *stream = overlap_order_place(order, key, probe);
        const uint64_t owner = stream->key;
        if (owner != 0 && owner != DEAD)
            continue;
        if (owner == 0) { /* others go through them without the lock */
            order->used[order->used_count] = (uint32_t)(stream - order->streams);
            __atomic_store_n(&order->used_count, order->used_count + 1, __ATOMIC_RELEASE);
        }
        /* World and context stay until they are set: whoever still has the stream that was here may look into them. */
        __atomic_store_n(&stream->ready, 0, __ATOMIC_RELEASE);
        memset(&stream->captured, 0, sizeof *stream - offsetof(struct overlap_stream, captured));
        stream->communication = stream->computation = -1;
        stream->serial = __atomic_add_fetch(&order->serials, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&stream->key, key, __ATOMIC_RELEASE);
        return stream;
    }
    __atomic_store_n(&order->lost, 1, __ATOMIC_RELEASE);
    return NULL;
}

static struct overlap_context *context_of(struct overlap_order *order, uint64_t key) {
    struct overlap_context *free = NULL;
    for (int i = 0; i < OVERLAP_ORDER_CONTEXTS; i++) {
        if (order->contexts[i].key == key)
            return &order->contexts[i];
        if (!free && order->contexts[i].key == 0)
            free = &order->contexts[i];
    }
    if (free)
        __atomic_store_n(&free->key, key, __ATOMIC_RELEASE);
    return free;
}

struct overlap_stream *overlap_order_stream(struct overlap_order *order, uint64_t key, uint64_t context,
                                            enum overlap_stream_kind kind) {
    struct overlap_stream *stream = overlap_order_find(order, key);
    if (stream || !overlap_order_locked(order))
        return stream;
    stream = overlap_order_find(order, key);
    struct overlap_context *const its = stream ? NULL : context_of(order, context);
    if (its)
        stream = take_place(order, key);
    if (its && stream) {
        /* Whoever still has the stream that was here may look meanwhile. */
        __atomic_store_n(&stream->world, &order->eager, __ATOMIC_RELEASE);
        __atomic_store_n(&stream->context, its, __ATOMIC_RELEASE);
        __atomic_store_n(&stream->kind, kind, __ATOMIC_RELEASE);
        if (kind == OVERLAP_STREAM_LEGACY)
            __atomic_store_n(&its->legacy, stream, __ATOMIC_SEQ_CST);
        if (kind == OVERLAP_STREAM_BLOCKING)
            __atomic_store_n(&its->blocks, 1, __ATOMIC_SEQ_CST);
        if (OVERLAP_LOAD(order->lost)) /* what it has waited for may be lost */
            overlap_order_behind_all(order, stream);
        __atomic_store_n(&stream->ready, 1, __ATOMIC_RELEASE);
        overlap_order_changed(order);
    }
    overlap_order_unlock(order);
    return stream;
}

/* The stream's entries are free for others; the lock is held. */
static void release_entries(struct overlap_world *world, struct overlap_stream *stream) {
    const uint32_t own = overlap_computation_set(stream->computation);
    for (uint32_t left = stream->of ? 0 : own; left;
         left &= left - 1) /* they are over when the context is synchronized */
        overlap_clock_raise(&stream->context->known, overlap_entry_of(left),
                            overlap_world_now(world, overlap_entry_of(left)));
    for (uint32_t i = 0; i < OVERLAP_CLOCK_COMMUNICATION; i++)
        if (world->communication[i].owner == stream)
            __atomic_store_n(&world->communication[i].owner, NULL, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < OVERLAP_CLOCK_COMPUTATION; i++)
        if (world->computation[i].owner == stream) {
            __atomic_fetch_add(&world->computation[i].base[0], stream->launched, __ATOMIC_RELEASE);
            __atomic_fetch_add(&world->computation[i].base[1], stream->filling, __ATOMIC_RELEASE);
            __atomic_store_n(&world->computation[i].owner, NULL, __ATOMIC_RELEASE);
        }
}

static void remove_stream(struct overlap_stream *stream) {
    release_entries(stream->world, stream);
    __atomic_store_n(&stream->ready, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&stream->key, DEAD, __ATOMIC_RELEASE);
}

/* One that stands for a capturing stream goes; its capture ends with the last one. */
static void remove_member(struct overlap_stream *member) {
    struct overlap_world *const world = member->world;
    __atomic_store_n(&member->of->captured, NULL, __ATOMIC_RELEASE);
    for (struct overlap_stream **at = &world->members; *at; at = &(*at)->next)
        if (*at == member) {
            *at = member->next;
            break;
        }
    remove_stream(member);
    if (!world->members)
        __atomic_store_n(&world->generation, 0, __ATOMIC_RELEASE);
}

static void remove_with_member(struct overlap_stream *stream) {
    if (stream->captured)
        remove_member(stream->captured);
    if (stream->context->legacy == stream)
        __atomic_store_n(&stream->context->legacy, NULL, __ATOMIC_RELEASE);
    overlap_critical_gone(stream);
    remove_stream(stream);
}

void overlap_order_stream_gone(struct overlap_order *order, uint64_t key) {
    struct overlap_stream *stream = overlap_order_find(order, key);
    if (!stream || !overlap_order_locked(order))
        return;
    remove_with_member(stream);
    overlap_order_changed(order);
    overlap_order_unlock(order);
}

void overlap_order_context_gone(struct overlap_order *order, uint64_t key, uint64_t seen) {
    if (!overlap_order_locked(order))
        return;
    for (int i = 0; i < OVERLAP_ORDER_CONTEXTS; i++) {
        struct overlap_context *const context = &order->contexts[i];
        bool used_again = false;
        if (context->key != key)
            continue;
        for (uint32_t u = 0; u < order->used_count; u++) {
            struct overlap_stream *const stream = &order->streams[order->used[u]];
            if (!stream->ready || stream->context != context || stream->of)
                continue;
            if (stream->serial <= seen)
                remove_with_member(stream);
            else
                used_again = true;
        }
        for (uint32_t c = 0; c < OVERLAP_CLOCK_COMMUNICATION; c++)
            if (order->eager.communication[c].context == context)
                overlap_clock_raise(&order->finished, c, order->eager.now.entry[c]);
        if (!used_again)
            memset(context, 0, sizeof *context);
    }
    overlap_order_changed(order);
    overlap_order_unlock(order);
}

/* ---- Captures ---- */

/* The stream is captured into this world; the lock is held. Without a place for it nothing is known of it any more. */
static void add_member(struct overlap_order *order, struct overlap_world *world, struct overlap_stream *stream) {
    /* No address has the topmost bit set. */
    struct overlap_stream *member = take_place(order, (stream->key ^ (++order->generation << 48)) | UINT64_C(1) << 63);
    if (!member) {
        __atomic_store_n(&stream->unknown, UINT64_MAX, __ATOMIC_RELEASE);
        return;
    }
    member->world = world;
    member->context = stream->context;
    member->kind = OVERLAP_STREAM_NON_BLOCKING;
    member->of = stream;
    member->next = world->members;
    world->members = member;
    __atomic_store_n(&member->ready, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&stream->captured, member, __ATOMIC_RELEASE);
}

/* A free one, or the one for all surplus, in which nothing is known. */
static struct overlap_world *new_world(struct overlap_order *order) {
    struct overlap_world *world = order->captures, *const surplus = &order->captures[OVERLAP_ORDER_CAPTURES];
    while (world < surplus && world->generation)
        world++;
    if (!world->generation) {
        memset(world, 0, sizeof *world);
        world->doubted = world == surplus;
        __atomic_store_n(&world->generation, ++order->generation, __ATOMIC_RELEASE);
    }
    return world;
}

void overlap_order_capture(struct overlap_order *order, struct overlap_stream *stream) {
    if (!stream || OVERLAP_LOAD(stream->captured) || !overlap_order_locked(order))
        return;
    struct overlap_world *const world = new_world(order);
    world->begun++;
    add_member(order, world, stream);
    overlap_order_changed(order);
    overlap_order_unlock(order);
}

void overlap_order_capture_ended(struct overlap_order *order, struct overlap_stream *stream) {
    if (!stream || !OVERLAP_LOAD(stream->captured) || !overlap_order_locked(order))
        return;
    struct overlap_world *const world = stream->captured ? stream->captured->world : NULL;
    if (world && --world->begun == 0)
        while (world->members)
            remove_member(world->members);
    overlap_order_changed(order);
    overlap_order_unlock(order);
}

void overlap_order_join_capture(struct overlap_order *order, struct overlap_stream *stream, struct overlap_world *world,
                                uint64_t generation) {
    if (!overlap_order_locked(order))
        return;
    if (!stream->captured && world->generation == generation)
        add_member(order, world, stream);
    overlap_order_changed(order);
    overlap_order_unlock(order);
}

void overlap_order_captures_doubted(struct overlap_order *order) {
    for (int i = 0; i <= OVERLAP_ORDER_CAPTURES; i++)
        if (OVERLAP_LOAD(order->captures[i].generation))
            __atomic_store_n(&order->captures[i].doubted, 1, __ATOMIC_RELEASE);
    overlap_order_changed(order);
}
