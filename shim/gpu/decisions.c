/* Decisions about launches of a kernel, found by kernel and call: see handle.h. */
#include "../sys/sys.h"
#include "../text.h"
#include "launch.h"
#include "handle.h"
#include "point.h"
#include "table.h"

static struct pool decisions = POOL_OF(decision, 1 << 18);

static struct decision *decision_at(uint32_t number) {
    return number ? pool_at(&decisions, number) : NULL;
}

/* A kernel may have thousands of decisions: one for each size with which it is launched. */
enum { BUCKET_BITS = 14 };
static uint32_t *bucket_of(const struct handle *handle, uint64_t key) {
    static uint32_t buckets[1 << BUCKET_BITS];
    return &buckets[overlap_spread((uint64_t)(uintptr_t)handle ^ key, BUCKET_BITS)];
}

void decisions_forget_of(struct handle *handle) {
    while (handle->decisions) {
        const uint32_t first = handle->decisions;
        uint32_t *at = bucket_of(handle, decision_at(first)->key);
        while (*at && *at != first) /* 0: a fork or a jump has interrupted a change */
            at = &decision_at(*at)->beside;
        if (*at)
            *at = decision_at(first)->beside;
        __atomic_store_n(&handle->decisions, decision_at(first)->next, __ATOMIC_RELAXED); /* decision_find() looks */
        pool_give(&decisions, first);
    }
}

static uint32_t of_all; /* incremented when every decision may be stale; written without the lock, as all versions */

/* Its own version and that of the kernel that it comes from: a change of that one concerns it, too. */
static uint32_t version_of(const struct handle *handle) {
    const struct handle *const origin = handle_origin(handle);
    return OVERLAP_LOAD(of_all) + OVERLAP_LOAD(handle->version) + (origin ? OVERLAP_LOAD(origin->version) : 0);
}

static struct decision *find_decision(const struct handle *handle, const struct decision *asked) {
    for (uint32_t number = *bucket_of(handle, asked->key); number; number = decision_at(number)->beside) {
        struct decision *const found = decision_at(number);
        if (found->kernel == handle && found->key == asked->key && found->flags == asked->flags &&
            found->device == asked->device && found->least <= asked->least && asked->least <= found->most)
            return found;
    }
    return NULL;
}

bool decision_find(const struct handle *handle, const struct decision *asked, struct decision *found) {
    if (!OVERLAP_RELAXED(handle->decisions) || !lock_take())
        return false;
    const struct decision *const decision = find_decision(handle, asked);
    const bool holds = decision && decision->version == version_of(handle);
    if (holds)
        *found = *decision;
    lock_leave();
    return holds;
}

bool decision_keep(struct handle *handle, const struct decision *made, uint32_t epoch) {
    POINT(decision_made);
    if (!lock_take())
        return false;
    const bool holds = epoch == OVERLAP_LOAD(launch_epoch) && !handle_is_ending(handle);
    if (holds) {
        const uint32_t version = version_of(handle);
        handle->decided = 1;
        if (handle->decisions && decision_at(handle->decisions)->version != version)
            decisions_forget_of(handle);
        const uint32_t number = pool_take(&decisions);
        struct decision *const kept = decision_at(number);
        if (kept) {
            *kept = *made;
            kept->version = version;
            kept->kernel = handle;
            uint32_t *const bucket = bucket_of(handle, kept->key);
            kept->beside = *bucket;
            *bucket = number;
            kept->next = handle->decisions;
            __atomic_store_n(&handle->decisions, number, __ATOMIC_RELAXED);
        }
    }
    const bool full = decisions.used == decisions.most && !decisions.free;
    lock_leave();
    if (full)
        decisions_forget();
    return holds;
}

void decision_is_proven(struct handle *handle, const struct decision *decision) {
    if (!lock_take())
        return;
    struct decision *const known = find_decision(handle, decision);
    if (known && known->size == decision->size)
        known->proven = 1;
    lock_leave();
}

void decisions_forget(void) {
    __atomic_fetch_add(&of_all, 1, __ATOMIC_RELEASE);
    if (lock_take()) { /* else their memory is given back with the next decision about each kernel */
        for (uint32_t number = 1; number <= handles_used(); number++)
            decisions_forget_of(handle_at(number));
        lock_leave();
    }
    invalidate_decisions();
}
