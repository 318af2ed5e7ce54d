/* Names and patterns. A kernel has two names: the driver's, usually mangled, and the plain one. */
#include <string.h>

#include "core.h"

enum { PLAIN_NAME_SIZE = 512 };

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

bool overlap_match_kernel(const struct overlap_view *view, struct overlap_span span, const char *kernel) {
    char plain[PLAIN_NAME_SIZE];
    overlap_plain_name(kernel, plain, sizeof plain);
    return overlap_match_any(view, span, kernel) || overlap_match_any(view, span, plain);
}

/* Families and their patterns, alternating, each NUL-terminated. An array of pointers would need relocations at the
 * start of every process. */
static const char kernel_signs[] =
#define LIBRARY(family, glob)
#define FAMILY(family, glob) #family "\0" glob "\0"
#include "family.def"
#undef FAMILY
#undef LIBRARY
    ;
static const char library_signs[] =
#define LIBRARY(family, glob) #family "\0" glob "\0"
#define FAMILY(family, glob)
#include "family.def"
#undef FAMILY
#undef LIBRARY
    ;

/* Does one of the two names match a pattern of any family? */
static bool has_sign(const char *family, size_t size, const char *name, const char *other) {
    const char *const end = family + size - 1;
    while (family < end) {
        const char *const glob = family + strlen(family) + 1;
        if (overlap_glob_match(glob, name) || overlap_glob_match(glob, other))
            return true;
        family = glob + strlen(glob) + 1;
    }
    return false;
}

OVERLAP_EXPORT uint32_t overlap_is_communication(const char *kernel) {
    char plain[PLAIN_NAME_SIZE];
    overlap_plain_name(kernel, plain, sizeof plain);
    return has_sign(kernel_signs, sizeof kernel_signs, kernel, plain);
}

bool overlap_is_communication_library(const char *basename) {
    return has_sign(library_signs, sizeof library_signs, basename, basename);
}
