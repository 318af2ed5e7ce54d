/* Text without stdio: bounded strings that are always NUL-terminated, for core and sys. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct overlap_text {
    char *bytes;
    size_t size; /* at least 1 */
    size_t length;
};

/* strnlen(3), a name that a program may define itself. */
static inline size_t overlap_length(const char *text, size_t most) {
    const char *end = memchr(text, 0, most);
    return end ? (size_t)(end - text) : most;
}

static inline struct overlap_text overlap_text_in(char *bytes, size_t size) {
    bytes[0] = 0;
    return (struct overlap_text){.bytes = bytes, .size = size};
}

/* Text that does not fit is cut off. */
static inline void overlap_text_bytes(struct overlap_text *text, const char *bytes, size_t length) {
    if (length > text->size - 1 - text->length)
        length = text->size - 1 - text->length;
    memcpy(text->bytes + text->length, bytes, length);
    text->length += length;
    text->bytes[text->length] = 0;
}

static inline void overlap_text_add(struct overlap_text *text, const char *string) {
    overlap_text_bytes(text, string, strlen(string));
}

/* Decimal. grouped: with commas as thousands separators. */
static inline void overlap_text_number(struct overlap_text *text, uint64_t number, bool grouped) {
    char digits[32];
    size_t at = sizeof digits;
    for (int count = 0; number || count == 0; count++, number /= 10) {
        if (grouped && count && count % 3 == 0)
            digits[--at] = ',';
        digits[--at] = (char)('0' + number % 10);
    }
    overlap_text_bytes(text, digits + at, sizeof digits - at);
}
