/* Zstandard frames (RFC 8878), as far as they need no dictionary: blocks, literals, sequences. Every length is checked: what
 * is broken is an answer of false, never a read or a write outside. */
#include <string.h>

#include "zstd.h"

enum { MAGIC_BYTES = 4, LENGTHS = 0, OFFSETS = 1, MATCHES = 2 };

/* How the three kinds of codes begin, where nothing else is said (RFC 8878, 3.1.1.3.2.2), and their limits. */
static const int16_t default_lengths[] = {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
                                          2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1};
static const int16_t default_offsets[] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 1,  1,  1,  1,  1, 1,
                                          1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1};
static const int16_t default_matches[] = {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                          1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
                                          1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1};
/* How many bits follow a code of a length. Those of an offset are as many as its code says. */
static const uint8_t length_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  1,  1,
                                      1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static const uint8_t match_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  0, 0,
                                     0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  1,  1,  1, 1,
                                     2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static const struct {
    const int16_t *frequency;
    int symbols, log, most_log, most_symbols;
    const uint8_t *extra;
    uint32_t least; /* the value that begins with the first code */
} kinds[] = {
    {default_lengths, 36, 6, 9, 36, length_bits, 0},
    {default_offsets, 29, 5, 8, 32, NULL, 0},
    {default_matches, 53, 6, 9, 53, match_bits, 3},
};

/* Where a code's range begins is the sum of what is before. */
static void count_values(struct sim_zstd *decoder, int kind) {
    uint32_t value = kinds[kind].least;
    for (int code = 0; code < kinds[kind].most_symbols; code++) {
        decoder->first[kind][code] = value;
        value += UINT32_C(1) << kinds[kind].extra[code];
    }
}

static size_t take_value(struct sim_zstd *decoder, struct sim_bits *bits, int kind, uint64_t state) {
    const uint8_t code = decoder->table[kind].symbol[state];
    return decoder->first[kind][code] + (size_t)sim_bits_take(bits, kinds[kind].extra[code]);
}

static uint32_t little(const uint8_t *at, int bytes) {
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint32_t)at[i] << (8 * i);
    return value;
}

static bool four_streams(struct sim_zstd *decoder, const uint8_t *at, size_t bytes) {
    enum { JUMPS = 6 };
    if (bytes < JUMPS)
        return false;
    const uint8_t *stream = at + JUMPS, *const end = at + bytes;
    const size_t each = (decoder->literal_count + 3) / 4;
    for (int i = 0; i < 4; i++) {
        const size_t length = i < 3 ? little(at + (size_t)2 * (size_t)i, 2) : (size_t)(end - stream);
        const size_t first = each * (size_t)i;
        if (length > (size_t)(end - stream) || first > decoder->literal_count)
            return false;
        const size_t room = i < 3 && each < decoder->literal_count - first ? each : decoder->literal_count - first;
        if (!sim_huffman_decode(&decoder->huffman, stream, length, decoder->literals + first, room))
            return false;
        stream += length;
    }
    return true;
}

/* Literals: as they are, one byte over and over, or coded with a tree of their own or the last one. */
static bool read_literals(struct sim_zstd *decoder, const uint8_t **at, const uint8_t *end) {
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
    if (count > ZSTD_BLOCK || packed > (size_t)(end - *at))
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
        const size_t used = sim_huffman_read(&decoder->huffman, data, packed);
        if (used == 0)
            return false;
        data += used;
        packed -= used;
    }
    return form == 0 ? sim_huffman_decode(&decoder->huffman, data, packed, decoder->literals, count)
                     : four_streams(decoder, data, packed);
}

