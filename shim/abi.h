/* Includes overlap_abi.h for C, with the types that it needs, and checks the sizes of its structs. */
#pragma once

#include <stdint.h>

#include "overlap_abi.h"

#define OVERLAP_SIZE_IS(type, bytes) _Static_assert(sizeof(struct type) == (bytes), "the layout of " #type " changed")
OVERLAP_SIZE_IS(overlap_span, 8);
OVERLAP_SIZE_IS(overlap_range, 16);
OVERLAP_SIZE_IS(overlap_footprint, 24);
OVERLAP_SIZE_IS(overlap_table, 32);
OVERLAP_SIZE_IS(overlap_policy, 64);
OVERLAP_SIZE_IS(overlap_rule, 88);
OVERLAP_SIZE_IS(overlap_gpu, 240);
OVERLAP_SIZE_IS(overlap_occupancy, 8);
OVERLAP_SIZE_IS(overlap_launch, 40);
OVERLAP_SIZE_IS(overlap_decision, 40);
OVERLAP_SIZE_IS(overlap_size_range, 16);
OVERLAP_SIZE_IS(overlap_plan, 552);
OVERLAP_SIZE_IS(overlap_shard, 2752);
OVERLAP_SIZE_IS(overlap_row, 288);
OVERLAP_SIZE_IS(overlap_page_rule, 16);
OVERLAP_SIZE_IS(overlap_device, 192);
OVERLAP_SIZE_IS(overlap_page_stream, 88);
OVERLAP_SIZE_IS(overlap_page, 200704);
OVERLAP_SIZE_IS(overlap_totals, 4224);
_Static_assert(sizeof(((struct overlap_shard *)0)->launches) == sizeof(uint64_t[OVERLAP_ROWS]), "launches");
_Static_assert(sizeof(((struct overlap_shard *)0)->counters) == sizeof(uint64_t[OVERLAP_COUNTERS]), "counters");
_Static_assert(sizeof(((struct overlap_page *)0)->shards) == OVERLAP_SHARDS * sizeof(struct overlap_shard), "shards");
_Static_assert(sizeof(((struct overlap_page *)0)->streams) == OVERLAP_PAGE_STREAMS * sizeof(struct overlap_page_stream),
               "streams");
_Static_assert(sizeof(((struct overlap_page *)0)->devices) == OVERLAP_DEVICES * sizeof(struct overlap_device),
               "devices");
_Static_assert(sizeof(((struct overlap_page *)0)->rows) == OVERLAP_ROWS * sizeof(struct overlap_row), "rows");
_Static_assert(sizeof(((struct overlap_page *)0)->rules) == OVERLAP_RULES * sizeof(struct overlap_page_rule) &&
                   OVERLAP_TABLE_MAX_SIZE / sizeof(struct overlap_rule) <= OVERLAP_RULES,
               "rules");
_Static_assert(sizeof(((struct overlap_totals *)0)->row_reasons) == sizeof(uint32_t[OVERLAP_ROWS]), "totals");

/* Exports a symbol; all others are hidden (-fvisibility=hidden). */
#define OVERLAP_EXPORT __attribute__((visibility("default")))

/* The page of this process. NULL until overlap_page_prepare() succeeds; then a private page until one in a file
 * replaces it. Defined in core, replaced by sys. */
extern struct overlap_page *overlap_current_page;

/* Writes the summary line of the process, without prefix and newline. report: the argument of `overlap report`, or
 * empty. size: of `line` in bytes, at least 1. */
void overlap_page_summary(const struct overlap_page *page, const char *report, char *line, uint64_t size);
