/* Compares the occupancy of AMD's simulated GPUs with the planner's (shim/core) on random configurations.
 *
 * usage: hip_occupancy_check COUNT. Prints one line per GPU: key, launchable, differences. Compiled with
 * tools/simgpu/occupancy.c and shim/core by test_hip_occupancy.py.
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
    struct overlap_gpu known;
    for (uint32_t index = 0; overlap_gpu_known(index, &known); index++) {
        if (known.vendor != OVERLAP_VENDOR_AMD)
            continue;
        const struct gpu gpu = {.multiprocessors = (int)known.multiprocessors,
                                .threads = (int)known.threads,
                                .blocks = (int)known.blocks,
                                .registers = (int)known.registers,
                                .shared = (int)known.shared,
                                .shared_optin = (int)known.shared_optin};
        long launchable = 0, different = 0;
        for (long i = 0; i < wanted; i++) {
            const struct footprint ours = {.threads = 1 + (int)draw(1024),
                                           .registers = 1 + (int)draw(512),
                                           .scalars = draw(2) ? 1 + (int)draw(112) : 0,
                                           .static_shared = draw(2) ? (int)draw(65537) : 0,
                                           .dynamic = draw(4) ? draw(66000) : 0};
            const struct overlap_footprint planned = {.threads = (uint32_t)ours.threads,
                                                      .registers = (uint32_t)ours.registers,
                                                      .scalar_registers = (uint32_t)ours.scalars,
                                                      .static_shared = (uint32_t)ours.static_shared,
                                                      .dynamic_shared = (uint32_t)ours.dynamic};
            const int here = sim_occupancy(&gpu, &ours), there = (int)overlap_occupancy_of(&known, &planned).blocks;
            launchable += there > 0;
            if (here != there && different++ < 3)
                fprintf(stderr, "%d threads, %d + %d registers, %d + %zu bytes: hardware %d, planner %d\n",
                        ours.threads, ours.registers, ours.scalars, ours.static_shared, ours.dynamic, here, there);
        }
        printf("%s %ld %ld\n", (const char *)known.key, launchable, different);
    }
    return 0;
}
