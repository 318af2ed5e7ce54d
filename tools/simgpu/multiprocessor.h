/* One multiprocessor and the blocks on it. Between the two files of the scheduler only. */
#ifndef SIMGPU_MULTIPROCESSOR_H
#define SIMGPU_MULTIPROCESSOR_H

#include "sim.h"

/* A block has ended when what is left of it is less than this much time, and what times at `now` are rounded by: a block
 * that is due by a rounded time must have ended, or time stands still. speed: of the block's clock. */
static inline double sim_done_us(double now, double speed) {
    return 1e-6 * speed + 0x1p-50 * now;
}

/* A moment, by two clocks. The second is that of all blocks that move memory: while the bandwidth of the device is
 * short it goes more slowly. So a change of their speed changes one number of the device, and no block. */
struct moment {
    double us, memory_us;
};

/* fmin() of numbers; without -ffast-math that is a call into libm, and it took a fifth of the simulator's time. */
static inline double sim_earlier(double one, double other) {
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
    struct moment next;   /* when the first block ends, of each clock */
    double demand;        /* bytes a microsecond that its blocks move while bandwidth is not short */
    uint64_t no_room_for; /* the operation known not to fit since a block last ended here, plus one */
};

bool sim_processor_fits(const struct gpu *gpu, const struct multiprocessor *processor, const struct launch *launch,
                        uint8_t *warps);
void sim_processor_put(struct multiprocessor *processor, struct op *op, const uint8_t *warps, const struct moment *now);
/* The first block from `from` on that has ended, taken out; NULL: none. `speed`: that of the memory clock. */
struct op *sim_processor_take_ended(struct multiprocessor *processor, int *from, double speed);
void sim_processor_advance(struct multiprocessor *processor, const struct moment *now);
void sim_processor_changed(struct multiprocessor *processor);

#endif
