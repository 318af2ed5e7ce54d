/* This process: is anything to be done in it (armed.c), and its statistics page (page.c). */
#pragma once

#include "../core/core.h"
#include "../sys/sys.h"

#pragma GCC visibility push(hidden)

/* ---- armed.c ---- */

/* Returns the settings. NULL while the library does nothing: not armed, switched off, or called too early. */
const struct overlap_settings *overlap_armed(void);

/* The same for processes that may never use a GPU: does not report a broken table. */
const struct overlap_settings *overlap_settings(void);

/* 1: some policy of the table raises streams (RAISES), has rules for overlap windows (WINDOWS), or changes any launch
 * (SHAPES). 0: the calls of streams and events are passed on at once. */
enum { STREAMS_RAISES = 1, STREAMS_WINDOWS = 2, STREAMS_SHAPES = 4, STREAMS_KNOWN = 8 };
extern uint32_t streams_needed;
uint32_t streams_need(void);
static inline uint32_t streams_wanted(void) {
    const uint32_t needed = OVERLAP_RELAXED(streams_needed);
    return __builtin_expect(needed, STREAMS_KNOWN) ? needed : streams_need();
}
static inline bool streams_tracked(void) {
    return streams_wanted() & (STREAMS_RAISES | STREAMS_WINDOWS);
}

/* Registers the fork handler: a forked child starts at zero (preload/fork.c). */
void overlap_watch_forks(void);
void overlap_in_child(void);
extern uint32_t overlap_table_decoded; /* OVERLAP_DONE: the settings are what they will be */

/* ---- page.c ---- */

/* Maps a private page for the counters, once. False: the system has no memory. A forked child has its own copy. */
bool overlap_page_prepare(void);

/* Creates the page of this process, once, and makes it current. Cheap after that. False: not armed, or another thread
 * takes too long to create it; the private page then stays current for now. */
bool overlap_page_start(void);

/* Kernels can be launched in this process (NVIDIA: it has a context). Reported at the end of the process, even if the
 * environment cannot be read yet. */
void overlap_page_opened(void);

/* The driver was initialized through a route that we see, so later calls are seen as well. */
void overlap_page_initialised(void);

/* Has this process initialized a driver, or launched a kernel? */
bool overlap_page_used(void);

/* In the child after fork. */
void overlap_page_forked(void);

/* ---- For the end of a process (preload/end.c) ---- */

#define OVERLAP_WAITING_ROOM "/dev/shm"

/* Is this a child that has not called exec, whether by fork, vfork or clone? */
bool overlap_page_is_forked(void);
/* Have overlap_page_opened() and overlap_page_initialised() been called? */
bool overlap_page_is_opened(void);
bool overlap_page_is_initialised(void);
/* The page that this process has made. NULL: none. A child by a raw system call has its parent's. */
struct overlap_page *overlap_page_own(void);
/* Is it a file? Its name in OVERLAP_WAITING_ROOM, if it is there until it is moved to the report's folder, or "". */
bool overlap_page_has_file(void);
const char *overlap_page_waits(void);

#pragma GCC visibility pop
