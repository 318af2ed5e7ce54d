/* Rows of the statistics page: one for every kernel and decision about it. A row is claimed when the decision is made;
 * the launch itself then only increments the counter of that row.
 *
 * Rows are claimed in their order. A key never changes; the record is filled in after the key is claimed, and its state is
 * published last, for readers of the page.
 */
#include <string.h>

#include "../text.h"
#include "core.h"

#define HASH_SHIFT 6
_Static_assert(OVERLAP_REASONS <= 1 << HASH_SHIFT, "the key");

/* Upper bounds of the rows that each kind of launch may claim. Kernels that appear early must not use up all rows: the
 * last ones are reserved for rules whose kernels find no row, those below these for communication. Launches before the
 * first communication get few rows, because most of those kernels are launched again later. */
enum {
    FULL = OVERLAP_ROWS,
    OF_COMMUNICATION = OVERLAP_ROWS - 56,
    OF_COMPUTATION = OF_COMMUNICATION - 24,
    OF_THE_BEGINNING = OVERLAP_REASONS + 64,
};

static uint32_t room_for(uint32_t reason) {
    return reason == OVERLAP_REASON_no_communication_seen ? OF_THE_BEGINNING
           : reason == OVERLAP_REASON_communication       ? OF_COMMUNICATION
                                                          : OF_COMPUTATION;
}

static uint64_t key_of(uint64_t hash, uint32_t reason) {
    return hash << HASH_SHIFT | (uint64_t)reason;
}

static uint64_t hash_text(uint64_t hash, const char *text) {
    return overlap_fnv(hash, text, strlen(text) + 1);
}

static uint64_t identity(const struct overlap_row *facts, uint64_t kernel, const char *library) {
    uint64_t hash = overlap_hash(kernel, library, strlen(library));
    const uint32_t of[] = {facts->rule, facts->device};
    hash = overlap_hash(hash, of, sizeof of);
    hash = overlap_hash(hash, &facts->footprint, sizeof facts->footprint); /* kernels may share a name (Triton) */
    hash = hash * OVERLAP_FACTOR >> HASH_SHIFT;
    return hash ? hash : 1;
}

/* Returns the row with this key, and claims a free one below `most` if needed (*claimed). FULL: there is none. */
static uint32_t find(struct overlap_row_index *index, struct overlap_page *page, uint64_t key, uint32_t most,
                     bool *claimed) {
    enum { SLOTS = sizeof index->slots / sizeof *index->slots };
    uint32_t at = overlap_spread(key, 10);
    _Static_assert(SLOTS == 1 << 10 && SLOTS >= 2 * OVERLAP_ROWS, "probes end");
    *claimed = false;
    if (index->page != page)
        *index = (struct overlap_row_index){.page = page, .next = OVERLAP_REASONS};
    for (uint32_t row; (row = index->slots[at]) != 0; at = (at + 1) % SLOTS)
        if (page->rows[row].key == key)
            return row;
    if (index->next >= most)
        return FULL;
    *claimed = true;
    index->slots[at] = (uint16_t)index->next;
    __atomic_store_n(&page->rows[index->next].key, key, __ATOMIC_RELAXED);
    return index->next++;
}

/* Stores a name of any length: recognizable, and distinct from the name of another kernel. */
static void put_name(uint8_t *field, size_t size, const char *name) {
    const size_t length = strlen(name);
    struct overlap_text text = overlap_text_in((char *)field, size);
    if (length < size) {
        overlap_text_add(&text, name);
        return;
    }
    enum { END = 32, HASH = 10 };
    char hash[HASH + 1] = "~";
    uint64_t all = hash_text(OVERLAP_FNV, name);
    all ^= all >> 32;
    for (int i = 1; i < HASH - 1; i++, all >>= 4)
        hash[i] = "0123456789abcdef"[all & 15];
    hash[HASH - 1] = '~';
    text.size = size - END - HASH;
    overlap_text_add(&text, name);
    text.size = size;
    overlap_text_add(&text, hash);
    overlap_text_add(&text, name + length - END);
}

