/* Memory operations of a stream: it waits until a value in memory is as asked, or writes one.
 *
 * They take effect in virtual time; so do copies that are called while one of them is pending (copy.c). What waits is looked
 * at again when such a write has happened, and, for what the host has written, at the next call. A wait that nothing satisfies keeps its stream; a host that
 * waits for that is told LAUNCH_TIMEOUT (ops.c).
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { MOST = 256, WRITE_WITHOUT_BARRIER = 1 };

static struct op *waiting; /* in the order in which they began to */
static bool wrote;
static uint32_t pending;

static bool is_wide(int operation) {
    return operation == MEM_OP_WAIT_64 || operation == MEM_OP_WRITE_64;
}

static bool is_wait(int operation) {
    return operation == MEM_OP_WAIT_32 || operation == MEM_OP_WAIT_64;
}

static CUresult check(const CUstreamBatchMemOpParams *what) {
    switch (what->operation) {
    case MEM_OP_WAIT_32:
    case MEM_OP_WAIT_64:
    case MEM_OP_WRITE_32:
    case MEM_OP_WRITE_64:
        break;
    case MEM_OP_BARRIER: /* everything is seen at once here */
        return what->barrier.flags <= 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case MEM_OP_FLUSH:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    const unsigned int bytes = is_wide(what->operation) ? 8 : 4, flags = what->value.flags;
    if (what->value.address % bytes != 0 || !sim_memory_has(what->value.address, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (is_wait(what->operation) && (flags & ~3u) == 1u << 30)
        return CUDA_ERROR_NOT_SUPPORTED; /* flushes remote writes; cuDeviceGetAttribute says that it cannot */
    return flags <= (is_wait(what->operation) ? WAIT_NOR : WRITE_WITHOUT_BARRIER) ? CUDA_SUCCESS
                                                                                  : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_batch_make(const CUstreamBatchMemOpParams *each, unsigned int count, struct batch **out) {
    if (each == NULL || count == 0 || count > MOST)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; i++) {
        const CUresult result = check(&each[i]);
        if (result != CUDA_SUCCESS)
            return result;
    }
    *out = malloc(sizeof **out + count * sizeof *each);
    if (*out == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*out)->count = count;
    memcpy((*out)->each, each, count * sizeof *each);
    return CUDA_SUCCESS;
}

struct batch *sim_batch_copy(const struct batch *batch) {
    const size_t bytes = sizeof *batch + batch->count * sizeof *batch->each;
    struct batch *const copy = malloc(bytes);
    return copy != NULL ? memcpy(copy, batch, bytes) : NULL;
}

/* Memory that is gone by now never satisfies. */
static bool is_satisfied(const CUstreamBatchMemOpParams *what) {
    const bool wide = is_wide(what->operation);
    if (!sim_memory_has(what->value.address, wide ? 8 : 4))
        return false;
    const uint64_t mask = wide ? UINT64_MAX : UINT32_MAX, value = what->value.value & mask;
    uint64_t now = 0;
    memcpy(&now, (const void *)(uintptr_t)what->value.address, wide ? 8 : 4); /* the low half, on a little endian */
    switch (what->value.flags) {
    case WAIT_GEQ: /* the difference has no sign bit: it wraps around */
        return ((now - value) & (wide ? UINT64_C(1) << 63 : UINT64_C(1) << 31)) == 0;
    case WAIT_EQ:
        return now == value;
    case WAIT_AND:
        return (now & value) != 0;
    default:
        return (~(now | value) & mask) != 0;
    }
}

static void write_value(const CUstreamBatchMemOpParams *what) {
    const size_t bytes = is_wide(what->operation) ? 8 : 4;
    if (!sim_memory_has(what->value.address, bytes))
        return;
    memcpy((void *)(uintptr_t)what->value.address, &what->value.value, bytes);
    wrote = true;
}

/* Goes on to the first wait that is not satisfied. True: there is none. */
static bool go_on(struct op *op) {
    for (; op->batch_at < op->batch->count; op->batch_at++) {
        const CUstreamBatchMemOpParams *const what = &op->batch->each[op->batch_at];
        if (is_wait(what->operation) && !is_satisfied(what))
            return false;
        if (what->operation == MEM_OP_WRITE_32 || what->operation == MEM_OP_WRITE_64)
            write_value(what);
    }
    return true;
}

void sim_batch_attach(struct op *op, struct batch *batch) {
    op->batch = batch;
    pending++;
}

void sim_batch_ended(void) {
    pending--;
}

bool sim_batch_pending(void) {
    return pending > 0;
}

void sim_batch_note_write(void) {
    wrote = true;
}

bool sim_batch_start(struct op *op) {
    if (go_on(op))
        return true;
    struct op **at = &waiting;
    while (*at != NULL)
        at = &(*at)->next;
    op->next = NULL;
    *at = op;
    return false;
}

bool sim_batch_wrote(void) {
    const bool before = wrote;
    wrote = false;
    return before;
}

struct op *sim_batch_take_done(void) {
    for (struct op **at = &waiting; *at != NULL; at = &(*at)->next) {
        struct op *const op = *at;
        if (!go_on(op))
            continue;
        *at = op->next;
        op->next = NULL;
        return op;
    }
    return NULL;
}

bool sim_batch_any(bool ready) {
    for (const struct op *op = waiting; op != NULL; op = op->next)
        if (!ready || is_satisfied(&op->batch->each[op->batch_at]))
            return true;
    return false;
}
