/* Executable graphs that contain communication. */
#pragma once

#include "hook.h"
#include "vendor_abi.h"

#pragma GCC visibility push(hidden)

/* 1: communication was captured or added as a node, so graphs are inspected. */
extern uint32_t exec_may_communicate;
/* 1: the program creates nodes that wait, so graphs are inspected. */
extern uint32_t exec_may_wait;
/* Flags of an executable graph: what it contains, and whether its node priorities are honoured because of our flag
 * (EXEC_FLAGGED) or the program's (EXEC_PROGRAMS). EXEC_RAISED_TO(p): it contains communication nodes that we raised to
 * p, which is negative, and that run at p. EXEC_RAISED_FROM(p): nodes that we raised would have priority p without us.
 * EXEC_OTHERS_AT(p): other nodes have priority p. */
enum exec_flag { EXEC_COMMUNICATES = 1, EXEC_WAITS = 2, EXEC_UNKNOWN = 4, EXEC_FLAGGED = 8, EXEC_PROGRAMS = 16 };
enum { EXEC_PRIORITIES = 7, EXEC_RAISED_TO_SHIFT = 5, EXEC_RAISED_FROM_SHIFT = 13, EXEC_OTHERS_AT_SHIFT = 21 };
/* The bit of a priority, which is 0 to -5 on GPUs so far; the last bit stands for all priorities beyond. */
#define EXEC_BIT(priority) (1U << ((priority) < -EXEC_PRIORITIES ? EXEC_PRIORITIES : (priority) > 0 ? 0 : -(priority)))
#define EXEC_RAISED_TO(priority) (EXEC_BIT(priority) << EXEC_RAISED_TO_SHIFT)
#define EXEC_RAISED_FROM(priority) (EXEC_BIT(priority) << EXEC_RAISED_FROM_SHIFT)
#define EXEC_RAISED_FROM_ANY (((2U << EXEC_PRIORITIES) - 1) << EXEC_RAISED_FROM_SHIFT)
#define EXEC_OTHERS_AT(priority) (EXEC_BIT(priority) << EXEC_OTHERS_AT_SHIFT)
/* exec_made(): the graph was instantiated as `exec`. ours: its priority flags, which are fixed at instantiation.
 * exec_updated(): `exec` was updated from another graph. */
void exec_made(enum vendor vendor, const void *exec, vendor_graph graph, uint32_t ours);
void exec_updated(enum vendor vendor, const void *exec, vendor_graph graph);
uint32_t exec_flags(const void *exec);

#pragma GCC visibility pop
