/* Registers of kernels by their descriptors, kept from where a module is loaded to where the program asks for its functions.
 *
 * An entry belongs to a module and is free again when that module is unloaded. No thread waits: two threads that load the
 * same module leave two equal entries, and a kernel for which no entry is free stays unknown. So does every kernel of a
 * compressed module: unpacking it here would double what loading costs the program.
 */
#include "hip.h"

enum { BITS = 17, PROBES = 32 };
#define ENTRIES (UINT64_C(1) << BITS)
#define CLAIMED UINT64_C(1) /* of module: a thread fills the place */

struct entry {
    uint64_t module;    /* 0: free */
    uint64_t name;      /* its hash */
    uint64_t registers; /* and which image told, above */
};
static struct entry *table; /* NULL until a module was loaded */
static uint32_t images;     /* that were read: modules that were unloaded had earlier ones */

static struct entry *table_made(void) {
    struct entry *now = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    struct entry *made = now ? NULL : overlap_map(ENTRIES * sizeof *made);
    if (!made || __atomic_compare_exchange_n(&table, &now, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return made ? made : now;
    overlap_unmap(made, ENTRIES * sizeof *made);
    return now;
}

static uint64_t hash_of(const char *name, size_t length) {
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(1099511628211);
    return hash;
}

static struct entry *place(struct entry *entries, uint64_t module, uint64_t name, uint64_t probe) {
    const uint64_t first = (name ^ module) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - BITS);
    return &entries[(first + probe) & (ENTRIES - 1)];
}

static struct entry *find(struct entry *entries, uint64_t module, uint64_t name) {
    for (uint64_t probe = 0; probe < PROBES; probe++) {
        struct entry *entry = place(entries, module, name, probe);
        if (__atomic_load_n(&entry->module, __ATOMIC_ACQUIRE) == module &&
            __atomic_load_n(&entry->name, __ATOMIC_RELAXED) == name)
            return entry;
    }
    return NULL;
}

/* Is what is being read. */
struct learning {
    struct entry *entries; /* NULL until the image turns out to hold a kernel */
    uint64_t module;
    uint32_t image;
};

static void learn(void *context, const char *kernel, size_t length, uint32_t registers) {
    struct learning *now = context;
    const uint64_t name = hash_of(kernel, length), told = (uint64_t)now->image << 32 | registers;
    if (!now->entries && !(now->entries = table_made()))
        return;
    struct entry *entry = find(now->entries, now->module, name);
    if (entry) { /* of a module that had the address before, perhaps */
        __atomic_store_n(&entry->registers, told, __ATOMIC_RELAXED);
        return;
    }
    for (uint64_t probe = 0; probe < PROBES; probe++) {
        uint64_t none = 0;
        entry = place(now->entries, now->module, name, probe);
        if (!__atomic_compare_exchange_n(&entry->module, &none, CLAIMED, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        __atomic_store_n(&entry->name, name, __ATOMIC_RELAXED);
        __atomic_store_n(&entry->registers, told, __ATOMIC_RELAXED);
        __atomic_store_n(&entry->module, now->module, __ATOMIC_RELEASE);
        return;
    }
}

void code_learn(hipModule_t module, const void *image, uint64_t size, const char *architecture) {
    struct learning now = {NULL, (uint64_t)(uintptr_t)module, __atomic_add_fetch(&images, 1, __ATOMIC_RELAXED)};
    if (now.module > CLAIMED)
        overlap_code_kernels(image, size, architecture, learn, &now);
}

uint32_t code_learned(void) {
    return __atomic_load_n(&images, __ATOMIC_RELAXED);
}

void code_forget(hipModule_t module, uint32_t learned) {
    struct entry *entries = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    for (uint64_t i = 0; entries && (uintptr_t)module > CLAIMED && i < ENTRIES; i++)
        if (__atomic_load_n(&entries[i].module, __ATOMIC_RELAXED) == (uint64_t)(uintptr_t)module &&
            (int32_t)((uint32_t)(__atomic_load_n(&entries[i].registers, __ATOMIC_RELAXED) >> 32) - learned) <= 0)
            __atomic_store_n(&entries[i].module, 0, __ATOMIC_RELEASE);
}

uint32_t code_registers(hipModule_t module, const char *kernel) {
    struct entry *entries = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    size_t length = 0;
    while (kernel[length])
        length++;
    struct entry *entry = entries ? find(entries, (uint64_t)(uintptr_t)module, hash_of(kernel, length)) : NULL;
    return entry ? (uint32_t)__atomic_load_n(&entry->registers, __ATOMIC_RELAXED) : 0;
}
