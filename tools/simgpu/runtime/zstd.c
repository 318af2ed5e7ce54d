/* Zstandard frames (RFC 8878), as far as they need no dictionary: blocks, literals, sequences. */
#include <stdlib.h>
#include <string.h>

#include "unpack.h"

enum { MAGIC_BYTES = 4, LARGEST_BLOCK = 128 << 10, LENGTHS = 0, OFFSETS = 1, MATCHES = 2 };

struct decoder {
    const uint8_t *at, *end; /* what is left of the input */
    uint8_t *to;
    size_t done, room;
    size_t last[3]; /* offsets of matches */
    struct rt_huffman huffman;
    struct rt_fse table[3];
    bool known[3];
    uint8_t literals[LARGEST_BLOCK];
    size_t literal_count;
};

/* How the three kinds of codes begin, where nothing else is said (RFC 8878, 3.1.1.3.2.2), and their limits. */
static const int16_t default_lengths[] = {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
                                          2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
static const int16_t default_offsets[] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
                                          1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
static const int16_t default_matches[] = {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                          1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                          1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};
static const struct {
    const int16_t *frequency;
    int symbols, log, most_log, most_symbols;
} kinds[] = {
    {default_lengths, 36, 6, 9, 36},
    {default_offsets, 29, 5, 8, 32},
    {default_matches, 53, 6, 9, 53},
};
/* How many bits follow a code; where its range begins is the sum of what is before. */
static const uint8_t length_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  1,  1,
                                      1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static const uint8_t match_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  0, 0,
                                     0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  1,  1,  1, 1,
                                     2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static size_t value_of(struct rt_bits *bits, const uint8_t *extra, int code, size_t first) {
    for (int i = 0; i < code; i++)
        first += (size_t)1 << extra[i];
    return first + (size_t)rt_bits_take(bits, extra[code]);
}

static uint32_t little(const uint8_t *at, int bytes) {
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint32_t)at[i] << (8 * i);
    return value;
}

static bool four_streams(struct decoder *decoder, const uint8_t *at, size_t bytes) {
    enum { JUMPS = 6 };
    if (bytes < JUMPS)
        return false;
    const uint8_t *stream = at + JUMPS, *const end = at + bytes;
    const size_t each = (decoder->literal_count + 3) / 4;
    for (int i = 0; i < 4; i++) {
        const size_t length = i < 3 ? little(at + 2 * i, 2) : (size_t)(end - stream);
        const size_t first = each * (size_t)i;
        if (length > (size_t)(end - stream) || first > decoder->literal_count)
            return false;
        const size_t room = i < 3 && each < decoder->literal_count - first ? each : decoder->literal_count - first;
        if (!rt_huffman_decode(&decoder->huffman, stream, length, decoder->literals + first, room))
            return false;
        stream += length;
    }
    return true;
}

/* Literals: as they are, one byte over and over, or coded with a tree of their own or the last one. */
static bool read_literals(struct decoder *decoder, const uint8_t **at, const uint8_t *end) {
    enum { RAW, REPEATED, CODED, SAME_TREE };
    static const int plain_header[] = {1, 2, 1, 3}, coded_header[] = {3, 3, 4, 5}, coded_bits[] = {10, 10, 14, 18};
    if (*at == end)
        return false;
    const int type = **at & 3, form = **at >> 2 & 3;
    const int header = type <= REPEATED ? plain_header[form] : coded_header[form];
    if (end - *at < header)
        return false;
    uint64_t word = 0;
    for (int i = 0; i < header; i++)
        word |= (uint64_t)(*at)[i] << (8 * i);
    *at += header;
    const uint64_t mask = (1u << coded_bits[form]) - 1;
    const size_t count = (size_t)(type > REPEATED ? word >> 4 & mask : form % 2 ? word >> 4 : word >> 3);
    size_t packed = type == RAW ? count : type == REPEATED ? 1 : (size_t)(word >> (4 + coded_bits[form]) & mask);
    if (count > LARGEST_BLOCK || packed > (size_t)(end - *at))
        return false;
    const uint8_t *data = *at;
    *at += packed;
    decoder->literal_count = count;
    if (type == RAW)
        memcpy(decoder->literals, data, count);
    else if (type == REPEATED)
        memset(decoder->literals, *data, count);
    if (type <= REPEATED)
        return true;
    if (type == CODED) {
        const size_t used = rt_huffman_read(&decoder->huffman, data, packed);
        if (used == 0)
            return false;
        data += used;
        packed -= used;
    }
    return form == 0 ? rt_huffman_decode(&decoder->huffman, data, packed, decoder->literals, count)
                     : four_streams(decoder, data, packed);
}

static bool read_table(struct decoder *decoder, int kind, int mode, const uint8_t **at, const uint8_t *end) {
    enum { DEFAULT, ONE_SYMBOL, CODED, SAME };
    struct rt_fse *const table = &decoder->table[kind];
    const size_t left = (size_t)(end - *at);
    size_t used = 0;
    bool good = true;
    if (mode == DEFAULT)
        good = rt_fse_build(table, kinds[kind].frequency, kinds[kind].symbols, kinds[kind].log);
    else if (mode == ONE_SYMBOL) {
        used = 1;
        good = left > 0 && **at < kinds[kind].most_symbols;
        if (good)
            *table = (struct rt_fse){.symbol = {**at}};
    } else if (mode == CODED) {
        used = rt_fse_read(table, *at, left, kinds[kind].most_log, kinds[kind].most_symbols);
        good = used != 0;
    } else
        good = decoder->known[kind];
    *at += good ? used : 0;
    decoder->known[kind] = good;
    return good;
}

