/* This process: is anything to be done in it (armed.c), and its statistics page (page.c, unopened.c). */
#pragma once

#include "../sys/sys.h"

#pragma GCC visibility push(hidden)

/* ---- armed.c ---- */

/* Returns the settings. NULL while the library does nothing: not armed, switched off, or called too early. */
const struct overlap_settings *overlap_armed(void);

/* The same for processes that may never use a GPU: does not report a broken table. */
const struct overlap_settings *overlap_settings(void);

/* Registers the fork handler: a forked child starts at zero. */
void overlap_watch_forks(void);

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

/* In the child after fork; at the regular end of the process. */
void overlap_page_forked(void);
void overlap_page_end(void);

/* ---- unopened.c ---- */

/* A driver is mapped. Has this process used a GPU past our hooks? Its launches may then have gone past them, too.
 * initialised: the driver was initialized through a hook; a program that counts AMD's GPUs in that way is assumed to
 * launch through hooks as well. */
bool overlap_opened_unseen(bool initialised);

/* Prints a line if neither the program that overlap-run became nor its children used the simulated GPU. At exit. */
void overlap_unopened_say(void);
bool overlap_had_children(void);

#pragma GCC visibility pop
