/* Executable graphs: see graphs.h. */
#include "graphs.h"
#include "table.h"

static struct map graphs; /* handle -> threads + 1 */

static void put(vendor_exec graph, uint64_t value) {
    if (graph && (value || map_get(&graphs, (uint64_t)(uintptr_t)graph)) && lock_take()) {
        map_put(&graphs, (uint64_t)(uintptr_t)graph, value);
        lock_leave();
    }
}

void graph_learn(vendor_exec graph, bool known, uint64_t threads) {
    put(graph, known && threads < UINT64_MAX ? threads + 1 : 0);
}

void graph_forget(vendor_exec graph) {
    put(graph, 0);
}

bool graph_threads(vendor_exec graph, uint64_t *threads) {
    const uint64_t value = map_get(&graphs, (uint64_t)(uintptr_t)graph);
    *threads = value - 1;
    return value != 0;
}
