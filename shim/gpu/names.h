/* Names of kernels, and of the libraries that created streams: text that is given back when its owner ends, because
 * programs that compile kernels all day never launch the same name twice. All of it under the lock (table.h). */
#pragma once

#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { NAME_LIMIT = 4096 }; /* characters; further ones are cut off */

/* Keeps a copy of a name; returns its number. 0: there is no memory, or names of 15 million characters are kept. */
uint32_t name_keep(const char *name);
void name_give(uint32_t number);

/* Returns the text, which stays valid until the next call. */
const char *name_text(uint32_t number);

/* Never 0. Needs no lock. */
uint64_t name_hash(const char *name);

#pragma GCC visibility pop
