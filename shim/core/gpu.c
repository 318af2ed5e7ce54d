/* The table of GPUs known by name (gpu.def), and the limits that follow from vendor and compute capability. On a real
 * GPU the driver's numbers are used instead of the table's. */
#include <string.h>

#include "core.h"

static const struct overlap_gpu known[] = {
#define GPU(key_, name_, major_, minor_, multiprocessors_, threads_, blocks_, registers_, shared_, optin_, memory_)    \
    {.key = #key_,                                                                                                     \
     .name = name_,                                                                                                    \
     .vendor = OVERLAP_VENDOR_NVIDIA,                                                                                  \
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
#define AMD(key_, name_, architecture_, multiprocessors_, shared_, memory_)                                            \
    {.key = #key_,                                                                                                     \
     .name = name_,                                                                                                    \
     .architecture = #architecture_,                                                                                   \
     .vendor = OVERLAP_VENDOR_AMD,                                                                                     \
     .multiprocessors = multiprocessors_,                                                                              \
     .warp_size = 64,                                                                                                  \
     .threads = 4 * 8 * 64,                                                                                            \
     .blocks = 32,                                                                                                     \
     .registers = 4 * 512 * 64,                                                                                        \
     .registers_per_block = 4 * 512 * 64,                                                                              \
     .threads_per_block = 1024,                                                                                        \
     .shared = shared_,                                                                                                \
     .shared_default = shared_,                                                                                        \
     .shared_optin = shared_,                                                                                          \
     .memory_gib = memory_},
#include "gpu.def"
#undef GPU
};

/* Derives the architecture, such as sm_90, from the compute capability. */
static void architecture_of(struct overlap_gpu *gpu) {
    char *p = (char *)gpu->architecture;
    memcpy(p, "sm_", 3), p += 3;
    if (gpu->major >= 10)
        *p++ = (char)('0' + gpu->major / 10 % 10);
    *p++ = (char)('0' + gpu->major % 10);
    *p++ = (char)('0' + gpu->minor % 10);
    *p = 0;
}

OVERLAP_EXPORT void overlap_gpu_units(struct overlap_gpu *gpu) {
    if (gpu->vendor == OVERLAP_VENDOR_AMD) {
        gpu->registers_per_thread = 512;
        gpu->register_unit = 8 * 64;
        gpu->shared_unit = 512;
        gpu->barriers = 16;
        gpu->scalar_registers = 800;
        return;
    }
    /* From cuda_occupancy.h (CUDA 13.0), which limits barriers from compute capability 9.0 on: two per block slot, but
     * one on 10.1 and 12.x. */
    const bool one = (gpu->major == 10 && gpu->minor == 1) || gpu->major >= 12;
    gpu->registers_per_thread = 255;
    gpu->register_unit = 256;
    gpu->shared_unit = 128;
    gpu->barriers = gpu->major < 9 ? 0 : one ? gpu->blocks : 2 * gpu->blocks;
    gpu->scalar_registers = 0;
    architecture_of(gpu);
}

OVERLAP_EXPORT uint32_t overlap_gpu_known(uint32_t index, struct overlap_gpu *gpu) {
    if (index >= sizeof known / sizeof *known)
        return 0;
    memcpy(gpu, &known[index], sizeof *gpu);
    overlap_gpu_units(gpu);
    return 1;
}
