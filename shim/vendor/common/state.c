/* The mapping behind state.h. Racing threads each map one; the first to publish wins, and the others unmap theirs. */
#include "state.h"

struct state *state;

bool state_make(void) {
    struct state *made = __atomic_load_n(&state, __ATOMIC_ACQUIRE), *none = NULL;
    if (made)
        return true;
    made = overlap_page_prepare() ? overlap_map(sizeof *made) : NULL;
    if (!made)
        return false;
    if (!__atomic_compare_exchange_n(&state, &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        overlap_unmap(made, sizeof *made);
    overlap_cache_use(&launch_cache, &state->cache);
    return true;
}
