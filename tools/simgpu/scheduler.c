/* Blocks on multiprocessors: who starts where.
 *
 * Per multiprocessor: warps and registers in four partitions, shared memory, block slots. Kernels
 * wait in one queue per priority, in the order in which they became eligible; only the head of a queue places
 * blocks, and a head that does not fit holds up those behind it. A block goes where the fewest blocks are, lowest index
 * first. What lower priorities may do while a head of a higher one fits nowhere is the rule: hold (nothing starts), drain
 * (nothing starts on the multiprocessors chosen for it), backfill (they go on).
 */
#include <math.h>
#include <string.h>

#include "sim.h"

/* A block has ended when what is left of it is less than this much time, and what times at `now` are rounded by: a block
 * that is due by a rounded time must have ended, or time stands still. speed: of the block's clock. */
static double done_us(double now, double speed) {
    return 1e-6 * speed + 0x1p-50 * now;
}

/* A moment, by two clocks. The second is that of all blocks that move memory: while the bandwidth of the device is
 * short it goes more slowly. So a change of their speed changes one number of the device, and no block. */
struct moment {
    double us, memory_us;
};

/* fmin() of numbers; without -ffast-math that is a call into libm, and it took a fifth of the simulator's time. */
static double earlier(double one, double other) {
    return other < one ? other : one;
}

struct block {
    struct op *op;
    double left, rate;
    uint8_t warps[PARTITIONS];
};

struct multiprocessor {
    struct block blocks[MAX_BLOCKS];
    int count;
    int warps[PARTITIONS], registers[PARTITIONS], scalars[PARTITIONS];
    int barriers;  /* taken (vendor.h) */
    size_t shared; /* likewise */
    struct moment updated;
    struct moment next;        /* when the first block ends, of each clock */
    double demand;             /* bytes a microsecond that its blocks move while bandwidth is not short */
    uint64_t no_room_for;      /* the operation known not to fit since a block last ended here, plus one */
    const struct op *reserved; /* drain: for whom */
};

/* ---- one multiprocessor: what fits, how fast each block runs, which ends next ----
 *
 * Blocks of one kernel share the speed of their multiprocessor (work.c). While blocks of another kernel are there,
 * too, a block takes 1 + `sharing` times as long. A block that moves memory runs by the memory clock of its
 * device, which goes more slowly while the bandwidth is short.
 */

static bool moves_memory(const struct block *block) {
    return block->op->launch->work->bytes_per_us > 0;
}

static void processor_advance(struct multiprocessor *processor, const struct moment *now) {
    for (int i = 0; i < processor->count; i++) {
        struct block *const block = &processor->blocks[i];
        const double passed =
            moves_memory(block) ? now->memory_us - processor->updated.memory_us : now->us - processor->updated.us;
        block->left -= passed * block->rate;
    }
    processor->updated = *now;
}

static int residents_of(const struct multiprocessor *processor, const struct work_class *work) {
    int residents = 0;
    for (int i = 0; i < processor->count; i++)
        residents += processor->blocks[i].op->launch->work == work;
    return residents;
}

static void set_rates(struct multiprocessor *processor) {
    const struct work_class *work = NULL;
    double rate = 1;
    processor->demand = 0;
    for (int i = 0; i < processor->count; i++) {
        struct block *const block = &processor->blocks[i];
        if (block->op->launch->work != work) { /* mostly the same as of the block before */
            work = block->op->launch->work;
            const int residents = residents_of(processor, work);
            rate = work->rate[residents] / (residents < processor->count ? 1 + work->sharing : 1);
        }
        block->rate = rate;
        processor->demand += rate * work->bytes_per_us;
    }
}

