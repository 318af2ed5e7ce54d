/* LD_PRELOAD with our library in it or out of it, as pyshim/preload.py has it; and whether it can be loaded. */
#pragma once

#include <stdbool.h>

#define LIBRARY_NAME "liboverlap.so"

/* A regular file that may be read, of the architecture of this plugin. */
bool preload_is_loadable(const char *library);

/* The texts below are to be freed; NULL: no memory. `value` may be NULL: not set. */

/* How an entry names this file: by $PLATFORM where the folders are that this leads to, one of them for 32-bit programs;
 * else as it is. */
char *preload_entry(const char *library);

/* The file of the first copy of the library in there, or NULL. */
char *preload_find(const char *value);

/* With this entry for the library and no other: first, but behind sanitizer runtimes, which must come first. */
char *preload_with(const char *value, const char *entry);

/* Without any copy. */
char *preload_without(const char *value);
