/* See thread.h. A thread that launches claims a shard of the page, and gets a table of the launches that it has made.
 * Shard and table of a thread that has ended go to the next one. */
#include <errno.h>

#include "../sys/sys.h"
#include "handle.h"
#include "table.h"
#include "page.h"
#include "streams.h"
#include "thread.h"

__thread struct this_thread this_thread __attribute__((tls_model("initial-exec")));
static struct launcher *launchers[OVERLAP_SHARDS]; /* mapped when a shard is claimed for the first time */

uint32_t thread_id(void) {
    if (!this_thread.id)
        this_thread.id = overlap_thread_id();
    return this_thread.id;
}

struct launcher *launcher_of_shard(uint32_t shard) {
    return __atomic_load_n(&launchers[shard], __ATOMIC_ACQUIRE);
}

static struct launcher *launcher_of(const struct overlap_shard *shard) {
    struct launcher **const at = &launchers[shard - overlap_current_page->shards];
    if (!*at)
        __atomic_store_n(at, overlap_map(sizeof **at), __ATOMIC_RELEASE);
    return *at;
}

/* Returns the counters of this thread. NULL: there is no memory for a page. */
RARE static struct overlap_shard *shard_of_thread(void) {
    const int saved = errno;
    const bool made = overlap_page_start();
    struct overlap_page *const page = __atomic_load_n(&overlap_current_page, __ATOMIC_ACQUIRE);
    struct overlap_shard *shard = page ? overlap_shard_shared(page) : NULL;
    if (made && !this_thread.shares) { /* else retry at the next launch, or all shards are taken */
        shard = overlap_shard_claim(page, thread_id(), overlap_thread_alive);
        this_thread.shares = overlap_shard_is_shared(page, shard);
        this_thread.shard = this_thread.shares ? NULL : shard;
        this_thread.launcher = this_thread.shard ? launcher_of(shard) : NULL;
        if (this_thread.launcher)
            launcher_take(this_thread.launcher);
    }
    errno = saved;
    return shard;
}

RARE void thread_opens_gpu(void) {
    overlap_page_opened();
    if (!overlap_armed())
        return;
    if (!this_thread.shard)
        shard_of_thread();
    streams_wanted();
    if (lock_take()) {
        handles_prepare();
        streams_prepare();
        lock_leave();
    }
}

RARE static void add_without_own(size_t offset) {
    struct overlap_shard *const shard = shard_of_thread();
    if (shard)
        overlap_shard_add(overlap_current_page, shard, (uint64_t *)((char *)shard + offset));
}

static void add(size_t offset) {
    struct overlap_shard *const own = this_thread.shard;
    if (own)
        overlap_add_own((uint64_t *)((char *)own + offset), 1);
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
}
