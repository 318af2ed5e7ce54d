/* Decides which control works for one computation kernel and one communication kernel on one GPU, and with which
 * number; or that none does.
 *
 * M: shared memory of a multiprocessor. s_K: shared memory of one computation block at its raised dynamic size. s_C:
 * that of one communication block. Exactly k computation blocks stay resident while M / (k + 1) < s_K <= M / k.
 * Communication fits beside them while k s_K + s_C <= M and registers, warps, slots and barriers allow it. The size affects
 * the other resources only by lowering k.
 */
#include "core.h"

/* Finds the dynamic sizes with which exactly `blocks` are resident and communication fits beside them. native: resident blocks
 * as launched, at least `blocks`, which is at least 1. A block of communication fits an empty multiprocessor. False: no
 * such size exists. */
static bool sizes_for(const struct overlap_gpu *gpu, const struct overlap_launch *launch,
                      const struct overlap_footprint *communication, uint32_t native, uint32_t blocks,
                      struct overlap_size_range *window) {
    struct overlap_demand k = overlap_demand_of(gpu, &launch->footprint), c = overlap_demand_of(gpu, communication);
    const uint64_t unit = gpu->shared_unit ? gpu->shared_unit : 1;
    const uint64_t most = (gpu->shared - c.shared) / blocks / unit * unit; /* the largest allocation of one block */
    k.shared = 0;                                                          /* chosen below */
    if (overlap_beside(gpu, blocks, &k, &c))
        return false;
    const struct overlap_footprint *f = &launch->footprint;
    const uint64_t taken = (uint64_t)f->static_shared + gpu->shared_reserved;
    const uint64_t minimum = blocks < native ? overlap_least_dynamic(gpu, f, blocks) : f->dynamic_shared;
    if (most < taken)
        return false;
    uint64_t maximum = smaller(most - taken, smaller(launch->maximum_dynamic, gpu->shared_optin - f->static_shared));
    maximum = smaller(maximum, OVERLAP_LARGEST_SIZE);
    if (minimum > maximum)
        return false;
    *window = (struct overlap_size_range){blocks, blocks < native, (uint32_t)minimum, (uint32_t)maximum};
    return true;
}

/* Returns which resource leaves no room for communication beside one computation block of any dynamic size. */
static enum overlap_limit binding_of(const struct overlap_gpu *gpu, const struct overlap_launch *launch,
                                     const struct overlap_footprint *communication) {
    enum overlap_limit limit = overlap_impossible(gpu, communication);
    if (limit)
        return limit;
    struct overlap_demand k = overlap_demand_of(gpu, &launch->footprint), c = overlap_demand_of(gpu, communication);
    limit = overlap_beside(gpu, 1, &k, &c); /* which looks at shared memory last */
    return limit ? limit : OVERLAP_LIMIT_SHARED;
}

static enum overlap_reason reason_for(enum overlap_limit limit) {
    switch (limit) {
    case OVERLAP_LIMIT_REGISTERS:
        return OVERLAP_REASON_no_room_registers;
    case OVERLAP_LIMIT_WARPS:
        return OVERLAP_REASON_no_room_warps;
    case OVERLAP_LIMIT_SLOTS:
    case OVERLAP_LIMIT_BARRIERS:
        return OVERLAP_REASON_no_room_slots;
    default:
        return OVERLAP_REASON_no_room_shared_memory;
    }
}

/* make_room: chooses the largest k that qualifies, and the smallest size for it. */
static struct overlap_choice choose_room(const struct overlap_gpu *gpu, const struct overlap_launch *launch,
                                         const struct overlap_footprint *communication, uint32_t native,
                                         uint32_t keep) {
    const uint32_t asked = launch->footprint.dynamic_shared;
    if (!communication)
        return (struct overlap_choice){OVERLAP_CONTROL_LEAVE, OVERLAP_REASON_no_communication_seen, asked};
    /* The multiprocessor stays in the configuration of this kernel, which lacks the shared memory counted on here. */
    if (launch->flags & OVERLAP_LAUNCH_SMALL_CARVEOUT)
        return (struct overlap_choice){OVERLAP_CONTROL_LEAVE, OVERLAP_REASON_no_room_shared_memory, asked};
    const int32_t beside = overlap_blocks_beside(gpu, &launch->footprint, communication);
    if (beside == (int32_t)native)
        return (struct overlap_choice){OVERLAP_CONTROL_ROOM_ALREADY, OVERLAP_REASON_room_already, asked};
    struct overlap_size_range window;
    bool below = false;
    for (uint32_t k = native; beside >= 0 && !below && k >= 1; k--) {
        if (!sizes_for(gpu, launch, communication, native, k, &window))
            continue;
        below = 100 * (uint64_t)k < (uint64_t)keep * native; /* a smaller k keeps even less */
        if (!below)
            return (struct overlap_choice){OVERLAP_CONTROL_MAKE_ROOM, OVERLAP_REASON_shaped, window.minimum};
    }
    const bool later = beside >= 1; /* fits after some blocks have ended */
    return (struct overlap_choice){later ? OVERLAP_CONTROL_PRIORITY : OVERLAP_CONTROL_LEAVE,
                                   below   ? OVERLAP_REASON_below_keep
                                   : later ? OVERLAP_REASON_priority
                                           : reason_for(binding_of(gpu, launch, communication)),
                                   asked};
}

