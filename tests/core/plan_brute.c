/* overlap_plan_of() against every dynamic size that there is: plan_brute LIBRARY PAIRS SEED
 *
 * The judge knows no formula. It puts blocks on a multiprocessor, warp after warp, until one finds no place, and does so
 * for every size. It shares nothing with the library but the limits of the GPU. Prints, per GPU, how many pairs were
 * compared, how often each control was the answer, and how often below_keep and the four no_room reasons; ends with 1
 * at the first difference.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

enum { CONTROLS = OVERLAP_CONTROL_CAP + 1, MOST = 33 /* blocks that a multiprocessor holds, and none */ };

static uint64_t state;

static uint32_t random_below(uint32_t limit) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)(state >> 16) % limit;
}

/* ---- The judge ---- */

struct machine {
    int slots[4], registers[4], scalars[4]; /* free on each partition: warps, and registers of one lane or warp */
    int blocks, barriers;
};

/* AMD counts a register of 64 lanes as one, NVIDIA each lane's: here it is always one number for a whole warp. */
static struct machine empty(const struct overlap_gpu *gpu) {
    struct machine machine = {.blocks = (int)gpu->blocks, .barriers = gpu->barriers ? (int)gpu->barriers : 1 << 30};
    const bool amd = gpu->vendor == OVERLAP_VENDOR_AMD;
    for (int i = 0; i < 4; i++) {
        machine.slots[i] = amd ? 8 : (int)gpu->threads / 128;
        machine.registers[i] = amd ? 512 : 16384;
        machine.scalars[i] = 800;
    }
    return machine;
}

static int in_units(int value, int unit) {
    while (value % unit)
        value++;
    return value;
}

static int warps_of(const struct overlap_gpu *gpu, const struct overlap_footprint *f) {
    const int lanes = gpu->vendor == OVERLAP_VENDOR_AMD ? 64 : 32;
    int warps = 0;
    for (int threads = (int)f->threads; threads > 0; threads -= lanes)
        warps++;
    return warps;
}

static bool put_warp(const struct overlap_gpu *gpu, struct machine *machine, const struct overlap_footprint *f,
                     int at) {
    const bool amd = gpu->vendor == OVERLAP_VENDOR_AMD;
    machine->slots[at]--;
    machine->registers[at] -= amd ? in_units((int)f->registers, 8) : in_units((int)f->registers * 32, 256);
    machine->scalars[at] -= amd ? in_units((int)f->scalar_registers, 16) : 0;
    return machine->slots[at] >= 0 && machine->registers[at] >= 0 && machine->scalars[at] >= 0;
}

static bool put_rest(const struct overlap_gpu *gpu, struct machine *machine, const struct overlap_footprint *f) {
    const bool amd = gpu->vendor == OVERLAP_VENDOR_AMD;
    machine->blocks--;
    machine->barriers -= amd ? warps_of(gpu, f) > 1 : (int)f->barriers;
    return machine->blocks >= 0 && machine->barriers >= 0;
}

/* Each warp goes to the partition with most places left. */
static bool put_freely(const struct overlap_gpu *gpu, struct machine *machine, const struct overlap_footprint *f) {
    for (int warp = 0; warp < warps_of(gpu, f); warp++) {
        int best = 0;
        for (int at = 1; at < 4; at++)
            if (machine->slots[at] > machine->slots[best])
                best = at;
        if (!put_warp(gpu, machine, f, best))
            return false;
    }
    return put_rest(gpu, machine, f);
}

/* The safe sense: every partition has room for as many warps as the fullest one takes. */
static bool put_safely(const struct overlap_gpu *gpu, struct machine *machine, const struct overlap_footprint *f) {
    for (int warp = 0; warp < warps_of(gpu, f); warp += 4)
        for (int at = 0; at < 4; at++)
            if (!put_warp(gpu, machine, f, at))
                return false;
    return put_rest(gpu, machine, f);
}

static bool launchable(const struct overlap_gpu *gpu, const struct overlap_footprint *f) {
    struct machine machine = empty(gpu);
    const uint32_t most = gpu->vendor == OVERLAP_VENDOR_AMD ? 512 : 255;
    return f->threads >= 1 && f->threads <= 1024 && f->registers <= most &&
           f->static_shared + f->dynamic_shared <= gpu->shared_optin && put_safely(gpu, &machine, f);
}

