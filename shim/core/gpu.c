/* The table of GPUs known by name (gpu.def). On a real GPU the driver's own numbers are used instead. */
#include <string.h>

#include "core.h"

static const struct overlap_gpu known[] = {
#define GPU(key_, name_, major_, minor_, multiprocessors_, threads_, blocks_, registers_, shared_, optin_, memory_)    \
    {.key = #key_,                                                                                                     \
     .name = name_,                                                                                                    \
     .major = major_,                                                                                                  \
     .minor = minor_,                                                                                                  \
     .multiprocessors = multiprocessors_,                                                                              \
     .warp_size = 32,                                                                                                  \
     .threads = threads_,                                                                                              \
     .blocks = blocks_,                                                                                                \
     .registers = registers_,                                                                                          \
     .registers_per_block = registers_,                                                                                \
     .threads_per_block = 1024,                                                                                        \
     .shared = shared_,                                                                                                \
     .shared_default = 49152,                                                                                          \
     .shared_optin = optin_,                                                                                           \
     .shared_reserved = 1024,                                                                                          \
     .memory_gib = memory_},
#include "gpu.def"
#undef GPU
};

OVERLAP_EXPORT uint32_t overlap_gpu_known(uint32_t index, struct overlap_gpu *gpu) {
    if (index >= sizeof known / sizeof *known)
        return 0;
    memcpy(gpu, &known[index], sizeof *gpu);
    return 1;
}