/* The number that the rule itself gives, in dynamic bytes. UINT32_MAX: no size achieves it. */
static uint32_t number_of(const struct overlap_gpu *gpu, const struct overlap_launch *launch, uint32_t native,
                          uint32_t shape, uint32_t value) {
    uint32_t asked = launch->footprint.dynamic_shared, blocks = value;
    if (shape == OVERLAP_SHAPE_BYTES)
        return value > launch->maximum_dynamic || value > OVERLAP_LARGEST_SIZE ? UINT32_MAX
               : value > asked                                                 ? value
                                                                               : asked;
    if (shape == OVERLAP_SHAPE_PERCENT)
        blocks = native * value / 100; /* value: at most 100 (policy_table.c) */
    return overlap_size_for_blocks(gpu, launch, blocks ? blocks : 1);
}

/* blocks_per_sm and dynamic_shared_memory: done as the user says, whether or not communication fits. */
static struct overlap_choice choose_cap(const struct overlap_gpu *gpu, const struct overlap_launch *launch,
                                        const struct overlap_footprint *communication, uint32_t native, uint32_t shape,
                                        uint32_t value, uint32_t keep) {
    const uint32_t asked = launch->footprint.dynamic_shared;
    const bool small = launch->flags & OVERLAP_LAUNCH_SMALL_CARVEOUT;
    struct overlap_choice leave = {OVERLAP_CONTROL_LEAVE, OVERLAP_REASON_no_room_shared_memory, asked};
    if (small && shape != OVERLAP_SHAPE_BYTES) /* fewer blocks than the rule says would be resident */
        return leave;
    struct overlap_footprint shaped = launch->footprint;
    shaped.dynamic_shared = number_of(gpu, launch, native, shape, value);
    if (shaped.dynamic_shared == UINT32_MAX)
        return leave;
    if (shaped.dynamic_shared == asked) {
        leave.reason = OVERLAP_REASON_room_already;
        return leave;
    }
    const uint32_t resident = overlap_occupancy_of(gpu, &shaped).blocks;
    if (resident == 0)
        return leave;
    if (100 * (uint64_t)resident < (uint64_t)keep * native) {
        leave.reason = OVERLAP_REASON_below_keep;
        return leave;
    }
    const bool room =
        !small && (!communication || overlap_blocks_beside(gpu, &shaped, communication) >= (int32_t)resident);
    return (struct overlap_choice){
        OVERLAP_CONTROL_CAP, room ? OVERLAP_REASON_shaped : OVERLAP_REASON_capped_without_room, shaped.dynamic_shared};
}

struct overlap_choice overlap_choose(const struct overlap_gpu *gpu, const struct overlap_launch *launch,
                                     const struct overlap_footprint *communication, uint32_t native, uint32_t shape,
                                     uint32_t value, uint32_t keep_at_least) {
    const uint32_t asked = launch->footprint.dynamic_shared;
    if (native == 0)
        return (struct overlap_choice){OVERLAP_CONTROL_LEAVE, OVERLAP_REASON_cannot_launch, asked};
    if (shape == OVERLAP_SHAPE_LEAVE)
        return (struct overlap_choice){OVERLAP_CONTROL_LEAVE, OVERLAP_REASON_rule_leave, asked};
    if (shape == OVERLAP_SHAPE_MAKE_ROOM)
        return choose_room(gpu, launch, communication, native, keep_at_least);
    return choose_cap(gpu, launch, communication, native, shape, value, keep_at_least);
}

OVERLAP_EXPORT void overlap_plan_of(const struct overlap_gpu *gpu, const struct overlap_launch *launch,
                                    const struct overlap_footprint *communication, uint32_t shape, uint32_t value,
                                    uint32_t keep_at_least, struct overlap_plan *plan) {
    const struct overlap_occupancy native = overlap_occupancy_of(gpu, &launch->footprint);
    const struct overlap_choice choice =
        overlap_choose(gpu, launch, communication, native.blocks, shape, value, keep_at_least);
    struct overlap_footprint shaped = launch->footprint;
    shaped.dynamic_shared = choice.dynamic_shared;
    plan->native_blocks = native.blocks;
    plan->native_limit = native.limit;
    plan->beside_after_drain = -1;
    plan->control = choice.control;
    plan->reason = choice.reason;
    plan->dynamic_shared = choice.dynamic_shared;
    plan->blocks = overlap_occupancy_of(gpu, &shaped).blocks;
    plan->binding = OVERLAP_LIMIT_NONE;
    plan->window_count = plan->reserved = 0;
    if (!communication)
        return;
    plan->beside_after_drain = overlap_blocks_beside(gpu, &launch->footprint, communication);
    const bool fits = plan->beside_after_drain >= 0;
    const uint32_t room = sizeof plan->windows / sizeof *plan->windows;
    for (uint32_t k = native.blocks < room ? native.blocks : room; fits && k >= 1; k--)
        if (sizes_for(gpu, launch, communication, native.blocks, k, &plan->windows[plan->window_count]))
            plan->window_count++;
    if (native.blocks && plan->window_count == 0)
        plan->binding = binding_of(gpu, launch, communication);
}

OVERLAP_EXPORT const char *overlap_knob(uint32_t index, const struct overlap_gpu *gpu,
                                        const struct overlap_footprint *communication,
                                        struct overlap_footprint *changed) {
    *changed = *communication;
#define KNOB(vendor_, name, field, value)                                                                              \
    if (gpu->vendor == OVERLAP_VENDOR_##vendor_ && index-- == 0) {                                                     \
        if (changed->field > (value))                                                                                  \
            changed->field = (value);                                                                                  \
        return name;                                                                                                   \
    }
#include "knob.def"
#undef KNOB
    return NULL;
}