/* Which resource runs out first, in the order in which users hear of them, when both lie on an empty multiprocessor and
 * the shared memory of K is left out; shared memory if none does. */
static enum overlap_reason short_of(const struct overlap_gpu *gpu, const struct overlap_footprint *c,
                                    const struct overlap_footprint *k) {
    const bool amd = gpu->vendor == OVERLAP_VENDOR_AMD;
    struct machine machine = empty(gpu);
    if (c->threads < 1 || c->threads > 1024)
        return OVERLAP_REASON_no_room_warps;
    if (c->registers > (amd ? 512 : 255))
        return OVERLAP_REASON_no_room_registers;
    const bool alone = put_safely(gpu, &machine, c);
    const struct overlap_footprint *blocks[] = {c, k};
    machine = empty(gpu);
    for (int i = 0; i < (alone && launchable(gpu, c) ? 2 : 1); i++) {
        for (int warp = 0; warp < warps_of(gpu, blocks[i]); warp += 4)
            for (int at = 0; at < 4; at++)
                put_warp(gpu, &machine, blocks[i], at);
        put_rest(gpu, &machine, blocks[i]);
    }
    if (machine.registers[0] < 0 || machine.scalars[0] < 0)
        return OVERLAP_REASON_no_room_registers;
    if (machine.slots[0] < 0)
        return OVERLAP_REASON_no_room_warps;
    return machine.blocks < 0 || machine.barriers < 0 ? OVERLAP_REASON_no_room_slots
                                                      : OVERLAP_REASON_no_room_shared_memory;
}

static int shared_of(const struct overlap_gpu *gpu, const struct overlap_footprint *f, int dynamic) {
    const bool amd = gpu->vendor == OVERLAP_VENDOR_AMD;
    const int bytes = (int)f->static_shared + dynamic + (amd ? 0 : 1024);
    return amd ? (bytes + 511) / 512 * 512 : (bytes + 127) / 128 * 128;
}

/* Everything but shared memory: how many blocks of K there can be, and beside how many of them C fits. */
struct others {
    int most;
    bool beside[MOST];
};

static struct others others_of(const struct overlap_gpu *gpu, const struct overlap_footprint *k,
                               const struct overlap_footprint *c) {
    struct others others = {0};
    struct machine machine = empty(gpu);
    while (put_freely(gpu, &machine, k))
        others.most++;
    for (int count = 0; count < MOST; count++) {
        struct machine both = empty(gpu);
        others.beside[count] = put_safely(gpu, &both, c);
        for (int i = 0; i < count; i++)
            others.beside[count] = others.beside[count] && put_safely(gpu, &both, k);
    }
    return others;
}

static int resident(const struct overlap_gpu *gpu, int most, int shared) {
    int left = (int)gpu->shared, count = 0;
    while (count < most && left >= shared) {
        left -= shared;
        count++;
    }
    return count;
}

static void add(struct overlap_size_range *window, int blocks, uint32_t native, uint32_t size, uint32_t *sizes) {
    if (++*sizes == 1)
        *window = (struct overlap_size_range){(uint32_t)blocks, (uint32_t)blocks < native, size, size};
    window->maximum = size;
}

static uint32_t compact(struct overlap_size_range *windows, const uint32_t *sizes, bool *gaps) {
    uint32_t count = 0;
    for (int k = MOST - 1; k >= 1; k--)
        if (sizes[k]) {
            *gaps |= windows[k].maximum - windows[k].minimum + 1 != sizes[k];
            const struct overlap_size_range found = windows[k];
            windows[MOST + count++] = found;
        }
    memmove(windows, windows + MOST, count * sizeof *windows);
    return count;
}