static bool read_table(struct sim_zstd *decoder, int kind, int mode, const uint8_t **at, const uint8_t *end) {
    enum { DEFAULT, ONE_SYMBOL, CODED, SAME };
    struct sim_fse *const table = &decoder->table[kind];
    const size_t left = (size_t)(end - *at);
    size_t used = 0;
    bool good = true;
    if (mode == DEFAULT)
        good = sim_fse_build(table, kinds[kind].frequency, kinds[kind].symbols, kinds[kind].log);
    else if (mode == ONE_SYMBOL) {
        used = 1;
        good = left > 0 && **at < kinds[kind].most_symbols;
        if (good)
            *table = (struct sim_fse){.symbol = {**at}};
    } else if (mode == CODED) {
        used = sim_fse_read(table, *at, left, kinds[kind].most_log, kinds[kind].most_symbols);
        good = used != 0;
    } else
        good = decoder->known[kind];
    *at += good ? used : 0;
    decoder->known[kind] = good;
    return good;
}

/* An offset's value of 1 to 3 means one of the last three, one further where no literals come before. */
static size_t offset_of(struct sim_zstd *decoder, size_t value, size_t length) {
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

static bool put_literals(struct sim_zstd *decoder, size_t *used, size_t count) {
    if (count > decoder->literal_count - *used || count > decoder->room - decoder->done)
        return false;
    memcpy(decoder->to + decoder->done, decoder->literals + *used, count);
    *used += count;
    decoder->done += count;
    return true;
}

static bool put_match(struct sim_zstd *decoder, size_t offset, size_t count) {
    if (offset == 0 || offset > decoder->done || count > decoder->room - decoder->done)
        return false;
    uint8_t *to = decoder->to + decoder->done;
    const uint8_t *const from = to - offset;
    decoder->done += count;
    while (count > 0) { /* what it repeats grows with it, where it overlaps itself */
        const size_t there = (size_t)(to - from), step = there < count ? there : count;
        memcpy(to, from, step);
        to += step;
        count -= step;
    }
    return true;
}

static bool run_sequences(struct sim_zstd *decoder, struct sim_bits *bits, size_t count, size_t *used) {
    uint64_t state[3];
    for (int kind = 0; kind < 3; kind++)
        state[kind] = sim_bits_take(bits, decoder->table[kind].log);
    for (size_t i = 0; i < count; i++) {
        const int offset_code = decoder->table[OFFSETS].symbol[state[OFFSETS]];
        if (offset_code > 31 || bits->left < 0)
            return false;
        const size_t value = ((size_t)1 << offset_code) + (size_t)sim_bits_take(bits, offset_code);
        const size_t match = take_value(decoder, bits, MATCHES, state[MATCHES]);
        const size_t length = take_value(decoder, bits, LENGTHS, state[LENGTHS]);
        if (!put_literals(decoder, used, length) || !put_match(decoder, offset_of(decoder, value, length), match))
            return false;
        static const int order[] = {LENGTHS, MATCHES, OFFSETS};
        for (int k = 0; k < 3 && i + 1 < count; k++) {
            const struct sim_fse *const table = &decoder->table[order[k]];
            const uint64_t now = state[order[k]];
            state[order[k]] = table->base[now] + sim_bits_take(bits, table->bits[now]);
        }
    }
    return bits->left == 0;
}

static bool read_block(struct sim_zstd *decoder, const uint8_t *at, const uint8_t *end) {
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
        struct sim_bits bits;
        if (at == end)
            return false;
        const int modes = *at++;
        for (int kind = 0; kind < 3; kind++)
            if (!read_table(decoder, kind, modes >> (6 - 2 * kind) & 3, &at, end))
                return false;
        if (!sim_bits_open(&bits, at, (size_t)(end - at)) || !run_sequences(decoder, &bits, count, &used))
            return false;
    }
    return put_literals(decoder, &used, decoder->literal_count - used);
}

static bool read_frame(struct sim_zstd *decoder) {
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

bool sim_zstd_read(struct sim_zstd *decoder, const void *from, size_t bytes, void *to, size_t room) {
    memset(decoder, 0, sizeof *decoder);
    decoder->at = from;
    decoder->end = decoder->at + bytes;
    decoder->to = to;
    decoder->room = room;
    count_values(decoder, LENGTHS);
    count_values(decoder, MATCHES);
    bool good = true;
    while (good && decoder->done < room)
        good = read_frame(decoder);
    return good;
}
