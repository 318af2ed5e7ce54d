/* The sums of a statistics page that somebody else wrote, and the line about it. The bytes (fuzz.h) are changes of an empty page:
 * where, in steps of 8, and a number. Accepted: the page adds up.
 */
#include "../../shim/core/core.h"

#define FUZZ_MOST (1 << 16)
#include "fuzz.h"

static void expect(bool true_of_all) {
    if (!true_of_all)
        abort();
}

static bool fuzz_one(const uint8_t *data, size_t size) {
    enum { CHANGE = 12, MOST = 4096 };
    static struct overlap_totals totals;
    struct overlap_page *page = calloc(1, sizeof *page); /* of this very size, so that one byte behind it is noticed */
    char line[512], whole[64] = "";
    uint64_t reasons = 0, rows = 0;
    expect(page);
    for (size_t i = 0; i < size / CHANGE && i < MOST; i++) {
        uint32_t place;
        memcpy(&place, data + i * CHANGE, sizeof place);
        memcpy((uint8_t *)page + place % (sizeof *page / 8) * 8, data + i * CHANGE + sizeof place, 8);
    }
    overlap_page_totals(page, &totals);
    for (int i = 0; i < OVERLAP_REASONS; i++)
        reasons += totals.reasons[i];
    for (int i = 0; i < OVERLAP_ROWS; i++) {
        rows += totals.rows[i];
        expect(totals.row_reasons[i] < OVERLAP_REASONS);
    }
    expect(reasons == rows);
    memcpy(whole, page->reserved_run, sizeof page->reserved_run);
    overlap_page_summary(page, whole, line, sizeof line);
    expect(strlen(line) < sizeof line);
    free(page);
    return reasons != 0;
}

static void fuzz_repair(uint8_t *data, size_t size, size_t changed) {
    (void)data, (void)size, (void)changed;
}

static bool fuzz_announce(uint8_t *data, size_t size) {
    (void)data, (void)size;
    return false;
}