static struct overlap_plan judge(const struct overlap_gpu *gpu, const struct overlap_launch *launch,
                                 const struct overlap_footprint *c, uint32_t keep) {
    const struct overlap_footprint *k = &launch->footprint;
    struct overlap_plan plan = {.beside_after_drain = -1,
                                .control = OVERLAP_CONTROL_LEAVE,
                                .reason = OVERLAP_REASON_cannot_launch,
                                .dynamic_shared = k->dynamic_shared};
    if (!launchable(gpu, k))
        return plan;
    const struct others others = others_of(gpu, k, c);
    const bool fits = launchable(gpu, c);
    const int asked = shared_of(gpu, k, (int)k->dynamic_shared), beside = shared_of(gpu, c, (int)c->dynamic_shared);
    plan.native_blocks = plan.blocks = (uint32_t)resident(gpu, others.most, asked);
    for (int j = 0; fits && j <= (int)plan.native_blocks; j++)
        if (others.beside[j] && j * asked + beside <= (int)gpu->shared)
            plan.beside_after_drain = j;

    struct overlap_size_range windows[2 * MOST];
    uint32_t in_window[MOST] = {0};
    for (uint32_t size = k->dynamic_shared; fits && size <= launch->maximum_dynamic; size++) {
        if (k->static_shared + size > gpu->shared_optin)
            break;
        const int shared = shared_of(gpu, k, (int)size), count = resident(gpu, others.most, shared);
        if (count >= 1 && others.beside[count] && count * shared + beside <= (int)gpu->shared)
            add(&windows[count], count, plan.native_blocks, size, &in_window[count]);
    }
    bool gaps = false;
    plan.window_count = compact(windows, in_window, &gaps);
    memcpy(plan.windows, windows, plan.window_count * sizeof *windows);
    if (gaps) /* sizes that are no interval: nothing that the library says can be right */
        plan.window_count = UINT32_MAX;

    const bool exists = plan.window_count;
    if (plan.beside_after_drain == (int32_t)plan.native_blocks) {
        plan.control = OVERLAP_CONTROL_ROOM_ALREADY;
        plan.reason = OVERLAP_REASON_room_already;
    } else if (exists && 100 * plan.windows[0].blocks >= keep * plan.native_blocks) {
        plan.control = OVERLAP_CONTROL_MAKE_ROOM;
        plan.reason = OVERLAP_REASON_shaped;
        plan.dynamic_shared = plan.windows[0].minimum;
        plan.blocks = plan.windows[0].blocks;
    } else {
        const bool later = plan.beside_after_drain >= 1;
        plan.control = later ? OVERLAP_CONTROL_PRIORITY : OVERLAP_CONTROL_LEAVE;
        plan.reason = exists ? OVERLAP_REASON_below_keep : later ? OVERLAP_REASON_priority : short_of(gpu, c, k);
    }
    return plan;
}

/* ---- The comparison ---- */

static uint32_t size_near(const struct overlap_gpu *gpu) {
    uint32_t size = random_below(gpu->shared_optin / 2);
    if (random_below(2))
        size = gpu->shared / (1 + random_below(6)) + random_below(3000);
    return size < 2500 ? 0 : size - random_below(2500);
}

static struct overlap_footprint random_footprint(const struct overlap_gpu *gpu, bool communication) {
    static const uint32_t threads[] = {32, 64, 160, 256, 288, 384, 544, 640};
    const bool amd = gpu->vendor == OVERLAP_VENDOR_AMD;
    const uint32_t kind = random_below(4), registers = amd ? 512 : 255;
    struct overlap_footprint f = {
        .threads = random_below(3) ? threads[random_below(communication ? 8 : 5)] : 1 + random_below(1024),
        .registers = 1 + random_below(kind ? registers / 2 / kind : registers),
        .static_shared = random_below(2) ? random_below(amd ? 20000 : 37000) : 0,
        .dynamic_shared = random_below(3) ? size_near(gpu) : 0,
        .barriers = random_below(3) ? 1 : random_below(17),
        .scalar_registers = random_below(3) ? 0 : random_below(113),
    };
    if (communication && random_below(3) == 0)
        f = amd ? (struct overlap_footprint){256, random_below(2) ? 280 : 356, 19808, 0, 0, 0}
                : (struct overlap_footprint){288, 96, random_below(2) ? 20832 : 36800, 82240, 16, 0};
    return f;
}

