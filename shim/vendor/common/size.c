/* The sizes of launches that we have changed, and the sizes that the program asked for. A graph node, captured or
 * added, has our size in the driver. The program must read back its own, and a graph that cannot be instantiated is
 * restored to it.
 *
 * The table has one entry per kernel and launched size. The entry holds the handle's `born`, so that an address that
 * was reused for another kernel has no sizes. If two different sizes became the same one, neither can be recovered: the
 * node then shows our size, and graph.c does not change nodes of such a size.
 */
#include "../../core/core.h"
#include "../../core/slots.h"
#include "handle.h"
#include "size.h"
#include "state.h"

/* An entry: the asked bytes or NOT_ONE (several sizes), 19 bits, and above them the handle's `born`. */
#define NOT_ONE (1U << OVERLAP_WORD_SIZE_BITS)
#define SINCE_SHIFT (OVERLAP_WORD_SIZE_BITS + 1)
#define KNOWN (UINT64_C(1) << 47)
#define BORN_MASK ((KNOWN >> SINCE_SHIFT) - 1)

/* Sizes have 18 bits and handles are aligned to 4 bytes, so keys of different kernels differ. */
static uint64_t key_for(const struct handle *root, uint32_t launched) {
    return root->value << 16 ^ launched;
}

static bool has_ended(uint64_t key, uint64_t asked, uint64_t context) {
    bool found = false;
    (void)asked, (void)context;
    for (uint64_t i = 0; i < 4; i++)
        found |= handle_find((const void *)(uintptr_t)((key >> 18 << 2) + i)) != NULL;
    return !found;
}

/* All forms of a kernel share their entries, because a node may report another form than the program used. */
static const struct handle *root_of(const struct handle *handle) {
    const struct handle *origin = handle_origin(handle);
    return origin ? origin : handle;
}

/* A HIP kernel without an owner is recorded again whenever any library is unloaded, so its `born` is ignored and its
 * sizes stay. If the address now belongs to another kernel, the sizes of both apply. */
static uint64_t known_since(const struct handle *root) {
    const bool stays = handle_vendor(root) == VENDOR_HIP && !OVERLAP_RELAXED(root->owner);
    const uint64_t born = stays ? 0 : handle_born(root);
    return KNOWN | (born & BORN_MASK) << SINCE_SHIFT;
}

void size_note(const struct handle *handle, uint32_t asked, uint32_t launched) {
    const struct handle *root = root_of(handle);
    const uint64_t since = known_since(root), noted = since | asked, key = key_for(root, launched);
    uint64_t before = OVERLAP_SLOTS_FULL;
    for (int i = 0; i < 2 && before == OVERLAP_SLOTS_FULL && asked < NOT_ONE && launched < NOT_ONE; i++) {
        if (i) /* the table is full: delete the entries of kernels that no longer exist */
            overlap_slots_sweep(state->tables[STATE_SIZES], STATE_TABLE_BITS, key, has_ended, 0);
        before = state_get(STATE_SIZES, key);
        while (before != noted && before != OVERLAP_SLOTS_FULL &&
               !state_swap(STATE_SIZES, key, &before,
                           before >> SINCE_SHIFT == since >> SINCE_SHIFT ? since | NOT_ONE : noted))
            ;
    }
}

/* Sets *asked to the asked size, or to NOT_ONE. False: there is no entry. */
static bool asked_for(const struct handle *handle, uint32_t launched, uint32_t *asked) {
    const struct handle *root = root_of(handle);
    const uint64_t known = launched < NOT_ONE ? state_get(STATE_SIZES, key_for(root, launched)) : 0;
    *asked = (uint32_t)known & (2 * NOT_ONE - 1);
    return known >> SINCE_SHIFT == known_since(root) >> SINCE_SHIFT;
}

bool size_asked(const struct handle *handle, uint32_t launched, uint32_t *asked) {
    return asked_for(handle, launched, asked) && *asked != NOT_ONE;
}

bool size_is_ours(const struct handle *handle, uint32_t bytes) {
    uint32_t asked;
    return asked_for(handle, bytes, &asked) && asked != bytes;
}
