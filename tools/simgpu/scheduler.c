/* Blocks on multiprocessors: who starts where.
 *
 * Per multiprocessor: warps and registers in four partitions, shared memory, block slots (multiprocessor.c). Kernels
 * wait in one queue per priority, in the order in which they became eligible; only the head of a queue places
 * blocks, and a head that does not fit holds up those behind it. A block goes where the fewest blocks are, lowest index
 * first. What lower priorities may do while a head of a higher one fits nowhere is the rule: hold (nothing starts), drain
 * (nothing starts on the multiprocessors chosen for it), backfill (they go on).
 */
#include <math.h>
#include <string.h>

#include "multiprocessor.h"

static struct device {
    const struct gpu *gpu;
    struct multiprocessor processors[MAX_MULTIPROCESSORS];
    struct op *first[PRIORITIES];
    int resident;
    bool changed;
    double next;
    double bandwidth; /* bytes a microsecond */
    struct moment now;
    double speed; /* of the memory clock, from `now` on: 1 unless bandwidth is short */
} devices[MAX_DEVICES];

static int level_of(const struct op *op) {
    return op->launch->priority - GREATEST_PRIORITY;
}

double sim_scheduler_next(int device) {
    return devices[device].resident > 0 ? devices[device].next : HUGE_VAL;
}

static void set_clock(struct device *device, double now) {
    device->now.memory_us += (now - device->now.us) * device->speed;
    device->now.us = now;
}

/* Which block ends next. All blocks that move memory are slowed by one factor while together they would move more
 * than the device can: what each gets is in proportion to what it asks for. */
static void find_next(struct device *device) {
    struct moment next = {HUGE_VAL, HUGE_VAL};
    double demand = 0;
    for (int i = 0; i < device->gpu->multiprocessors; i++) {
        const struct multiprocessor *const processor = &device->processors[i];
        if (processor->count == 0)
            continue;
        demand += processor->demand;
        next.us = sim_earlier(next.us, processor->next.us);
        next.memory_us = sim_earlier(next.memory_us, processor->next.memory_us);
    }
    device->speed = demand > device->bandwidth ? device->bandwidth / demand : 1;
    device->next = sim_earlier(next.us, device->now.us + (next.memory_us - device->now.memory_us) / device->speed);
}

static void put(struct device *device, struct multiprocessor *processor, struct op *op, const uint8_t *warps) {
    sim_processor_put(processor, op, warps, &device->now);
    device->resident++;
}

static bool is_due(const struct device *device, const struct multiprocessor *processor) {
    const struct moment *const now = &device->now;
    return processor->count > 0 && (processor->next.us <= now->us + sim_done_us(now->us, 1) ||
                                    processor->next.memory_us <= now->memory_us + sim_done_us(now->us, device->speed));
}

static void end_blocks(struct device *device, struct multiprocessor *processor) {
    sim_processor_advance(processor, &device->now);
    struct op *op;
    for (int i = 0; (op = sim_processor_take_ended(processor, &i, device->speed)) != NULL;) {
        device->resident--;
        device->changed = true;
        if (++op->launch->finished == op->launch->simulated)
            sim_op_finish(op, device->now.us);
    }
    sim_processor_changed(processor);
}

void sim_scheduler_step(int index, double now) {
    struct device *const device = &devices[index];
    set_clock(device, now);
    for (int i = 0; i < device->gpu->multiprocessors; i++)
        if (is_due(device, &device->processors[i]))
            end_blocks(device, &device->processors[i]);
    find_next(device);
}

/* ---- queues ---- */

