/* Code as a program hands it over. Between the files that read it. */
#ifndef SIMGPU_IMAGE_H
#define SIMGPU_IMAGE_H

#include <string.h>

#include "sim.h"

static const uint32_t ELF_MAGIC = 0x464c457f;
static const size_t LARGEST_IMAGE = (size_t)1 << 31;

struct source {
    const uint8_t *data;
    size_t bytes;
    bool size_known;
    const struct gpu *gpu; /* for which code is wanted */
};

bool sim_fetch(const struct source *source, size_t at, void *to, size_t bytes);

/* Of each vendor: fatbin.c, hip/image.c. */
CUresult sim_load(const struct source *source, struct image *image);

/* NVIDIA's: elf.c, fatbin.c. */
size_t sim_elf_extent(const struct source *source, size_t at);
CUresult sim_load_elf(const struct source *source, size_t at, size_t bytes, struct image *image);
bool sim_runs_on(const struct gpu *gpu, int architecture);

static inline uint16_t sim_read16(const uint8_t *at) {
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint32_t sim_read32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint64_t sim_read64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

#endif
