/* Raise streams by their priority attribute, and lower them again; see raised.h. */
#include "../../core/core.h"
#include "../../core/sync_access.h"
#include "critical_streams.h"
#include "device.h"
#include "facts.h"
#include "launch_slow.h"
#include "page.h"
#include "raised.h"
#include "state.h"
#include "vendor_ops.h"

uint32_t critical_any;
uint64_t critical_bloom;

static uint32_t entries_used; /* slots claimed so far; only these are searched */
static uint32_t changing;     /* lock: a stream is being raised or lowered */

/* The page's record of the stream, claimed if need be; NULL: none is left. */
static struct overlap_page_stream *record_of(struct overlap_stream *tracked, const struct device *device) {
    struct overlap_page *const page = overlap_current_page;
    if (get(&tracked->part.record))
        return &page->streams[get(&tracked->part.record) - 1];
    for (uint32_t i = 0; overlap_page_start() && i < OVERLAP_PAGE_STREAMS; i++) {
        uint32_t none = 0;
        struct overlap_page_stream *const record = &overlap_current_page->streams[i];
        if (!__atomic_compare_exchange_n(&record->state, &none, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        record->device = device->page_slot;
        library_of(tracked->part.site, (char *)record->creator, sizeof record->creator);
        __atomic_store_n(&record->state, 2, __ATOMIC_RELEASE);
        set(&tracked->part.record, i + 1);
        return record;
    }
    return NULL;
}

static void note(struct overlap_stream *tracked, const struct device *device, enum overlap_stream_status status,
                 int priority) {
    struct overlap_page_stream *const record = record_of(tracked, device);
    if (!record)
        return;
    set(&record->why, get(&tracked->part.why));
    set(&record->share, get(&tracked->part.share));
    set(&record->status, status);
    __atomic_store_n(&record->priority, priority, __ATOMIC_RELAXED);
}

/* The decisions of computation say whether to look up the stream. So invalidate them when the first stream is raised
 * or the last one lowered. */
static void looks(bool any) {
    if (get(&critical_any) == any)
        return;
    set(&critical_any, any);
    invalidate_decisions();
    overlap_cache_forget_all(&launch_cache);
}

static struct critical_stream *entry_of_stream(uint64_t handle) {
    const uint32_t most = handle ? get(&entries_used) : CRITICAL_STREAMS;
    for (uint32_t i = 0; i < most; i++)
        if (__atomic_load_n(&state->raised[i].handle, __ATOMIC_ACQUIRE) == handle)
            return &state->raised[i];
    return NULL;
}

struct critical_stream *critical_find_any(vendor_stream stream) {
    return stream ? entry_of_stream((uint64_t)(uintptr_t)stream) : NULL;
}

bool raised_level(enum vendor vendor, bool communication, int *priority) {
    int least = 0, greatest = 0;
    if (!OPERATION_OF(vendor, priorities)(&least, &greatest) || greatest >= 0)
        return false;
    *priority = communication || greatest + 1 >= 0 ? greatest : greatest + 1;
    return true;
}

/* A free slot, or one whose stream ended with its context; NULL: none. */
static struct critical_stream *free_entry(void) {
    struct critical_stream *const entry = entry_of_stream(0);
    for (uint32_t i = 0; !entry && i < CRITICAL_STREAMS; i++) {
        const struct overlap_stream *tracked = OVERLAP_LOAD(state->raised[i].tracked);
        if (!OVERLAP_LOAD(tracked->ready) || OVERLAP_LOAD(tracked->key) != OVERLAP_LOAD(state->raised[i].handle))
            return &state->raised[i];
    }
    return entry;
}

static void keep(struct critical_stream *entry, struct overlap_stream *tracked, int priority,
                 struct overlap_page_stream *record) {
    __atomic_store_n(&entry->tracked, tracked, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->priority, priority, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->record, record, __ATOMIC_RELAXED);
    if (get(&entries_used) <= (uint32_t)(entry - state->raised))
        set(&entries_used, (uint32_t)(entry - state->raised) + 1);
    __atomic_store_n(&entry->handle, tracked->key, __ATOMIC_RELEASE);
    __atomic_fetch_or(&critical_bloom, critical_bit(tracked->key), __ATOMIC_RELEASE);
    set(&tracked->part.raised, OVERLAP_PART_RAISED);
    looks(true);
}

static void raise_locked(enum vendor vendor, struct overlap_stream *tracked, const struct device *device,
                         bool communication) {
    struct critical_stream *const entry = free_entry();
    int priority = 0;
    if (!entry || !raised_level(vendor, communication, &priority)) {
        note(tracked, device, OVERLAP_STREAM_FIXED, 0);
        return;
    }
    /* From here on the driver reports our priority, and another thread may read it before keep() has stored the
     * slot. */
    __atomic_store_n(&tracked->part.priority, STREAM_PRIORITY_CHANGES, __ATOMIC_RELAXED);
    switch (OPERATION_OF(vendor, stream_raise)((vendor_stream)(uintptr_t)tracked->key, priority)) {
    case STREAM_RAISED:
        keep(entry, tracked, priority, record_of(tracked, device));
        note(tracked, device, OVERLAP_STREAM_RAISED, priority);
        break;
    case STREAM_PROGRAMS:
        note(tracked, device, OVERLAP_STREAM_PROGRAMS, 0);
        set(&tracked->part.raised, OVERLAP_PART_PROGRAM_SETS);
        break;
    case STREAM_FIXED:
        note(tracked, device, OVERLAP_STREAM_FIXED, 0);
        set(&tracked->part.raised, OVERLAP_PART_CANNOT_RAISE);
        break;
    case STREAM_LATER:
        break;
    }
}

void raised_raise(enum vendor vendor, struct overlap_stream *tracked, const struct device *device, bool communication) {
    if (!take(&changing))
        return;
    if (get(&tracked->part.raised) == OVERLAP_PART_NOT_RAISED)
        raise_locked(vendor, tracked, device, communication);
    leave(&changing);
}

void raised_copied(struct overlap_stream *tracked, const struct critical_stream *from) {
    if (!take(&changing))
        return;
    struct critical_stream *const entry = get(&tracked->part.raised) == OVERLAP_PART_RAISED ? NULL : free_entry();
    if (entry)
        keep(entry, tracked, OVERLAP_LOAD(from->priority), NULL);
    leave(&changing);
}

/* locked: this thread holds `changing`. Else another thread may be raising a stream: leave the filter and
 * critical_any as they are, which costs launches a lookup. */
static void drop_locked(struct critical_stream *entry, bool locked) {
    uint64_t bits = 0;
    __atomic_store_n(&entry->handle, 0, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < CRITICAL_STREAMS; i++) {
        const uint64_t handle = __atomic_load_n(&state->raised[i].handle, __ATOMIC_ACQUIRE);
        bits |= handle ? critical_bit(handle) : 0;
    }
    if (!locked)
        return;
    __atomic_store_n(&critical_bloom, bits, __ATOMIC_RELEASE);
    if (!bits)
        looks(false);
}

void raised_drop(struct critical_stream *entry) {
    const bool locked = take(&changing);
    drop_locked(entry, locked);
    if (locked)
        leave(&changing);
}

bool raised_lower(enum vendor vendor, struct overlap_stream *tracked, const struct device *device,
                  enum overlap_stream_status status) {
    if (get(&tracked->part.raised) == OVERLAP_PART_PROGRAM_SETS || !take(&changing))
        return false;
    struct critical_stream *const entry = entry_of_stream(tracked->key);
    /* Fails while the stream captures. */
    const bool lowered = !entry || OPERATION_OF(vendor, stream_lower)((vendor_stream)(uintptr_t)tracked->key);
    if (lowered) {
        if (entry)
            drop_locked(entry, true);
        set(&tracked->part.raised, OVERLAP_PART_NOT_RAISED);
        if (device)
            note(tracked, device, status, 0);
    }
    leave(&changing);
    return lowered;
}

void raised_gone(struct overlap_stream *tracked) {
    enum { PATIENCE = 4096 }; /* a signal handler may have interrupted the thread for which it waits */
    bool locked = take(&changing);
    for (uint32_t i = 0; !locked && i < PATIENCE; i++) {
        overlap_pause();
        locked = take(&changing);
    }
    set(&tracked->part.raised, OVERLAP_PART_CANNOT_RAISE);
    if (locked)
        leave(&changing);
}

bool raised_in_doubt(void) {
    enum { DOUBTED = 64 };
    for (uint32_t i = 0; i < get(&entries_used); i++) {
        const struct overlap_stream *const tracked =
            __atomic_load_n(&state->raised[i].handle, __ATOMIC_ACQUIRE) ? OVERLAP_LOAD(state->raised[i].tracked) : NULL;
        if (tracked && get(&tracked->part.since) >= DOUBTED)
            return true;
    }
    return false;
}

void raised_forked(void) {
    for (uint32_t i = 0; state && i < CRITICAL_STREAMS; i++)
        state->raised[i].handle = 0;
    critical_bloom = 0;
    critical_any = entries_used = 0;
    changing = 0; /* the holder does not exist in the child */
}
