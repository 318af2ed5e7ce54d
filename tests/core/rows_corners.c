/* What rows_stress.c does not reach: names, other reasons, a page that is full, damaged.
 * rows_corners names | reasons | every | full | late | damaged */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

static struct overlap_page page;
static struct overlap_row_index rows;
static struct overlap_totals totals;
static const char *library = "libx.so";
static uint32_t rule = 7, registers = 32, static_shared = 0;

static uint32_t claim(const char *kernel, uint32_t dynamic, uint32_t reason) {
    const struct overlap_row facts = {.rule = rule,
                                      .device = 1,
                                      .launched = dynamic + 5,
                                      .footprint = {.threads = 256,
                                                    .registers = registers,
                                                    .static_shared = static_shared,
                                                    .dynamic_shared = dynamic},
                                      .blocks = 99,
                                      .resident_blocks = 8};
    const uint64_t hash = overlap_hash(OVERLAP_FNV, kernel, strlen(kernel));
    return overlap_row_claim(&rows, &page, &facts, hash, kernel, library, reason);
}

static void print(uint32_t row) {
    const struct overlap_row *r = &page.rows[row];
    overlap_page_totals(&page, &totals);
    printf("%u %s %s '%s' '%s' '%s' %u %u %u %u\n", row, overlap_reason_name(totals.row_reasons[row]),
           r->state == 2 ? "record" : "-", (const char *)r->kernel, (const char *)r->plain, (const char *)r->library,
           r->rule, r->footprint.dynamic_shared, r->launched, (uint32_t)r->blocks);
}

static void names(void) {
    char name[400];
    static const size_t lengths[] = {0, 1, 110, 111, 112, 300};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t at = 0; at < lengths[i]; at++)
            name[at] = (char)('a' + at % 26);
        name[lengths[i]] = 0;
        print(claim(name, 0, OVERLAP_REASON_no_rule));
    }
    name[150] = 'X'; /* in the middle, which is not shown */
    print(claim(name, 0, OVERLAP_REASON_no_rule));
    print(claim("_ZN3abc4gemmEPf", 0, OVERLAP_REASON_no_rule));
    print(claim("", 0, OVERLAP_REASON_no_rule));
}

static void reasons(void) {
    const uint32_t small = claim("k", 0, OVERLAP_REASON_shaped);
    const uint32_t bigger = claim("k", 16, OVERLAP_REASON_shaped);
    print(small);
    print(bigger);
    print(claim("k", 0, OVERLAP_REASON_raised));
    const uint32_t refused = overlap_row_of_reason(&rows, &page, small, OVERLAP_REASON_refused);
    print(refused);
    print(overlap_row_of_reason(&rows, &page, bigger, OVERLAP_REASON_refused));
    print(overlap_row_of_reason(&rows, &page, OVERLAP_REASON_one_wave, OVERLAP_REASON_refused)); /* of no kernel */
    print(claim("k", 0, OVERLAP_REASON_refused));                                                /* found again */
    print(overlap_row_of_reason(&rows, &page, refused, OVERLAP_REASON_shaped));                  /* and back */
    registers = 40;
    print(claim("k", 0, OVERLAP_REASON_shaped));
    static_shared = 64;
    print(claim("k", 0, OVERLAP_REASON_shaped));
    library = "liby.so";
    print(claim("k", 0, OVERLAP_REASON_shaped));
}

/* Every reason of one kernel, and every reason reached from the row of another. */
static void every(void) {
    for (uint32_t reason = 0; reason < OVERLAP_REASON_COUNT; reason++)
        print(claim("k", 0, reason));
    for (uint32_t reason = 0; reason < OVERLAP_REASON_COUNT; reason++)
        print(overlap_row_of_reason(&rows, &page, OVERLAP_REASONS, reason));
}

static uint32_t fill(const char *prefix, uint32_t reason, uint32_t *last) {
    char name[16];
    for (uint32_t count = 0;; count++) {
        snprintf(name, sizeof name, "%s%u", prefix, count);
        const uint32_t row = claim(name, 0, reason);
        if (row < OVERLAP_REASONS || !page.rows[row].kernel[0])
            return count;
        *last = row;
    }
}

static void full(void) {
    uint32_t last = 0, count = fill("before", OVERLAP_REASON_no_communication_seen, &last);
    printf("%u %u ", count, last);
    count = fill("k", OVERLAP_REASON_shaped, &last);
    printf("%u %u\n", count, last);
    print(claim("new", 0, OVERLAP_REASON_shaped));
    print(claim("newer", 16, OVERLAP_REASON_shaped)); /* the same */
    print(claim("new", 0, OVERLAP_REASON_one_wave));
    print(overlap_row_of_reason(&rows, &page, last, OVERLAP_REASON_refused));
    print(claim("new", 0, OVERLAP_REASON_refused)); /* the same */
    print(claim("k0", 0, OVERLAP_REASON_shaped));   /* as before */
    print(claim("nccl", 0, OVERLAP_REASON_communication));
    rule = 8;
    print(claim("k0", 0, OVERLAP_REASON_shaped));
    uint32_t rules = 0;
    for (uint32_t row = last; row >= OVERLAP_REASONS; rules++, rule++) {
        row = claim("k0", 0, OVERLAP_REASON_shaped);
        last = row >= OVERLAP_REASONS ? row : last;
    }
    printf("%u\n", rules);
    print(last);
    print(claim("k0", 0, OVERLAP_REASON_shaped)); /* bare */
    print(claim("nccl1", 0, OVERLAP_REASON_communication));
    print(overlap_row_of_reason(&rows, &page, last, OVERLAP_REASON_refused));
    rule = 7;
    print(claim("nccl", 0, OVERLAP_REASON_communication)); /* as before */
}

/* Communication that comes when computation has taken all that it may; a rule of its own for each kernel. */
static void late(void) {
    uint32_t last = 0, count;
    fill("k", OVERLAP_REASON_no_rule, &last);
    count = fill("nccl", OVERLAP_REASON_communication, &last);
    printf("%u %u\n", count, last);
    for (uint32_t more = 0; more < 60; more++) {
        rule++;
        print(claim("k", 0, OVERLAP_REASON_no_rule));
    }
}

static void damaged(void) {
    memset(page.rows, 0xFF, sizeof page.rows);
    for (uint64_t reason = 0; reason < 64; reason++)
        page.rows[OVERLAP_REASONS + reason].key = reason | (reason % 2) << 63;
    overlap_page_totals(&page, &totals);
    for (int row = 0; row < OVERLAP_ROWS; row++)
        printf("%u ", totals.row_reasons[row]);
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "names") == 0)
        names();
    else if (strcmp(argv[1], "reasons") == 0)
        reasons();
    else if (strcmp(argv[1], "every") == 0)
        every();
    else if (strcmp(argv[1], "full") == 0)
        full();
    else if (strcmp(argv[1], "late") == 0)
        late();
    else if (strcmp(argv[1], "damaged") == 0)
        damaged();
    return 0;
}
