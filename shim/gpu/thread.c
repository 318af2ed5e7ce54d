/* See thread.h. A thread that launches claims a shard of the page, and a table of the launches that it has made. Those of a
 * thread that has ended go to the next one. */
#include <errno.h>

#include "../sys/sys.h"
#include "handle.h"
#include "table.h"
#include "page.h"
#include "thread.h"
#include "work.h"

__thread struct this_thread this_thread __attribute__((tls_model("initial-exec")));

uint32_t captures_open;
uint32_t launch_epoch = 1; /* 0 marks an entry of a thread's table that is being written */

void invalidate_decisions(void) {
    if (__atomic_add_fetch(&launch_epoch, 1, __ATOMIC_SEQ_CST) == 0)
        __atomic_add_fetch(&launch_epoch, 1, __ATOMIC_SEQ_CST);
}

uint32_t thread_id(void) {
    if (!this_thread.id)
        this_thread.id = overlap_thread_id();
    return this_thread.id;
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
        this_thread.launcher = launcher_claim(thread_id());
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
