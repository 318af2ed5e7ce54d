/* Fat binaries with compressed entries, which the simulated driver does not take: nvcc 13 packs PTX by default, and
 * everything with -compress-mode=size (Zstandard, RFC 8878); nvcc 12 with LZ4. */
#ifndef SIMGPU_UNPACK_H
#define SIMGPU_UNPACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The same fat binary with nothing compressed in it, for free(); NULL where there is nothing to do. What cannot be
 * unpacked stays as it is, and the driver says that it is compressed. */
void *rt_unpack(const void *image);

/* True if exactly `room` bytes came out. */
bool rt_zstd(const uint8_t *from, size_t bytes, uint8_t *to, size_t room);
bool rt_lz4(const uint8_t *from, size_t bytes, uint8_t *to, size_t room);

/* ---- entropy.c: Zstandard's two codes ---- */

enum { FSE_LARGEST = 512, HUFFMAN_LARGEST = 2048, SYMBOLS = 256 };

/* Bits of a stream that is read from its end. More than there are may be read: they are zeros, and `left` is negative. */
struct rt_bits {
    const uint8_t *data;
    int64_t left;
};

struct rt_fse {
    int log; /* 0 with one state: always the same symbol */
    uint8_t symbol[FSE_LARGEST], bits[FSE_LARGEST];
    uint16_t base[FSE_LARGEST];
};

struct rt_huffman {
    int log; /* 0: none yet */
    uint8_t symbol[HUFFMAN_LARGEST], bits[HUFFMAN_LARGEST];
};

int rt_high_bit(uint64_t value);
bool rt_bits_open(struct rt_bits *bits, const uint8_t *data, size_t bytes);
uint64_t rt_bits_take(struct rt_bits *bits, int count);
bool rt_fse_build(struct rt_fse *table, const int16_t *frequency, int symbols, int log);
size_t rt_fse_read(struct rt_fse *table, const uint8_t *data, size_t bytes, int most_log, int most_symbols);
size_t rt_huffman_read(struct rt_huffman *table, const uint8_t *data, size_t bytes);
bool rt_huffman_decode(const struct rt_huffman *table, const uint8_t *data, size_t bytes, uint8_t *to, size_t room);

#endif
