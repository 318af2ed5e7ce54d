/* Operations of the device and the engine that runs them in virtual time.
 *
 * An operation waits for others and for its own arrival (the moment the host queued it). The engine steps from event
 * to event: timers (arrivals, ends of copies and host functions) and ends of blocks. Everything that happens at one instant is
 * settled before new blocks are placed. Ties are broken by the order of calls, so runs are repeatable.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static const double SAME_INSTANT_US = 1e-6;

struct timer {
    double time;
    uint64_t order;
    struct op *op;
};

static struct timer *timers; /* a binary heap */
static size_t timer_count, timer_room;
static uint64_t next_sequence, next_order;
static struct op *ready_first, *ready_last;
static bool in_step;
static double unit_free_us[MAX_DEVICES][UNITS]; /* when the last operation of each ends */

static bool earlier(const struct timer *a, const struct timer *b) {
    return a->time < b->time || (a->time <= b->time && a->order < b->order);
}

static void *grow(void *memory, size_t count, size_t *room, size_t size) {
    if (count < *room)
        return memory;
    *room = *room == 0 ? 64 : *room * 2;
    return sim_grow(memory, *room, size);
}

static void timer_add(double time, struct op *op) {
    timers = grow(timers, timer_count, &timer_room, sizeof *timers);
    size_t at = timer_count++;
    const struct timer added = {time, next_order++, op};
    while (at > 0 && earlier(&added, &timers[(at - 1) / 2])) {
        timers[at] = timers[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    timers[at] = added;
}

static struct op *timer_take(void) {
    struct op *const taken = timers[0].op;
    const struct timer last = timers[--timer_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= timer_count)
            break;
        if (child + 1 < timer_count && earlier(&timers[child + 1], &timers[child]))
            child++;
        if (!earlier(&timers[child], &last))
            break;
        timers[at] = timers[child];
        at = child;
    }
    if (timer_count > 0)
        timers[at] = last;
    return taken;
}

struct op *sim_op_new(enum op_kind kind, int device) {
    struct op *const op = sim_new(1, sizeof *op);
    op->kind = kind;
    op->device = device;
    op->waits = 1; /* its arrival */
    op->references = 1;
    op->sequence = next_sequence++;
    op->correlation = sim_call.number;
    return op;
}

void sim_op_wait_for(struct op *op, struct op *before) {
    if (before == NULL || before->done || before == op)
        return;
    size_t room = before->after_room;
    before->after = grow(before->after, before->after_count, &room, sizeof *before->after);
    before->after_room = (uint32_t)room;
    before->after[before->after_count++] = op;
    op->waits++;
}

/* Gives the caller's reference to the engine. */
void sim_op_submit(struct op *op) {
    op->queued_us = sim_host_us;
    timer_add(sim_host_us, op);
}

void sim_op_hold(struct op *op) {
    op->references++;
}

void sim_op_release(struct op *op) {
    if (op == NULL || --op->references > 0)
        return;
    free(op->after);
    free(op->launch);
    free(op);
}

static void one_wait_less(struct op *op) {
    if (--op->waits > 0)
        return;
    op->next = NULL;
    if (ready_last != NULL)
        ready_last->next = op;
    else
        ready_first = op;
    ready_last = op;
}

void sim_op_finish(struct op *op, double now) {
    op->done = true;
    op->done_us = now;
    for (uint32_t i = 0; i < op->after_count; i++)
        one_wait_less(op->after[i]);
    op->after_count = 0;
    if (op->kind == OP_KERNEL || op->transfer != NULL)
        sim_trace_add(op);
    if (op->stream != NULL)
        sim_stream_op_finished(op->stream);
    op->stream = NULL;
    sim_op_release(op);
}

static void start(struct op *op, double now) {
    op->eligible_us = now;
    switch (op->kind) {
    case OP_KERNEL:
        sim_scheduler_add(op, now);
        break;
    case OP_DELAY:
        op->start_us = now;
        if (op->unit != UNIT_NONE) {
            double *const unit_free = &unit_free_us[op->device][op->unit];
            op->start_us = fmax(now, *unit_free);
            *unit_free = op->start_us + op->delay_us;
        }
        timer_add(op->start_us + op->delay_us, op);
        break;
    case OP_NOTHING:
        sim_op_finish(op, now);
        break;
    }
}

static double next_time(void) {
    double next = timer_count > 0 ? timers[0].time : HUGE_VAL;
    for (int device = 0; device < sim_config.devices; device++)
        next = fmin(next, sim_scheduler_next(device));
    return next;
}

/* Everything that happens at one instant. */
static void settle(double now) {
    in_step = true;
    do {
        for (int device = 0; device < sim_config.devices; device++)
            if (sim_scheduler_next(device) <= now + SAME_INSTANT_US)
                sim_scheduler_step(device, now);
        while (timer_count > 0 && timers[0].time <= now + SAME_INSTANT_US) {
            struct op *const op = timer_take();
            if (op->waits > 0)
                one_wait_less(op);
            else
                sim_op_finish(op, now);
        }
        while (ready_first != NULL) {
            struct op *const op = ready_first;
            ready_first = op->next;
            if (ready_first == NULL)
                ready_last = NULL;
            start(op, now);
        }
    } while (ready_first != NULL || next_time() <= now + SAME_INSTANT_US);
    for (int device = 0; device < sim_config.devices; device++)
        sim_scheduler_dispatch(device, now);
    in_step = false;
}

/* What happens at the next instant, if that is not after `limit`. */
static bool step(double limit) {
    const double now = next_time();
    if (!(now <= limit) || isinf(now))
        return false;
    settle(now);
    return true;
}

void sim_engine_run_to(double time) {
    while (!in_step && step(time))
        continue;
}

/* The host waits until the next thing happens. */
bool sim_engine_wait_for_something(void) {
    const double next = next_time();
    if (!step(HUGE_VAL))
        return false;
    sim_host_us = fmax(sim_host_us, next);
    return true;
}

CUresult sim_engine_run_until_done(const struct op *op) {
    sim_engine_run_to(sim_host_us);
    while (!op->done && step(HUGE_VAL))
        continue;
    if (!op->done) {
        sim_say("internal error: work that can never finish");
        return CUDA_ERROR_LAUNCH_TIMEOUT;
    }
    if (op->done_us > sim_host_us)
        sim_host_us = op->done_us;
    return CUDA_SUCCESS;
}
