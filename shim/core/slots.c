/* The protocol and its proof are in slots.h. */
#include <stddef.h>

#include "../text.h"
#include "slots.h"

enum { PROBES = 64, TRIES = 100, TENANCY_BITS = 16 }; /* the lower bits of a word */
#define GONE UINT64_MAX                               /* a key */
#define CLAIMED OVERLAP_SLOTS_FULL                    /* a payload */

#define LOAD(field) __atomic_load_n(&(field), __ATOMIC_SEQ_CST) /* on x86-64 as cheap as any */
#define STORE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_SEQ_CST)

static uint64_t payload_of(uint64_t word) {
    return word >> TENANCY_BITS;
}
static uint64_t word_of(uint64_t payload, uint64_t tenancy) {
    return payload << TENANCY_BITS | (uint16_t)tenancy;
}

static bool swap(uint64_t *field, uint64_t before, uint64_t after) {
    return __atomic_compare_exchange_n(field, &before, after, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

static struct overlap_slot *slot_at(const struct overlap_slot *slots, uint32_t bits, uint64_t key, uint32_t probe) {
    return (struct overlap_slot *)(uintptr_t)&slots[(overlap_spread(key, bits) + probe) & ((1U << bits) - 1)];
}

/* Returns the key of a slot, and its word at that time. GONE: the slot was reused meanwhile, or is claimed. */
static uint64_t owner_of(const struct overlap_slot *slot, uint64_t *word) {
    const uint64_t before = LOAD(slot->word), owner = LOAD(slot->key);
    *word = owner ? LOAD(slot->word) : 0; /* another key may be inserted there by now, with its payload */
    return payload_of(before) == CLAIMED || (uint16_t)(before ^ *word) ? GONE : owner;
}

/* Returns the slot of a key, and its word; or the first unused slot (*owner is 0); or a tombstone (GONE); or NULL
 * (GONE). Only the first has a payload. */
static struct overlap_slot *find(const struct overlap_slot *slots, uint32_t bits, uint64_t key, uint64_t *owner,
                                 uint64_t *word) {
    struct overlap_slot *spare = NULL;
    uint64_t of_spare = 0;
    for (uint32_t probe = 0; slots && key + 1 > 1 && probe < PROBES; probe++) {
        struct overlap_slot *const slot = slot_at(slots, bits, key, probe);
        *owner = owner_of(slot, word);
        if (*owner == key || *owner == 0)
            return slot;
        if (!spare && !payload_of(*word)) {
            spare = slot;
            of_spare = *word;
        }
    }
    *owner = GONE;
    *word = of_spare;
    return spare;
}

/* Reuses a slot for another key. False: another slot has the key, or is about to. */
static bool reuse(struct overlap_slot *slots, uint32_t bits, uint64_t key, struct overlap_slot *own, uint64_t word) {
    bool alone = true;
    if (!swap(&own->word, word, word_of(CLAIMED, word + 1)))
        return true; /* to be tried again */
    STORE(own->key, key);
    for (uint32_t probe = 0; probe < PROBES; probe++) {
        const struct overlap_slot *const slot = slot_at(slots, bits, key, probe);
        alone &= slot == own || LOAD(slot->key) != key;
    }
    if (!alone)
        STORE(own->key, GONE);
    STORE(own->word, word_of(0, word + 1));
    return alone;
}

uint64_t overlap_slots_get(const struct overlap_slot *slots, uint32_t bits, uint64_t key) {
    uint64_t owner, word;
    find(slots, bits, key, &owner, &word);
    return payload_of(word);
}

bool overlap_slots_swap(struct overlap_slot *slots, uint32_t bits, uint64_t key, uint64_t *before, uint64_t after) {
    for (int tries = 0;;) {
        uint64_t owner, word;
        struct overlap_slot *const slot = find(slots, bits, key, &owner, &word);
        if (payload_of(word) != *before) {
            *before = payload_of(word);
            return false;
        }
        if (slot && owner == key ? swap(&slot->word, word, word_of(after, word)) : !after)
            return true;
        if (owner == 0) {
            swap(&slot->key, 0, key);
        } else if (owner == GONE && (!slot || (!reuse(slots, bits, key, slot, word) && ++tries == TRIES))) {
            *before = OVERLAP_SLOTS_FULL;
            return false;
        }
    }
}

uint64_t overlap_slots_put(struct overlap_slot *slots, uint32_t bits, uint64_t key, uint64_t after) {
    uint64_t before = 0;
    while (!overlap_slots_swap(slots, bits, key, &before, after) && before != OVERLAP_SLOTS_FULL)
        ;
    return before;
}
