/* Zstandard frames (RFC 8878), read into memory that the caller brings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- entropy.c: Zstandard's two codes ---- */

enum { OVERLAP_FSE_LARGEST = 512, OVERLAP_HUFFMAN_LARGEST = 2048, OVERLAP_SYMBOLS = 256 };

/* Bits of a stream that is read from its end. More than there are may be read: they are zeros, and `left` is negative. */
struct overlap_bits {
    const uint8_t *data;
    size_t bytes;
    int64_t left;
};

struct overlap_fse {
    int log; /* 0 with one state: always the same symbol */
    uint8_t symbol[OVERLAP_FSE_LARGEST], bits[OVERLAP_FSE_LARGEST];
    uint16_t base[OVERLAP_FSE_LARGEST];
};

struct overlap_huffman {
    int log; /* 0: none yet */
    uint8_t symbol[OVERLAP_HUFFMAN_LARGEST], bits[OVERLAP_HUFFMAN_LARGEST];
};

int overlap_high_bit(uint64_t value);
bool overlap_bits_open(struct overlap_bits *bits, const uint8_t *data, size_t bytes);
uint64_t overlap_bits_take(struct overlap_bits *bits, int count); /* 32 at most */
bool overlap_fse_build(struct overlap_fse *table, const int16_t *frequency, int symbols, int log);
size_t overlap_fse_read(struct overlap_fse *table, const uint8_t *data, size_t bytes, int most_log, int most_symbols);
size_t overlap_huffman_read(struct overlap_huffman *table, const uint8_t *data, size_t bytes);
bool overlap_huffman_decode(const struct overlap_huffman *table, const uint8_t *data, size_t bytes, uint8_t *to,
                            size_t room);

/* ---- zstd.c ---- */

enum { OVERLAP_ZSTD_BLOCK = 128 << 10, OVERLAP_ZSTD_CODES = 53 };

/* What a decoder works with. */
struct overlap_zstd {
    const uint8_t *at, *end; /* what is left of the input */
    uint8_t *to;
    size_t done, room;
    size_t last[3]; /* offsets of matches */
    struct overlap_huffman huffman;
    struct overlap_fse table[3];
    bool known[3];
    uint32_t first[3][OVERLAP_ZSTD_CODES]; /* the least value of a code */
    uint8_t literals[OVERLAP_ZSTD_BLOCK];
    size_t literal_count;
};

/* True if exactly `room` bytes came out. decoder: memory for it, whatever is in there. */
bool overlap_zstd_read(struct overlap_zstd *decoder, const void *from, size_t bytes, void *to, size_t room);
