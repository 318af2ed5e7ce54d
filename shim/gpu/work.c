/* What each thread has launched: see work.h. */
#include "../sys/sys.h"
#include "streams.h"
#include "work.h"

struct stream no_stream = {.slot = WORKS, .device = NO_DEVICE};

/* ---- Work ---- */

/* Moves the work of a slot to its stream. */
static void move_work(struct work *work) {
    if (work->stream && work->stream != &no_stream && work->serial == OVERLAP_RELAXED(work->stream->serial))
        __atomic_fetch_add(&work->stream->gone_work, work->sum, __ATOMIC_RELAXED);
    __atomic_store_n(&work->sum, 0, __ATOMIC_RELAXED);
}

/* Moves the work of a former owner to its streams. */
static void empty(struct launcher *launcher) {
    for (int i = 0; i < WORKS; i++) {
        move_work(&launcher->works[i]);
        __atomic_store_n(&launcher->works[i].stream, NULL, __ATOMIC_RELEASE);
    }
    launcher->works[WORKS].stream = &no_stream;
}

/* The reader in sum_work() may see the work twice or not at all meanwhile, which the next judgement mends. */
RARE struct work *work_slot(struct launcher *launcher, struct stream *stream) {
    struct work *const work = &launcher->works[stream->slot];
    if (work->stream == stream && work->serial == OVERLAP_RELAXED(stream->serial))
        return work;
    move_work(work);
    __atomic_store_n(&work->serial, OVERLAP_RELAXED(stream->serial), __ATOMIC_RELAXED);
    __atomic_store_n(&work->stream, stream, __ATOMIC_RELEASE);
    return work;
}

/* ---- The tables ----
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
    const size_t size = sizeof(struct launcher) + (sizeof(struct cached_launch) << bits);
    struct launcher *const made = overlap_map(size), *none = NULL;
    if (!made)
        return NULL;
    made->bits = bits;
    if (__atomic_compare_exchange_n(&launchers[number], &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made;
    overlap_unmap(made, size); /* another thread was faster */
    return none;
}

static bool take(struct launcher *launcher, uint32_t owner, uint32_t thread) {
    return __atomic_compare_exchange_n(&launcher->owner, &owner, thread, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Whether an owner still runs takes a system call, so the first tables are mapped without asking that. */
static struct launcher *find_free(uint32_t thread) {
    struct launcher *launcher;
    for (uint32_t i = 0; (launcher = launcher_at(i)) != NULL; i++) {
        const uint32_t owner = OVERLAP_RELAXED(launcher->owner);
        if ((!owner || owner == thread || (launcher_at(LARGE_LAUNCHERS - 1) && !overlap_thread_alive(owner))) &&
            take(launcher, owner, thread))
            return launcher;
    }
    for (uint32_t i = 0; i < LAUNCHERS; i++) {
        launcher = launcher_at(i);
        if (!launcher && !(launcher = map_launcher(i)))
            return NULL;
        if (take(launcher, 0, thread))
            return launcher;
    }
    return NULL;
}

struct launcher *launcher_claim(uint32_t thread) {
    struct launcher *const claimed = find_free(thread);
    if (claimed)
        empty(claimed);
    return claimed;
}
