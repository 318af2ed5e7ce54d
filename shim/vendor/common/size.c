/* Sizes that launches were made with, and what the program asked for. A node of a graph, captured or added, shows the
 * driver's number; the program gets back its own, and a graph that does not instantiate is set back to it.
 *
 * One entry per kernel and launched size. It says which learning of the handle it is of: an address that is another kernel's
 * by now has no sizes. Where two different sizes were made into the same, neither can be told: the node then shows what it
 * is launched with, and graph.c changes no node of such a kind.
 */
#include "../../core/core.h"
#include "../../core/slots.h"
#include "handle.h"
#include "size.h"
#include "state.h"

/* Asked bytes or NOT_ONE, 19 bits, and above them when the handle was learned. */
#define NOT_ONE (1U << OVERLAP_WORD_SIZE_BITS)
#define SINCE_SHIFT (OVERLAP_WORD_SIZE_BITS + 1)
#define KNOWN (UINT64_C(1) << 47)
#define BORN_MASK ((KNOWN >> SINCE_SHIFT) - 1)

/* Sizes are of 18 bits. So two keys differ, unless two handles lie in the same 4 bytes. */
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

/* All forms of a kernel are one, because a node may show another than the program used. */
static const struct handle *root_of(const struct handle *handle) {
    const struct handle *origin = handle_origin(handle);
    return origin ? origin : handle;
}

/* A kernel of AMD's without an owner is learned anew whenever any library ends, whether it was that library's or not: its sizes stay.
 * If it is another kernel now, the sizes of both count. */
static uint64_t known_since(const struct handle *root) {
    const bool stays = handle_vendor(root) == VENDOR_HIP && !__atomic_load_n(&root->owner, __ATOMIC_RELAXED);
    const uint64_t born = stays ? 0 : __atomic_load_n(&root->born, __ATOMIC_RELAXED);
    return KNOWN | (born & BORN_MASK) << SINCE_SHIFT;
}

void size_note(const struct handle *handle, uint32_t asked, uint32_t launched) {
    const struct handle *root = root_of(handle);
    const uint64_t since = known_since(root), noted = since | asked, key = key_for(root, launched);
    uint64_t before = OVERLAP_SLOTS_FULL;
    for (int i = 0; i < 2 && before == OVERLAP_SLOTS_FULL && asked < NOT_ONE && launched < NOT_ONE; i++) {
        if (i) /* in place of kernels that ended */
            overlap_slots_sweep(state->tables[STATE_SIZES], STATE_TABLE_BITS, key, has_ended, 0);
        before = state_get(STATE_SIZES, key);
        while (before != noted && before != OVERLAP_SLOTS_FULL &&
               !state_swap(STATE_SIZES, key, &before,
                           before >> SINCE_SHIFT == since >> SINCE_SHIFT ? since | NOT_ONE : noted))
            ;
    }
}

/* What was asked for, or NOT_ONE. False: nothing is known. */
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
