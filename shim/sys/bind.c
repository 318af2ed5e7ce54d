/* Resolves a name as the loader would for its caller if this library were not preloaded: two runtimes may be loaded at
 * once, each for libraries of its own, and handles of one mean nothing to another.
 *
 * Each thread caches its answers. Only dlclose unmaps objects, after their destructors have run, and these may launch.
 * So while any thread is in dlclose no answer is cached or taken from a cache, and after it all are looked up again. A
 * dlclose that bypasses us is not seen: that of a library opened with RTLD_DEEPBIND, or looked up in libc's handle.
 */
#include <errno.h>
#include <link.h>
#include <string.h>

#include "system.h"

#define RELAXED(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define ONE_CLOSE ((UINT64_C(1) << 32) + 1)
static __thread uint32_t depth __attribute__((tls_model("initial-exec"))); /* this thread's calls of dlclose */

static uint32_t first_objects = UINT32_MAX; /* in the global scope, never unmapped */

void overlap_bind_start(void) {
    first_objects = overlap_object_count();
}

void overlap_bind_forked(void) { /* the parent's other threads do not exist in the child */
    overlap_closes = (overlap_closes & ~(uint64_t)UINT32_MAX) | depth;
}

uint64_t overlap_generation(void) {
    const uint64_t now = __atomic_load_n(&overlap_closes, __ATOMIC_ACQUIRE);
    return (uint32_t)now ? 0 : now;
}

/* ---- Resolution, in the loader's search order (ld.so(8), dlopen(3)) ---- */

struct search {
    const char *name, *version, *prefix;
    uint32_t position;
    bool behind_us;
    void *found, *elsewhere;
};

/* The global scope as it was at the start: preloaded libraries, then the program's dependencies. */
static int search_global(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct search *search = data;
    const struct overlap_object object = overlap_object_of(info);
    const bool global = search->position++ < first_objects;
    if (overlap_is_ours((uintptr_t)object.dynamic)) {
        search->behind_us = true;
        return 0;
    }
    const bool accepted = strncmp(object.name, search->prefix, strlen(search->prefix)) == 0;
    if (!object.dynamic || !search->behind_us || (!global && (search->elsewhere || !accepted)))
        return 0;
    void *defined = overlap_lookup(object.base, object.dynamic, search->name, search->version);
    if (global)
        search->found = defined;
    else
        search->elsewhere = defined;
    return search->found != NULL;
}

struct global {
    uintptr_t address;
    uint32_t position;
};

static int find_global(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct global *global = data;
    const struct overlap_object object = overlap_object_of(info);
    if (global->position++ >= first_objects)
        return 2;
    return global->address >= object.start && global->address < object.end;
}

bool overlap_is_global(uintptr_t address) {
    struct global global = {.address = address};
    return overlap_iterate(find_global, &global) == 1;
}

/* The part of an object that a search needs. Kept small, because signal handlers on small stacks search, too. */
struct searched {
    uintptr_t base;
    const void *dynamic;
};

static struct searched searched_of(const struct overlap_object *object) {
    return (struct searched){object->base, object->dynamic};
}

static const char *string_of(const struct searched *object, ElfW(Sxword) tag, size_t number) {
    const ElfW(Dyn) *entry = object->dynamic;
    const char *strings = NULL;
    size_t offset = SIZE_MAX;
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB) /* glibc relocates it, musl does not */
            strings =
                (const char *)(entry->d_un.d_ptr < object->base ? entry->d_un.d_ptr + object->base : entry->d_un.d_ptr);
        else if (entry->d_tag == tag && number-- == 0)
            offset = entry->d_un.d_val;
    }
    return strings && offset != SIZE_MAX ? strings + offset : NULL;
}

struct needed {
    const char *name; /* from DT_NEEDED */
    struct searched object;
};

static int find_needed(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct needed *needed = data;
    const struct overlap_object object = overlap_object_of(info);
    needed->object = searched_of(&object);
    const char *soname = string_of(&needed->object, DT_SONAME, 0);
    return strcmp(object.name, overlap_basename(needed->name)) == 0 || (soname && strcmp(soname, needed->name) == 0);
}

/* Searches the local scope of an object: the object and its dependencies, breadth first. None of them can be unmapped
 * meanwhile, because the caller is on our stack. */