/* An offset's value of 1 to 3 means one of the last three, one further where no literals come before. */
static size_t offset_of(struct decoder *decoder, size_t value, size_t length) {
    size_t *const last = decoder->last;
    const size_t which = value > 3 ? 4 : value - (length != 0);
    if (which == 0)
        return last[0];
    const size_t offset = which == 4 ? value - 3 : which == 3 ? last[0] - 1 : last[which];
    if (which != 1)
        last[2] = last[1];
    last[1] = last[0];
    return last[0] = offset;
}

static bool put_literals(struct decoder *decoder, size_t *used, size_t count) {
    if (count > decoder->literal_count - *used || count > decoder->room - decoder->done)
        return false;
    memcpy(decoder->to + decoder->done, decoder->literals + *used, count);
    *used += count;
    decoder->done += count;
    return true;
}

static bool put_match(struct decoder *decoder, size_t offset, size_t count) {
    if (offset == 0 || offset > decoder->done || count > decoder->room - decoder->done)
        return false;
    for (; count > 0; count--, decoder->done++) /* it may overlap itself */
        decoder->to[decoder->done] = decoder->to[decoder->done - offset];
    return true;
}

static bool run_sequences(struct decoder *decoder, struct rt_bits *bits, size_t count, size_t *used) {
    uint64_t state[3];
    for (int kind = 0; kind < 3; kind++)
        state[kind] = rt_bits_take(bits, decoder->table[kind].log);
    for (size_t i = 0; i < count; i++) {
        const int offset_code = decoder->table[OFFSETS].symbol[state[OFFSETS]];
        if (offset_code > 31 || bits->left < 0)
            return false;
        const size_t value = ((size_t)1 << offset_code) + (size_t)rt_bits_take(bits, offset_code);
        const size_t match = value_of(bits, match_bits, decoder->table[MATCHES].symbol[state[MATCHES]], 3);
        const size_t length = value_of(bits, length_bits, decoder->table[LENGTHS].symbol[state[LENGTHS]], 0);
        if (!put_literals(decoder, used, length) || !put_match(decoder, offset_of(decoder, value, length), match))
            return false;
        static const int order[] = {LENGTHS, MATCHES, OFFSETS};
        for (int k = 0; k < 3 && i + 1 < count; k++) {
            const struct rt_fse *const table = &decoder->table[order[k]];
            const uint64_t now = state[order[k]];
            state[order[k]] = table->base[now] + rt_bits_take(bits, table->bits[now]);
        }
    }
    return bits->left == 0;
}

static bool read_block(struct decoder *decoder, const uint8_t *at, const uint8_t *end) {
    size_t used = 0;
    if (!read_literals(decoder, &at, end) || at == end)
        return false;
    const int first = *at, header = first < 128 ? 1 : first < 255 ? 2 : 3;
    if (end - at < header)
        return false;
    const size_t count = header == 1   ? (size_t)first
                         : header == 2 ? ((size_t)(first - 128) << 8) + at[1]
                                       : little(at + 1, 2) + 0x7f00u;
    at += header;
    if (count > 0) {
        struct rt_bits bits;
        if (at == end)
            return false;
        const int modes = *at++;
        for (int kind = 0; kind < 3; kind++)
            if (!read_table(decoder, kind, modes >> (6 - 2 * kind) & 3, &at, end))
                return false;
        if (!rt_bits_open(&bits, at, (size_t)(end - at)) || !run_sequences(decoder, &bits, count, &used))
            return false;
    }
    return put_literals(decoder, &used, decoder->literal_count - used);
}

static bool read_frame(struct decoder *decoder) {
    enum { RAW, REPEATED, CODED };
    static const int dictionary_bytes[] = {0, 1, 2, 4}, size_bytes[] = {0, 2, 4, 8};
    const uint8_t *at = decoder->at + MAGIC_BYTES;
    if (decoder->end - decoder->at <= MAGIC_BYTES || little(decoder->at, MAGIC_BYTES) != 0xfd2fb528)
        return false;
    const int descriptor = *at++;
    const bool single = descriptor >> 5 & 1, checksum = descriptor >> 2 & 1;
    int skipped = dictionary_bytes[descriptor & 3] + size_bytes[descriptor >> 6];
    skipped += single ? descriptor >> 6 == 0 : 1; /* the size in one byte, or the size of the window */
    decoder->last[0] = 1, decoder->last[1] = 4, decoder->last[2] = 8;
    decoder->huffman.log = 0;
    memset(decoder->known, 0, sizeof decoder->known);
    for (bool last = false; !last;) {
        if (decoder->end - at < skipped + 3)
            return false;
        at += skipped;
        skipped = 0;
        const uint32_t header = little(at, 3);
        const size_t size = header >> 3, type = header >> 1 & 3, stored = type == REPEATED ? 1 : size;
        at += 3;
        last = header & 1;
        if (stored > (size_t)(decoder->end - at) || type > CODED)
            return false;
        if (type == CODED) {
            if (!read_block(decoder, at, at + stored))
                return false;
        } else {
            if (size > decoder->room - decoder->done)
                return false;
            if (type == RAW)
                memcpy(decoder->to + decoder->done, at, size);
            else
                memset(decoder->to + decoder->done, *at, size);
            decoder->done += size;
        }
        at += stored;
    }
    decoder->at = checksum && decoder->end - at >= 4 ? at + 4 : at;
    return true;
}

bool rt_zstd(const uint8_t *from, size_t bytes, uint8_t *to, size_t room) {
    struct decoder *const decoder = calloc(1, sizeof *decoder);
    if (decoder == NULL)
        return false;
    decoder->at = from;
    decoder->end = from + bytes;
    decoder->to = to;
    decoder->room = room;
    bool good = true;
    while (good && decoder->done < room)
        good = read_frame(decoder);
    free(decoder);
    return good;
}
