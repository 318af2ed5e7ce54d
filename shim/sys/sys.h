/* What the rest of the library may ask of the operating system. Nothing in sys/ knows about GPUs.
 *
 * Rules of this folder: no pthread symbol, no stdio, no allocation from malloc; errno is what it was when we return to
 * the program; a symbol that only some C libraries have is weak. The binary must load on glibc 2.17 and newer, and not
 * stop a musl program from running.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "../abi.h"

/* What every process of a job runs and writes, those that never touch a GPU above all. The linker puts it together, at the
 * head of the code and beside data that the loader has written already: a page touched for the first time costs more
 * than all that is done on it. */
#define OVERLAP_STARTUP __attribute__((section(".text.startup")))
#define OVERLAP_STARTUP_DATA __attribute__((section(".data.startup")))

/* ---- Start: what the environment said, copied before the program can change it ---- */

struct overlap_settings {
    const void *table;     /* checked; NULL: stay out of the way */
    const char *directory; /* of the report, decoded; "" for none */
    const char *run;       /* id of the run; "" for none */
    bool trace;
    bool quiet;
    uint32_t launcher; /* process id of overlap-run, which becomes the program; 0: none */
    int32_t rank;      /* -1: unknown */
    uint32_t world;    /* 0: unknown */
};

/* The settings, or NULL while the library stays out of the way (not armed, switched off, or called too early). */
const struct overlap_settings *overlap_armed(void);

/* Nothing will ever be done in this process: nobody has set us up, or OVERLAP_RUN is off. False while the environment cannot
 * be read yet. */
bool overlap_is_off(void);

/* ---- Symbols of others ---- */

/* The real dlsym; NULL also where there is none. */
void *overlap_dlsym(void *handle, const char *name);

/* The definition that comes after ours: in the global scope, or else in an object loaded RTLD_LOCAL whose basename
 * matches `prefix`. NULL: there is none now. */
void *overlap_next_symbol(const char *name, const char *prefix);

/* An object that is mapped in this process. */
struct overlap_object {
    uintptr_t base;       /* what the loader adds to its addresses */
    uintptr_t start, end; /* of its segments */
    const void *dynamic;
    const char *name; /* basename; valid as long as the object is loaded */
};

/* The object that holds an address; false: none. */
bool overlap_object_at(uintptr_t address, struct overlap_object *object);

/* The first loaded object whose basename begins with the prefix; false: none. */
bool overlap_object_named(const char *prefix, struct overlap_object *object);

/* Is there an object whose basename begins with one of two prefixes? At the end of every process, so it costs little. */
bool overlap_is_mapped(const char *prefix, const char *other);

/* A symbol that this very object defines, or NULL. */
void *overlap_object_symbol(const struct overlap_object *object, const char *name);

/* What this library exports: the address of a name, NULL: none; the name of an address, "": none. Both work before libc is ready. */
void *overlap_own_symbol(const char *name);
const char *overlap_own_name(uintptr_t address);

/* What the code at an address would be bound to for this name if we were not there, by the version that its object wants; NULL:
 * nothing. Takes no lock that the loader holds while code of the program runs. number: of the name, below 65,536; prefix: of
 * the basenames of objects that are taken where the caller's scope holds no definition (bind.c). overlap_behind_known() looks only
 * at answers that are kept. */
void *overlap_behind_known(uintptr_t site, uint32_t number);
void *overlap_behind(uintptr_t site, uint32_t number, const char *name, const char *prefix);

/* Is it in an object that was there when the program started? Callers are bound to those first, and they stay. */
bool overlap_is_global(uintptr_t address);

/* Changes whenever what was known of an address may be about another object. */
uint32_t overlap_generation(void);

/* Does an address lie in this library? */
bool overlap_is_ours(uintptr_t address);

/* Opens a library for everybody; false: it is not there. */
bool overlap_open(const char *name);

/* The value of a variable now, or NULL. */
const char *overlap_variable(const char *name);

/* Keeps an object mapped that is used by address from now on, even if the program closes it: before it is closed. */
void overlap_object_pin(uintptr_t address);

/* Provided by the vendor layer: which of its names this is, -1: none. */
int overlap_vendor_name(const char *name);

/* Provided by the vendor layer: what shall be answered to the code at `caller` for one of its names instead of `real`, which
 * is not NULL; NULL: the real answer. */
#define OVERLAP_NO_SYMBOL ((void *)1) /* NULL, although the real answer is another */
void *overlap_vendor_symbol(int hook, void *real, uintptr_t caller);

/* Provided by the vendor layer: is there anything but ours that has one of its names? */
bool overlap_vendor_behind(int name);

/* Provided by the vendor layer: called in a forked child, where pointers into the parent's page must not be used. used: as
 * overlap_page_used() said of the parent. */
void overlap_vendor_forked(bool used);

/* Provided by the vendor layer: is a driver mapped, whether or not it was called through us? */
bool overlap_vendor_present(void);

/* Zeroed memory of its own, NULL: none. */
void *overlap_map(size_t size);
void overlap_unmap(void *memory, size_t size);

/* Makes whole pages of such memory zero, and gives what they took back to the system. */
void overlap_empty(void *memory, size_t size);

/* The bytes of a file, to be unmapped; NULL: it cannot be read, is empty, or begins with `unless` (of 8 bytes at most). */
const void *overlap_map_file(const char *path, const char *unless, size_t *size);

/* Does the thread run on its alternate signal stack? */
bool overlap_on_signal_stack(void);

/* ---- Statistics page, trace, log ---- */

/* Maps a private page to count in, once; false: the system has no memory for it. A forked child has a copy of its own. */
bool overlap_page_prepare(void);

/* Makes the page of this process, once, and makes it the current one. Cheap when that is done. False: not armed, or
 * another thread takes too long over it; then the current page is a private one, for now. */
bool overlap_page_start(void);

/* More shards, for a page of which all are taken. False: there are none now, or, where it is full, none any more. */
bool overlap_page_grow(uint32_t before);
bool overlap_page_is_full(void);

/* Kernels can be launched in this process (NVIDIA: it has a context): said at its end, even if that was before there was
 * an environment. */
void overlap_page_opened(void);

/* The driver was initialised by a way that we see, so what comes next is seen, too. */
void overlap_page_initialised(void);

/* Is what is counted in a file, which `overlap report` may read? */
bool overlap_page_is_kept(void);

/* Has this process initialised a driver, or launched? */
bool overlap_page_used(void);

/* Waits until another thread has set *state to `value`; bounded (false) for a signal handler that interrupted that thread,
 * and done once only, because one may have jumped out of there for good. */
bool overlap_wait(const uint32_t *state, uint32_t value);

/* Lets other threads run. */
void overlap_pause(void);

/* Nanoseconds of CLOCK_MONOTONIC; no system call where the kernel has one for user space. */
uint64_t overlap_clock(void);

/* Is a thread of this process still there? */
bool overlap_thread_alive(uint32_t tid);
uint32_t overlap_thread_id(void);

/* Appends one record to the trace; false: not kept. name and library may be NULL. */
bool overlap_trace_write(struct overlap_trace *record, const char *kernel, const char *library);

/* One line on stderr, "overlap: ..." of up to three pieces, unless the user wants quiet or stderr is no longer what it
 * was. */
void overlap_say(const char *a, const char *b, const char *c);
