/* Names and patterns. A kernel has two names: the driver's, usually mangled, and the plain one. */
#include <string.h>

#include "core.h"

/* Matches one character against a set such as [a-z] or [!_], and sets *next to the character after the set. `[` without
 * a closing bracket matches itself. */
static bool set_matches(const char *set, char c, const char **next) {
    const char *p = set + 1;
    bool negated = *p == '!';
    bool matched = false;
    if (negated)
        p++;
    const char *first = p;
    for (; *p && (*p != ']' || p == first); p++) {
        if (p[1] == '-' && p[2] && p[2] != ']') {
            matched |= (unsigned char)p[0] <= (unsigned char)c && (unsigned char)c <= (unsigned char)p[2];
            p += 2;
        } else {
            matched |= *p == c;
        }
    }
    if (*p != ']') {
        *next = set + 1;
        return c == '[';
    }
    *next = p + 1;
    return matched != negated;
}

OVERLAP_EXPORT uint32_t overlap_glob_match(const char *pattern, const char *name) {
    const char *star = NULL, *retry = NULL; /* where to resume when the last `*` takes one more character */
    while (*name) {
        const char *next = pattern + 1;
        /* NOLINTNEXTLINE(clang-analyzer-security.ArrayBound): the analyzer does not know that strings end */
        if (*pattern == '*') {
            star = ++pattern;
            retry = name;
            continue;
        }
        if (*pattern &&
            (*pattern == '?' || (*pattern == '[' ? set_matches(pattern, *name, &next) : *pattern == *name))) {
            pattern = next;
            name++;
            continue;
        }
        if (!star)
            return 0;
        pattern = star;
        name = ++retry;
    }
    /* NOLINTNEXTLINE(clang-analyzer-security.ArrayBound): the analyzer does not know that strings end */
    while (*pattern == '*')
        pattern++;
    return *pattern == 0;
}

/* Itanium C++ ABI: _Z, then N for a nested name, then pairs of <length><identifier>. The search ends at template
 * arguments; the identifier in front of them is the name. */
OVERLAP_EXPORT uint32_t overlap_plain_name(const char *kernel, char *plain, uint32_t size) {
    const char *name = kernel;
    size_t length = strlen(kernel);
    if (kernel[0] == '_' && kernel[1] == 'Z') {
        const char *p = kernel + 2, *end = kernel + length;
        const bool nested = *p == 'N'; /* else only the first identifier is the name */
        while (*p == 'N' || *p == 'L' || *p == 'K' || *p == 'V' || *p == 'r')
            p++;
        while (p < end) {
            if (*p == 'L') { /* internal linkage */
                p++;
                continue;
            }
            if (*p == 'S' && p[1] == 't') { /* std:: */
                p += 2;
                continue;
            }
            if (*p < '0' || *p > '9')
                break;
            size_t count = 0;
            while (*p >= '0' && *p <= '9' && count < (size_t)(end - p))
                count = count * 10 + (size_t)(*p++ - '0');
            if (count == 0 || count > (size_t)(end - p))
                break;
            name = p;
            length = count;
            p += count;
            if (!nested)
                break;
        }
    }
    if (size == 0)
        return 0;
    if (length > size - 1)
        length = size - 1;
    memcpy(plain, name, length);
    plain[length] = 0;
    return (uint32_t)length + 1;
}

bool overlap_match_any(const struct overlap_view *view, struct overlap_span span, const char *text) {
    for (uint32_t i = 0; i < span.count; i++)
        if (overlap_glob_match(view->strings + view->patterns[span.first + i], text))
            return true;
    return false;
}

/* ---- Both names of a kernel against many patterns ----
 *
 * Nearly every pattern fails, and a pattern that begins with `*` fails only after it has looked at every character. So the
 * pairs of neighbouring characters of a name are noted once, and a pattern is tried only if its first pairs occur. The
 * plain name is a part of the driver's. */

enum { PLAIN_NAME_SIZE = 512, PAIRS = 1024 };

struct names {
    const char *driver;
    char plain[PLAIN_NAME_SIZE];
    bool pairs[PAIRS];
};

static uint32_t pair_at(const char *text) {
    return ((uint32_t)(unsigned char)text[0] * 37 + (unsigned char)text[1]) % PAIRS;
}

static void names_of(struct names *names, const char *kernel) {
    names->driver = kernel;
    overlap_plain_name(kernel, names->plain, sizeof names->plain);
    memset(names->pairs, 0, sizeof names->pairs);
    for (const char *c = kernel; *c; c++)
        names->pairs[pair_at(c)] = true;
}

static bool is_literal(char c) {
    return c && c != '*' && c != '?' && c != '[';
}

/* Inline: it nearly always says no. */
static inline __attribute__((always_inline)) bool may_match(const struct names *names, const char *pattern) {
    const char first = pattern[0];
    if (first != '*')
        return first == names->driver[0] || first == names->plain[0] || !is_literal(first);
    return !is_literal(pattern[1]) || !is_literal(pattern[2]) ||
           (names->pairs[pair_at(pattern + 1)] && (!is_literal(pattern[3]) || names->pairs[pair_at(pattern + 2)]));
}

static bool matches(const struct names *names, const char *pattern) {
    return may_match(names, pattern) &&
           (overlap_glob_match(pattern, names->driver) || overlap_glob_match(pattern, names->plain));
}

static bool matches_any(const struct names *names, const struct overlap_view *view, struct overlap_span span) {
    for (uint32_t i = 0; i < span.count; i++)
        if (matches(names, view->strings + view->patterns[span.first + i]))
            return true;
    return false;
}

/* Patterns of the families. An array of pointers would need relocations at the start of every process. */
typedef char sign[44];
static const sign kernel_signs[] = {
#define LIBRARY(family, glob)
#define FAMILY(family, glob) glob,
#include "family.def"
#undef FAMILY
#undef LIBRARY
};
static const sign library_signs[] = {
#define LIBRARY(family, glob) glob,
#define FAMILY(family, glob)
#include "family.def"
#undef FAMILY
#undef LIBRARY
};

static bool is_of_family(const struct names *names) {
    for (size_t i = 0; i < sizeof kernel_signs / sizeof *kernel_signs; i++)
        if (may_match(names, kernel_signs[i]) && matches(names, kernel_signs[i]))
            return true;
    return false;
}

OVERLAP_EXPORT uint32_t overlap_is_communication(const char *kernel) {
    struct names names;
    names_of(&names, kernel);
    return is_of_family(&names);
}

bool overlap_is_communication_library(const char *basename) {
    for (size_t i = 0; i < sizeof library_signs / sizeof *library_signs; i++)
        if (overlap_glob_match(library_signs[i], basename))
            return true;
    return false;
}

void overlap_match_kernel(const struct overlap_view *view, uint32_t policy, const char *kernel,
                          struct overlap_matches *found) {
    const struct overlap_policy *const p = policy == OVERLAP_NO_POLICY ? NULL : &view->policies[policy];
    struct names names;
    names_of(&names, kernel);
    *found =
        (struct overlap_matches){.communicates = is_of_family(&names), .one_rank = matches(&names, "*oneRankReduce*")};
    if (!p)
        return;
    found->communicates = found->communicates || matches_any(&names, view, p->kernels);
    found->fixed_size = matches_any(&names, view, p->fixed_size);
    for (uint32_t i = 0; i < p->rule_count; i++) {
        const struct overlap_span kernels = view->rules[p->first_rule + i].kernels;
        if (!kernels.count || matches_any(&names, view, kernels))
            found->rules[i / 64] |= UINT64_C(1) << i % 64;
    }
}
