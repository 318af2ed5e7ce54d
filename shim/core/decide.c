/* From the facts of a launch and the rules of a policy to what is done, why, and for which grids the same holds.
 *
 * The order of the questions is the order in which a user would want to hear the answer: what the launch is, what the
 * policy says about it, what forbids shaping whatever the policy says, and only then whether a size exists.
 */
#include "core.h"

struct interval {
    uint64_t minimum;
    uint64_t maximum;
};

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}
static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static bool in_range(uint64_t value, struct overlap_range range) {
    return range.minimum <= value && value <= range.maximum;
}

/* value * factor, or UINT64_MAX where that does not fit. */
static uint64_t times(uint64_t value, uint64_t factor) {
    uint64_t product;
    return __builtin_mul_overflow(value, factor, &product) ? UINT64_MAX : product;
}

/* The grids that a rule accepts, by blocks and by waves. capacity: blocks of the kernel that the device holds at once.
 */
static struct interval grids_of(const struct overlap_rule *rule, uint64_t capacity) {
    struct overlap_range waves = rule->waves_percent;
    /* No upper end stays none, also where nothing fits and the capacity is 0. */
    uint64_t from = times(waves.minimum, capacity),
             to = waves.maximum == UINT64_MAX ? UINT64_MAX : times(waves.maximum, capacity);
    from = from == UINT64_MAX ? UINT64_MAX : from / 100 + (from % 100 != 0);
    to = to == UINT64_MAX ? UINT64_MAX : to / 100;
    return (struct interval){larger(rule->blocks.minimum, from), smaller(rule->blocks.maximum, to)};
}

/* Does the rule match? Narrows *grids to those for which the answer is the same. */
static bool rule_matches(const struct overlap_view *view, const struct overlap_rule *rule, const char *kernel,
                         const char *library, const struct overlap_launch *launch, uint32_t native, uint64_t capacity,
                         struct interval *grids) {
    if (rule->kernels.count && !overlap_match_kernel(view, rule->kernels, kernel))
        return false;
    if (rule->libraries.count && !(library && overlap_match_any(view, rule->libraries, library)))
        return false;
    if (!in_range(launch->footprint.threads, rule->threads) ||
        !in_range(launch->footprint.registers, rule->registers) || !in_range(native, rule->resident_blocks))
        return false;
    struct interval accepted = grids_of(rule, capacity);
    if (launch->blocks < accepted.minimum) {
        grids->maximum = smaller(grids->maximum, accepted.minimum - 1);
        return false;
    }
    if (launch->blocks > accepted.maximum) {
        grids->minimum = larger(grids->minimum, accepted.maximum + 1);
        return false;
    }
    grids->minimum = larger(grids->minimum, accepted.minimum);
    grids->maximum = smaller(grids->maximum, accepted.maximum);
    return true;
}

/* The dynamic size that the rule's shape asks for; UINT32_MAX: there is none. */
static uint32_t size_for(const struct overlap_rule *rule, const struct overlap_gpu *gpu,
                         const struct overlap_launch *launch, uint32_t native) {
    uint32_t asked = launch->footprint.dynamic_shared;
    switch (rule->shape) {
    case OVERLAP_SHAPE_BLOCKS:
        return overlap_size_for_blocks(gpu, launch, rule->value);
    case OVERLAP_SHAPE_PERCENT: {
        uint32_t blocks = (uint32_t)((uint64_t)native * rule->value / 100);
        return overlap_size_for_blocks(gpu, launch, blocks ? blocks : 1);
    }
    case OVERLAP_SHAPE_BYTES:
        return rule->value > launch->maximum_dynamic || rule->value > OVERLAP_WORD_SIZE_MASK
                   ? UINT32_MAX
                   : (uint32_t)larger(rule->value, asked);
    default:
        return asked;
    }
}

