/* The lock-free table of the library: from a 64-bit key to 48 bits, under any number of threads and signal handlers.
 *
 * Open addressing with linear probing over a power of two of slots; after Purcell and Harris (Non-blocking Hashtables with Open
 * Addressing, DISC 2005), with the states of a slot in the word that holds the value. A slot is a key and a word; the word is a tenancy
 * (16 bits) and a payload (48 bits).
 *
 *   payload 0         the key is not in the table; its slot may be reused for another key
 *   payload CLAIMED   one thread, which has put that there, writes the key; everyone else steps over the slot
 *   any other         what the key stands for
 *
 * Insert: the first key of a slot replaces 0 by compare-and-swap, and no key becomes 0 again; so all who insert one key compete for the
 * same slot, and a search may end at the first 0. Where a window has no 0, a slot of payload 0 is reused: payload 0 -> CLAIMED with the
 * next tenancy (compare-and-swap), the new key, payload 0 in the same tenancy. Then any value is one compare-and-swap of the word.
 *
 * Readers load word, key, word. An equal tenancy in both words, the first one not CLAIMED, means that the key was that tenancy's: the key
 * of a later tenancy is stored after its CLAIMED word, so who has seen the key sees that word; and the key of this tenancy was stored before
 * its first word that is not CLAIMED. So nobody sees a payload under another key, half of a slot that is being reused, or (a key that left
 * and came back) a payload of the tenant between. Writers swap the word that they have read so: it fails once the slot has been reused.
 * Whatever was written before a payload was put is visible to those who read it.
 *
 * A key is in one slot only. A thread that has CLAIMED a slot stores the key and looks through the whole window for it (sequentially
 * consistent): of two that reuse slots for one key at least one finds the other's. It gives its slot up, under no key, because somebody
 * may have passed over the slot and put the former key elsewhere; and tries again, but not for ever: it may be a signal handler that has
 * interrupted the other one.
 *
 * 65,536 reuses of a slot while one thread stands between two of its loads would go unnoticed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct overlap_slot {
    uint64_t key; /* 0: never used; UINT64_MAX: given up */
    uint64_t word;
};

#define OVERLAP_SLOTS_FULL (UINT64_MAX >> 16) /* no payload */

/* slots: 1 << bits of them, zero at first; NULL: a table without room. There is never room for keys 0 and UINT64_MAX. */

/* The payload of a key; 0: none. */
uint64_t overlap_slots_get(const struct overlap_slot *slots, uint32_t bits, uint64_t key);

/* Replaces *before by `after`; 0 is none, so this inserts and deletes, too. False: *before is what the key has, or OVERLAP_SLOTS_FULL
 * where it has none, and there is no slot for it. */
bool overlap_slots_swap(struct overlap_slot *slots, uint32_t bits, uint64_t key, uint64_t *before, uint64_t after);

/* The same whatever the key has; returns that, or OVERLAP_SLOTS_FULL. */
uint64_t overlap_slots_put(struct overlap_slot *slots, uint32_t bits, uint64_t key, uint64_t after);

/* Deletes the keys that have ended: those where this one would be, or (0) all. */
typedef bool overlap_slot_ended(uint64_t key, uint64_t payload, uint64_t context);
void overlap_slots_sweep(struct overlap_slot *slots, uint32_t bits, uint64_t key, overlap_slot_ended *ended,
                         uint64_t context);
