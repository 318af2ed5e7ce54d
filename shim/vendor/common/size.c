/* Sizes that launches were made with, and what the program asked for. A node of a graph, captured or added, shows the
 * driver's number; the program gets back its own, and a graph that does not instantiate is set back to it.
 *
 * One entry per kernel and launched size. It says which learning of the handle it is of: an address that is another kernel's
 * by now has no sizes. Where two different sizes were made into the same, neither can be told: the node then shows what it
 * is launched with, and graph.c changes no node of such a kind.
 */
#include "state.h"

enum { PROBES = 32 };
#define ENTRIES (1U << SIZE_BITS)
#define NOT_ONE UINT32_MAX
#define KNOWN (UINT64_C(1) << 63)
#define BORN_MASK UINT32_C(0x7fffffff)
#define TAKEN UINT64_C(1) /* no handle: the entry is being emptied */

/* Where there is no free entry near: one of a kernel that ended. */
static struct size_entry *entry_reused(uint64_t hash, uint64_t handle, uint32_t launched) {
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        struct size_entry *entry = &state->sizes[(hash + probe) & (ENTRIES - 1)];
        uint64_t owner = __atomic_load_n(&entry->handle, __ATOMIC_RELAXED);
        if (owner == TAKEN || handle_find((const void *)(uintptr_t)owner) ||
            !__atomic_compare_exchange_n(&entry->handle, &owner, TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        __atomic_store_n(&entry->asked, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&entry->launched, KNOWN | launched, __ATOMIC_RELAXED);
        __atomic_store_n(&entry->handle, handle, __ATOMIC_RELEASE);
        return entry;
    }
    return NULL;
}

static struct size_entry *entry_of(uint64_t handle, uint32_t launched, bool take) {
    uint64_t hash = (handle ^ (uint64_t)launched << 40) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - SIZE_BITS);
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        struct size_entry *entry = &state->sizes[(hash + probe) & (ENTRIES - 1)];
        uint64_t owner = __atomic_load_n(&entry->handle, __ATOMIC_ACQUIRE);
        if (owner == 0 && take &&
            __atomic_compare_exchange_n(&entry->handle, &owner, handle, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            owner = handle;
        if (owner == 0)
            return NULL;
        if (owner != handle)
            continue;
        uint64_t size = __atomic_load_n(&entry->launched, __ATOMIC_RELAXED);
        if (size == 0 && take &&
            __atomic_compare_exchange_n(&entry->launched, &size, KNOWN | launched, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return entry;
        if (size == (KNOWN | launched))
            return entry;
    }
    return take ? entry_reused(hash, handle, launched) : NULL;
}

/* All forms of a kernel are one, because a node may show another than the program used. */
static const struct handle *root_of(const struct handle *handle) {
    const struct handle *origin = handle_origin(handle);
    return origin ? origin : handle;
}

/* A kernel of AMD's without an owner is learned anew whenever any library ends, whether it was that library's or not: its sizes stay.
 * If it is another kernel now, the sizes of both count. */
static uint64_t known_since(const struct handle *root) {
    const bool stays = handle_vendor(root) == VENDOR_HIP && !__atomic_load_n(&root->owner, __ATOMIC_RELAXED);
    const uint32_t born = stays ? 0 : __atomic_load_n(&root->born, __ATOMIC_RELAXED);
    return KNOWN | (uint64_t)(born & BORN_MASK) << 32;
}

void size_note(const struct handle *handle, uint32_t asked, uint32_t launched) {
    const struct handle *root = root_of(handle);
    const uint64_t since = known_since(root), noted = since | asked;
    struct size_entry *entry = entry_of(root->value, launched, true);
    uint64_t before = entry ? __atomic_load_n(&entry->asked, __ATOMIC_ACQUIRE) : noted;
    while (before != noted &&
           !__atomic_compare_exchange_n(&entry->asked, &before, before >> 32 == since >> 32 ? since | NOT_ONE : noted,
                                        false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
}

/* What was asked for, or NOT_ONE. False: nothing is known. */
static bool asked_for(const struct handle *handle, uint32_t launched, uint32_t *asked) {
    const struct handle *root = root_of(handle);
    const struct size_entry *entry = entry_of(root->value, launched, false);
    const uint64_t known = entry ? __atomic_load_n(&entry->asked, __ATOMIC_ACQUIRE) : 0;
    *asked = (uint32_t)known;
    return known >> 32 == known_since(root) >> 32;
}

bool size_asked(const struct handle *handle, uint32_t launched, uint32_t *asked) {
    return asked_for(handle, launched, asked) && *asked != NOT_ONE;
}

bool size_is_ours(const struct handle *handle, uint32_t bytes) {
    uint32_t asked;
    return asked_for(handle, bytes, &asked) && asked != bytes;
}
