/* The planner and the decision on numbers that no GPU has: plan_corners COUNT SEED
 *
 * Every field is an edge of something, and one in four GPUs is none that exists. Compiled with the core's sources under
 * the sanitizers, which are the judges, together with what every answer must satisfy. Prints how many were tried and
 * how many of them could be launched.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

static uint64_t state;

static uint32_t random_below(uint32_t limit) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 16) % limit;
}

static uint32_t edge(uint32_t usual) {
    /* Around powers of two, and the sizes of GPUs. */
    static const uint32_t sizes[] = {49152, 101376, 102400, 166912, 232448, 233472};
    if (random_below(3))
        return random_below(usual);
    const uint32_t which = random_below(40), near = random_below(3) - 1;
    return which < 6 ? sizes[which] : which < 38 ? (UINT32_C(1) << (which - 6)) + near : UINT32_MAX - (which - 38);
}

static struct overlap_footprint footprint(void) {
    struct overlap_footprint f = {.threads = edge(1100), .registers = edge(300)};
    f.static_shared = random_below(2) ? edge(60000) : 0;
    f.dynamic_shared = random_below(2) ? edge(120000) : 0;
    f.barriers = random_below(2) ? edge(20) : 0;
    f.scalar_registers = random_below(2) ? edge(120) : 0;
    return f;
}

static void require(bool holds, const char *what, const struct overlap_launch *launch,
                    const struct overlap_plan *plan) {
    if (holds)
        return;
    const struct overlap_footprint *f = &launch->footprint;
    fprintf(stderr, "%s: threads %u registers %u static %u dynamic %u barriers %u scalars %u maximum %u: ", what,
            f->threads, f->registers, f->static_shared, f->dynamic_shared, f->barriers, f->scalar_registers,
            launch->maximum_dynamic);
    fprintf(stderr, "native %u control %u reason %u dynamic %u\n", plan->native_blocks, plan->control, plan->reason,
            plan->dynamic_shared);
    abort();
}

static void check_windows(const struct overlap_size_range *windows, uint32_t count, const struct overlap_launch *launch,
                          const struct overlap_plan *plan) {
    for (uint32_t i = 0; i < count; i++) {
        const struct overlap_size_range w = windows[i];
        require(w.minimum >= launch->footprint.dynamic_shared && w.minimum <= w.maximum, "an interval", launch, plan);
        require(w.maximum <= launch->maximum_dynamic, "the limit of the kernel", launch, plan);
        require(w.blocks >= 1 && w.blocks <= plan->native_blocks, "a number of blocks", launch, plan);
        require(w.inflates == (w.blocks < plan->native_blocks), "inflates", launch, plan);
        require(i == 0 || w.blocks < windows[i - 1].blocks, "from native down", launch, plan);
    }
}

static void check(const struct overlap_gpu *gpu, const struct overlap_launch *launch, const struct overlap_plan *plan) {
    const uint32_t asked = launch->footprint.dynamic_shared;
    const bool shapes = plan->reason == OVERLAP_REASON_shaped || plan->reason == OVERLAP_REASON_capped_without_room;
    require(plan->reason < OVERLAP_REASON_COUNT && plan->control <= OVERLAP_CONTROL_CAP, "enums", launch, plan);
    require(plan->dynamic_shared >= asked, "never less than asked", launch, plan);
    require((plan->dynamic_shared > asked) == shapes, "another size exactly where the reason says so", launch, plan);
    require(!shapes || plan->dynamic_shared <= launch->maximum_dynamic, "the limit of the kernel", launch, plan);
    require(!shapes || plan->dynamic_shared <= OVERLAP_LARGEST_SIZE, "the decision word", launch, plan);
    require(!shapes || plan->blocks >= 1, "a launch that can be made", launch, plan);
    require(plan->native_blocks <= gpu->blocks, "slots", launch, plan);
    require((plan->reason == OVERLAP_REASON_cannot_launch) == (plan->native_blocks == 0), "cannot_launch", launch,
            plan);
    require(plan->beside_after_drain >= -1 && plan->beside_after_drain <= (int32_t)plan->native_blocks, "beside",
            launch, plan);
    require(plan->window_count <= 32, "room", launch, plan);
    check_windows(plan->windows, plan->window_count, launch, plan);
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    long launchable = 0, count = atol(argv[1]);
    state = strtoull(argv[2], NULL, 10) * 2654435761U + 1;
    for (long i = 0; i < count; i++) {
        struct overlap_gpu gpu;
        struct overlap_plan plan;
        struct overlap_footprint changed;
        overlap_gpu_known(random_below(8), &gpu);
        if (random_below(4) == 0) /* of a driver that answers nonsense, or of a GPU to come */
            gpu.blocks = edge(64), gpu.shared = edge(300000), gpu.registers = edge(131072), gpu.barriers = edge(64),
            gpu.shared_optin = edge(300000);
        if (random_below(16) == 0)
            gpu.warp_size = gpu.shared_unit = gpu.register_unit = 0;
        const struct overlap_launch launch = {.blocks = edge(100000),
                                              .maximum_dynamic = random_below(2) ? gpu.shared_optin : edge(300000),
                                              .footprint = footprint()};
        const struct overlap_footprint communication = footprint();
        const uint32_t shape = random_below(5),
                       value = shape == OVERLAP_SHAPE_PERCENT ? 1 + random_below(100) : edge(40);
        memset(&plan, 0x5a, sizeof plan);
        overlap_plan_of(&gpu, &launch, random_below(8) ? &communication : NULL, shape, value, random_below(101), &plan);
        check(&gpu, &launch, &plan);
        for (uint32_t knob = 0; overlap_knob(knob, &gpu, &communication, &changed); knob++)
            if (changed.threads > communication.threads || changed.registers > communication.registers)
                abort();
        launchable += plan.native_blocks > 0;
    }
    printf("%ld %ld\n", count, launchable);
    return 0;
}