static void *search_local(const struct overlap_object *caller, const char *name, const char *version) {
    enum { MOST = 64 }; /* 1 KiB: SIGSTKSZ is 8 KiB */
    struct searched scope[MOST];
    size_t count = 1;
    scope[0] = searched_of(caller);
    for (size_t at = 0; at < count; at++) {
        void *defined = scope[at].dynamic ? overlap_lookup(scope[at].base, scope[at].dynamic, name, version) : NULL;
        if (defined && !overlap_is_ours((uintptr_t)defined))
            return defined;
        struct needed needed;
        for (size_t i = 0; (needed.name = string_of(&scope[at], DT_NEEDED, i)) != NULL; i++) {
            bool known = overlap_iterate(find_needed, &needed) != 1;
            for (size_t k = 0; !known && k < count; k++)
                known = scope[k].base == needed.object.base;
            if (!known && count < MOST)
                scope[count++] = needed.object;
        }
    }
    return NULL;
}

void *overlap_local_symbol(uintptr_t caller, const char *name) {
    struct overlap_object object;
    return overlap_object_at(caller, &object) ? search_local(&object, name, NULL) : NULL;
}

__attribute__((cold, noinline)) static void *resolve(const struct overlap_object *caller, const char *name,
                                                     const char *prefix) {
    struct search search = {
        .name = name, .prefix = prefix, .version = caller->dynamic ? overlap_version_wanted(caller, name) : NULL};
    overlap_iterate(search_global, &search);
    if (search.found)
        return search.found;
    void *local = caller->dynamic ? search_local(caller, name, search.version) : NULL;
    return local ? local : search.elsewhere; /* opened RTLD_GLOBAL, or local to others: better than nothing */
}

/* ---- Answers that are kept ---- */

/* By name, then by the object of the caller. Several libraries launch in turn, and a search takes microseconds. */
enum { NAMES = 16, CALLERS = 32 };
static struct answer {
    uint32_t sequence; /* odd: being written */
    uint32_t number;
    uint64_t generation;
    uintptr_t start, size; /* the object of the caller */
    void *address;
} answers[NAMES][CALLERS];

void *overlap_behind_known(uintptr_t site, uint32_t number) {
    const uint64_t generation = overlap_generation();
    struct answer *const of_name = answers[number % NAMES];
    for (size_t i = 0; generation && i < CALLERS; i++) {
        struct answer *const answer = &of_name[i];
        const uint32_t sequence = __atomic_load_n(&answer->sequence, __ATOMIC_ACQUIRE);
        if (!sequence)
            return NULL; /* those behind it are free, too */
        if (RELAXED(answer->generation) != generation || RELAXED(answer->number) != number ||
            site - RELAXED(answer->start) >= RELAXED(answer->size))
            continue;
        void *const address = RELAXED(answer->address);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (!(sequence & 1) && RELAXED(answer->sequence) == sequence)
            return address;
    }
    return NULL;
}

/* A slot that another thread, or the code that this signal handler interrupts, is writing is left to it. */
static void keep(uint64_t generation, const struct overlap_object *object, uint32_t number, void *address) {
    static uint32_t turns;
    struct answer *const of_name = answers[number % NAMES];
    size_t at = 0;
    while (at < CALLERS && RELAXED(of_name[at].generation) == generation)
        at++;
    if (at == CALLERS)
        at = __atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED) % CALLERS;
    struct answer *const answer = &of_name[at];
    uint32_t sequence = RELAXED(answer->sequence);
    if (!generation || sequence & 1 ||
        !__atomic_compare_exchange_n(&answer->sequence, &sequence, sequence + 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&answer->number, number, __ATOMIC_RELAXED);
    __atomic_store_n(&answer->generation, generation, __ATOMIC_RELAXED);
    __atomic_store_n(&answer->start, object->start, __ATOMIC_RELAXED);
    __atomic_store_n(&answer->size, object->end - object->start, __ATOMIC_RELAXED);
    __atomic_store_n(&answer->address, address, __ATOMIC_RELAXED);
    __atomic_store_n(&answer->sequence, sequence + 2, __ATOMIC_RELEASE);
}

void *overlap_behind(uintptr_t site, uint32_t number, const char *name, const char *prefix) {
    const int saved = errno;
    const uint64_t generation = overlap_generation();
    struct overlap_object caller = {.start = site};
    const bool held = overlap_object_at(site, &caller) && !overlap_is_ours(site); /* else no object holds the code */
    void *found = resolve(&caller, name, prefix);
    if (found && held)
        keep(generation, &caller, number, found);
    errno = saved;
    return found;
}

/* ---- dlclose ---- */

/* dlclose(3), exported by preload/dlsym_*.S. */
int overlap_dlclose(void *handle) {
    int (*const close)(void *) = (int (*)(void *))overlap_behind_us("dlclose");
    if (!close)
        return -1;
    const int saved = errno;
    __atomic_fetch_add(&overlap_closes, ONE_CLOSE, __ATOMIC_SEQ_CST);
    depth++;
    overlap_pin_due();
    errno = saved;
    const int result = close(handle);
    depth--;
    __atomic_fetch_sub(&overlap_closes, 1, __ATOMIC_SEQ_CST);
    return result;
}
