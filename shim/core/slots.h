/* A lock-free hash table from 64-bit keys to 48-bit values, for any number of threads and signal handlers.
 *
 * Open addressing with linear probing over a power of two of slots; after Purcell and Harris (Non-blocking Hashtables
 * with Open Addressing, DISC 2005). A slot is a key and a word; a word is a tenancy (16 bits) and a payload (48 bits):
 *
 *   payload 0         tombstone: the key is not in the table, and another key may reuse the slot
 *   payload CLAIMED   one thread, which stored that, is writing the key; all others skip the slot
 *   any other         the value of the key
 *
 * Insert: the first key of a slot replaces 0 by compare-and-swap, and no key becomes 0 again. So all threads that
 * insert one key compete for the same slot, and a probe sequence ends at the first 0. Where it has no 0, a tombstone is
 * reused: payload 0 becomes CLAIMED in the next tenancy (compare-and-swap), the key is stored, the payload becomes 0 in
 * the same tenancy. Every later change of a value is one compare-and-swap of the word.
 *
 * Readers load word, key, word. If both words have the same tenancy, and the first is not CLAIMED, the key is that
 * tenancy's: its key was stored before its first word that is not CLAIMED, and a later key is stored after the next
 * tenancy's CLAIMED word, which the second load then returns. Key 0 has no payload, and the word is not loaded again:
 * another key may have been inserted meanwhile. So no reader sees a payload under another key, a slot half reused, or
 * the payload of a tenancy between two of the same key (ABA). Writers swap the word that they read so; the swap fails
 * once the slot is reused. A payload is published with release: what its writer stored before is visible to its
 * readers.
 *
 * A key has one slot only: a thread that CLAIMED a slot stores its key there and then searches the whole probe sequence
 * for it (sequentially consistent), so of two threads that reuse slots for one key at least one finds the other's. It
 * gives its slot up under no key, because another thread may have skipped the slot and inserted the former key
 * elsewhere, and retries. Retries are bounded, because the thread may be a signal handler that has interrupted the
 * other one.
 *
 * A thread that is stopped between two loads while its slot is reused exactly 65,536 times would not notice.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct overlap_slot {
    uint64_t key; /* 0: never used; UINT64_MAX: given up */
    uint64_t word;
};

#define OVERLAP_SLOTS_FULL (UINT64_MAX >> 16) /* no payload */

/* slots: 1 << bits of them, zero at first. NULL: a table without room. There is never room for the keys 0 and
 * UINT64_MAX. */

/* Returns the value of a key. 0: none. */
uint64_t overlap_slots_get(const struct overlap_slot *slots, uint32_t bits, uint64_t key);

/* Replaces the value *before by `after`. 0 is no value, so this inserts and deletes, too. False: *before is set to the
 * present value, or to OVERLAP_SLOTS_FULL if the key has none and there is no slot for it. */
bool overlap_slots_swap(struct overlap_slot *slots, uint32_t bits, uint64_t key, uint64_t *before, uint64_t after);

/* Replaces any value. Returns the former one, or OVERLAP_SLOTS_FULL. */
uint64_t overlap_slots_put(struct overlap_slot *slots, uint32_t bits, uint64_t key, uint64_t after);
