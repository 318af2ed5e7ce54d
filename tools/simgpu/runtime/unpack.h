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

#endif
