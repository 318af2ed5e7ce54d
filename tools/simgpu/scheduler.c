/* Blocks on multiprocessors: who starts where, and how fast.
 *
 * Per multiprocessor: warps and registers in four partitions, shared memory, block slots. Kernels wait in one queue per
 * priority, in the order in which they became eligible; only the head of a queue places blocks, and a head that
 * does not fit holds up those behind it. A block goes where the fewest blocks are, lowest index first. What lower
 * priorities may do while a head of a higher one fits nowhere is the rule: hold (nothing starts), drain (nothing
 * starts on the multiprocessors chosen for it), backfill (they go on). Blocks of one kernel share a
 * multiprocessor's speed (work.c); different kernels do not slow each other.
 */
#include <math.h>
#include <string.h>

#include "sim.h"

static const double DONE_US = 1e-6;

struct block {
    struct op *op;
    double left, rate;
    uint8_t warps[PARTITIONS];
};

struct multiprocessor {
    struct block blocks[MAX_BLOCKS];
    int count;
    int warps[PARTITIONS], registers[PARTITIONS];
    size_t shared, division; /* taken; all, while anything is resident (SIMGPU_CARVEOUT) */
    double updated, next;
    uint64_t no_room_for;      /* the operation known not to fit since a block last ended here, plus one */
    const struct op *reserved; /* drain: for whom */
};

static struct device {
    const struct gpu *gpu;
    struct multiprocessor processors[MAX_MULTIPROCESSORS];
    struct op *first[PRIORITIES];
    struct sm_set all;  /* its multiprocessors */
    struct sm_set held; /* multiprocessors where nothing more may start now */
    int resident;
    bool changed;
    double next;
} devices[MAX_DEVICES];

static int level_of(const struct op *op) {
    return op->launch->priority - GREATEST_PRIORITY;
}

double sim_scheduler_next(int device) {
    return devices[device].resident > 0 ? devices[device].next : HUGE_VAL;
}

static void find_next(struct device *device) {
    device->next = HUGE_VAL;
    for (int i = 0; i < device->gpu->multiprocessors; i++)
        if (device->processors[i].count > 0)
            device->next = fmin(device->next, device->processors[i].next);
}

/* ---- one multiprocessor ---- */

static void advance(struct multiprocessor *processor, double now) {
    for (int i = 0; i < processor->count; i++)
        processor->blocks[i].left -= (now - processor->updated) * processor->blocks[i].rate;
    processor->updated = now;
}

static void set_rates(struct multiprocessor *processor, const struct work_class *work) {
    int residents = 0;
    for (int i = 0; i < processor->count; i++)
        residents += processor->blocks[i].op->launch->work == work;
    for (int i = 0; i < processor->count; i++)
        if (processor->blocks[i].op->launch->work == work)
            processor->blocks[i].rate = work->rate[residents];
}

static void set_next(struct multiprocessor *processor) {
    processor->next = HUGE_VAL;
    for (int i = 0; i < processor->count; i++) {
        const struct block *const block = &processor->blocks[i];
        processor->next = fmin(processor->next, processor->updated + fmax(block->left, 0) / block->rate);
    }
}

/* Spreads a block's warps over the partitions, the emptiest first. */
static bool find_warps(const struct gpu *gpu, const struct multiprocessor *processor, const struct launch *launch,
                       uint8_t *out) {
    const int slots = gpu->threads / WARP / PARTITIONS, file = gpu->registers / PARTITIONS;
    int room[PARTITIONS], total = 0;
    for (int i = 0; i < PARTITIONS; i++) {
        room[i] = slots - processor->warps[i];
        if (launch->registers_of_warp > 0) {
            const int by_registers = (file - processor->registers[i]) / launch->registers_of_warp;
            room[i] = by_registers < room[i] ? by_registers : room[i];
        }
        total += room[i];
        out[i] = 0;
    }
    if (total < launch->warps)
        return false;
    for (int warp = 0; warp < launch->warps; warp++) {
        int best = 0;
        for (int i = 1; i < PARTITIONS; i++)
            if (room[i] - out[i] > room[best] - out[best])
                best = i;
        out[best]++;
    }
    return true;
}

/* How much shared memory all blocks may take if one of this launch is among them. A real multiprocessor changes its
 * division only when nothing is resident (measured on an H200). */
static size_t room_for(const struct multiprocessor *processor, const struct launch *launch) {
    if (!sim_config.divides || processor->count == 0)
        return launch->room;
    return launch->least <= processor->division && processor->division <= launch->most ? processor->division : 0;
}

static bool fits(const struct gpu *gpu, const struct multiprocessor *processor, const struct launch *launch,
                 uint8_t *warps) {
    return processor->count < gpu->blocks && processor->shared + launch->shared <= room_for(processor, launch) &&
           find_warps(gpu, processor, launch, warps);
}

