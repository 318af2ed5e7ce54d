/* Shared by the files of sys/. Besides them only preload/'s start.c and dlsym.c, and gpu/'s armed.c include this. */
#pragma once

#include <sys/types.h>

#include "sys.h"

/* What environment.c has read; all other files use overlap_armed(). */
struct overlap_start {
    struct overlap_settings settings;
    char *text; /* OVERLAP_TABLE; NULL: the library is off in this process */
    size_t length;
    int pid;          /* process id when the environment was read */
    bool constructed; /* libc is ready: our constructor has run */
    bool forked;      /* child of a fork that has loaded no object since (glibc; elsewhere only once armed)... */
    uint32_t objects; /* ...and began with so many */
    char directory[512];
};
extern struct overlap_start overlap_start;

/* Did a launcher set the library up, whether or not its policy table is valid? */
bool overlap_is_set_up(void);
/* Decodes padded Base64, possibly in place. Returns the bytes written; SIZE_MAX if the text is invalid. */
size_t overlap_decode_base64(const char *text, size_t length, uint8_t *out);
void overlap_find_rank(struct overlap_settings *settings);

/* Does the work once. False: another caller is still doing it, or it cannot be done yet. */
enum { OVERLAP_FRESH, OVERLAP_WORKING, OVERLAP_DONE };
bool overlap_once(uint32_t *done, void (*work)(void));

/* In a forked child: forgets which waits timed out. */
void overlap_wait_forked(void);

/* Objects. overlap_iterate(): as dl_iterate_phdr(3), with all signals blocked. overlap_iterate_first(): the same for the
 * objects of the program's start, without a lock; overlap_objects_start() notes which those are. overlap_object_of(): converts one of its entries.
 * overlap_first_object(): head of the loader's list. overlap_object_count(): number of objects now. */
struct dl_phdr_info;
int overlap_iterate(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data);
int overlap_iterate_first(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data);
void overlap_objects_start(void);
struct overlap_object overlap_object_of(const struct dl_phdr_info *info);
struct link_map;
const struct link_map *overlap_first_object(void);
/* Returns where an object's ELF header is mapped, if the object is linked to address 0, as all but the program are. Its
 * tables are then near that address. */
const void *overlap_elf_header(const struct link_map *map);
uint32_t overlap_object_count(void);

/* Returns the address of a symbol that an object defines in this version (NULL: in any), by the tables of its dynamic
 * section. NULL: none. */
void *overlap_lookup(uintptr_t base, const void *dynamic, const char *name, const char *version);

/* Returns the version in which an object wants a name. NULL: any. */
const char *overlap_version_wanted(const struct overlap_object *object, const char *name);

/* Returns the part of a path behind its last slash. */
const char *overlap_basename(const char *path);

/* Returns the first definition in an object whose basename begins with the prefix. NULL: none. */
void *overlap_object_defining(const char *prefix, const char *name);

/* Pins the objects passed to overlap_object_pin(). Takes the loader's lock. */
void overlap_pin_due(void);

/* In the child after fork. */
void overlap_bind_forked(void);

/* Calls of dlclose: in the lower half those in progress, nested ones included; the upper half counts them, from 1 on. */
extern uint64_t overlap_closes;
int overlap_dlclose(void *handle);

/* Returns a function of libc itself, even if other objects define the name. NULL: none. Takes no lock. */
void *overlap_libc(const char *name);

/* As overlap_libc(), but prefers a definition of a library behind us: libraries that change the clock, the host name
 * and the like for a whole process (libfaketime, fakehostname) do so for us, too. The program's own definition comes
 * before ours and is not used. */
void *overlap_behind_us(const char *name);

/* The real dlsym(3) and dlvsym(3): libc's, or those of another library behind us. NULL: there is none. Call nothing of
 * libc. */
typedef void *overlap_dlsym_type(void *handle, const char *name);
typedef void *overlap_dlvsym_type(void *handle, const char *name, const char *version);
overlap_dlsym_type *overlap_real_dlsym(void);
overlap_dlvsym_type *overlap_real_dlvsym(void);

/* Would a search of the objects of the program's start find our definition first? caller: search behind its object, as
 * RTLD_NEXT does; 0: search all, as RTLD_DEFAULT does. */
bool overlap_next_is_ours(uintptr_t caller, const char *name);

/* Returns a definition in the caller's object or its dependencies, other than ours. NULL: none. */
void *overlap_local_symbol(uintptr_t caller, const char *name);

/* Clears the dlerror() of a search that the program did not make. */
void overlap_forget_error(void);

/* Identifies the file of a descriptor, and tells later whether the descriptor still refers to it. Async-signal-safe;
 * errno is kept. */
struct overlap_identity {
    dev_t device;
    ino_t inode;
    bool known;
};
struct overlap_identity overlap_identify(int descriptor);
bool overlap_is_still(int descriptor, const struct overlap_identity *before);

/* getpid(2), as a system call. */
int overlap_pid(void);

/* Is an open directory owned by us, by root or by an unmapped uid? Root accepts any owner, because in containers root
 * may be an ordinary user. */
bool overlap_is_trusted(int folder);

/* clock_gettime(2). `now` is unchanged if libc has none. */
struct timespec;
void overlap_clock_read(int which, struct timespec *now);

/* Remembers which file stderr is. */
void overlap_log_start(void);

/* Has the loader relocated this library? Until then overlap_unbound_list() finds the loader's list of objects; NULL: it
 * cannot. */
struct r_debug;
bool overlap_bound(void);
const struct r_debug *overlap_unbound_list(void);

/* ---- folder.c: these return a descriptor, or a negative errno ---- */

enum { OVERLAP_NAME_SIZE = 256 }; /* of a file name, with its NUL */

/* open_any accepts a directory of any owner; open fails with -EPERM unless overlap_is_trusted(). */
int overlap_folder_open_any(const char *folder);
int overlap_folder_open(const char *path);

/* Is mapping a file unsafe on this directory's file system? */
bool overlap_folder_is_unsafe(const char *directory);

/* Creates a new file PREFIX + HOST.PID.N + SUFFIX and stores its name in `name`. N: the first free number from `first`
 * on. */
int overlap_folder_create(char *name, int folder, const char *prefix, uint64_t first, const char *suffix, int flags);

/* Allocates disk space so that a file grows from `before` to `size` bytes; the new ones are zeros. Returns 0, or a
 * negative errno. */
int overlap_file_allocate(int file, size_t before, size_t size);

uint64_t overlap_unguessable(void);
void overlap_host_name(char *name, size_t size);

/* May a file of ours have this size in bytes? A write beyond RLIMIT_FSIZE raises a signal that ends the program. */
bool overlap_may_grow(uint64_t size);
