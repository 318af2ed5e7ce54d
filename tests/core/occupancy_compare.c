/* The core's occupancy against NVIDIA's own header, on random footprints: occupancy_compare LIBRARY COUNT SEED
 *
 * Prints `KEY compared launchable` for every GPU known by name; ends with 1 at the first difference.
 */
#if !__has_include(<cuda_occupancy.h>)
int main(void) {
    return 2;
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <cuda_occupancy.h>
#pragma GCC diagnostic pop

#include "abi.h"

static uint64_t state;

static uint32_t random_below(uint32_t limit) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 16) % limit;
}

/* Half of the sizes lie near a boundary: where one block less would fit, or where a unit begins. */
static uint32_t random_shared(const struct overlap_gpu *gpu) {
    uint32_t size = random_below(gpu->shared_optin + 2048);
    if (random_below(2)) {
        size = gpu->shared / (1 + random_below(gpu->blocks));
        size += random_below(2) ? random_below(300) : 0U - random_below(1400);
        size = size > gpu->shared_optin + 2048 ? 0 : size;
    }
    return size;
}

static int blocks_of_header(const struct overlap_gpu *gpu, const struct overlap_footprint *f, int carveout,
                            int barriers) {
    const cudaOccDeviceProp properties = {
        .computeMajor = (int)gpu->major,
        .computeMinor = (int)gpu->minor,
        .maxThreadsPerBlock = (int)gpu->threads_per_block,
        .maxThreadsPerMultiprocessor = (int)gpu->threads,
        .regsPerBlock = (int)gpu->registers_per_block,
        .regsPerMultiprocessor = (int)gpu->registers,
        .warpSize = (int)gpu->warp_size,
        .sharedMemPerBlock = gpu->shared_default,
        .sharedMemPerMultiprocessor = gpu->shared,
        .numSms = (int)gpu->multiprocessors,
        .sharedMemPerBlockOptin = gpu->shared_optin,
        .reservedSharedMemPerBlock = gpu->shared_reserved,
    };
    const cudaOccFuncAttributes attributes = {
        .maxThreadsPerBlock = (int)gpu->threads_per_block,
        .numRegs = (int)f->registers,
        .sharedSizeBytes = f->static_shared,
        .partitionedGCConfig = PARTITIONED_GC_OFF,
        .shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
        .maxDynamicSharedSizeBytes = gpu->shared_optin,
        .numBlockBarriers = barriers,
    };
    const cudaOccDeviceState device = {.cacheConfig = CACHE_PREFER_NONE, .carveoutConfig = carveout};
    cudaOccResult result;
    const cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &device,
                                                                       (int)f->threads, f->dynamic_shared);
    return error == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : 0;
}

int main(int argc, char **argv) {
    void *library = argc == 4 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        return 2;
    uint32_t (*known)(uint32_t, struct overlap_gpu *);
    struct overlap_occupancy (*occupancy)(const struct overlap_gpu *, const struct overlap_footprint *);
    *(void **)&known = dlsym(library, "overlap_gpu_known");
    *(void **)&occupancy = dlsym(library, "overlap_occupancy_of");
    struct overlap_gpu gpu;
    for (uint32_t index = 0; known(index, &gpu); index++) {
        if (gpu.vendor != OVERLAP_VENDOR_NVIDIA)
            continue;
        long launchable = 0, count = atol(argv[2]);
        state = strtoull(argv[3], NULL, 10) * 2654435761U + index + 1;
        for (long i = 0; i < count; i++) {
            const struct overlap_footprint f = {
                .threads = random_below(4) ? 32 * (1 + random_below(33)) : random_below(1100),
                .registers = random_below(256),
                .static_shared = random_below(3) ? random_below(50000) : random_shared(&gpu),
                .dynamic_shared = random_shared(&gpu),
                .barriers = random_below(3) ? random_below(2) : random_below(17),
            };
            const int theirs =
                blocks_of_header(&gpu, &f, random_below(2) ? SHAREDMEM_CARVEOUT_DEFAULT : SHAREDMEM_CARVEOUT_MAX_SHARED,
                                 (int)f.barriers);
            const int ours = (int)occupancy(&gpu, &f).blocks;
            launchable += theirs > 0;
            if (ours == theirs)
                continue;
            printf("%s: threads %u registers %u static %u dynamic %u: barriers %u: ours %d, NVIDIA's %d\n",
                   (const char *)gpu.key, f.threads, f.registers, f.static_shared, f.dynamic_shared, f.barriers, ours,
                   theirs);
            return 1;
        }
        printf("%s %ld %ld\n", (const char *)gpu.key, count, launchable);
    }
    return 0;
}
#endif
