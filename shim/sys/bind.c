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

#include "../text.h"
#include "system.h"

#define RELAXED(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define ONE_CLOSE ((UINT64_C(1) << 32) + 1)
static __thread uint32_t depth __attribute__((tls_model("initial-exec"))); /* this thread's calls of dlclose */

void overlap_bind_forked(void) { /* the parent's other threads do not exist in the child */
    overlap_closes = (overlap_closes & ~(uint64_t)UINT32_MAX) | depth;
}

/* A call of dlclose of this thread has not unmapped anything yet, because destructors run before that. */
uint64_t overlap_generation(void) {
    const uint64_t now = __atomic_load_n(&overlap_closes, __ATOMIC_ACQUIRE) - depth * ONE_CLOSE;
    return (uint32_t)now ? 0 : now;
}

/* ---- Resolution, in the loader's search order (ld.so(8), dlopen(3)) ---- */

struct search {
    const char *name, *version, *prefix;
    bool behind_us;
    void *found;
};

/* The global scope as it was at the start: preloaded libraries, then the program's dependencies. */
static int search_global(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct search *search = data;
    const struct overlap_object object = overlap_object_of(info);
    if (overlap_is_ours((uintptr_t)object.dynamic))
        search->behind_us = true;
    else if (object.dynamic && search->behind_us)
        search->found = overlap_lookup(object.base, object.dynamic, search->name, search->version);
    return search->found != NULL;
}

/* Opened RTLD_GLOBAL, or local to others: better than nothing. */
static int search_elsewhere(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct search *search = data;
    const struct overlap_object object = overlap_object_of(info);
    if (object.dynamic && strncmp(object.name, search->prefix, strlen(search->prefix)) == 0 &&
        !overlap_is_ours((uintptr_t)object.dynamic))
        search->found = overlap_lookup(object.base, object.dynamic, search->name, search->version);
    return search->found != NULL;
}

static int holds(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    const uintptr_t address = *(const uintptr_t *)data;
    const struct overlap_object object = overlap_object_of(info);
    return address >= object.start && address < object.end;
}

bool overlap_is_global(uintptr_t address) {
    return overlap_iterate_first(holds, &address) == 1;
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
            bool known = overlap_iterate_first(find_needed, &needed) != 1 && overlap_iterate(find_needed, &needed) != 1;
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
    if (overlap_iterate_first(search_global, &search))
        return search.found;
    void *const local = caller->dynamic ? search_local(caller, name, search.version) : NULL;
    if (!local)
        overlap_iterate(search_elsewhere, &search);
    return local ? local : search.found;
}

/* ---- Answers that are kept ----
 *
 * By name and page of the calling code, because several libraries launch in turn, and a search takes microseconds. Behind
 * that by name and object, because a library may call from thousands of pages. */

enum { PAGE_BITS = 12, PAGES_KEPT = 1 << 12, NAMES = 16, CALLERS = 256 };
#define ALWAYS UINT64_MAX /* the generation of an answer about objects of the start only */
struct answer {
    uint32_t sequence; /* odd: being written */
    uint32_t number;
    uint64_t generation;
    uintptr_t start, size; /* of the code for which it holds */
    void *address;
};
/* Mapped with the first answer: most processes ask nothing. */
static struct kept {
    struct answer by_page[PAGES_KEPT], by_object[NAMES][CALLERS];
} *kept;

static struct kept *answers_kept(void) {
    return __atomic_load_n(&kept, __ATOMIC_ACQUIRE);
}