static void take(struct multiprocessor *processor, const struct block *block, int sign) {
    const struct launch *const launch = block->op->launch;
    for (int i = 0; i < PARTITIONS; i++) {
        processor->warps[i] += sign * block->warps[i];
        processor->registers[i] += sign * block->warps[i] * launch->registers_of_warp;
    }
    processor->shared = sign > 0 ? processor->shared + launch->shared : processor->shared - launch->shared;
}

static void put(struct device *device, struct multiprocessor *processor, struct op *op, const uint8_t *warps,
                double now) {
    struct launch *const launch = op->launch;
    advance(processor, now);
    if (processor->count == 0)
        processor->division = launch->room;
    struct block *const block = &processor->blocks[processor->count++];
    *block = (struct block){.op = op, .left = sim_block_work(launch, launch->placed)};
    memcpy(block->warps, warps, sizeof block->warps);
    take(processor, block, 1);
    set_rates(processor, launch->work);
    set_next(processor);
    if (launch->placed++ == 0)
        op->start_us = now;
    int of_launch = 0;
    for (int i = 0; i < processor->count; i++)
        of_launch += processor->blocks[i].op == op;
    launch->resident_peak = of_launch > launch->resident_peak ? of_launch : launch->resident_peak;
    device->resident++;
}

static void remove_block(struct device *device, struct multiprocessor *processor, int index) {
    take(processor, &processor->blocks[index], -1);
    memmove(&processor->blocks[index], &processor->blocks[index + 1],
            (size_t)(processor->count - index - 1) * sizeof(struct block));
    processor->count--;
    processor->no_room_for = 0;
    device->resident--;
    device->changed = true;
}

static void end_blocks(struct device *device, struct multiprocessor *processor, double now) {
    advance(processor, now);
    for (int i = 0; i < processor->count;) {
        const struct block *const block = &processor->blocks[i];
        struct op *const op = block->op;
        if (block->left > DONE_US * block->rate) {
            i++;
            continue;
        }
        remove_block(device, processor, i);
        set_rates(processor, op->launch->work);
        if (++op->launch->finished == op->launch->simulated)
            sim_op_finish(op, now);
    }
    set_next(processor);
}

void sim_scheduler_step(int index, double now) {
    struct device *const device = &devices[index];
    for (int i = 0; i < device->gpu->multiprocessors; i++) {
        struct multiprocessor *const processor = &device->processors[i];
        if (processor->count > 0 && processor->next <= now + DONE_US)
            end_blocks(device, processor, now);
    }
    find_next(device);
}

/* ---- queues ---- */

void sim_scheduler_add(struct op *op, double now) {
    struct device *const device = &devices[op->device];
    if (device->gpu == NULL) {
        device->gpu = sim_gpu(op->device);
        device->all = sim_sm_all(device->gpu);
    }
    const int level = level_of(op);
    struct op **at = &device->first[level];
    /* kernels that become eligible at the same instant go in the order of their calls */
    while (*at != NULL && ((*at)->eligible_us < now || (*at)->sequence < op->sequence || (*at)->launch->placed > 0))
        at = &(*at)->next;
    op->next = *at;
    *at = op;
    device->changed = true;
}

static bool may_use(const struct device *device, int index, const struct op *op) {
    const struct op *const reserved = device->processors[index].reserved;
    return sim_sm_has(&op->launch->usable, index) && !sim_sm_has(&device->held, index) &&
           (reserved == NULL || reserved == op || level_of(reserved) >= level_of(op));
}

static int find_place(struct device *device, const struct op *op, int from, int to, uint8_t *warps) {
    int best = -1;
    for (int i = from; i < to; i++) {
        struct multiprocessor *const processor = &device->processors[i];
        uint8_t found[PARTITIONS];
        if ((best >= 0 && processor->count >= device->processors[best].count) ||
            processor->no_room_for == op->sequence + 1 || !may_use(device, i, op))
            continue;
        if (!fits(device->gpu, processor, op->launch, found)) {
            processor->no_room_for = op->sequence + 1;
            continue;
        }
        best = i;
        memcpy(warps, found, sizeof found);
    }
    return best;
}

static bool place_block(struct device *device, struct op *op, double now) {
    uint8_t warps[PARTITIONS];
    const int place = find_place(device, op, 0, device->gpu->multiprocessors, warps);
    if (place >= 0)
        put(device, &device->processors[place], op, warps, now);
    return place >= 0;
}

