/* The answers of sys/bind.c under threads that resolve different names for different callers at once: never an address of another
 * name, or of another caller.
 *
 * The loader's part is replaced: more callers than there are slots, and one object that defines every name for each of them at an
 * address of its own. bind_stress SECONDS THREADS
 */
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A thread may lose its processor before any store. */
static void pause_sometimes(void) {
    static __thread uint32_t count;
    if (++count % 37 == 0)
        sched_yield();
}
#define __atomic_store_n(object, value, order) (pause_sometimes(), __atomic_store_n(object, value, order))
static void before_load(const void *object);
#define __atomic_load_n(object, order) (before_load(object), __atomic_load_n(object, order))

#include "sys/bind.c"

enum { NAMES = 500, OBJECTS = 70, SITE = 0x10000, SIZE = 0x1000 };
struct overlap_start overlap_start;
uint32_t overlap_closing;
static bool stop;
static uint64_t found, wrong;

uint32_t overlap_object_count(void) {
    return UINT32_MAX;
}
int overlap_iterate(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data) {
    struct dl_phdr_info info = {0}; /* the first is this library, the second all others */
    if (visit(&info, sizeof info, data))
        return 1;
    info.dlpi_addr = 1;
    return visit(&info, sizeof info, data);
}
struct overlap_object overlap_object_of(const struct dl_phdr_info *info) {
    return (struct overlap_object){
        .dynamic = (const void *)(uintptr_t)(info->dlpi_addr + 1), .start = SITE, .end = SITE + SIZE, .name = ""};
}
const char *overlap_basename(const char *path) {
    return path;
}
bool overlap_is_ours(uintptr_t address) {
    return address == 1;
}
void *overlap_lookup(uintptr_t base, const void *dynamic, const char *name, const char *version) {
    (void)base, (void)dynamic;
    return (void *)(uintptr_t)(strtoul(version, NULL, 10) * NAMES + strtoul(name, NULL, 10));
}
const char *overlap_version_wanted(const struct overlap_object *object, const char *name) {
    static __thread char number[24]; /* of the caller: the version that it wants */
    (void)name;
    snprintf(number, sizeof number, "%lu", (unsigned long)((object->start - SITE) / SIZE));
    return number;
}
bool overlap_object_at(uintptr_t address, struct overlap_object *object) {
    sched_yield(); /* the generation may end while a caller is looked up */
    const uintptr_t start = address / SIZE * SIZE;
    *object = (struct overlap_object){.dynamic = object, .start = start, .end = start + SIZE, .name = ""};
    return true;
}
void overlap_pin_due(void) {}
void *overlap_behind_us(const char *name) {
    (void)name;
    return NULL;
}

static void *work(void *argument) {
    uint64_t state = (uint64_t)(uintptr_t)argument * 0x9E3779B9 + 1, mine = 0, others = 0;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        const uint32_t number = (uint32_t)(state >> 20) % NAMES + 1, object = (uint32_t)(state >> 50) % OBJECTS;
        char name[16];
        snprintf(name, sizeof name, "%u", number);
        const bool renews = (state >> 40 & 255) == 0; /* as dlclose does */
        if (renews)
            __atomic_fetch_add(&generation, 1, __ATOMIC_ACQ_REL);
        others += overlap_behind(SITE + object * SIZE + 8, number, name, "lib") !=
                  (void *)(uintptr_t)(object * NAMES + number);
        mine++;
    }
    __atomic_fetch_add(&found, mine, __ATOMIC_RELAXED);
    __atomic_fetch_add(&wrong, others, __ATOMIC_RELAXED);
    return NULL;
}

static struct answer *slot; /* whose reader is interrupted */
static uint64_t first, second;
static int writes; /* during that read */

static void put(uint64_t key, uintptr_t address) {
    keep(&key, (void *)address);
}

static void before_load(const void *object) {
    struct answer *const its = slot;
    if (!its || object != (writes ? (void *)&its->key : (void *)&its->address))
        return;
    slot = NULL; /* the writer's own loads */
    writes++ == 0 ? put(second, 2) : put(first, 1);
    slot = writes < 2 ? its : NULL;
}

/* A reader between whose loads the slot gets another answer, and then its own again. Returns whether it
 * was fooled. */
static bool read_across_two_writes(void) {
    for (uint32_t number = 2; number < 20 << ANSWER_BITS; number++) /* no slot is free */
        put(key_of(1, 0, number), number);
    first = key_of(1, 0, 1);
    put(first, 1);
    struct answer *of_first = answer_at(first, first % PROBES);
    for (uint32_t number = 2; !second; number++) {
        const uint64_t key = key_of(1, 0, number);
        if (answer_at(key, key % PROBES) == of_first)
            second = key;
    }
    slot = of_first;
    const uintptr_t address = (uintptr_t)known(first);
    slot = NULL;
    memset(answers, 0, sizeof answers);
    return writes != 2 || address == 2;
}

int main(int argc, char **argv) {
    const int seconds = argc > 1 ? atoi(argv[1]) : 1, threads = argc > 2 ? atoi(argv[2]) : 4;
    pthread_t all[64];
    wrong += read_across_two_writes();
    for (int i = 0; i < threads && i < 64; i++)
        pthread_create(&all[i], NULL, work, (void *)(uintptr_t)(i + 1));
    nanosleep(&(struct timespec){.tv_sec = seconds}, NULL);
    __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < threads && i < 64; i++)
        pthread_join(all[i], NULL);
    printf("%lu %lu\n", (unsigned long)found, (unsigned long)wrong);
    return 0;
}
