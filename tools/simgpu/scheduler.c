/* Blocks on multiprocessors: who starts where.
 *
 * Per multiprocessor: warps and registers in four partitions, shared memory, block slots (multiprocessor.c). Kernels
 * wait in one queue per priority, in the order in which they became eligible; only the head of a queue places
 * blocks, and a head that does not fit holds up those behind it and all of lower priority. A block goes where the fewest
 * blocks are, lowest index first.
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

/* Where the fewest blocks are, lowest index first; -1: the next block fits nowhere. */
static int find_place(struct device *device, const struct op *op, uint8_t *warps) {
    int best = -1;
    for (int i = 0; i < device->gpu->multiprocessors; i++) {
        struct multiprocessor *const processor = &device->processors[i];
        uint8_t found[PARTITIONS];
        if ((best >= 0 && processor->count >= device->processors[best].count) ||
            processor->no_room_for == op->sequence + 1)
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
    const int place = find_place(device, op, warps);
    if (place >= 0)
        put(device, &device->processors[place], op, warps);
    return place >= 0;
}

/* Places what it can of one kernel. False: its next block fits nowhere. */
static bool place_kernel(struct device *device, struct op *op) {
    struct launch *const launch = op->launch;
    while (launch->placed < launch->simulated)
        if (!place_block(device, op))
            return false;
    return true;
}

/* Places what it can of one queue. A kernel that does not fit holds up those behind it. False: there is such a kernel. */
static bool place_level(struct device *device, int level) {
    struct op **const first = &device->first[level];
    while (*first != NULL) {
        struct op *const op = *first;
        if (!place_kernel(device, op))
            return false;
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
        if (!place_level(device, level))
            break;
    find_next(device);
}
