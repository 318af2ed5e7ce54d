/* overlap_size_for_blocks() against every dynamic size that there is: size_brute LIBRARY FOOTPRINTS SEED
 *
 * Prints how many answers were compared; ends with 1 at the first difference.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "abi.h"

static uint64_t state;

static uint32_t random_below(uint32_t limit) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 16) % limit;
}

enum { MOST = 40 };

int main(int argc, char **argv) {
    void *library = argc == 4 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        return 2;
    uint32_t (*known)(uint32_t, struct overlap_gpu *);
    struct overlap_occupancy (*occupancy)(const struct overlap_gpu *, const struct overlap_footprint *);
    uint32_t (*size_for)(const struct overlap_gpu *, const struct overlap_launch *, uint32_t);
    *(void **)&known = dlsym(library, "overlap_gpu_known");
    *(void **)&occupancy = dlsym(library, "overlap_occupancy_of");
    *(void **)&size_for = dlsym(library, "overlap_size_for_blocks");
    long compared = 0, found = 0;
    struct overlap_gpu gpu;
    state = strtoull(argv[3], NULL, 10) * 2654435761U + 1;
    for (uint32_t index = 0; known(index, &gpu); index++) {
        for (long i = 0; i < atol(argv[2]); i++) {
            struct overlap_launch launch = {.footprint = {.threads = 1 + random_below(random_below(2) ? 256 : 1024),
                                                          .registers = random_below(random_below(2) ? 64 : 256),
                                                          .static_shared = random_below(random_below(2) ? 2000 : 49152),
                                                          .dynamic_shared = random_below(3) ? random_below(20000) : 0}};
            const struct overlap_footprint asked = launch.footprint;
            launch.maximum_dynamic = gpu.shared_optin - asked.static_shared;
            if (random_below(4) == 0)
                launch.maximum_dynamic = random_below(launch.maximum_dynamic);
            /* The least size with at most so many resident, but at least one: nobody wants a launch that fails. */
            uint32_t least[MOST];
            for (int k = 0; k < MOST; k++)
                least[k] = UINT32_MAX;
            struct overlap_footprint shaped = asked;
            for (uint32_t size = asked.dynamic_shared; size <= launch.maximum_dynamic; size++) {
                shaped.dynamic_shared = size;
                const uint32_t resident = occupancy(&gpu, &shaped).blocks;
                for (uint32_t k = resident; resident && k < MOST && least[k] == UINT32_MAX; k++)
                    least[k] = size;
            }
            const uint32_t native = occupancy(&gpu, &asked).blocks;
            for (uint32_t k = 0; k < MOST; k++) {
                /* No more than wanted as it stands: the size that was asked for, launchable or not. */
                const uint32_t expected = native <= k ? asked.dynamic_shared : least[k];
                const uint32_t got = size_for(&gpu, &launch, k);
                compared++;
                found += native > k && got != UINT32_MAX;
                if (got == expected)
                    continue;
                printf("%s: threads %u registers %u static %u dynamic %u maximum %u, at most %u: got %u, expected %u\n",
                       (const char *)gpu.key, asked.threads, asked.registers, asked.static_shared, asked.dynamic_shared,
                       launch.maximum_dynamic, k, got, expected);
                return 1;
            }
        }
    }
    printf("%ld %ld\n", compared, found);
    return 0;
}
