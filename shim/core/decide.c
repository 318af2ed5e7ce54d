/* Turns the facts of a launch and the rules of a policy into a decision, its reason, and the interval of grids for
 * which both hold.
 *
 * The checks are in the order in which a user wants to read the reason: what the launch is, what the policy says about
 * it, what forbids shaping in any case, and only then whether a suitable size exists.
 */
#include "core.h"

struct interval {
    uint64_t minimum;
    uint64_t maximum;
};

static bool in_range(uint64_t value, struct overlap_range range) {
    return range.minimum <= value && value <= range.maximum;
}

/* Returns value * factor, or UINT64_MAX if it overflows. */
static uint64_t times(uint64_t value, uint64_t factor) {
    uint64_t product;
    return __builtin_mul_overflow(value, factor, &product) ? UINT64_MAX : product;
}

/* Returns the grids that a rule accepts. capacity: resident blocks of the kernel on the whole
 * device.
 */
static struct interval grids_of(const struct overlap_rule *rule, uint64_t capacity) {
    struct overlap_range waves = rule->waves_percent;
    /* An unlimited upper end stays unlimited, even if no block fits and the capacity is 0. */
    uint64_t from = times(waves.minimum, capacity),
             to = waves.maximum == UINT64_MAX ? UINT64_MAX : times(waves.maximum, capacity);
    from = from == UINT64_MAX ? UINT64_MAX : from / 100 + (from % 100 != 0);
    to = to == UINT64_MAX ? UINT64_MAX : to / 100;
    return (struct interval){from, to};
}

/* Does the rule match a kernel that its patterns accept? Narrows *grids to the interval for which the result is the same. */
static bool rule_matches(const struct overlap_view *view, const struct overlap_rule *rule, const char *library,
                         const struct overlap_launch *launch, uint32_t native, uint64_t capacity,
                         struct interval *grids) {
    if (rule->libraries.count && !(library && overlap_match_any(view, rule->libraries, library)))
        return false;
    if (!in_range(launch->footprint.threads, rule->threads) || !in_range(native, rule->resident_blocks))
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

/* Returns why a launch must not be shaped, whatever the rule says. OVERLAP_REASON_COUNT: it may be. */
static enum overlap_reason forbidden(const struct overlap_matches *kernel, const struct overlap_launch *launch,
                                     uint32_t native) {
    const uint32_t flags = launch->flags;
    if (flags & OVERLAP_LAUNCH_COOPERATIVE)
        return OVERLAP_REASON_cooperative;
    if (flags & OVERLAP_LAUNCH_CLUSTER)
        return OVERLAP_REASON_cluster;
    if (flags & OVERLAP_LAUNCH_PROGRAMMATIC)
        return OVERLAP_REASON_programmatic;
    if (flags & OVERLAP_LAUNCH_OCCUPANCY_ASKED)
        return OVERLAP_REASON_occupancy_asked;
    if (kernel->fixed_size)
        return OVERLAP_REASON_reads_dynamic_size;
    if (flags & OVERLAP_LAUNCH_REFUSED)
        return OVERLAP_REASON_refused;
    if (native == 0)
        return OVERLAP_REASON_cannot_launch;
    return OVERLAP_REASON_COUNT;
}

void overlap_decide_matched(const void *table, uint32_t policy, const struct overlap_gpu *gpu,
                            const struct overlap_matches *kernel, const char *library,
                            const struct overlap_launch *launch, const struct overlap_footprint *communication,
                            struct overlap_decision *decision) {
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
    if (!p || (p->rule_count == 0 && !overlap_raises(p) && !p->stream_creators.count)) {
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
    for (uint32_t i = 0; !rule && i < p->rule_count; i++) {
        const struct overlap_rule *const next = &view.rules[p->first_rule + i];
        if (kernel->rules[i / 64] >> i % 64 & 1 &&
            rule_matches(&view, next, library, launch, native, capacity, &grids)) {
            rule = next;
            decision->rule = p->first_rule + i;
            decision->windowed = rule->when != OVERLAP_WHEN_ALWAYS;
        }
    }
    const enum overlap_reason no =
        rule && rule->shape != OVERLAP_SHAPE_LEAVE ? forbidden(kernel, launch, native) : OVERLAP_REASON_COUNT;
    if (!rule)
        decision->reason = OVERLAP_REASON_no_rule;
    else if (rule->shape == OVERLAP_SHAPE_LEAVE)
        decision->reason = OVERLAP_REASON_rule_leave;
    else if (no != OVERLAP_REASON_COUNT)
        decision->reason = no;
    else if (launch->blocks <= capacity) {
        grids.maximum = smaller(grids.maximum, capacity);
        decision->reason = OVERLAP_REASON_one_wave;
    } else {
        const struct overlap_choice choice =
            overlap_choose(gpu, launch, communication, native, rule->shape, rule->value, rule->keep_at_least);
        grids.minimum = larger(grids.minimum, capacity + 1);
        decision->control = choice.control;
        decision->reason = choice.reason;
        decision->dynamic_shared = choice.dynamic_shared;
    }
    decision->minimum_blocks = grids.minimum;
    decision->maximum_blocks = grids.maximum;
}

OVERLAP_EXPORT void overlap_decide(const void *table, uint32_t policy, const struct overlap_gpu *gpu,
                                   const char *kernel, const char *library, const struct overlap_launch *launch,
                                   const struct overlap_footprint *communication, struct overlap_decision *decision) {
    const struct overlap_view view = overlap_table_view(table);
    struct overlap_matches matches;
    overlap_match_kernel(&view, policy, kernel, &matches);
    overlap_decide_matched(table, policy, gpu, &matches, library, launch, communication, decision);
}
