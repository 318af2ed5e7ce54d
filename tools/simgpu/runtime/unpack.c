/* Fat binaries: which entries are compressed, and the same one without. */
#include <stdlib.h>
#include <string.h>

#include "../zstd/zstd.h"
#include "unpack.h"

enum { FATBIN_MAGIC = 0xba55ed50u, HEADER = 16, ENTRY = 64, FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000 };
static const size_t LARGEST = (size_t)1 << 30;

/* Of an entry (after fatbin headers of CUDA 12 and 13): where these fields are. */
enum { AT_HEAD = 4, AT_STORED = 8, AT_PACKED = 16, AT_FLAGS = 40, AT_PLAIN = 56 };

static uint64_t get(const uint8_t *at, size_t bytes) {
    uint64_t value = 0;
    memcpy(&value, at, bytes);
    return value;
}

struct entry {
    const uint8_t *at;
    size_t head, stored, packed, plain;
    uint64_t flags;
    bool compressed;
};

/* The entry at this place; false behind the last one, or where it is broken. */
static bool entry_at(const uint8_t *at, const uint8_t *end, struct entry *entry) {
    if (end - at < ENTRY)
        return false;
    *entry = (struct entry){
        .at = at,
        .head = (size_t)get(at + AT_HEAD, 4),
        .stored = (size_t)get(at + AT_STORED, 8),
        .packed = (size_t)get(at + AT_PACKED, 4),
        .plain = (size_t)get(at + AT_PLAIN, 8),
        .flags = get(at + AT_FLAGS, 8),
    };
    entry->compressed = (entry->flags & (FLAG_LZ4 | FLAG_ZSTD)) != 0;
    const size_t room = (size_t)(end - at);
    return entry->head >= ENTRY && entry->head <= room && entry->stored <= room - entry->head &&
           entry->packed <= entry->stored && (!entry->compressed || entry->plain <= LARGEST);
}

static size_t padded(size_t bytes) {
    return (bytes + 8) & ~(size_t)7; /* a text ends with at least one zero */
}

/* Appends the entry, unpacked if that can be done. */
static uint8_t *append(uint8_t *to, const struct entry *entry) {
    const uint8_t *const data = entry->at + entry->head;
    memcpy(to, entry->at, entry->head);
    uint8_t *const body = to + entry->head;
    if (entry->compressed && ((entry->flags & FLAG_ZSTD) != 0 ? rt_zstd(data, entry->packed, body, entry->plain)
                                                              : rt_lz4(data, entry->packed, body, entry->plain))) {
        const uint64_t stored = padded(entry->plain), flags = entry->flags & ~(uint64_t)(FLAG_LZ4 | FLAG_ZSTD);
        memset(body + entry->plain, 0, (size_t)stored - entry->plain);
        memset(to + AT_PACKED, 0, 4);
        memset(to + AT_PLAIN, 0, 8);
        memcpy(to + AT_STORED, &stored, 8);
        memcpy(to + AT_FLAGS, &flags, 8);
        return body + stored;
    }
    memcpy(body, data, entry->stored);
    return body + entry->stored;
}

bool rt_zstd(const uint8_t *from, size_t bytes, uint8_t *to, size_t room) {
    struct sim_zstd *const decoder = malloc(sizeof *decoder);
    const bool good = decoder && sim_zstd_read(decoder, from, bytes, to, room);
    free(decoder);
    return good;
}

void *rt_unpack(const void *image) {
    const uint8_t *const from = image;
    struct entry entry;
    size_t room = HEADER;
    bool any = false;
    if (get(from, 4) != FATBIN_MAGIC || get(from + 6, 2) != HEADER)
        return NULL;
    const uint8_t *const end = from + HEADER + get(from + 8, 8);
    for (const uint8_t *at = from + HEADER; entry_at(at, end, &entry); at += entry.head + entry.stored) {
        room += entry.head + entry.stored + (entry.compressed ? padded(entry.plain) : 0);
        any = any || entry.compressed;
    }
    uint8_t *const made = any ? malloc(room) : NULL;
    if (made == NULL)
        return NULL;
    uint8_t *to = made + HEADER;
    memcpy(made, from, HEADER);
    for (const uint8_t *at = from + HEADER; entry_at(at, end, &entry); at += entry.head + entry.stored)
        to = append(to, &entry);
    const uint64_t total = (uint64_t)(to - made) - HEADER;
    memcpy(made + 8, &total, sizeof total);
    return made;
}

/* One LZ4 block: runs of literals, each followed by a copy of what came before. */
static bool lz4_length(const uint8_t **at, const uint8_t *end, size_t *length) {
    uint8_t more = 255;
    if (*length != 15)
        return true;
    while (more == 255) {
        if (*at == end)
            return false;
        more = *(*at)++;
        *length += more;
    }
    return true;
}

bool rt_lz4(const uint8_t *from, size_t bytes, uint8_t *to, size_t room) {
    const uint8_t *at = from, *const end = from + bytes;
    size_t done = 0;
    while (at < end) {
        const uint8_t token = *at++;
        size_t literals = token >> 4, match = token & 15;
        if (!lz4_length(&at, end, &literals) || literals > (size_t)(end - at) || literals > room - done)
            return false;
        memcpy(to + done, at, literals);
        at += literals;
        done += literals;
        if (done == room || end - at < 2)
            break; /* the last run has no copy */
        const size_t offset = (size_t)get(at, 2);
        at += 2;
        if (!lz4_length(&at, end, &match) || offset == 0 || offset > done || match + 4 > room - done)
            return false;
        for (match += 4; match > 0; match--, done++)
            to[done] = to[done - offset];
    }
    return done == room;
}
