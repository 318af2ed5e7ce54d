/* What kernels cost: a YAML list of one flow mapping per line, read strictly.
 *
 *   - {kernel: "gemm*", block_us: 10, spread: 0.05, gain: 1.5, bytes_per_block: 100000, sharing: 0.2}
 *   - {event_us: 2}
 *
 * First match wins. Comments and blank lines are allowed; anything else is refused with its line, because a
 * cost that is silently not applied makes every number wrong.
 */
#include <ctype.h>
#include <fnmatch.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

struct row {
    char *glob;
    struct cost cost;
    double event_us; /* below 0: not given */
    int keys;
};

static const struct cost USUAL = {.block_us = 10, .spread = 0.05, .gain = 1.5, .sharing = 0.2};
static struct row *rows;
static size_t row_count;
static double event_us;

/* The last identifier of an Itanium name: _ZN2at4gemmEPf -> gemm. Returns its length, 0 if there is none. */
static size_t plain_name(const char *name, const char **start) {
    if (strncmp(name, "_Z", 2) != 0)
        return 0;
    const char *at = name + 2;
    const bool nested = *at == 'N';
    if (nested)
        at++;
    size_t found = 0;
    while (isdigit((unsigned char)*at)) {
        char *end;
        const unsigned long length = strtoul(at, &end, 10);
        if (length == 0 || length > strlen(end))
            break;
        *start = end;
        found = length;
        at = end + length;
        if (!nested)
            break;
    }
    return found;
}

bool sim_glob(const char *pattern, const char *text) {
    if (fnmatch(pattern, text, 0) == 0)
        return true;
    const char *start = NULL;
    const size_t length = plain_name(text, &start);
    char plain[512];
    if (length == 0 || length >= sizeof plain)
        return false;
    memcpy(plain, start, length);
    plain[length] = '\0';
    return fnmatch(pattern, plain, 0) == 0;
}

static const char *skip(const char *at) {
    return at + strspn(at, " \t");
}

static const char *read_text(const char *at, char *out, size_t room) {
    const char quote = *at == '"' || *at == '\'' ? *at++ : '\0';
    const size_t length = quote != '\0' ? strcspn(at, quote == '"' ? "\"\n" : "'\n") : strcspn(at, ",} \t\n");
    if (length == 0 || length >= room || (quote != '\0' && at[length] != quote))
        return NULL;
    memcpy(out, at, length);
    out[length] = '\0';
    return at + length + (quote != '\0' ? 1 : 0);
}

/* What a row may say in numbers, and from which to which. */
static const struct {
    const char *key;
    double least, most;
    size_t offset;
} numbers[] = {
    {"block_us", 1e-6, 1e12, offsetof(struct row, cost.block_us)},
    {"spread", 0, 0.999999, offsetof(struct row, cost.spread)},
    {"gain", 1, 1e12, offsetof(struct row, cost.gain)},
    {"bytes_per_block", 0, 1e12, offsetof(struct row, cost.bytes_per_block)},
    {"sharing", 0, 100, offsetof(struct row, cost.sharing)},
    {"event_us", 0, 1000, offsetof(struct row, event_us)},
};

/* NULL, or what is wrong. */
static const char *set_number(struct row *row, const char *key, const char *value) {
    static char problem[128];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char *end;
        const double number = strtod(value, &end);
        if (strcmp(key, numbers[i].key) != 0)
            continue;
        snprintf(problem, sizeof problem, "%s is a number from %g to %g", key, numbers[i].least, numbers[i].most);
        if (*end != '\0' || end == value || !(number >= numbers[i].least) || number > numbers[i].most)
            return problem;
        memcpy((char *)row + numbers[i].offset, &number, sizeof number);
        return NULL;
    }
    return "unknown key; known: kernel block_us spread gain bytes_per_block sharing event_us";
}

/* `KEY: VALUE` at `*at`, which is left behind it, or where the mistake is. NULL or what is wrong. */
static const char *read_pair(const char **at, struct row *row) {
    char key[64], value[512];
    const size_t length = strcspn(*at, ":,} \t\n");
    if (length == 0 || length >= sizeof key)
        return "a key is missing";
    memcpy(key, *at, length);
    key[length] = '\0';
    *at = skip(*at + length);
    if (**at != ':')
        return "`:` is missing after a key";
    if (*++*at != ' ')
        return "a space is missing after `:`";
    *at = skip(*at);
    const char *const end = read_text(*at, value, sizeof value);
    if (end == NULL)
        return "a value is missing or its quote is not closed";
    if (strcmp(key, "kernel") == 0) {
        free(row->glob);
        row->glob = sim_text(value);
    } else {
        const char *const problem = set_number(row, key, value);
        if (problem != NULL)
            return problem;
    }
    *at = end;
    row->keys++;
    return NULL;
}

/* One line; NULL or what is wrong with it, at `*at`. */
static const char *read_row(const char **at, struct row *row) {
    *at = skip(*at);
    const char *const start = *at;
    if (*start != '-' || *skip(start + 1) != '{')
        return "a line must begin with `- {`";
    const char *const brace = *at = skip(start + 1);
    do {
        *at = skip(*at + 1);
        const char *const problem = read_pair(at, row);
        if (problem != NULL)
            return problem;
        *at = skip(*at);
    } while (**at == ',');
    if (**at != '}')
        return "`,` or `}` expected";
    *at = skip(*at + 1);
    if (**at != '\0' && **at != '\n' && **at != '\r' && **at != '#')
        return "something follows the closing `}`";
    *at = brace;
    if (row->event_us >= 0)
        return row->keys == 1 ? NULL : "event_us stands in a row of its own";
    return row->glob != NULL ? NULL : "`kernel` is missing";
}

static void add_row(const struct row *row) {
    if (row->event_us >= 0) {
        event_us = row->event_us;
        return;
    }
    rows = sim_grow(rows, row_count + 1, sizeof *rows);
    rows[row_count++] = *row;
}

CUresult sim_costs_read(const char *path) {
    FILE *const file = fopen(path, "re");
    if (file == NULL) {
        sim_say("SIMGPU_COSTS: %s cannot be read: %m", path);
        return CUDA_ERROR_INVALID_VALUE;
    }
    row_count = 0;
    char line[2048];
    CUresult result = CUDA_SUCCESS;
    for (int number = 1; result == CUDA_SUCCESS && fgets(line, sizeof line, file) != NULL; number++) {
        const char *const start = skip(line);
        if (*start == '\0' || *start == '\n' || *start == '\r' || *start == '#')
            continue;
        struct row row = {.cost = USUAL, .event_us = -1};
        const char *at = line;
        const char *const problem = read_row(&at, &row);
        if (problem != NULL) {
            sim_say("%s:%d:%d: %s", path, number, (int)(at - line) + 1, problem);
            free(row.glob);
            result = CUDA_ERROR_INVALID_VALUE;
        } else
            add_row(&row);
    }
    fclose(file);
    return result;
}

struct cost sim_cost_of(const char *kernel) {
    for (size_t i = 0; i < row_count; i++)
        if (sim_glob(rows[i].glob, kernel))
            return rows[i].cost;
    return USUAL;
}

double sim_event_us(void) {
    return event_us;
}