bool overlap_answers_prepare(void) {
    struct kept *none = NULL, *const made = answers_kept() ? NULL : overlap_map(sizeof *made);
    if (made && !__atomic_compare_exchange_n(&kept, &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        overlap_unmap(made, sizeof *made);
    return answers_kept();
}

static struct answer *of_page(struct kept *answers, uintptr_t site, uint32_t number) {
    const uint64_t key = (uint64_t)(site >> PAGE_BITS) ^ (uint64_t)number << 40;
    return &answers->by_page[overlap_spread(key, PAGE_BITS)];
}

/* Returns the address, or NULL if this is no answer. */
static inline void *read_answer(const struct answer *answer, uintptr_t site, uint32_t number, uint64_t generation) {
    const uint32_t sequence = __atomic_load_n(&answer->sequence, __ATOMIC_ACQUIRE);
    const uint64_t its = RELAXED(answer->generation);
    if (RELAXED(answer->number) != number || site - RELAXED(answer->start) >= RELAXED(answer->size) ||
        (its != ALWAYS && (its != generation || !generation)))
        return NULL;
    void *const address = RELAXED(answer->address);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return !(sequence & 1) && RELAXED(answer->sequence) == sequence ? address : NULL;
}

/* An answer that another thread, or the code that this signal handler interrupts, is writing is left to it. */
static void write_answer(struct answer *answer, uint64_t generation, uintptr_t start, uintptr_t size, uint32_t number,
                         void *address) {
    uint32_t sequence = RELAXED(answer->sequence);
    if (!generation || sequence & 1 ||
        !__atomic_compare_exchange_n(&answer->sequence, &sequence, sequence + 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
        return;
    __atomic_thread_fence(__ATOMIC_RELEASE);
    __atomic_store_n(&answer->number, number, __ATOMIC_RELAXED);
    __atomic_store_n(&answer->generation, generation, __ATOMIC_RELAXED);
    __atomic_store_n(&answer->start, start, __ATOMIC_RELAXED);
    __atomic_store_n(&answer->size, size, __ATOMIC_RELAXED);
    __atomic_store_n(&answer->address, address, __ATOMIC_RELAXED);
    __atomic_store_n(&answer->sequence, sequence + 2, __ATOMIC_RELEASE);
}

static void keep_of_page(uint64_t generation, uintptr_t site, uint32_t number, void *address) {
    const uintptr_t size = (uintptr_t)1 << PAGE_BITS;
    write_answer(of_page(answers_kept(), site, number), generation, site & ~(size - 1), size, number, address);
}

/* In the first slot that holds no answer of now, or in each in turn. */
static void keep_of_object(uint64_t generation, const struct overlap_object *object, uint32_t number, void *address) {
    static uint32_t turns;
    struct answer *const of_name = answers_kept()->by_object[number % NAMES];
    size_t at = 0;
    while (at < CALLERS &&
           (RELAXED(of_name[at].generation) == overlap_generation() || RELAXED(of_name[at].generation) == ALWAYS))
        at++;
    if (at == CALLERS)
        at = __atomic_fetch_add(&turns, 1, __ATOMIC_RELAXED) % CALLERS;
    write_answer(&of_name[at], generation, object->start, object->end - object->start, number, address);
}

__attribute__((cold, noinline)) static void *cached_of_object(uintptr_t site, uint32_t number, uint64_t generation) {
    struct answer *const of_name = answers_kept()->by_object[number % NAMES];
    for (size_t i = 0; i < CALLERS && RELAXED(of_name[i].sequence); i++) { /* those behind a free one are free, too */
        void *const address = read_answer(&of_name[i], site, number, generation);
        if (address) {
            keep_of_page(RELAXED(of_name[i].generation) == ALWAYS ? ALWAYS : generation, site, number, address);
            return address;
        }
    }
    return NULL;
}

void *overlap_behind_cached(uintptr_t site, uint32_t number) {
    const uint64_t generation = overlap_generation();
    struct kept *const answers = answers_kept();
    if (__builtin_expect(!answers, 0))
        return NULL;
    void *const address = read_answer(of_page(answers, site, number), site, number, generation);
    return __builtin_expect(address != NULL, 1) ? address : cached_of_object(site, number, generation);
}

void *overlap_behind(uintptr_t site, uint32_t number, const char *name, const char *prefix, bool stores) {
    const int saved = errno;
    const uint64_t generation = overlap_generation();
    struct overlap_object caller = {.start = site};
    const bool held = overlap_object_at(site, &caller) && !overlap_is_ours(site); /* else no object holds the code */
    void *found = resolve(&caller, name, prefix);
    const bool lasts = held && overlap_is_global(site) && overlap_is_global((uintptr_t)found);
    const bool stored = stores && lasts && overlap_is_off(); /* no memory is mapped for it */
    if (found && held && !stored && overlap_answers_prepare()) {
        keep_of_object(lasts ? ALWAYS : generation, &caller, number, found);
        keep_of_page(lasts ? ALWAYS : generation, site, number, found);
    }
    errno = saved;
    return found;
}

/* The name is the loader's copy, and answers about it are kept like those about a function. */
const char *overlap_library(uintptr_t site) {
    enum { NUMBER = 0xFFFF };
    const char *known = overlap_behind_cached(site, NUMBER);
    if (known)
        return known;
    const uint64_t generation = overlap_generation();
    struct overlap_object object = {.name = ""};
    known = overlap_object_at(site, &object) ? object.name : "";
    if (!overlap_answers_prepare())
        return known;
    if (*known)
        keep_of_object(overlap_is_global(site) ? ALWAYS : generation, &object, NUMBER, (void *)(uintptr_t)known);
    keep_of_page(generation, site, NUMBER, (void *)(uintptr_t)known);
    return known;
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
