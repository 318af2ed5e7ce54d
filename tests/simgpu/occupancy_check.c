/* Compares the simulated driver's occupancy with NVIDIA's cuda_occupancy.h on random configurations.
 *
 * usage: occupancy_check COUNT. Prints one line per GPU: key, configurations, launchable, differences. Compiled with
 * tools/simgpu/occupancy.c by test_simgpu_occupancy.py.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_occupancy.h>

#include "sim.h"

#define GPU(key, name, major, minor, multiprocessors, threads, blocks, registers, shared, optin, gib)                  \
    {#key, name, major, minor, multiprocessors, threads, blocks, registers, shared, optin, gib, NULL, 0},
#define AMD(...) /* NVIDIA's header knows none of them */
static const struct gpu gpus[] = {
#include "gpu.def"
};

static unsigned long long state = 42;

static unsigned int draw(unsigned int below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned int)(state >> 33) % below;
}

static int nvidia(const struct gpu *gpu, const struct footprint *footprint) {
    struct cudaOccDeviceProp device;
    struct cudaOccFuncAttributes function;
    struct cudaOccDeviceState configuration;
    cudaOccResult result;
    memset(&device, 0, sizeof device);
    memset(&function, 0, sizeof function);
    memset(&configuration, 0, sizeof configuration);
    memset(&result, 0, sizeof result);
    device.computeMajor = gpu->major;
    device.computeMinor = gpu->minor;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = gpu->threads;
    device.regsPerBlock = device.regsPerMultiprocessor = gpu->registers;
    device.warpSize = 32;
    device.sharedMemPerBlock = 49152;
    device.sharedMemPerMultiprocessor = (size_t)gpu->shared;
    device.sharedMemPerBlockOptin = (size_t)gpu->shared_optin;
    device.reservedSharedMemPerBlock = 1024;
    device.numSms = gpu->multiprocessors;
    function.maxThreadsPerBlock = 1024;
    function.numRegs = footprint->registers;
    function.sharedSizeBytes = (size_t)footprint->static_shared;
    function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    function.maxDynamicSharedSizeBytes = (size_t)gpu->shared_optin;
    function.numBlockBarriers = 1;
    configuration.carveoutConfig = footprint->prefers ? footprint->carveout : SHAREDMEM_CARVEOUT_MAX_SHARED;
    const cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &configuration,
                                                                       footprint->threads, footprint->dynamic);
    return error == CUDA_OCC_SUCCESS ? result.activeBlocksPerMultiprocessor : -(int)error;
}

int main(int count, char **arguments) {
    const long wanted = count > 1 ? strtol(arguments[1], NULL, 10) : 1000;
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        const struct gpu *const gpu = &gpus[i];
        long launchable = 0, different = 0;
        for (long n = 0; n < wanted; n++) {
            const struct footprint footprint = {
                .threads = 1 + (int)draw(1024),
                .registers = 1 + (int)draw(255),
                .static_shared = draw(2) ? (int)draw(49153) : 0,
                .dynamic = draw(4) ? draw((unsigned int)gpu->shared_optin + 4096) : 0,
                .prefers = draw(2) != 0,
                .carveout = (int)draw(101),
            };
            const int ours = sim_occupancy(gpu, &footprint), theirs = nvidia(gpu, &footprint);
            launchable += theirs > 0;
            if (ours != theirs && different++ < 3)
                fprintf(stderr, "%s: %d threads, %d registers, %d + %zu bytes, carve-out %d: ours %d, NVIDIA's %d\n",
                        gpu->key, footprint.threads, footprint.registers, footprint.static_shared, footprint.dynamic,
                        footprint.prefers ? footprint.carveout : -1, ours, theirs);
        }
        printf("%s %ld %ld %ld\n", gpu->key, wanted, launchable, different);
    }
    return 0;
}
