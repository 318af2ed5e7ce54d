/* The answers of sys/bind.c while objects are closed, with a loader of our own that counts what it is asked: objects of one page
 * each, of which the first is the library itself. What an object is bound to lies in its own page, at its number.
 *
 * Prints a line for each question: whether the answer was right, and whether it was cached.
 */
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/bind.c"

enum { OBJECTS = 300, BASE = 0x100000, SIZE = 0x1000 };
uint64_t overlap_closes = UINT64_C(1) << 32;
static bool removed[OBJECTS];
static int lookups, walks;

static uintptr_t start_of(int object) {
    return BASE + (uintptr_t)object * SIZE;
}
static int walk(int most, int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data) {
    int result = 0;
    walks++;
    for (int i = 0; i < most && !result; i++) {
        struct dl_phdr_info info = {.dlpi_addr = start_of(i)};
        result = removed[i] ? 0 : visit(&info, sizeof info, data);
    }
    return result;
}
int overlap_iterate(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data) {
    return walk(OBJECTS, visit, data);
}
int overlap_iterate_first(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data) {
    return walk(1, visit, data);
}
struct overlap_object overlap_object_of(const struct dl_phdr_info *info) {
    return (struct overlap_object){.base = info->dlpi_addr,
                                   .dynamic = info->dlpi_addr == BASE ? (const void *)BASE : NULL,
                                   .start = info->dlpi_addr,
                                   .end = info->dlpi_addr + SIZE,
                                   .name = "libx.so"};
}
const char *overlap_basename(const char *path) {
    return path;
}
bool overlap_is_off(void) {
    return false;
}

bool overlap_is_ours(uintptr_t address) {
    return address >= BASE && address < BASE + SIZE;
}
const char *overlap_version_wanted(const struct overlap_object *object, const char *name) {
    (void)object, (void)name;
    return NULL;
}
void *overlap_lookup(uintptr_t base, const void *dynamic, const char *name, const char *version) {
    (void)dynamic, (void)version;
    lookups++;
    return (void *)(base + strtoul(name, NULL, 10));
}
bool overlap_object_at(uintptr_t address, struct overlap_object *object) {
    static const ElfW(Dyn) none[] = {{.d_tag = DT_NULL}};
    const uintptr_t start = address / SIZE * SIZE;
    walks++;
    if (start < BASE || start >= start_of(OBJECTS) || removed[(start - BASE) / SIZE])
        return false;
    *object =
        (struct overlap_object){.base = start, .dynamic = none, .start = start, .end = start + SIZE, .name = "libx.so"};
    return true;
}
void overlap_pin_due(void) {}
void *overlap_map(size_t size) {
    return calloc(1, size);
}
void overlap_unmap(void *memory, size_t size) {
    (void)size;
    free(memory);
}

static void ask_name(const char *what, int object, const char *name) {
    const uint32_t number = (uint32_t)strtoul(name, NULL, 10);
    lookups = walks = 0;
    const uintptr_t site = start_of(object) + 8, known = (uintptr_t)overlap_behind_cached(site, number);
    const uintptr_t found = known ? known : (uintptr_t)overlap_behind(site, number, name, "lib", false);
    printf("%s: %s, %s\n", what, found == start_of(object) + number ? "right" : "wrong",
           lookups || walks ? "looked up" : "cached");
}
static void ask(const char *what, int object) {
    ask_name(what, object, "3");
}

/* dlclose(3) of object number `handle`, 0 for nothing: with a destructor that launches, in this object and in another. */
static int close_object(void *handle) {
    const int object = (int)(uintptr_t)handle;
    ask("second in a destructor", object ? object : 1);
    ask("second in a destructor", 2);
    removed[object] = object != 0;
    ask("second in a destructor", 2);
    return 0;
}
void *overlap_behind_us(const char *name) {
    (void)name;
    return (void *)close_object;
}

/* Two pages of one object: an answer about one is found from the other. */
static void ask_pages(const char *what, int object) {
    const uintptr_t site = start_of(object);
    struct overlap_object caller = {.start = site, .end = site + 2 * SIZE};
    keep_of_object(overlap_generation(), &caller, 7, (void *)(site + 7));
    for (int page = 0; page < 2; page++)
        printf("%s: %s, cached\n", what, overlap_behind_cached(site + (uintptr_t)page * SIZE, 7) ? "right" : "wrong");
}

static void being_written(int by) {
    for (int i = 0; i < CALLERS; i++)
        kept->by_object[3][i].sequence += (uint32_t)by;
    for (int i = 0; i < PAGES_KEPT; i++)
        kept->by_page[i].sequence += (uint32_t)by;
}

int main(void) {
    ask("first", 1);
    ask("second", 1);
    ask("first", 2);
    ask("second", 1);
    ask_name("first", 1, "19"); /* in the row of the other name */
    ask_name("second", 1, "19");
    ask("second", 1);
    ask("first", 5);
    overlap_dlclose((void *)5);
    ask("after dlclose", 1);
    ask("second", 1);
    ask("after dlclose", 2);
    overlap_dlclose(NULL);
    ask("after dlclose", 1);
    ask("after dlclose", 2);
    overlap_closes += ONE_CLOSE; /* another thread's */
    ask("while another thread is in dlclose", 1);
    ask("while another thread is in dlclose", 1);
    overlap_bind_forked();
    ask("in a child", 1);
    ask("second", 1);
    being_written(1);
    ask("in a signal handler", 1);
    ask("in a signal handler", 1);
    being_written(-1);
    ask("second", 1);
    for (int round = 0; round < 2; round++)
        for (int i = 10; i < 10 + 100; i++)
            ask(round ? "several callers in turn" : "first", i);
    ask_pages("another page of the caller", 11);
    return 0;
}
