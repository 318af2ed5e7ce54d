/* The runtimes' own kernels that copy and fill: the only ones that are executed, because code objects and data travel by them.
 *
 * Those of the HSA runtime are bare code without a name, told apart by how many registers they ask for. Those of HIP are made
 * from source when they are first needed, and have names. Arguments are as their callers write them.
 */
#include <string.h>

#include "kfd.h"

/* The first word of resources of the HSA runtime's kernels: vector registers / 4 - 1, and scalar ones / 8 - 1 above. */
enum { COPY_ALIGNED = 2 | 3 << 6, COPY_MISALIGNED = 2 | 2 << 6, FILL_WORDS = 1 | 2 << 6 };

static void copy(uint64_t to, uint64_t from, uint64_t bytes) {
    memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
}

bool kfd_run_bare_blit(const struct kernel_descriptor *kernel, const uint64_t *arguments) {
    uint32_t value;
    switch (kernel->resources1 & 1023) {
    case COPY_ALIGNED: /* four phases of (from, to), and where the last ends */
        copy(arguments[1], arguments[0], arguments[8] - arguments[0]);
        return true;
    case COPY_MISALIGNED: /* two of them */
        copy(arguments[1], arguments[0], arguments[4] - arguments[0]);
        return true;
    case FILL_WORDS: /* start, second phase, end, value */
        value = (uint32_t)arguments[3];
        for (uint64_t at = arguments[0]; at + sizeof value <= arguments[2]; at += sizeof value)
            memcpy((void *)(uintptr_t)at, &value, sizeof value);
        return true;
    default:
        return false;
    }
}

/* The same buffer as bytes, half words, words and double words, of which one is given; then what to repeat in it. */
static void fill(const uint64_t *arguments, uint64_t width, uint64_t rows, uint64_t pitch) {
    for (unsigned i = 0; i < 4; i++) {
        const uint64_t element = (uint64_t)1 << i, size = element * (uint32_t)arguments[5];
        if (arguments[i] == 0)
            continue;
        uint8_t *const start = (uint8_t *)(uintptr_t)arguments[i] + arguments[6] * element;
        for (uint64_t row = 0; row < rows; row++)
            for (uint64_t at = 0; at < width; at++)
                memcpy(start + row * pitch * element + at * size, (const void *)(uintptr_t)arguments[4], size);
        return;
    }
}

/* (row pitch, slice pitch, start) of both sides, then the size; in units that the size's fourth number says. */
static void copy_rectangle(const uint64_t *arguments, uint64_t unit) {
    const uint64_t *const from = arguments + 4, *const to = arguments + 8, *const size = arguments + 12;
    for (uint64_t z = 0; z < size[2]; z++)
        for (uint64_t y = 0; y < size[1]; y++)
            copy(arguments[1] + (to[2] + y * to[0] + z * to[1]) * unit,
                 arguments[0] + (from[2] + y * from[0] + z * from[1]) * unit, size[0] * unit);
}

bool kfd_run_named_blit(const char *name, const uint64_t *arguments) {
    static const char prefix[] = "__amd_rocclr_";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0)
        return false;
    name += sizeof prefix - 1;
    const uint32_t last = (uint32_t)arguments[5];
    if (strcmp(name, "copyBuffer") == 0)
        copy(arguments[1] + arguments[3], arguments[0] + arguments[2],
             4 * (arguments[4] - 1) + last); /* words, and a rest */
    else if (strcmp(name, "copyBufferRect") == 0)
        copy_rectangle(arguments, 1);
    else if (strcmp(name, "copyBufferRectAligned") == 0)
        copy_rectangle(arguments, arguments[15]);
    else if (strcmp(name, "fillBufferAligned") == 0)
        fill(arguments, arguments[7], 1, 0);
    else if (strcmp(name, "fillBufferAligned2D") == 0)
        fill(arguments, arguments[7], arguments[8], arguments[9]);
    return true;
}