static void set_next(struct multiprocessor *processor) {
    processor->next = (struct moment){HUGE_VAL, HUGE_VAL};
    for (int i = 0; i < processor->count; i++) {
        const struct block *const block = &processor->blocks[i];
        const double wait = fmax(block->left, 0) / block->rate;
        if (moves_memory(block))
            processor->next.memory_us = earlier(processor->next.memory_us, processor->updated.memory_us + wait);
        else
            processor->next.us = earlier(processor->next.us, processor->updated.us + wait);
    }
}

/* Blocks have come or gone: all have other speeds. */
static void processor_changed(struct multiprocessor *processor) {
    set_rates(processor);
    set_next(processor);
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
        if (launch->scalars_of_warp > 0) {
            const int by_scalars = (SCALAR_FILE - processor->scalars[i]) / launch->scalars_of_warp;
            room[i] = by_scalars < room[i] ? by_scalars : room[i];
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

static int barriers_of(const struct launch *launch) {
    return BARRIERS > 0 && launch->warps > 1;
}

static bool processor_fits(const struct gpu *gpu, const struct multiprocessor *processor, const struct launch *launch,
                           uint8_t *warps) {
    return processor->count < gpu->blocks && processor->barriers + barriers_of(launch) <= BARRIERS &&
           processor->shared + launch->shared <= launch->room && find_warps(gpu, processor, launch, warps);
}

static void take(struct multiprocessor *processor, const struct block *block, int sign) {
    const struct launch *const launch = block->op->launch;
    for (int i = 0; i < PARTITIONS; i++) {
        processor->warps[i] += sign * block->warps[i];
        processor->registers[i] += sign * block->warps[i] * launch->registers_of_warp;
        processor->scalars[i] += sign * block->warps[i] * launch->scalars_of_warp;
    }
    processor->barriers += sign * barriers_of(launch);
    processor->shared = sign > 0 ? processor->shared + launch->shared : processor->shared - launch->shared;
}

static void processor_put(struct multiprocessor *processor, struct op *op, const uint8_t *warps,
                          const struct moment *now) {
    struct launch *const launch = op->launch;
    processor_advance(processor, now);
    struct block *const block = &processor->blocks[processor->count++];
    *block = (struct block){.op = op, .left = sim_block_work(launch, launch->placed)};
    memcpy(block->warps, warps, sizeof block->warps);
    take(processor, block, 1);
    processor_changed(processor);
    if (launch->placed++ == 0)
        op->start_us = now->us;
    int of_launch = 0;
    for (int i = 0; i < processor->count; i++)
        of_launch += processor->blocks[i].op == op;
    launch->resident_peak = of_launch > launch->resident_peak ? of_launch : launch->resident_peak;
}

/* The first block from `*from` on that has ended, taken out; NULL: none. `speed`: that of the memory clock. */
static struct op *processor_take_ended(struct multiprocessor *processor, int *from, double speed) {
    for (int i = *from; i < processor->count; i++) {
        const struct block *const block = &processor->blocks[i];
        if (block->left > done_us(processor->updated.us, moves_memory(block) ? speed : 1) * block->rate)
            continue;
        struct op *const op = block->op;
        take(processor, block, -1);
        memmove(&processor->blocks[i], &processor->blocks[i + 1],
                (size_t)(processor->count - i - 1) * sizeof(struct block));
        processor->count--;
        processor->no_room_for = 0;
        *from = i;
        return op;
    }
    return NULL;
}

/* ---- the device ---- */

static struct device {
    const struct gpu *gpu;
    struct multiprocessor processors[MAX_MULTIPROCESSORS];
    struct op *first[PRIORITIES];
    struct sm_set all;  /* its multiprocessors */
    struct sm_set held; /* multiprocessors where nothing more may start now */
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
        next.us = earlier(next.us, processor->next.us);
        next.memory_us = earlier(next.memory_us, processor->next.memory_us);
    }
    device->speed = demand > device->bandwidth ? device->bandwidth / demand : 1;
    device->next = earlier(next.us, device->now.us + (next.memory_us - device->now.memory_us) / device->speed);
}

static void put(struct device *device, struct multiprocessor *processor, struct op *op, const uint8_t *warps) {
    processor_put(processor, op, warps, &device->now);
    device->resident++;
}

static bool is_due(const struct device *device, const struct multiprocessor *processor) {
    const struct moment *const now = &device->now;
    return processor->count > 0 && (processor->next.us <= now->us + done_us(now->us, 1) ||
                                    processor->next.memory_us <= now->memory_us + done_us(now->us, device->speed));
}

static void end_blocks(struct device *device, struct multiprocessor *processor) {
    processor_advance(processor, &device->now);
    struct op *op;
    for (int i = 0; (op = processor_take_ended(processor, &i, device->speed)) != NULL;) {
        device->resident--;
        device->changed = true;
        if (++op->launch->finished == op->launch->simulated)
            sim_op_finish(op, device->now.us);
    }
    processor_changed(processor);
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
        device->all = sim_sm_all(device->gpu);
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
    return sim_sm_has(&op->launch->usable, index) && !sim_sm_has(&device->held, index) &&
           (reserved == NULL || reserved == op || level_of(reserved) >= level_of(op));
}

/* Where the fewest blocks are, lowest index first. False: the next block fits nowhere. */
static bool place_block(struct device *device, struct op *op) {
    struct multiprocessor *best = NULL;
    uint8_t warps[PARTITIONS], found[PARTITIONS];
    for (int i = 0; i < device->gpu->multiprocessors; i++) {
        struct multiprocessor *const processor = &device->processors[i];
        if ((best != NULL && processor->count >= best->count) || processor->no_room_for == op->sequence + 1 ||
            !may_use(device, i, op))
            continue;
        if (!processor_fits(device->gpu, processor, op->launch, found)) {
            processor->no_room_for = op->sequence + 1;
            continue;
        }
        best = processor;
        memcpy(warps, found, sizeof found);
    }
    if (best != NULL)
        put(device, best, op, warps);
    return best != NULL;
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
    if (!sim_sm_has(&op->launch->usable, index) || sim_sm_has(&device->held, index))
        return false;
    if (other != NULL && other != op && level_of(other) <= level_of(op))
        return false;
    int own = 0;
    for (int i = 0; i < processor->count; i++)
        own += processor->blocks[i].op == op;
    return own < each;
}

/* As many multiprocessors as it needs: those that it has, and those with fewest residents. */
static void reserve(struct device *device, const struct op *op) {
    const int each = drained_room(device, op->launch);
    const uint64_t pending = op->launch->simulated - op->launch->placed;
    uint64_t wanted = (pending + (uint64_t)each - 1) / (uint64_t)each;
    for (int i = 0; i < device->gpu->multiprocessors; i++) {
        struct multiprocessor *const processor = &device->processors[i];
        if (processor->reserved == op && wanted > 0 && may_reserve(device, op, i, each))
            wanted--;
        else if (processor->reserved == op)
            processor->reserved = NULL;
    }
    for (; wanted > 0; wanted--) {
        struct multiprocessor *best = NULL;
        for (int i = 0; i < device->gpu->multiprocessors; i++) {
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

/* Places what it can of one kernel. False: its next block fits nowhere. */
static bool place_kernel(struct device *device, struct op *op) {
    struct launch *const launch = op->launch;
    while (launch->placed < launch->simulated)
        if (!place_block(device, op))
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
static bool place_level(struct device *device, int level) {
    bool placed = true;
    for (struct op **at = &device->first[level]; *at != NULL && !covers(&device->held, &device->all);) {
        struct op *const op = *at;
        if (place_kernel(device, op)) {
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
    set_clock(device, now);
    device->held = (struct sm_set){0};
    for (int level = 0; level < PRIORITIES; level++)
        if (!place_level(device, level) && sim_config.rule != RULE_HOLD)
            device->held = (struct sm_set){0};
    find_next(device);
}
