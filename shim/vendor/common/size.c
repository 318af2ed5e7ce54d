/* Sizes that launches were made with, and what the program asked for. A node of a graph, captured or added, shows the
 * driver's number; the program gets back its own, and a graph that does not instantiate is set back to it.
 *
 * One entry per kernel and launched size, written once. Where two different sizes were made into the same, neither can
 * be told: the node then shows what it is launched with, and graph.c changes no node of such a kind.
 */
#include "state.h"

enum { PROBES = 32 };
#define ENTRIES (1U << SIZE_BITS)
#define NOT_ONE UINT32_MAX
#define KNOWN (UINT64_C(1) << 63)

static struct size_entry *entry_of(uint64_t handle, uint32_t launched, bool take) {
    uint64_t hash = (handle ^ (uint64_t)launched << 40) * UINT64_C(0x9E3779B97F4A7C15) >> (64 - SIZE_BITS);
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        struct size_entry *entry = &state->sizes[(hash + probe) & (ENTRIES - 1)];
        uint64_t owner = __atomic_load_n(&entry->handle, __ATOMIC_RELAXED);
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
    return NULL;
}

/* All forms of a kernel are one, because a node may show another than the program used. */
static const struct handle *root_of(const struct handle *handle) {
    const struct handle *origin = handle_origin(handle);
    return origin ? origin : handle;
}

void size_note(struct handle *handle, uint32_t asked, uint32_t launched) {
    struct handle *origin = handle_origin(handle);
    handle = origin ? origin : handle;
    __atomic_fetch_or(&handle->marks, (uint32_t)HANDLE_SIZES_NOTED, __ATOMIC_RELAXED);
    struct size_entry *entry = entry_of(handle->value, launched, true);
    uint64_t before = 0;
    if (entry &&
        !__atomic_compare_exchange_n(&entry->asked, &before, KNOWN | asked, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE) &&
        before != (KNOWN | asked))
        __atomic_store_n(&entry->asked, NOT_ONE, __ATOMIC_RELEASE);
}

bool size_asked(const struct handle *handle, uint32_t launched, uint32_t *asked) {
    struct size_entry *entry = entry_of(root_of(handle)->value, launched, false);
    uint64_t known = entry ? __atomic_load_n(&entry->asked, __ATOMIC_ACQUIRE) : 0;
    *asked = (uint32_t)known;
    return known & KNOWN;
}

bool size_is_ours(const struct handle *handle, uint32_t bytes) {
    struct size_entry *entry = entry_of(root_of(handle)->value, bytes, false);
    uint64_t known = entry ? __atomic_load_n(&entry->asked, __ATOMIC_ACQUIRE) : 0;
    return known == NOT_ONE || ((known & KNOWN) && (uint32_t)known != bytes);
}

/* An entry stays the handle's, so that others are still found. */
void size_forget(const struct handle *handle) {
    if (!(__atomic_load_n(&handle->marks, __ATOMIC_RELAXED) & HANDLE_SIZES_NOTED))
        return;
    for (uint32_t i = 0; i < ENTRIES; i++)
        if (__atomic_load_n(&state->sizes[i].handle, __ATOMIC_RELAXED) == handle->value)
            __atomic_store_n(&state->sizes[i].asked, 0, __ATOMIC_RELEASE);
}