static bool same_windows(const struct overlap_size_range *a, uint32_t count_a, const struct overlap_size_range *b,
                         uint32_t count_b) {
    return count_a == count_b && memcmp(a, b, count_a * sizeof *a) == 0;
}

static bool same(const struct overlap_plan *a, const struct overlap_plan *b) {
    return a->native_blocks == b->native_blocks && a->beside_after_drain == b->beside_after_drain &&
           a->control == b->control && a->reason == b->reason && a->dynamic_shared == b->dynamic_shared &&
           a->blocks == b->blocks && same_windows(a->windows, a->window_count, b->windows, b->window_count);
}

static void print_plan(const char *whose, const struct overlap_plan *plan) {
    printf("  %s: native %u, beside %d, control %u, reason %u, dynamic %u, blocks %u\n", whose, plan->native_blocks,
           plan->beside_after_drain, plan->control, plan->reason, plan->dynamic_shared, plan->blocks);
    for (uint32_t i = 0; i < plan->window_count && i < 32; i++)
        printf("    window k=%u %u to %u\n", plan->windows[i].blocks, plan->windows[i].minimum,
               plan->windows[i].maximum);
}

static void print_footprint(const char *what, const struct overlap_footprint *f) {
    printf("  %s: threads %u registers %u static %u dynamic %u barriers %u scalars %u\n", what, f->threads,
           f->registers, f->static_shared, f->dynamic_shared, f->barriers, f->scalar_registers);
}

int main(int argc, char **argv) {
    void *library = argc == 4 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library)
        return 2;
    uint32_t (*known)(uint32_t, struct overlap_gpu *);
    void (*plan_of)(const struct overlap_gpu *, const struct overlap_launch *, const struct overlap_footprint *,
                    uint32_t, uint32_t, uint32_t, struct overlap_plan *);
    *(void **)&known = dlsym(library, "overlap_gpu_known");
    *(void **)&plan_of = dlsym(library, "overlap_plan_of");
    struct overlap_gpu gpu;
    for (uint32_t index = 0; known(index, &gpu); index++) {
        long controls[CONTROLS] = {0}, reasons[OVERLAP_REASON_COUNT] = {0}, pairs = atol(argv[2]);
        state = strtoull(argv[3], NULL, 10) * 2654435761U + index + 1;
        for (long i = 0; i < pairs; i++) {
            struct overlap_launch launch = {.footprint = random_footprint(&gpu, false)};
            const struct overlap_footprint communication = random_footprint(&gpu, true);
            const uint32_t fixed = launch.footprint.static_shared;
            launch.maximum_dynamic = gpu.shared_optin > fixed ? gpu.shared_optin - fixed : 0;
            if (random_below(4) == 0)
                launch.maximum_dynamic = random_below(2 * gpu.shared_optin);
            const uint32_t keep = random_below(2) ? 0 : random_below(101);
            struct overlap_plan got, expected = judge(&gpu, &launch, &communication, keep);
            memset(&got, 0x5a, sizeof got);
            plan_of(&gpu, &launch, &communication, OVERLAP_SHAPE_MAKE_ROOM, 0, keep, &got);
            if (!expected.native_blocks) /* nothing else is promised of what cannot be launched */
                expected.beside_after_drain = got.beside_after_drain;
            controls[got.control % CONTROLS]++;
            reasons[got.reason % OVERLAP_REASON_COUNT]++;
            if (same(&got, &expected))
                continue;
            printf("%s: keep %u, maximum %u\n", (const char *)gpu.key, keep, launch.maximum_dynamic);
            print_footprint("computation", &launch.footprint);
            print_footprint("communication", &communication);
            print_plan("library", &got);
            print_plan("judge", &expected);
            return 1;
        }
        printf("%s %ld", (const char *)gpu.key, pairs);
        for (int control = 0; control < CONTROLS; control++)
            printf(" %ld", controls[control]);
        printf(" %ld %ld %ld %ld %ld\n", reasons[OVERLAP_REASON_below_keep], reasons[OVERLAP_REASON_no_room_registers],
               reasons[OVERLAP_REASON_no_room_warps], reasons[OVERLAP_REASON_no_room_slots],
               reasons[OVERLAP_REASON_no_room_shared_memory]);
    }
    return 0;
}
