/* What executable graphs carry, so that a stream which launches them can be judged like one that launches their kernels:
 * the threads of all kernels, as the graph was instantiated. Updates are not followed: to read all nodes again would cost
 * each of them, and few change a grid by much. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

/* The graph carries so many threads; known: false where they cannot be told, or must not count: communication among
 * them, conditions, priorities of nodes. */
void graph_learn(vendor_exec graph, bool known, uint64_t threads);
void graph_forget(vendor_exec graph);
/* False: they are not known. Needs no lock. */
bool graph_threads(vendor_exec graph, uint64_t *threads);

#pragma GCC visibility pop
