/* Launches about which no decision is kept: gather the facts, decide (core/decide.c), keep the decision. */
#pragma once

#include "handle.h"
#include "launch.h"

#pragma GCC visibility push(hidden)

/* Incremented whenever an answer that threads have kept may be stale. */
extern uint32_t launch_epoch;
void invalidate_decisions(void);

/* Makes the decision about a launch. handle: the kernel's, or NULL. False: it holds for this launch only. */
bool decide(const struct request *request, struct handle *handle, struct decision *decision);

/* True in a forked child whose parent used a GPU. */
extern bool is_forked_child;

/* Writes the basename of the library that contains an address to `name`; "": none does. */
void library_of(uintptr_t site, char *name, size_t size);

#pragma GCC visibility pop
