/* See thread.h. A thread that launches claims a shard of the page, and a table of the launches that it has made. Those of a
 * thread that has ended go to the next one. */
#include <errno.h>

#include "../sys/sys.h"
#include "handle.h"
#include "table.h"
#include "page.h"
#include "streams.h"
#include "thread.h"

__thread struct this_thread this_thread __attribute__((tls_model("initial-exec")));

uint32_t thread_id(void) {
    if (!this_thread.id)
        this_thread.id = overlap_thread_id();
    return this_thread.id;
}

/* ---- Tables of launches ----
 *
 * The first threads, which launch most, get more entries: 12 MiB for all. A thread that finds none looks every launch up
 * under the lock. */

enum { LAUNCHERS = 160, LARGE_LAUNCHERS = 8, LARGE_BITS = 12, SMALL_BITS = 10 };
static struct launcher *launchers[LAUNCHERS]; /* mapped in their order, and never unmapped */

struct launcher *launcher_at(uint32_t number) {
    return number < LAUNCHERS ? __atomic_load_n(&launchers[number], __ATOMIC_ACQUIRE) : NULL;
}

static struct launcher *map_launcher(uint32_t number) {
    const uint32_t bits = number < LARGE_LAUNCHERS ? LARGE_BITS : SMALL_BITS;
    const size_t size = sizeof(struct launcher) + (sizeof(struct known) << bits);
    struct launcher *const made = overlap_map(size), *none = NULL;
    if (!made)
        return NULL;
    made->bits = bits;
    if (__atomic_compare_exchange_n(&launchers[number], &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    overlap_unmap(made, size); /* another thread was faster */
    return none;
}

static bool claim(struct launcher *launcher, uint32_t owner) {
    return __atomic_compare_exchange_n(&launcher->owner, &owner, thread_id(), false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* Whether an owner still runs takes a system call, so the first tables are mapped without asking that. */
static struct launcher *claim_launcher(void) {
    struct launcher *launcher;
    for (uint32_t i = 0; (launcher = launcher_at(i)) != NULL; i++) {
        const uint32_t owner = OVERLAP_RELAXED(launcher->owner);
        if ((!owner || owner == thread_id() || (launcher_at(LARGE_LAUNCHERS - 1) && !overlap_thread_alive(owner))) &&
            claim(launcher, owner))
            return launcher;
    }
    for (uint32_t i = 0; i < LAUNCHERS; i++) {
        launcher = launcher_at(i);
        if (!launcher && !(launcher = map_launcher(i)))
            return NULL;
        if (claim(launcher, 0))
            return launcher;
    }
    return NULL;
}

/* Returns the counters of this thread. NULL: there is no memory for a page. */
RARE static struct overlap_shard *shard_of_thread(void) {
    const int saved = errno;
    const bool made = overlap_page_start();
    struct overlap_page *const page = __atomic_load_n(&overlap_current_page, __ATOMIC_ACQUIRE);
    struct overlap_shard *shard = page ? overlap_shard_shared(page) : NULL;
    if (made) { /* else retry at the next launch */
        shard = overlap_shard_claim(page, thread_id(), overlap_thread_alive);
        this_thread.shares = overlap_shard_is_shared(page, shard);
        this_thread.shard = shard;
        this_thread.launcher = claim_launcher();
        if (this_thread.launcher)
            launcher_take(this_thread.launcher);
    }
    errno = saved;
    return shard;
}

RARE static void opens_gpu(void) {
    overlap_page_opened();
    if (!overlap_armed())
        return;
    this_thread.opened = true;
    if (!this_thread.shard)
        shard_of_thread();
    streams_wanted();
    overlap_answers_prepare();
    if (lock_take()) {
        handles_prepare();
        streams_prepare();
        lock_leave();
    }
}

void thread_opens_gpu(void) {
    if (!this_thread.opened)
        opens_gpu();
}

RARE static void add_without_own(size_t offset) {
    struct overlap_shard *const shard = shard_of_thread();
    if (shard)
        overlap_shard_add(overlap_current_page, shard, (uint64_t *)((char *)shard + offset));
}

static void add(size_t offset) {
    struct overlap_shard *const own = this_thread.shard;
    if (own)
        thread_add((uint64_t *)((char *)own + offset));
    else
        add_without_own(offset);
}

void count(enum overlap_counter counter) {
    add(offsetof(struct overlap_shard, counters) + 8 * (size_t)counter);
}

void count_launch(uint32_t row) {
    add(offsetof(struct overlap_shard, launches) + 8 * (size_t)row);
}

RARE void thread_forked(void) {
    this_thread.shard = NULL;
    this_thread.launcher = NULL;
    this_thread.id = 0;
    this_thread.shares = false;
    this_thread.opened = false;
}