/* All blocks of a cluster start at once, in one set of multiprocessors. */
static bool place_cluster(struct device *device, struct op *op, double now) {
    static struct multiprocessor saved[CLUSTER_SET];
    const int count = device->gpu->multiprocessors;
    for (int from = 0; from < count; from += CLUSTER_SET) {
        const int to = from + CLUSTER_SET < count ? from + CLUSTER_SET : count;
        memcpy(saved, &device->processors[from], (size_t)(to - from) * sizeof *saved);
        const int resident = device->resident, peak = op->launch->resident_peak;
        const uint64_t placed = op->launch->placed;
        const double started = op->start_us;
        int done = 0;
        for (; done < op->launch->cluster; done++) {
            uint8_t warps[PARTITIONS];
            const int place = find_place(device, op, from, to, warps);
            if (place < 0)
                break;
            put(device, &device->processors[place], op, warps, now);
        }
        if (done == op->launch->cluster)
            return true;
        memcpy(&device->processors[from], saved, (size_t)(to - from) * sizeof *saved);
        device->resident = resident;
        op->launch->placed = placed;
        op->launch->resident_peak = peak;
        op->start_us = started;
    }
    return false;
}

/* ---- drain: multiprocessors chosen for a head that fits nowhere ---- */

static void unreserve(struct device *device, const struct op *op) {
    for (int i = 0; i < device->gpu->multiprocessors; i++)
        if (device->processors[i].reserved == op)
            device->processors[i].reserved = NULL;
}

static void reserve(struct device *device, const struct op *op) {
    const struct launch *const launch = op->launch;
    const struct footprint footprint = {.threads = launch->threads,
                                        .registers = launch->work->registers,
                                        .static_shared = launch->work->static_shared,
                                        .dynamic = launch->dynamic};
    const int by_room = (int)(launch->room / launch->shared), by_all = sim_occupancy(device->gpu, &footprint);
    const int each = by_room < by_all ? by_room : by_all, count = device->gpu->multiprocessors;
    const uint64_t pending = launch->simulated - launch->placed;
    uint64_t wanted = each > 0 ? (pending + (uint64_t)each - 1) / (uint64_t)each : pending;
    wanted = launch->cluster > 1 ? (wanted + CLUSTER_SET - 1) / CLUSTER_SET * CLUSTER_SET : wanted;
    for (int i = 0; i < count; i++)
        if (device->processors[i].reserved == op) {
            if (wanted > 0)
                wanted--;
            else
                device->processors[i].reserved = NULL;
        }
    while (wanted > 0) {
        int best = -1;
        for (int i = 0; i < count; i++) {
            const struct op *const other = device->processors[i].reserved;
            if (!sim_sm_has(&launch->usable, i) || sim_sm_has(&device->held, i))
                continue;
            if (other != NULL && level_of(other) <= level_of(op)) /* what a lower priority reserved is taken over */
                continue;
            if (best < 0 || (launch->cluster <= 1 && device->processors[i].count < device->processors[best].count))
                best = i;
        }
        if (best < 0)
            return;
        device->processors[best].reserved = op;
        wanted--;
    }
}

/* Places what it can of one kernel. False: its next block fits nowhere. */
static bool place_kernel(struct device *device, struct op *op, double now) {
    struct launch *const launch = op->launch;
    while (launch->placed < launch->simulated)
        if (launch->cluster > 1 ? !place_cluster(device, op, now) : !place_block(device, op, now))
            return false;
    unreserve(device, op);
    return true;
}

static bool covers(const struct sm_set *set, const struct sm_set *other) {
    for (size_t i = 0; i < sizeof set->bits / sizeof *set->bits; i++)
        if ((other->bits[i] & ~set->bits[i]) != 0)
            return false;
    return true;
}

static void hold(struct device *device, const struct sm_set *set) {
    for (size_t i = 0; i < sizeof set->bits / sizeof *set->bits; i++)
        device->held.bits[i] |= set->bits[i];
}

/* Places what it can of one queue. A kernel that does not fit holds up those behind it on all multiprocessors that it
 * may use: on all of the device, unless it runs in a green context. False: there is such a kernel. */
static bool place_level(struct device *device, int level, double now) {
    bool placed = true;
    for (struct op **at = &device->first[level]; *at != NULL && !covers(&device->held, &device->all);) {
        struct op *const op = *at;
        if (place_kernel(device, op, now)) {
            *at = op->next;
            continue;
        }
        placed = false;
        if (sim_config.rule == RULE_DRAIN)
            reserve(device, op);
        hold(device, &op->launch->usable);
        at = &op->next;
    }
    return placed;
}

void sim_scheduler_dispatch(int index, double now) {
    struct device *const device = &devices[index];
    if (!device->changed)
        return;
    device->changed = false;
    device->held = (struct sm_set){0};
    for (int level = 0; level < PRIORITIES; level++)
        if (!place_level(device, level, now) && sim_config.rule != RULE_HOLD)
            device->held = (struct sm_set){0};
    find_next(device);
}
