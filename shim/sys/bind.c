/* Resolves a name as the loader would for its caller if this library were not preloaded: several runtimes may be loaded
 * at once, each for libraries of its own, and handles of one mean nothing to another.
 *
 * An answer stays cached while no object that it concerns can have been unmapped. Objects are unmapped only in dlclose,
 * after their destructors have run, and these may launch. While any thread is in dlclose, answers are therefore used
 * only if the loader has not removed an object. After it, all answers are invalidated if one concerns a removed object.
 * A dlclose that bypasses us is not seen: that of a library opened with RTLD_DEEPBIND, or looked up in libc's handle.
 */
#include <errno.h>
#include <link.h>
#include <string.h>

#include "../text.h"
#include "system.h"

#define LOAD(field) __atomic_load_n(&(field), __ATOMIC_ACQUIRE)

static uint32_t generation = 1; /* of the cached answers */
static uint64_t removed_then;   /* the loader's count of removed objects when the answers were last known to be valid */
static uint32_t closes;         /* incremented at the start and at the end of dlclose */
static __thread uint32_t depth __attribute__((tls_model("initial-exec"))); /* this thread's share of overlap_closing */

OVERLAP_STARTUP_DATA static uint32_t first_objects = UINT32_MAX; /* in the global scope, never unmapped */

OVERLAP_STARTUP void overlap_bind_start(void) {
    first_objects = overlap_object_count();
}

void overlap_bind_forked(void) {
    overlap_closing = depth; /* the parent's other threads do not exist in the child */
}

struct changes {
    uint64_t added, removed;
};

static int read_changes(struct dl_phdr_info *info, size_t size, void *data) {
    struct changes *changes = data;
    if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
        *changes = (struct changes){.added = info->dlpi_adds, .removed = info->dlpi_subs};
    return 1;
}

/* Returns the generation if nothing was unmapped since its answers were known to be valid, else 0. */
__attribute__((cold, noinline)) static uint32_t generation_while_closing(void) {
    const uint32_t now = LOAD(generation);
    const uint64_t then = LOAD(removed_then);
    struct changes changes = {.removed = UINT64_MAX};
    overlap_iterate(read_changes, &changes);
    return changes.removed == then && LOAD(generation) == now ? now : 0;
}

