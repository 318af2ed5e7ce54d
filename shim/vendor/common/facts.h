/* Launches that the decision cache does not hold: gather the facts, decide, cache the decision. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct request;

/* Returns the decision word of a launch that has no cache line under its plain handle. *cache_handle: handle of its cache line;
 * 0: it is not cached. */
uint64_t facts_word(const struct request *request, uint64_t *cache_handle, uint64_t *grid);
/* True in a forked child whose parent used a GPU. */
extern bool facts_forked;

/* Call this before removing decisions from the cache: decisions that other threads are making now are then not cached. */
void invalidate_decisions(void);

/* Writes the basename of the library that contains an address to `name`; "": none does. */
void library_of(uintptr_t site, char *name, size_t size);

#pragma GCC visibility pop
