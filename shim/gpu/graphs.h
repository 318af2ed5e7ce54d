/* What executable graphs carry, so that a stream which launches them can be judged like one that launches their kernels:
 * the threads of all kernels, as the graph was instantiated. An update of the graph does not change them here: it keeps
 * the kernels, and rarely their grids. */
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
