/* What the files of sys/ share with each other only. */
#pragma once

#include <sys/types.h>

#include "sys.h"

/* What start.c learnt; read through overlap_armed() by everybody else. */
struct overlap_start {
    struct overlap_settings settings;
    char *text; /* OVERLAP_TABLE; NULL: nothing to do in this process */
    size_t length;
    int pid;          /* of the process that the library was loaded into */
    bool constructed; /* libc is ready: our constructor has run */
    bool forked;      /* without a call of exec since (glibc) */
    char directory[512];
    char run[32];
};
extern struct overlap_start overlap_start;

/* As overlap_armed(), for processes that may never use a GPU: nothing is said of a table that is broken. */
const struct overlap_settings *overlap_settings(void);

/* Objects: as dl_iterate_phdr(3); what it tells of one; how many there are now. */
struct dl_phdr_info;
int overlap_iterate(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data);
struct overlap_object overlap_object_of(const struct dl_phdr_info *info);
struct link_map;
const struct link_map *overlap_first_object(void);
uint32_t overlap_object_count(void);

/* A symbol that an object defines in this version (NULL: in any), by the tables that its dynamic section names; NULL: none. */
void *overlap_lookup(uintptr_t base, const void *dynamic, const char *name, const char *version);

/* The version in which an object wants a name; NULL: any. */
const char *overlap_version_wanted(const struct overlap_object *object, const char *name);

/* The first definition in an object whose basename begins with the prefix; NULL: none. */
void *overlap_object_defining(const char *prefix, const char *name);

/* Pins what overlap_object_pin() was told. Takes the loader's lock. */
void overlap_pin_due(void);

/* What was there when the program started stays. */
void overlap_bind_start(void);
void overlap_bind_forked(void);

/* Is any thread in dlclose? */
bool overlap_is_closing(void);

/* A function of libc itself, whatever else has that name; NULL: none. No lock is taken. */
void *overlap_libc(const char *name);

/* The same, unless a library behind us has one: what is preloaded to change the clock, the name of the host and the like for a
 * whole process (libfaketime, fakehostname) changes them for us, too. The program's own function is in front of us. */
void *overlap_behind_us(const char *name);

/* Used by the assembler entries, which have set them before they ask anything; NULL until found. */
extern void *(*overlap_real_dlsym)(void *handle, const char *name);
extern void *(*overlap_real_dlvsym)(void *handle, const char *name, const char *version);
void *overlap_find_dlsym(void);
void *overlap_find_dlvsym(void);
void *overlap_find_dlmopen(void);
void *overlap_find_dlclose(void);

/* Which file a descriptor is, and whether it is that file still. Safe in signal handlers; errno stays. */
struct overlap_identity {
    dev_t device;
    ino_t inode;
    bool known;
};
struct overlap_identity overlap_identify(int descriptor);
bool overlap_is_still(int descriptor, const struct overlap_identity *before);

/* getpid(2), by the one function of libc that the start of a process has looked up already. */
int overlap_pid(void);

/* Does an open folder belong to the user, to root, or to nobody who is known here? Root may use everybody's: as in containers, where it is a user. */
bool overlap_is_trusted(int folder);

/* clock_gettime(2); nothing is written where there is none. */
struct timespec;
void overlap_clock_read(int which, struct timespec *now);

/* Remembers what stderr is. */
void overlap_log_start(void);

/* Has the loader bound this library? Before that, its list of objects can be had in another way; NULL: it cannot. */
struct r_debug;
bool overlap_bound(void);
const struct r_debug *overlap_unbound_list(void);

/* Libraries that were opened out of our sight: writes what is known of them into a page; in the child after fork. */
void overlap_opened_write(struct overlap_page *page);
void overlap_opened_forked(void);

/* Says so where the program that overlap-run has become, and its children, never used the simulated GPU. At its end. */
void overlap_unopened_say(void);
bool overlap_had_children(void);

/* Has anything about them changed? Then the page shall say so, if there is one. */
void overlap_page_refresh(void);

/* In the child after fork; at the regular end of the process. */
void overlap_page_forked(void);
void overlap_page_end(void);

/* ---- folder.c: descriptors, or a negative errno ---- */

enum { OVERLAP_NAME_SIZE = 256 }; /* of a file, its NUL included */

/* The first opens a folder of any owner; the second fails with -EPERM unless the owner is trusted (overlap_is_trusted()). */
int overlap_folder_open_any(const char *folder);
int overlap_folder_open(const char *path);

/* May a page that lies there not be mapped? */
bool overlap_folder_is_unsafe(const char *directory);

/* A new file PREFIX + HOST.PID.N + SUFFIX, whose name is written to `name`; N: the first from `first` on that is free. */
int overlap_folder_create(char *name, int folder, const char *prefix, uint64_t first, const char *suffix, int flags);

/* Gives a file of `before` bytes so many bytes on the disk, the new ones zeros; 0, or a negative errno. */
int overlap_file_allocate(int file, size_t before, size_t size);

uint64_t overlap_unguessable(void);
void overlap_host_name(char *name, size_t size);

/* Where the trace of this process goes: an open file, or -1. */
void overlap_trace_open(int made);
void overlap_trace_forked(void);

/* May a file of ours be so large? Who writes beyond RLIMIT_FSIZE is sent a signal that ends the program. */
bool overlap_may_grow(uint64_t size);