/* What the rule does to a launch that nothing forbids to shape. Sets *size where it changes. */
static enum overlap_reason apply(const struct overlap_rule *rule, const struct overlap_gpu *gpu,
                                 const struct overlap_launch *launch, uint32_t native,
                                 const struct overlap_footprint *communication, uint32_t *size) {
    uint32_t wanted = size_for(rule, gpu, launch, native);
    if (wanted == UINT32_MAX)
        return OVERLAP_REASON_no_room_shared_memory;
    if (wanted == launch->footprint.dynamic_shared)
        return OVERLAP_REASON_room_already;
    struct overlap_footprint shaped = launch->footprint;
    shaped.dynamic_shared = wanted;
    uint32_t resident = overlap_occupancy_of(gpu, &shaped).blocks;
    if (resident == 0)
        return OVERLAP_REASON_no_room_shared_memory;
    if (100 * (uint64_t)resident < (uint64_t)rule->keep_at_least * native)
        return OVERLAP_REASON_below_keep;
    *size = wanted;
    if (communication && overlap_blocks_beside(gpu, &shaped, communication) < (int32_t)resident)
        return OVERLAP_REASON_capped_without_room;
    return OVERLAP_REASON_shaped;
}

OVERLAP_EXPORT void overlap_decide(const void *table, uint32_t policy, const struct overlap_gpu *gpu,
                                   const char *kernel, const char *library, const struct overlap_launch *launch,
                                   const struct overlap_footprint *communication, struct overlap_decision *decision) {
    *decision = (struct overlap_decision){.reason = OVERLAP_REASON_no_rule,
                                          .dynamic_shared = launch->footprint.dynamic_shared,
                                          .rule = OVERLAP_NO_RULE,
                                          .minimum_blocks = 0,
                                          .maximum_blocks = UINT64_MAX};
    if (launch->flags & OVERLAP_LAUNCH_COMMUNICATION) {
        decision->reason = OVERLAP_REASON_communication;
        return;
    }
    struct overlap_view view = overlap_table_view(table);
    const struct overlap_policy *p = policy == OVERLAP_NO_POLICY ? NULL : &view.policies[policy];
    if (!p || (p->rule_count == 0 && p->priority == OVERLAP_PRIORITY_INHERIT &&
               p->stream_priority == OVERLAP_PRIORITY_INHERIT)) {
        decision->reason = OVERLAP_REASON_observe_only;
        return;
    }
    if (launch->flags & OVERLAP_LAUNCH_UNKNOWN) {
        decision->reason = OVERLAP_REASON_unknown_footprint;
        return;
    }
    uint32_t native = decision->native_blocks = overlap_occupancy_of(gpu, &launch->footprint).blocks;
    uint64_t capacity = (uint64_t)native * gpu->multiprocessors;
    struct interval grids = {0, UINT64_MAX};
    const struct overlap_rule *rule = NULL;
    for (uint32_t i = p->first_rule; !rule && i < p->first_rule + p->rule_count; i++) {
        if (rule_matches(&view, &view.rules[i], kernel, library, launch, native, capacity, &grids)) {
            rule = &view.rules[i];
            decision->rule = i;
        }
    }
    if (!rule)
        decision->reason = OVERLAP_REASON_no_rule;
    else if (rule->shape == OVERLAP_SHAPE_LEAVE)
        decision->reason = OVERLAP_REASON_rule_leave;
    else if (launch->flags & OVERLAP_LAUNCH_COOPERATIVE)
        decision->reason = OVERLAP_REASON_cooperative;
    else if (launch->flags & OVERLAP_LAUNCH_CLUSTER)
        decision->reason = OVERLAP_REASON_cluster;
    else if (launch->flags & OVERLAP_LAUNCH_PROGRAMMATIC)
        decision->reason = OVERLAP_REASON_programmatic;
    else if (launch->flags & OVERLAP_LAUNCH_REFUSED)
        decision->reason = OVERLAP_REASON_refused;
    else if (native == 0)
        decision->reason = OVERLAP_REASON_cannot_launch;
    else if (rule->when != OVERLAP_WHEN_ALWAYS)
        decision->reason = OVERLAP_REASON_not_overlapping; /* no windows yet: nothing is known to overlap */
    else if (launch->blocks <= capacity) {
        grids.maximum = smaller(grids.maximum, capacity);
        decision->reason = OVERLAP_REASON_one_wave;
    } else {
        grids.minimum = larger(grids.minimum, capacity + 1);
        decision->reason = apply(rule, gpu, launch, native, communication, &decision->dynamic_shared);
    }
    decision->minimum_blocks = grids.minimum;
    decision->maximum_blocks = grids.maximum;
}