void sim_scheduler_add(struct op *op, double now) {
    struct device *const device = &devices[op->device];
    if (device->gpu == NULL) {
        device->gpu = sim_gpu(op->device);
        device->bandwidth = sim_bandwidth(device->gpu);
        device->speed = 1;
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
    return reserved == NULL || reserved == op || level_of(reserved) >= level_of(op);
}

/* Where the fewest blocks are, lowest index first; -1: the next block fits nowhere. */
static int find_place(struct device *device, const struct op *op, int from, int to, uint8_t *warps) {
    int best = -1;
    for (int i = from; i < to; i++) {
        struct multiprocessor *const processor = &device->processors[i];
        uint8_t found[PARTITIONS];
        if ((best >= 0 && processor->count >= device->processors[best].count) ||
            processor->no_room_for == op->sequence + 1 || !may_use(device, i, op))
            continue;
        if (!sim_processor_fits(device->gpu, processor, op->launch, found)) {
            processor->no_room_for = op->sequence + 1;
            continue;
        }
        best = i;
        memcpy(warps, found, sizeof found);
    }
    return best;
}

static bool place_block(struct device *device, struct op *op) {
    uint8_t warps[PARTITIONS];
    const int place = find_place(device, op, 0, device->gpu->multiprocessors, warps);
    if (place >= 0)
        put(device, &device->processors[place], op, warps);
    return place >= 0;
}

/* All blocks of a cluster start at once, in one set of multiprocessors. */
static bool place_cluster(struct device *device, struct op *op) {
    static struct multiprocessor saved[CLUSTER_SET];
    const int count = device->gpu->multiprocessors;
    for (int from = 0; from < count; from += CLUSTER_SET) {
        const int to = from + CLUSTER_SET < count ? from + CLUSTER_SET : count;
        uint8_t warps[PARTITIONS];
        if (find_place(device, op, from, to, warps) < 0) /* the common case, and much cheaper than to try */
            continue;
        memcpy(saved, &device->processors[from], (size_t)(to - from) * sizeof *saved);
        const int resident = device->resident, peak = op->launch->resident_peak;
        const uint64_t placed = op->launch->placed;
        const double started = op->start_us;
        int done = 0;
        for (; done < op->launch->cluster; done++) {
            const int place = find_place(device, op, from, to, warps);
            if (place < 0)
                break;
            put(device, &device->processors[place], op, warps);
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

/* How many blocks of a launch a multiprocessor takes that has drained. */
static int drained_room(const struct device *device, const struct launch *launch) {
    const struct footprint footprint = {.threads = launch->threads,
                                        .registers = launch->work->registers,
                                        .scalars = launch->work->scalars,
                                        .static_shared = launch->work->static_shared,
                                        .dynamic = launch->dynamic};
    const int by_room = launch->shared > 0 ? (int)(launch->room / launch->shared) : MAX_BLOCKS;
    const int by_all = sim_occupancy(device->gpu, &footprint);
    const int each = by_room < by_all ? by_room : by_all;
    return each > 0 ? each : 1;
}

/* One that is full of its own blocks is of no use to it. What a lower priority reserved is taken over. */
static bool may_reserve(const struct device *device, const struct op *op, int index, int each) {
    const struct multiprocessor *const processor = &device->processors[index];
    const struct op *const other = processor->reserved;
    if (other != NULL && other != op && level_of(other) <= level_of(op))
        return false;
    int own = 0;
    for (int i = 0; i < processor->count; i++)
        own += processor->blocks[i].op == op;
    return own < each;
}

/* Makes it `wanted` multiprocessors among those from `from` to `to`: what it has, and those with fewest residents. */
static void reserve_some(struct device *device, const struct op *op, int from, int to, int each, uint64_t wanted) {
    for (int i = from; i < to; i++) {
        struct multiprocessor *const processor = &device->processors[i];
        if (processor->reserved == op && wanted > 0 && may_reserve(device, op, i, each))
            wanted--;
        else if (processor->reserved == op)
            processor->reserved = NULL;
    }
    for (; wanted > 0; wanted--) {
        struct multiprocessor *best = NULL;
        for (int i = from; i < to; i++) {
            struct multiprocessor *const processor = &device->processors[i];
            if (processor->reserved != op && may_reserve(device, op, i, each) &&
                (best == NULL || processor->count < best->count))
                best = processor;
        }
        if (best == NULL)
            return;
        best->reserved = op;
    }
}

static int count_reserved(const struct device *device, const struct op *op, int from, int to) {
    int found = 0;
    for (int i = from; i < to; i++)
        found += device->processors[i].reserved == op;
    return found;
}

/* Whole clusters in each set: first in those where some were reserved before, which have begun to drain. */
static void reserve_clusters(struct device *device, const struct op *op, int each) {
    const struct launch *const launch = op->launch;
    const int needed = (launch->cluster + each - 1) / each, count = device->gpu->multiprocessors;
    uint64_t clusters = (launch->simulated - launch->placed) / (uint64_t)launch->cluster;
    bool before[MAX_MULTIPROCESSORS / CLUSTER_SET + 1];
    for (int set = 0; set * CLUSTER_SET < count; set++)
        before[set] = count_reserved(device, op, set * CLUSTER_SET, set * CLUSTER_SET + CLUSTER_SET) > 0;
    for (int pass = 0; pass < 2; pass++)
        for (int set = 0; set * CLUSTER_SET < count; set++) {
            const int from = set * CLUSTER_SET, to = from + CLUSTER_SET < count ? from + CLUSTER_SET : count;
            uint64_t room = 0;
            for (int i = from; i < to; i++)
                room += may_reserve(device, op, i, each);
            room /= (uint64_t)needed;
            const uint64_t here = room < clusters ? room : clusters;
            if (before[set] != (pass == 0))
                continue;
            reserve_some(device, op, from, to, each, here * (uint64_t)needed);
            clusters -= here;
        }
}

static void reserve(struct device *device, const struct op *op) {
    const struct launch *const launch = op->launch;
    const int each = drained_room(device, launch);
    const uint64_t pending = launch->simulated - launch->placed;
    if (launch->cluster > 1)
        reserve_clusters(device, op, each);
    else
        reserve_some(device, op, 0, device->gpu->multiprocessors, each,
                     (pending + (uint64_t)each - 1) / (uint64_t)each);
}

/* Places what it can of one kernel. False: its next block fits nowhere. */
static bool place_kernel(struct device *device, struct op *op) {
    struct launch *const launch = op->launch;
    while (launch->placed < launch->simulated)
        if (launch->cluster > 1 ? !place_cluster(device, op) : !place_block(device, op))
            return false;
    unreserve(device, op);
    return true;
}

/* Places what it can of one queue. A kernel that does not fit holds up those behind it. False: there is such a kernel. */
static bool place_level(struct device *device, int level) {
    struct op **const first = &device->first[level];
    while (*first != NULL) {
        struct op *const op = *first;
        if (!place_kernel(device, op)) {
            if (sim_config.rule == RULE_DRAIN)
                reserve(device, op);
            return false;
        }
        *first = op->next;
    }
    return true;
}

void sim_scheduler_dispatch(int index, double now) {
    struct device *const device = &devices[index];
    if (!device->changed)
        return;
    device->changed = false;
    set_clock(device, now);
    for (int level = 0; level < PRIORITIES; level++)
        if (!place_level(device, level) && sim_config.rule == RULE_HOLD)
            break;
    find_next(device);
}
