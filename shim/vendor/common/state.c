/* The mapping behind state.h. Racing threads each map one; the first to publish wins, and the others unmap theirs. */
#include "../../core/core.h"
#include "../../core/slots.h"
#include "../../sys/sys.h"
#include "launch_slow.h"
#include "page.h"
#include "resolve.h"
#include "state.h"

struct state *state;

bool state_make(void) {
    struct state *made = __atomic_load_n(&state, __ATOMIC_ACQUIRE), *none = NULL;
    if (made) { /* the thread that made it may not have set real_tables yet */
        __atomic_store_n(&real_tables, &made->real, __ATOMIC_RELEASE);
        return true;
    }
    made = overlap_page_prepare() ? overlap_map(sizeof *made) : NULL;
    if (!made)
        return false;
    if (!__atomic_compare_exchange_n(&state, &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        overlap_unmap(made, sizeof *made);
    overlap_cache_use(&launch_cache, &state->cache);
    __atomic_store_n(&real_tables, &state->real, __ATOMIC_RELEASE);
    return true;
}

static struct overlap_slot *slots_of(enum state_table table) {
    return state ? state->tables[table] : NULL;
}
uint64_t state_get(enum state_table table, uint64_t key) {
    return overlap_slots_get(slots_of(table), STATE_TABLE_BITS, key);
}
bool state_swap(enum state_table table, uint64_t key, uint64_t *before, uint64_t after) {
    return overlap_slots_swap(slots_of(table), STATE_TABLE_BITS, key, before, after);
}
uint64_t state_put(enum state_table table, uint64_t key, uint64_t after) {
    return overlap_slots_put(slots_of(table), STATE_TABLE_BITS, key, after);
}

/* A thread may still be reading the old memory, so that is emptied but never reused: the thread finds a decision that
 * was valid when its lookup began, or none. */
void state_renew_cache(void) {
    static uint32_t renewing;
    struct overlap_cache_memory *made, *full;
    if (!overlap_cache_full(&launch_cache) || __atomic_exchange_n(&renewing, 1, __ATOMIC_ACQUIRE))
        return;
    full = overlap_cache_full(&launch_cache); /* another thread may have renewed it before we got the lock */
    made = full ? overlap_map(sizeof *made) : NULL;
    if (made) {
        overlap_cache_use(&launch_cache, made);
        overlap_empty(full, offsetof(struct overlap_cache_memory, handles));
    }
    __atomic_store_n(&renewing, 0, __ATOMIC_RELEASE);
}
