/* Zstandard frames (RFC 8878), read into memory that the caller brings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- entropy.c: Zstandard's two codes ---- */

enum { FSE_LARGEST = 512, HUFFMAN_LARGEST = 2048, SYMBOLS = 256 };

/* Bits of a stream that is read from its end. More than there are may be read: they are zeros, and `left` is negative. */
struct sim_bits {
    const uint8_t *data;
    size_t bytes;
    int64_t left;
};

struct sim_fse {
    int log; /* 0 with one state: always the same symbol */
    uint8_t symbol[FSE_LARGEST], bits[FSE_LARGEST];
    uint16_t base[FSE_LARGEST];
};

struct sim_huffman {
    int log; /* 0: none yet */
    uint8_t symbol[HUFFMAN_LARGEST], bits[HUFFMAN_LARGEST];
};

int sim_high_bit(uint64_t value);
bool sim_bits_open(struct sim_bits *bits, const uint8_t *data, size_t bytes);
uint64_t sim_bits_take(struct sim_bits *bits, int count); /* 32 at most */
bool sim_fse_build(struct sim_fse *table, const int16_t *frequency, int symbols, int log);
size_t sim_fse_read(struct sim_fse *table, const uint8_t *data, size_t bytes, int most_log, int most_symbols);
size_t sim_huffman_read(struct sim_huffman *table, const uint8_t *data, size_t bytes);
bool sim_huffman_decode(const struct sim_huffman *table, const uint8_t *data, size_t bytes, uint8_t *to, size_t room);

/* ---- zstd.c ---- */

enum { ZSTD_BLOCK = 128 << 10, ZSTD_CODES = 53 };

/* What a decoder works with. */
struct sim_zstd {
    const uint8_t *at, *end; /* what is left of the input */
    uint8_t *to;
    size_t done, room;
    size_t last[3]; /* offsets of matches */
    struct sim_huffman huffman;
    struct sim_fse table[3];
    bool known[3];
    uint32_t first[3][ZSTD_CODES]; /* the least value of a code */
    uint8_t literals[ZSTD_BLOCK];
    size_t literal_count;
};

/* True if exactly `room` bytes came out. decoder: memory for it, whatever is in there. */
bool sim_zstd_read(struct sim_zstd *decoder, const void *from, size_t bytes, void *to, size_t room);
