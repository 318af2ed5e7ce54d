/* The clocks of streams, contexts and captures. Events are in event.c, launches in window.c, waits and the host in
 * knowledge.c; WINDOWS.md says what each call orders. */
#include <stddef.h>
#include <string.h>

#include "critical.h"
#include "sync_access.h"

#define TOMBSTONE UINT64_MAX /* key of a slot whose stream was destroyed */
enum { SPINS = 1000, PATIENCE = 100000 };

__thread char overlap_thread_self __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Pauses so that a preempted holder can run. After one timeout (`stuck`) it only spins. */
bool overlap_sync_lock(struct overlap_sync_model *model) {
    const uint64_t me = overlap_this_thread();
    const int patience = model->pause && !OVERLAP_LOAD(model->stuck) ? PATIENCE : SPINS;
    /* Not while this thread holds it: a signal handler has interrupted the holder. */
    for (int i = 0; i < patience && OVERLAP_LOAD(model->lock) != me; i++) {
        uint64_t none = 0;
        if (!OVERLAP_LOAD(model->lock) &&
            __atomic_compare_exchange_n(&model->lock, &none, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            __atomic_store_n(&model->stuck, 0, __ATOMIC_RELAXED);
            return true;
        }
        if (i >= SPINS)
            model->pause();
    }
    if (OVERLAP_LOAD(model->lock) != me)
        __atomic_store_n(&model->stuck, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&model->stream_overflow, 1, __ATOMIC_RELEASE);
    return false;
}

void overlap_sync_unlock(struct overlap_sync_model *model) {
    __atomic_store_n(&model->lock, 0, __ATOMIC_RELEASE);
}

/* ---- Clocks ---- */

__attribute__((noinline)) void overlap_stream_passes_on(struct overlap_sync_model *model, struct overlap_stream *stream,
                                                        uint32_t entry, uint64_t value) {
    struct overlap_context *const context = stream->context;
    /* Synchronizing a context finishes its own launches anyway. */
    if (overlap_context_of_entry(&model->eager, entry) != context)
        overlap_clock_raise(&context->known, entry, value);
    if (stream->kind == OVERLAP_STREAM_BLOCKING && overlap_clock_raise(&context->blocking, entry, value) &&
        entry < OVERLAP_CLOCK_COMMUNICATION && !OVERLAP_LOAD(model->legacy_matters))
        __atomic_store_n(&model->legacy_matters, 1, __ATOMIC_RELEASE);
}

/* A query records its thread before it reads the clock; a wait reads the thread after it has raised the clock. So at
 * least one of the two notices the other. */
void overlap_stream_asked_first(struct overlap_stream *stream) {
    uint64_t asker = OVERLAP_LOAD(stream->asker);
    while (!__atomic_compare_exchange_n(&stream->asker, &asker, asker ? OVERLAP_SEVERAL : overlap_this_thread(), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
        ;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool overlap_stream_changed_for(struct overlap_sync_model *model, const struct overlap_stream *stream, uint64_t asker) {
    const struct overlap_context *const context = stream->context;
    const bool others = /* other streams' answers depend on its clock */
        stream->kind == OVERLAP_STREAM_LEGACY     ? __atomic_load_n(&context->blocks, __ATOMIC_SEQ_CST)
        : stream->kind == OVERLAP_STREAM_BLOCKING ? __atomic_load_n(&context->legacy, __ATOMIC_SEQ_CST) != NULL
                                                  : false;
    if (!others && asker == overlap_this_thread())
        return true;
    if (others || asker)
        overlap_sync_changed(model);
    return false;
}

/* Every action of the legacy default stream first waits for all blocking streams. overlap_stream_knows() makes the
 * blocking streams wait for it afterwards. */
void overlap_sync_legacy_action(struct overlap_sync_model *model, struct overlap_stream *stream) {
    bool news = false;
    for (uint32_t left = OVERLAP_LOAD(stream->context->blocking.set); left; left &= left - 1) {
        const uint32_t e = overlap_entry_of(left);
        news |= overlap_stream_learns(model, stream, e, OVERLAP_LOAD(stream->context->blocking.entry[e]));
    }
    const uint64_t unknown = OVERLAP_LOAD(stream->context->blocking_unknown);
    news |= unknown > OVERLAP_LOAD(stream->context->settled) && overlap_raise(&stream->unknown, unknown);
    if (news)
        overlap_sync_changed(model);
}

__attribute__((cold)) void overlap_sync_behind_all(struct overlap_sync_model *model, struct overlap_stream *stream) {
    stream = overlap_stream_here(stream);
    if (!stream)
        return;
    overlap_sync_action(model, stream);
    bool news = false;
    for (uint32_t left = overlap_domain_set(stream->domain); left; left &= left - 1) {
        const uint32_t e = overlap_entry_of(left);
        news |= overlap_stream_learns(model, stream, e, overlap_domain_now(stream->domain, e));
    }
    if (news)
        overlap_sync_changed(model);
}

__attribute__((cold)) void overlap_sync_unknown(struct overlap_sync_model *model, struct overlap_stream *stream) {
    stream = overlap_stream_here(stream);
    if (!stream)
        return;
    const uint64_t number = __atomic_add_fetch(&model->waits, 1, __ATOMIC_RELAXED);
    overlap_raise(&stream->unknown, number);
    overlap_raise(&stream->context->unknown, number);
    if (stream->kind == OVERLAP_STREAM_BLOCKING && stream->domain == &model->eager) {
        overlap_raise(&stream->context->blocking_unknown, number);
        __atomic_store_n(&model->legacy_matters, 1, __ATOMIC_RELEASE);
    }
    overlap_sync_action(model, stream);
    overlap_sync_changed(model);
}

/* ---- Streams ---- */

__attribute__((noinline)) struct overlap_stream *overlap_sync_find_further(struct overlap_sync_model *model,
                                                                           uint64_t key) {
    for (uint64_t probe = 0; probe < OVERLAP_SYNC_PROBES; probe++) {
        struct overlap_stream *stream = overlap_sync_slot(model, key, probe);
        const uint64_t owner = OVERLAP_LOAD(stream->key);
        if (owner == key)
            return OVERLAP_LOAD(stream->ready) ? stream : NULL;
        if (owner == 0)
            return NULL;
    }
    return NULL;
}

/* Returns a free slot for a key, or NULL. The lock is held. */
__attribute__((cold)) static struct overlap_stream *take_slot(struct overlap_sync_model *model, uint64_t key) {
    for (uint64_t probe = 0; probe < OVERLAP_SYNC_PROBES; probe++) {
        struct overlap_stream *stream = overlap_sync_slot(model, key, probe);
        const uint64_t owner = stream->key;
        if (owner != 0 && owner != TOMBSTONE)
            continue;
        if (owner == 0) { /* other threads iterate over `used` without the lock */
            model->used[model->used_count] = (uint32_t)(stream - model->streams);
            __atomic_store_n(&model->used_count, model->used_count + 1, __ATOMIC_RELEASE);
        }
        /* Domain and context stay until they are overwritten, because a thread may still read those of the previous
         * stream. */
        __atomic_store_n(&stream->ready, 0, __ATOMIC_RELEASE);
        memset(&stream->captured, 0, sizeof *stream - offsetof(struct overlap_stream, captured));
        stream->communication = stream->computation = -1;
        stream->serial = __atomic_add_fetch(&model->serials, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&stream->key, key, __ATOMIC_RELEASE);
        return stream;
    }
    __atomic_store_n(&model->stream_overflow, 1, __ATOMIC_RELEASE);
    return NULL;
}

static struct overlap_context *context_of(struct overlap_sync_model *model, uint64_t key) {
    struct overlap_context *free = NULL;
    for (int i = 0; i < OVERLAP_SYNC_CONTEXTS; i++) {
        if (model->contexts[i].key == key)
            return &model->contexts[i];
        if (!free && model->contexts[i].key == 0)
            free = &model->contexts[i];
    }
    if (free)
        __atomic_store_n(&free->key, key, __ATOMIC_RELEASE);
    return free;
}

__attribute__((cold)) struct overlap_stream *overlap_sync_stream(struct overlap_sync_model *model, uint64_t key,
                                                                 uint64_t context, enum overlap_stream_kind kind) {
    struct overlap_stream *stream = overlap_sync_find(model, key);
    if (stream || !overlap_sync_lock(model))
        return stream;
    stream = overlap_sync_find(model, key);
    struct overlap_context *const owner = stream ? NULL : context_of(model, context);
    if (owner)
        stream = take_slot(model, key);
    if (owner && stream) {
        /* A thread with a pointer to the previous stream of this slot may read meanwhile. */
        __atomic_store_n(&stream->domain, &model->eager, __ATOMIC_RELEASE);
        __atomic_store_n(&stream->context, owner, __ATOMIC_RELEASE);
        __atomic_store_n(&stream->kind, kind, __ATOMIC_RELEASE);
        if (kind == OVERLAP_STREAM_LEGACY)
            __atomic_store_n(&owner->legacy, stream, __ATOMIC_SEQ_CST);
        if (kind == OVERLAP_STREAM_BLOCKING)
            __atomic_store_n(&owner->blocks, 1, __ATOMIC_SEQ_CST);
        if (OVERLAP_LOAD(model->stream_overflow)) /* its earlier waits may have gone unrecorded */
            overlap_sync_behind_all(model, stream);
        __atomic_store_n(&stream->ready, 1, __ATOMIC_RELEASE);
        overlap_sync_changed(model);
    }
    overlap_sync_unlock(model);
    return stream;
}

/* Frees the stream's entries for other streams. Its computation joins the context's clock, because synchronizing the
 * context finishes it. The lock is held. */
static void release_entries(struct overlap_clock_domain *domain, struct overlap_stream *stream) {
    const uint32_t own = overlap_computation_set(stream->computation);
    for (uint32_t left = stream->of ? 0 : own; left; left &= left - 1)
        overlap_clock_raise(&stream->context->known, overlap_entry_of(left),
                            overlap_domain_now(domain, overlap_entry_of(left)));
    for (uint32_t i = 0; i < OVERLAP_CLOCK_COMMUNICATION; i++)
        if (domain->communication[i].owner == stream)
            __atomic_store_n(&domain->communication[i].owner, NULL, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < OVERLAP_CLOCK_COMPUTATION; i++)
        if (domain->computation[i].owner == stream) {
            __atomic_fetch_add(&domain->computation[i].base[0], stream->launched, __ATOMIC_RELEASE);
            __atomic_fetch_add(&domain->computation[i].base[1], stream->filling, __ATOMIC_RELEASE);
            __atomic_store_n(&domain->computation[i].owner, NULL, __ATOMIC_RELEASE);
        }
}

static void remove_stream(struct overlap_stream *stream) {
    release_entries(stream->domain, stream);
    __atomic_store_n(&stream->ready, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&stream->key, TOMBSTONE, __ATOMIC_RELEASE);
}

/* Removes the stand-in of a capturing stream. The capture ends with its last stand-in. */
static void remove_member(struct overlap_stream *member) {
    struct overlap_clock_domain *const domain = member->domain;
    __atomic_store_n(&member->of->captured, NULL, __ATOMIC_RELEASE);
    for (struct overlap_stream **at = &domain->members; *at; at = &(*at)->next)
        if (*at == member) {
            *at = member->next;
            break;
        }
    remove_stream(member);
    if (!domain->members)
        __atomic_store_n(&domain->generation, 0, __ATOMIC_RELEASE);
}

static void remove_with_member(struct overlap_stream *stream) {
    if (stream->captured)
        remove_member(stream->captured);
    if (stream->context->legacy == stream)
        __atomic_store_n(&stream->context->legacy, NULL, __ATOMIC_RELEASE);
    overlap_critical_gone(stream);
    remove_stream(stream);
}

__attribute__((cold)) void overlap_sync_stream_gone(struct overlap_sync_model *model, uint64_t key) {
    struct overlap_stream *stream = overlap_sync_find(model, key);
    if (!stream || !overlap_sync_lock(model))
        return;
    remove_with_member(stream);
    overlap_sync_changed(model);
    overlap_sync_unlock(model);
}

__attribute__((cold)) void overlap_sync_context_gone(struct overlap_sync_model *model, uint64_t key,
                                                     uint64_t last_serial) {
    if (!overlap_sync_lock(model))
        return;
    for (int i = 0; i < OVERLAP_SYNC_CONTEXTS; i++) {
        struct overlap_context *const context = &model->contexts[i];
        bool used_again = false;
        if (context->key != key)
            continue;
        for (uint32_t u = 0; u < model->used_count; u++) {
            struct overlap_stream *const stream = &model->streams[model->used[u]];
            if (!stream->ready || stream->context != context || stream->of)
                continue;
            if (stream->serial <= last_serial)
                remove_with_member(stream);
            else
                used_again = true;
        }
        for (uint32_t c = 0; c < OVERLAP_CLOCK_COMMUNICATION; c++)
            if (model->eager.communication[c].context == context)
                overlap_clock_raise(&model->finished, c, model->eager.now.entry[c]);
        if (!used_again)
            memset(context, 0, sizeof *context);
    }
    overlap_sync_changed(model);
    overlap_sync_unlock(model);
}

/* ---- Captures ---- */

/* Adds a stand-in for a stream that is captured into this domain. Without a free slot the order of the stream is
 * unknown for good. The lock is held. */
static void add_member(struct overlap_sync_model *model, struct overlap_clock_domain *domain,
                       struct overlap_stream *stream) {
    /* No address has the topmost bit set. */
    struct overlap_stream *member = take_slot(model, (stream->key ^ (++model->generation << 48)) | UINT64_C(1) << 63);
    if (!member) {
        __atomic_store_n(&stream->unknown, UINT64_MAX, __ATOMIC_RELEASE);
        return;
    }
    member->domain = domain;
    member->context = stream->context;
    member->kind = OVERLAP_STREAM_NON_BLOCKING;
    member->of = stream;
    member->next = domain->members;
    domain->members = member;
    __atomic_store_n(&member->ready, 1, __ATOMIC_RELEASE);
    __atomic_store_n(&stream->captured, member, __ATOMIC_RELEASE);
}

/* Returns a free domain, or the surplus domain, in which the order of everything is unknown. */
static struct overlap_clock_domain *new_domain(struct overlap_sync_model *model) {
    struct overlap_clock_domain *domain = model->captures, *const surplus = &model->captures[OVERLAP_SYNC_CAPTURES];
    while (domain < surplus && domain->generation)
        domain++;
    if (!domain->generation) {
        memset(domain, 0, sizeof *domain);
        domain->order_unknown = domain == surplus;
        __atomic_store_n(&domain->generation, ++model->generation, __ATOMIC_RELEASE);
    }
    return domain;
}

__attribute__((cold)) void overlap_sync_capture(struct overlap_sync_model *model, struct overlap_stream *stream) {
    if (!stream || OVERLAP_LOAD(stream->captured) || !overlap_sync_lock(model))
        return;
    struct overlap_clock_domain *const domain = new_domain(model);
    domain->begun++;
    add_member(model, domain, stream);
    overlap_sync_changed(model);
    overlap_sync_unlock(model);
}

void overlap_sync_capture_ended(struct overlap_sync_model *model, struct overlap_stream *stream) {
    if (!stream || !OVERLAP_LOAD(stream->captured) || !overlap_sync_lock(model))
        return;
    struct overlap_clock_domain *const domain = stream->captured ? stream->captured->domain : NULL;
    if (domain && --domain->begun == 0)
        while (domain->members)
            remove_member(domain->members);
    overlap_sync_changed(model);
    overlap_sync_unlock(model);
}

void overlap_sync_join_capture(struct overlap_sync_model *model, struct overlap_stream *stream,
                               struct overlap_clock_domain *domain, uint64_t generation) {
    if (!overlap_sync_lock(model))
        return;
    if (!stream->captured && domain->generation == generation)
        add_member(model, domain, stream);
    overlap_sync_changed(model);
    overlap_sync_unlock(model);
}

void overlap_sync_captures_unknown(struct overlap_sync_model *model) {
    for (int i = 0; i <= OVERLAP_SYNC_CAPTURES; i++)
        if (OVERLAP_LOAD(model->captures[i].generation))
            __atomic_store_n(&model->captures[i].order_unknown, 1, __ATOMIC_RELEASE);
    overlap_sync_changed(model);
}
