/* Compares the occupancy of simulated GPUs with the planner's (shim/core) on random footprints: occupancy_check COUNT
 *
 * Prints one line per GPU: key, launchable, differences. Compiled with tools/simgpu/occupancy.c and shim/core by
 * test_occupancy.py, for one vendor at a time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core.h"
#include "sim.h"

static unsigned long long state = 42;

static unsigned int draw(unsigned int below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned int)(state >> 33) % below;
}

int main(int count, char **arguments) {
    const long wanted = count > 1 ? strtol(arguments[1], NULL, 10) : 1000;
#ifdef SIMGPU_HIP
    const bool amd = true;
#else
    const bool amd = false;
#endif
    struct overlap_gpu known;
    for (uint32_t index = 0; overlap_gpu_known(index, &known); index++) {
        if ((known.vendor == OVERLAP_VENDOR_AMD) != amd)
            continue;
        const struct gpu gpu = {.major = (int)known.major,
                                .minor = (int)known.minor,
                                .multiprocessors = (int)known.multiprocessors,
                                .threads = (int)known.threads,
                                .blocks = (int)known.blocks,
                                .registers = (int)known.registers,
                                .shared = (int)known.shared,
                                .shared_optin = (int)known.shared_optin};
        long launchable = 0, different = 0;
        for (long i = 0; i < wanted; i++) {
            const struct footprint ours = {.threads = 1 + (int)draw(1024),
                                           .registers = 1 + (int)draw(amd ? 512 : 255),
                                           .scalars = amd && draw(2) ? 1 + (int)draw(112) : 0,
                                           .static_shared = draw(2) ? (int)draw(known.shared_default + 1) : 0,
                                           .dynamic = draw(4) ? draw(known.shared_optin + 500) : 0};
            const struct overlap_footprint planned = {.threads = (uint32_t)ours.threads,
                                                      .registers = (uint32_t)ours.registers,
                                                      .scalar_registers = (uint32_t)ours.scalars,
                                                      .static_shared = (uint32_t)ours.static_shared,
                                                      .dynamic_shared = (uint32_t)ours.dynamic};
            const int here = sim_occupancy(&gpu, &ours), there = (int)overlap_occupancy_of(&known, &planned).blocks;
            launchable += there > 0;
            if (here != there && different++ < 3)
                fprintf(stderr, "%d threads, %d + %d registers, %d + %zu bytes: simulated %d, planner %d\n",
                        ours.threads, ours.registers, ours.scalars, ours.static_shared, ours.dynamic, here, there);
        }
        printf("%s %ld %ld\n", (const char *)known.key, launchable, different);
    }
    return 0;
}
