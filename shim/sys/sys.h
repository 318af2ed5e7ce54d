/* The operating-system interface for the rest of the library. Nothing in sys/ knows about GPUs.
 *
 * Rules of this folder: no pthread symbol, no stdio, no malloc; errno is unchanged when we return to the program; a
 * symbol that only some C libraries have is weak. The binary must load on glibc 2.17 and newer, and must not prevent a
 * musl program from running.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "../abi.h"

/* ---- Start: the environment, copied before the program can change it ---- */

struct overlap_settings {
    const void *table;     /* checked; NULL: the library does nothing */
    const char *directory; /* of the report, decoded; "": none */
    bool quiet;
    uint32_t launcher; /* process id of overlap-run, which becomes the program; 0: none */
    int32_t rank;      /* -1: unknown */
    uint32_t world;    /* 0: unknown */
};

/* Will the library never do anything in this process, because no launcher set it up or OVERLAP_RUN is off? False while
 * the environment cannot be read yet. */
bool overlap_is_off(void);

/* ---- Symbols of other objects ---- */

/* The real dlsym(3). NULL also if it cannot be found. */
void *overlap_dlsym(void *handle, const char *name);

/* Returns the next definition after ours: in the global scope, or else in an object loaded RTLD_LOCAL whose basename
 * begins with `prefix`. NULL: none at present. */
void *overlap_next_symbol(const char *name, const char *prefix);

/* An object mapped in this process. */
struct overlap_object {
    uintptr_t base;       /* load bias: added to the object's addresses */
    uintptr_t start, end; /* of its segments */
    const void *dynamic;
    const char *name; /* basename; valid as long as the object is loaded */
};

/* Finds the object that contains an address. False: none does. */
bool overlap_object_at(uintptr_t address, struct overlap_object *object);

/* Returns the basename of the library that contains an address, valid while the library is loaded; "": none does. Takes
 * nanoseconds once the answer is known for that page. */
const char *overlap_library(uintptr_t site);

/* Finds the first loaded object whose basename begins with the prefix. False: none does. */
bool overlap_object_named(const char *prefix, struct overlap_object *object);

/* Returns a symbol that the object itself defines, or NULL. */
void *overlap_object_symbol(const struct overlap_object *object, const char *name);

/* Symbols that this library exports: the address of a name (NULL: none), and the name of an address ("": none). Both
 * work before libc is ready. */
void *overlap_own_symbol(const char *name);
const char *overlap_own_name(uintptr_t address);

/* Returns the address that the loader would bind the code at `site` to for this name if this library were not loaded,
 * by the version that its object wants. NULL: none. Takes a lock of the loader only at the first call of a name by a
 * library that was not loaded at program start, and none that the loader holds while it runs the program's code. number: of the name, below 65,536. prefix: basenames begin with it in objects that are accepted where the
 * caller's scope has no definition (bind.c). overlap_behind_cached() returns an answer that this thread has cached, or
 * NULL; overlap_behind() resolves the name, which takes microseconds. stores: where the library is off, the caller keeps an answer
 * that holds for every caller. */
void *overlap_behind_cached(uintptr_t site, uint32_t number);
void *overlap_behind(uintptr_t site, uint32_t number, const char *name, const char *prefix, bool stores);

/* Maps the memory of cached answers, which the first one does otherwise. False: the system has none. */
bool overlap_answers_prepare(void);

/* Is the address in an object loaded at program start? Callers are bound to those first, and they are never
 * unmapped. Takes no lock. */
bool overlap_is_global(uintptr_t address);

/* Changes when an address that was looked up earlier may belong to another object now. 0: this may happen at any time. */
uint64_t overlap_generation(void);

/* Is the address in this library? */
bool overlap_is_ours(uintptr_t address);

/* Opens a library RTLD_GLOBAL. False: it cannot be opened. */
bool overlap_open(const char *name);

/* Returns the current value of an environment variable, or NULL. */
const char *overlap_variable(const char *name);

/* Keeps the object at an address mapped even if the program closes it. It is pinned in dlclose at the latest. */
void overlap_object_pin(uintptr_t address);

/* Maps zeroed memory. NULL: the system has none. */
void *overlap_map(size_t size);
void overlap_unmap(void *memory, size_t size);

/* ---- Threads, clocks, log ---- */

#define OVERLAP_SECOND UINT64_C(1000000000) /* nanoseconds */

/* Waits until another thread has set *waited to `value`, for a second at most. False: timed out, as in a signal handler
 * that interrupted that thread. Later waits for it then fail at once until it is set, because the thread may have left its
 * work for good (longjmp). */
bool overlap_wait(const uint32_t *waited, uint32_t value);
/* The same, for two seconds: of a thread that is in a call of the driver. */
bool overlap_wait_for_driver(const uint32_t *waited, uint32_t value);
/* It was set late: later waits do not fail at once. */
void overlap_wait_reset(const uint32_t *waited);

/* A lock in a word: 0, or the thread id of its owner. overlap_lock_wait() waits for a second at most, and lends the owner
 * the priority of this thread meanwhile; RETRY: the word has changed; ORPHANED: the owner has ended. overlap_lock_pass()
 * leaves a lock whose word is no longer the owner's id alone, because threads wait. */
enum overlap_lock_result { OVERLAP_LOCK_TAKEN, OVERLAP_LOCK_RETRY, OVERLAP_LOCK_TIMED_OUT, OVERLAP_LOCK_ORPHANED };
enum overlap_lock_result overlap_lock_wait(uint32_t *word, uint32_t own);
void overlap_lock_pass(uint32_t *word, uint32_t own);
uint32_t overlap_lock_owner(uint32_t word);

/* Nanoseconds of the kernel's own CLOCK_MONOTONIC. 0: a sandbox refuses the call. */
uint64_t overlap_kernel_clock(void);

/* Nanoseconds of CLOCK_MONOTONIC, without a system call where the kernel provides a user-space clock. */
uint64_t overlap_clock(void);

/* Does a thread of this process with this id still exist? */
bool overlap_thread_alive(uint32_t tid);
uint32_t overlap_thread_id(void);

/* Prints one line on stderr, "overlap: ...", of up to three pieces. Silent if the user asked for that, or if stderr is
 * no longer the file that it was. */
void overlap_say(const char *a, const char *b, const char *c);
