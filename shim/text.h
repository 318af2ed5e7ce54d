/* Text without stdio: bounded strings that are always NUL-terminated, for core and sys; and hash functions. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct overlap_text {
    char *bytes;
    size_t size; /* at least 1 */
    size_t length;
};

/* As strnlen(3), which a program may define itself. */
static inline size_t overlap_length(const char *text, size_t most) {
    const char *end = memchr(text, 0, most);
    return end ? (size_t)(end - text) : most;
}

/* FNV-1a, begun with OVERLAP_FNV. */
#define OVERLAP_FNV UINT64_C(0xCBF29CE484222325)
static inline uint64_t overlap_fnv(uint64_t hash, const void *bytes, size_t size) {
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001B3);
    return hash;
}

#define OVERLAP_FACTOR UINT64_C(0x9E3779B97F4A7C15)
/* The same by words, for what is hashed often or is long. */
static inline uint64_t overlap_hash(uint64_t hash, const void *bytes, size_t size) {
    hash += size;
    for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        if (size - at >= sizeof word)
            memcpy(&word, (const char *)bytes + at, sizeof word);
        else
            memcpy(&word, (const char *)bytes + at, size - at);
        hash = (hash ^ word) * OVERLAP_FACTOR;
        hash ^= hash >> 32;
    }
    return hash;
}

/* Returns a hash of 1 to 32 bits, on which all bits of the key have an effect. Handles lie at equal distances, which
 * the multiplication breaks up. */
static inline uint32_t overlap_spread(uint64_t key, uint32_t bits) {
    return (uint32_t)(key * OVERLAP_FACTOR >> (64 - bits));
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