/* Facts that may differ between launches of one row: the last decision's are kept. */
static void put_last(struct overlap_row *record, const struct overlap_row *facts) {
    __atomic_store_n(&record->launched, OVERLAP_RELAXED(facts->launched), __ATOMIC_RELAXED);
    __atomic_store_n(&record->blocks, OVERLAP_RELAXED(facts->blocks), __ATOMIC_RELAXED);
    __atomic_store_n(&record->resident_blocks, OVERLAP_RELAXED(facts->resident_blocks), __ATOMIC_RELAXED);
}

static void put_first(struct overlap_row *record, const struct overlap_row *facts) {
    record->rule = facts->rule;
    record->device = facts->device;
    record->footprint = facts->footprint;
    put_last(record, facts);
}

/* Returns the row for all kernels of a rule that found no row of their own, so that the report shows that the rule
 * matched. */
static uint32_t of_rule(struct overlap_row_index *index, struct overlap_page *page, uint32_t rule, uint32_t reason) {
    const struct overlap_row facts = {.rule = rule, .device = OVERLAP_DEVICES};
    bool claimed;
    const uint32_t row = find(index, page, key_of(identity(&facts, 0, ""), reason), FULL, &claimed);
    if (claimed) {
        put_first(&page->rows[row], &facts);
        __atomic_store_n(&page->rows[row].state, 2, __ATOMIC_RELEASE);
    }
    return row == FULL ? reason : row;
}

uint32_t overlap_row_claim(struct overlap_row_index *index, struct overlap_page *page, const struct overlap_row *facts,
                           uint64_t hash, const char *kernel, const char *library, uint32_t reason) {
    bool claimed;
    const uint64_t key = key_of(identity(facts, hash, library), reason);
    const uint32_t row = find(index, page, key, room_for(reason), &claimed);
    if (row == FULL)
        return of_rule(index, page, facts->rule, reason);
    struct overlap_row *record = &page->rows[row];
    if (!claimed) {
        put_last(record, facts);
        return row;
    }
    put_first(record, facts);
    put_name(record->kernel, sizeof record->kernel, kernel);
    overlap_plain_name(kernel, (char *)record->plain, sizeof record->plain);
    put_name(record->library, sizeof record->library, library);
    __atomic_store_n(&record->state, 2, __ATOMIC_RELEASE);
    return row;
}

uint32_t overlap_row_of_reason(struct overlap_row_index *index, struct overlap_page *page, uint32_t row,
                               uint32_t reason) {
    const struct overlap_row *from = &page->rows[row];
    bool claimed;
    if (row < OVERLAP_REASONS || __atomic_load_n(&from->state, __ATOMIC_ACQUIRE) != 2)
        return reason;
    const uint64_t key = key_of(OVERLAP_RELAXED(from->key) >> HASH_SHIFT, reason);
    const uint32_t other = find(index, page, key, room_for(reason), &claimed);
    if (other == FULL)
        return of_rule(index, page, from->rule, reason);
    if (claimed) {
        struct overlap_row *record = &page->rows[other];
        put_first(record, from);
        record->launched = from->footprint.dynamic_shared; /* as requested, whatever the reason */
        memcpy(record->kernel, from->kernel, sizeof record->kernel);
        memcpy(record->plain, from->plain, sizeof record->plain);
        memcpy(record->library, from->library, sizeof record->library);
        __atomic_store_n(&record->state, 2, __ATOMIC_RELEASE);
    }
    return other;
}

void overlap_row_reasons(const struct overlap_page *page, uint32_t *reasons) {
    for (uint32_t row = 0; row < OVERLAP_ROWS; row++) {
        const uint64_t key = OVERLAP_RELAXED(page->rows[row].key);
        const uint32_t reason = (uint32_t)(key & ((1U << HASH_SHIFT) - 1));
        reasons[row] = row < OVERLAP_REASONS ? row : key && reason < OVERLAP_REASONS ? reason : OVERLAP_REASONS - 1;
    }
}
