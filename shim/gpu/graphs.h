/* What executable graphs carry, so that a stream which launches them can be judged like one that launches their kernels:
 * the work of all kernels, as the graph was instantiated. Updates are not followed: to read all nodes again would cost
 * each of them, and few change a grid by much. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

/* The graph carries so much work (core/judge.h). known: false where it cannot be told, or must not count: with
 * communication, conditions, priorities of nodes. */
void graph_learn(vendor_exec graph, bool known, uint64_t work);
void graph_forget(vendor_exec graph);
/* False: it is not known. Needs no lock. */
bool graph_work(vendor_exec graph, uint64_t *work);

#pragma GCC visibility pop
