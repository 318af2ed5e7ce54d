/* Counters in the statistics page, and the summary line at the end of a process. */
#include <string.h>

#include "../text.h"
#include "core.h"

OVERLAP_EXPORT uint32_t overlap_abi_version(void) {
    return OVERLAP_ABI_VERSION;
}

/* All texts in one struct, found by offset: an array of pointers would need relocations at the start of every
 * process. */
static const struct reason_texts {
#define REASON(name, shapes, sentence) char name[sizeof #name];
#include "reason.def"
#undef REASON
} reason_texts = {
#define REASON(name, shapes, sentence) #name,
#include "reason.def"
#undef REASON
};
static const struct {
    uint16_t name, shapes;
} reasons[] = {
#define REASON(name, shapes, sentence) {offsetof(struct reason_texts, name), shapes},
#include "reason.def"
#undef REASON
};

OVERLAP_EXPORT const char *overlap_reason_name(uint32_t reason) {
    return reason < OVERLAP_REASON_COUNT ? (const char *)&reason_texts + reasons[reason].name : NULL;
}
OVERLAP_EXPORT uint32_t overlap_reason_shapes(uint32_t reason) {
    return reason < OVERLAP_REASON_COUNT ? reasons[reason].shapes : 0;
}

struct overlap_page *overlap_current_page;

struct overlap_shard *overlap_shard_claim(struct overlap_page *page, uint32_t tid, bool (*alive)(uint32_t tid)) {
    /* Free shards first: checking whether an owner is alive takes a system call. */
    for (int used = 0; used < 2; used++) {
        for (uint32_t i = 0; i < OVERLAP_SHARDS; i++) {
            struct overlap_shard *const shard = &page->shards[i];
            uint32_t owner = OVERLAP_RELAXED(shard->owner);
            if (overlap_shard_is_shared(page, shard))
                continue;
            /* A thread that ended leaves its shard, with its counts, to the next thread. */
            if (owner == tid ||
                ((used ? owner != 0 && !alive(owner) : owner == 0) &&
                 __atomic_compare_exchange_n(&shard->owner, &owner, tid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
                return shard;
        }
    }
    return overlap_shard_shared(page);
}

void overlap_shard_add(const struct overlap_page *page, struct overlap_shard *shard, uint64_t *counter) {
    if (overlap_shard_is_shared(page, shard))
        __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
    else
        overlap_add_own(counter, 1);
}

OVERLAP_EXPORT void overlap_page_totals(const struct overlap_page *page, struct overlap_totals *totals) {
    memset(totals, 0, sizeof *totals);
    overlap_row_reasons(page, totals->row_reasons);
    for (uint32_t s = 0; s < OVERLAP_SHARDS; s++) {
        const struct overlap_shard *shard = &page->shards[s];
        for (uint32_t row = 0; row < OVERLAP_ROWS; row++) {
            uint64_t count = OVERLAP_RELAXED(shard->launches[row]);
            totals->rows[row] += count;
            totals->reasons[totals->row_reasons[row]] += count;
        }
        for (int i = 0; i < OVERLAP_COUNTERS; i++)
            totals->counters[i] += OVERLAP_RELAXED(shard->counters[i]);
    }
}

/* Counts the streams that were judged, and those of them that are raised at present. */
static uint32_t count_streams(const struct overlap_page *page, uint32_t *raised) {
    uint32_t judged = 0;
    *raised = 0;
    for (uint32_t i = 0; i < OVERLAP_PAGE_STREAMS; i++) {
        if (__atomic_load_n(&page->streams[i].state, __ATOMIC_ACQUIRE) != 2)
            continue;
        judged++;
        *raised += OVERLAP_RELAXED(page->streams[i].status) == OVERLAP_STREAM_RAISED;
    }
    return judged;
}

/* Do the policies of all devices that have one judge streams, and raise none? */
static bool observes(const struct overlap_page *page) {
    uint32_t devices = 0, observing = 0;
    for (uint32_t i = 0; i < OVERLAP_DEVICES; i++) {
        if (__atomic_load_n(&page->devices[i].state, __ATOMIC_ACQUIRE) != 2 || !page->devices[i].policy[0])
            continue;
        devices++;
        observing += page->devices[i].observes;
    }
    return devices && observing == devices;
}

/* "raised 1 of 2 streams (117 of 160 launches, 8 of 10 graphs)", or what the default would have raised */
static void add_raised(struct overlap_text *text, const struct overlap_page *page, const struct overlap_totals *totals,
                       uint64_t launches) {
    const uint64_t carried = totals->counters[OVERLAP_COUNTER_RAISED];
    const uint64_t created = totals->counters[OVERLAP_COUNTER_STREAMS_CREATED_RAISED];
    const uint64_t graphs = totals->counters[OVERLAP_COUNTER_GRAPHS_RAISED];
    uint32_t raised;
    const uint32_t judged = count_streams(page, &raised);
    overlap_text_add(text, observes(page) ? "observed; the default would raise " : "raised ");
    if (raised) {
        overlap_text_number(text, raised, true);
        overlap_text_add(text, judged == OVERLAP_PAGE_STREAMS ? " of at least " : " of "); /* no record is free */
        overlap_text_number(text, judged, true);
        overlap_text_add(text, judged == 1 ? " stream" : " streams");
    } else if (created) {
        overlap_text_number(text, created, true);
        overlap_text_add(text, created == 1 ? " stream at its creation" : " streams at their creation");
    } else {
        overlap_text_add(text, carried || graphs ? "streams for a time" : "no stream");
    }
    overlap_text_add(text, " (");
    if (launches) {
        overlap_text_number(text, carried, true);
        overlap_text_add(text, " of ");
        overlap_text_number(text, launches, true);
        overlap_text_add(text, launches == 1 ? " launch" : " launches");
    }
    if (graphs || !launches) {
        const uint64_t launched = totals->counters[OVERLAP_COUNTER_GRAPH_LAUNCHES];
        overlap_text_add(text, launches ? ", " : "");
        overlap_text_number(text, graphs, true);
        overlap_text_add(text, " of ");
        overlap_text_number(text, launched, true);
        overlap_text_add(text, launched == 1 ? " graph" : " graphs");
    }
    overlap_text_add(text, "), ");
}

void overlap_page_summary(const struct overlap_page *page, const char *report, char *line, uint64_t size) {
    struct overlap_totals totals;
    overlap_page_totals(page, &totals);
    uint64_t launches = 0, shaped = 0;
    for (uint32_t i = 0; i < OVERLAP_REASONS; i++) {
        launches += totals.reasons[i];
        shaped += overlap_reason_shapes(i) ? totals.reasons[i] : 0;
    }
    struct overlap_text text = overlap_text_in(line, size);
    if (launches == 0 && !totals.counters[OVERLAP_COUNTER_GRAPH_LAUNCHES]) {
        overlap_text_add(&text, "this process opened a GPU, but no kernel launch was seen: it launched none, or a "
                                "preloaded library cannot see its launches (from a library opened with RTLD_DEEPBIND, "
                                "for example)");
    } else {
        add_raised(&text, page, &totals, launches);
        overlap_text_number(&text, shaped, true);
        overlap_text_add(&text, " shaped, ");
        overlap_text_number(&text, totals.counters[OVERLAP_COUNTER_COMMUNICATION], true);
        overlap_text_add(&text, " of communication");
    }
    if (*report) {
        overlap_text_add(&text, "; next: overlap report ");
        overlap_text_add(&text, report);
    } else {
        overlap_text_add(&text, "; next: overlap-run --report DIR ... says why, and what to do");
    }
}
