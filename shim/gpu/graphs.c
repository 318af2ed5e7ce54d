/* Executable graphs: see graphs.h. */
#include "graphs.h"
#include "table.h"

static struct map graphs; /* handle -> work + 1 */

/* Without the lock a graph becomes one of unknown work: another one may get its handle. */
static void put(vendor_exec graph, uint64_t value) {
    const uint64_t key = (uint64_t)(uintptr_t)graph, before = map_get(&graphs, key);
    if (!key || (!value && !before)) /* 0 is no key of a map */
        return;
    if (lock_take()) {
        map_put(&graphs, key, value);
        lock_leave();
    } else {
        map_replace(&graphs, key, before, 0);
    }
}

void graph_learn(vendor_exec graph, bool known, uint64_t work) {
    put(graph, known && work < UINT64_MAX ? work + 1 : 0);
}

void graph_forget(vendor_exec graph) {
    put(graph, 0);
}

bool graph_work(vendor_exec graph, uint64_t *work) {
    const uint64_t value = map_get(&graphs, (uint64_t)(uintptr_t)graph);
    *work = value - 1;
    return value != 0;
}