uint32_t overlap_generation(void) {
    return __builtin_expect(LOAD(overlap_closing) != 0, 0) ? generation_while_closing() : LOAD(generation);
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
    const bool global = search->position++ < LOAD(first_objects);
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
    if (global->position++ >= LOAD(first_objects))
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

/* ---- Cached answers ---- */

/* Every process has this memory, with or without a GPU: 2 KiB for 128 answers, each for one name and calling library. A
 * call whose answer was evicted takes microseconds. In an armed process, resolve.c keeps a driver's functions. */
enum { CALLERS = 64, ANSWER_BITS = 7, PROBES = 8 };

/* The object of a caller. A slot of an old generation is free. A thread claims it by storing FILLING, then fills it. */
static struct caller {
    uintptr_t start, end;
    uint32_t generation;
} callers[CALLERS];
#define FILLING UINT32_MAX

/* Only the thread that replaced a key by WRITING stores the next key, which also counts the slot's writes. So an
 * address is valid if the key (caller, name, generation, count) is the same before and after the address is read. Not a
 * table of core/slots.h: sys does not depend on core, and a full cache replaces. */
static struct answer {
    uint64_t key; /* of generation 0: free */
    void *address;
} answers[1 << ANSWER_BITS];
#define WRITING UINT64_C(1) /* not a valid key: generations begin with 1 */
#define ONE_WRITE (UINT64_C(1) << 22)
#define WRITES (UINT64_C(0x3FF) << 22) /* the bits of a key that count them */
_Static_assert((CALLERS - 1) << 16 < ONE_WRITE, "a caller's bits are its own");

/* Caches the object of this thread's last caller. */
static __thread struct {
    uintptr_t start, size;
    uint32_t generation, index;
} last __attribute__((tls_model("initial-exec")));

static uint64_t key_of(uint32_t now, uint32_t caller, uint32_t number) {
    return (uint64_t)now << 32 | caller << 16 | number;
}

static struct answer *answer_at(uint64_t key, uint64_t probe) {
    return &answers[(overlap_spread(key, ANSWER_BITS) + probe) & ((1 << ANSWER_BITS) - 1)];
}

static void *known(uint64_t key) {
    for (uint64_t probe = 0; probe < PROBES; probe++) {
        struct answer *answer = answer_at(key, probe);
        const uint64_t there = LOAD(answer->key);
        if ((there ^ key) & ~WRITES)
            continue;
        void *address = LOAD(answer->address);
        if (LOAD(answer->key) == there)
            return address;
    }
    return NULL;
}

/* Sets *kept to the slot's key. */
static struct answer *keep(uint64_t *kept, void *address) {
    const uint64_t key = *kept;
    struct answer *free = answer_at(key, key % PROBES);
    for (uint64_t probe = 0; probe < PROBES; probe++) {
        const uint64_t there = LOAD(answer_at(key, probe)->key);
        if (there != WRITING && there >> 32 != key >> 32) { /* of an older generation, or free */
            free = answer_at(key, probe);
            break;
        }
    }
    uint64_t before = LOAD(free->key);
    if (before == WRITING ||
        !__atomic_compare_exchange_n(&free->key, &before, WRITING, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return NULL;
    __atomic_store_n(&free->address, address, __ATOMIC_RELEASE);
    *kept = key | ((before + ONE_WRITE) & WRITES);
    __atomic_store_n(&free->key, *kept, __ATOMIC_RELEASE);
    return free;
}

static bool caller_known(uintptr_t site, uint32_t now, uint32_t *index) {
    if (site - last.start < last.size && last.generation == now) {
        *index = last.index;
        return true;
    }
    for (uint32_t i = 0; i < CALLERS && LOAD(callers[i].generation); i++) {
        if (LOAD(callers[i].generation) != now)
            continue;
        const uintptr_t start = LOAD(callers[i].start), end = LOAD(callers[i].end);
        if (site < start || site >= end || LOAD(callers[i].generation) != now)
            continue;
        last.generation = 0; /* invalid while written: a signal handler may read it */
        last.start = start;
        last.size = end - start;
        last.index = *index = i;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        last.generation = now;
        return true;
    }
    return false;
}

/* Adds the caller's object. False: no slot. A full table invalidates all answers, so that the next call takes one. */
static bool caller_new(const struct overlap_object *object, uint32_t now, uint32_t *index) {
    for (*index = 0; *index < CALLERS; ++*index) {
        struct caller *caller = &callers[*index];
        uint32_t before = LOAD(caller->generation);
        if (before == FILLING || (int32_t)(before - now) >= 0 || /* a late thread takes no slot of a newer generation */
            !__atomic_compare_exchange_n(&caller->generation, &before, FILLING, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        __atomic_store_n(&caller->start, object->start, __ATOMIC_RELEASE);
        __atomic_store_n(&caller->end, object->end, __ATOMIC_RELEASE);
        __atomic_store_n(&caller->generation, now, __ATOMIC_RELEASE);
        return true;
    }
    __atomic_compare_exchange_n(&generation, &now, now + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    return false;
}

__attribute__((cold, noinline)) static void *find(uintptr_t site, uint32_t number, const char *name,
                                                  const char *prefix) {
    const int saved = errno;
    const uint32_t before = LOAD(closes), now = overlap_generation();
    struct overlap_object caller = {.start = site};
    const bool held = overlap_object_at(site, &caller) && !overlap_is_ours(site); /* else no object holds the code */
    void *found = resolve(&caller, name, prefix);
    uint32_t index;
    if (found && held && now && (caller_known(site, now, &index) || caller_new(&caller, now, &index))) {
        uint64_t key = key_of(now, index, number);
        struct answer *kept = keep(&key, found);
        /* Adds 0, which orders this against dlclose: a call that is counted later sees the answer. One that was counted
         * since `before` may have missed it, so the answer is dropped. */
        if (kept && (__atomic_fetch_add(&closes, 0, __ATOMIC_SEQ_CST) != before || overlap_generation() != now))
            __atomic_compare_exchange_n(&kept->key, &key, key & WRITES, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
    errno = saved;
    return found;
}

void *overlap_behind_known(uintptr_t site, uint32_t number) {
    const uint32_t now = overlap_generation();
    uint32_t index;
    return now && caller_known(site, now, &index) ? known(key_of(now, index, number)) : NULL;
}

void *overlap_behind(uintptr_t site, uint32_t number, const char *name, const char *prefix) {
    void *const address = overlap_behind_known(site, number);
    return __builtin_expect(address != NULL, 1) ? address : find(site, number, name, prefix);
}

/* ---- dlclose ---- */

enum { ABOUT = CALLERS + (1 << ANSWER_BITS), WORD = 64 };

/* Callers and answers of this generation, as bits, whose object the walk has not met yet. */
struct unmet {
    uint64_t words[ABOUT / WORD];
};

static uintptr_t address_of(size_t number) {
    return number < CALLERS ? LOAD(callers[number].start) : (uintptr_t)LOAD(answers[number - CALLERS].address);
}

static bool is_of(size_t number, uint32_t now) {
    return number < CALLERS ? LOAD(callers[number].generation) == now
                            : LOAD(answers[number - CALLERS].key) >> 32 == now;
}

static int meet(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct unmet *unmet = data;
    const struct overlap_object object = overlap_object_of(info);
    uint64_t any = 0;
    for (size_t word = 0; word < ABOUT / WORD; word++) {
        for (uint64_t left = unmet->words[word]; left; left &= left - 1) {
            const uintptr_t address = address_of(word * WORD + (size_t)__builtin_ctzll(left));
            if (address >= object.start && address < object.end)
                unmet->words[word] &= ~(left & -left);
        }
        any |= unmet->words[word];
    }
    return !any;
}

/* Are all objects that the answers concern still mapped? */
static bool all_mapped(uint32_t now) {
    struct unmet unmet = {0};
    for (size_t number = 0; number < ABOUT; number++)
        unmet.words[number / WORD] |= (uint64_t)is_of(number, now) << number % WORD;
    return overlap_iterate(meet, &unmet) == 1;
}

/* dlclose(3), exported under the versions that libc uses (dlsym_*.S). */
int overlap_dlclose(void *handle);
int overlap_dlclose(void *handle) {
    static int (*real)(void *handle);
    int (*close)(void *) = LOAD(real);
    if (!close) {
        close = (int (*)(void *))overlap_behind_us("dlclose");
        __atomic_store_n(&real, close, __ATOMIC_RELEASE);
    }
    if (!close)
        return -1;
    struct changes before = {0}, after = {0};
    const int saved = errno;
    const bool kept = LOAD(callers[0].generation) != 0;
    if (kept)
        overlap_iterate(read_changes, &before);
    __atomic_fetch_add(&closes, 1, __ATOMIC_SEQ_CST);
    if (__atomic_fetch_add(&overlap_closing, 1, __ATOMIC_SEQ_CST) == 0 && kept)
        __atomic_store_n(&removed_then, before.removed, __ATOMIC_RELEASE);
    depth++;
    overlap_pin_due();
    errno = saved;
    const int result = close(handle);
    const int error = errno;
    __atomic_fetch_add(&closes, 1, __ATOMIC_SEQ_CST);
    if (kept)
        overlap_iterate(read_changes, &after);
    /* If objects were added as well, one may occupy the addresses of a removed one. */
    if (!kept || (after.removed != before.removed && (after.added != before.added || !all_mapped(LOAD(generation)))))
        __atomic_fetch_add(&generation, 1, __ATOMIC_ACQ_REL);
    if (kept) /* after the generation: generation_while_closing() reads them in reverse order */
        __atomic_store_n(&removed_then, after.removed, __ATOMIC_RELEASE);
    depth--;
    __atomic_fetch_sub(&overlap_closing, 1, __ATOMIC_SEQ_CST);
    errno = error;
    return result;
}
