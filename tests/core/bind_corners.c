/* The answers of sys/bind.c while objects are closed, with a loader of our own that counts what it is asked: objects of one page
 * each, of which the first is the library itself. What an object is bound to lies in its own page, at its number.
 *
 * Prints a line for each question: what was answered, and how often names were looked up and the objects walked for it.
 */
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/bind.c"

enum { OBJECTS = 100, BASE = 0x100000, SIZE = 0x1000 };
struct overlap_start overlap_start;
uint32_t overlap_closing;
static bool removed[OBJECTS];
static unsigned long long adds, subs;
static bool replaced; /* what is closed, by another object at its address */
static int lookups, walks;

static uintptr_t start_of(int object) {
    return BASE + (uintptr_t)object * SIZE;
}
uint32_t overlap_object_count(void) {
    return 1;
}
int overlap_iterate(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data) {
    int result = 0;
    walks++;
    for (int i = 0; i < OBJECTS && !result; i++) {
        struct dl_phdr_info info = {.dlpi_addr = start_of(i), .dlpi_adds = adds, .dlpi_subs = subs};
        result = removed[i] ? 0 : visit(&info, sizeof info, data);
    }
    return result;
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

static void ask(const char *what, int object) {
    lookups = walks = 0;
    const uintptr_t found = (uintptr_t)overlap_behind(start_of(object) + 8, 3, "3", "lib");
    printf("%s: %s, %d lookups, %d walks\n", what, found == start_of(object) + 3 ? "right" : "wrong", lookups, walks);
}

/* dlclose(3) of object number `handle`, 0 for nothing: with a destructor that launches, in this object and in another. */
static int close_object(void *handle) {
    const int object = (int)(uintptr_t)handle;
    ask("in a destructor", object ? object : 1);
    ask("again", object ? object : 1);
    ask("meanwhile", 2);
    if (object) {
        removed[object] = true;
        subs++;
        ask("once it was unmapped", 2);
    }
    if (object && replaced) {
        removed[object] = false;
        adds++;
    }
    walks = 0;
    return 0;
}
void *overlap_behind_us(const char *name) {
    (void)name;
    return (void *)close_object;
}
int overlap_dlclose(void *handle);

int main(void) {
    ask("first", 1);
    ask("second", 1);
    ask("another object", 2);
    overlap_dlclose(NULL);
    printf("nothing was unmapped: %d walks\n", walks);
    ask("after it", 1);
    overlap_dlclose((void *)5);
    printf("an object of an answer was unmapped: %d walks\n", walks);
    ask("after it", 1);
    ask("and then", 1);
    for (int i = 10; i < 60; i++)
        overlap_behind(start_of(i) + 8, 3, "3", "lib");
    removed[99] = true;
    ask("before the last", 1);
    const uint32_t before = generation;
    subs++;
    overlap_dlclose(NULL);
    printf("one without answers was unmapped: generation %s\n", generation == before ? "stays" : "changes");
    replaced = true;
    const uint32_t then = generation;
    overlap_dlclose((void *)6);
    printf("another object is where one was: generation %s\n", generation == then ? "stays" : "changes");
    for (int round = 0; round < 3; round++)
        for (int i = 10; i < 90; i++)
            if ((uintptr_t)overlap_behind(start_of(i) + 8, 3, "3", "lib") != start_of(i) + 3)
                printf("wrong: %d\n", i);
    ask("more objects than slots", 1);
    ask("and again", 1);
    return 0;
}
