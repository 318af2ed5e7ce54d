/* The decision about a launch: gather the facts, which takes calls of the driver and hence no lock; ask core; claim a row
 * of the page. */
#include <string.h>

#include "../sys/sys.h"
#include "launch.h"
#include "device.h"
#include "table.h"
#include "page.h"
#include "resolve.h"
#include "thread.h"
#include "vendor_ops.h"

struct facts {
    const struct request *request;
    struct handle *handle; /* may be NULL */
    struct device *device;
    const struct overlap_policy *policy; /* may be NULL */
    struct overlap_matches kernel;       /* by its name */
    const char *library;                 /* the caller's; "" if unknown */
    struct overlap_launch launch;
    bool later; /* the driver may report more at a later call */
};

static bool is_communication(const struct facts *facts) {
    if (facts->kernel.communicates || overlap_is_communication_library(facts->library))
        return true;
    const struct overlap_view view = overlap_table_view(overlap_armed()->table);
    return facts->policy && overlap_match_any(&view, facts->policy->libraries, facts->library);
}

/* The function was obtained while another device was current: its context, and when that ends, are unknown. */
static bool is_got_elsewhere(const struct handle *handle, const struct device *device) {
    return handle_is(handle, HANDLE_FUNCTION) && handle_device(handle) != device->ordinal;
}

static void gather(struct facts *facts, const struct request *request, struct handle *handle, struct device *device) {
    facts->request = request;
    facts->handle = handle;
    facts->device = device;
    facts->policy = device_policy(device);
    const bool named = handle && handle_match(handle, device->policy, &facts->kernel);
    facts->later = handle && is_got_elsewhere(handle, device);
    facts->library = overlap_library(request->site);
    facts->launch = (struct overlap_launch){.blocks = blocks_of(request), .flags = request->flags};
    facts->launch.footprint.threads = (uint32_t)threads_of(request);
    facts->launch.footprint.dynamic_shared = request->config.sharedMemBytes;
    if (!named || facts->later ||
        !OPERATION_OF(device->vendor, footprint)(handle, device, &facts->launch, &facts->later))
        facts->launch.flags |= OVERLAP_LAUNCH_UNKNOWN;
    if (handle && handle_is_marked(handle, HANDLE_REFUSED))
        facts->launch.flags |= OVERLAP_LAUNCH_REFUSED;
    if (handle && handle_is_marked(handle, HANDLE_OCCUPANCY_ASKED))
        facts->launch.flags |= OVERLAP_LAUNCH_OCCUPANCY_ASKED;
    if (is_communication(facts))
        facts->launch.flags |= OVERLAP_LAUNCH_COMMUNICATION;
    else if (handle && facts->policy && facts->policy->rule_count &&
             OPERATION_OF(device->vendor, prefers_cache)(handle, device->ordinal))
        facts->launch.flags |= OVERLAP_LAUNCH_SMALL_CARVEOUT;
}

/* Communication: learn its footprint. A decision holds for grids that are all wide, or all not: wide communication is
 * not raised. */
static void communicate(const struct facts *facts, struct overlap_decision *decided) {
    const uint64_t most = facts->device->gpu.multiprocessors / OVERLAP_WIDE_PART;
    const bool known = !(facts->launch.flags & OVERLAP_LAUNCH_UNKNOWN);
    if (blocks_of(facts->request) <= most)
        decided->maximum_blocks = most;
    else
        decided->minimum_blocks = most + 1;
    if (known && !facts->kernel.one_rank && device_learn(facts->device, &facts->launch.footprint))
        decisions_forget();
}

/* Computation: change the size if a rule asks for it and the launch allows it. */
static void compute(struct facts *facts, struct overlap_decision *decided) {
    const void *const table = overlap_armed()->table;
    struct overlap_footprint copy;
    const struct overlap_footprint *const communication = device_communication(facts->device, &copy);
    overlap_decide_matched(table, facts->device->policy, &facts->device->gpu, &facts->kernel, facts->library,
                           &facts->launch, communication, decided);
    if (facts->device->unreadable && decided->reason == OVERLAP_REASON_observe_only)
        decided->reason = OVERLAP_REASON_unknown_limits;
}

/* A launch above the program's own limit must fail although we have raised the limit. */
static bool exceeds_limit(const struct facts *facts, struct overlap_decision *decided) {
    const uint32_t asked = facts->request->config.sharedMemBytes;
    const uint32_t refused = facts->handle ? OPERATION_OF(facts->device->vendor,
                                                          over_app_limit)(facts->handle, facts->device->ordinal, asked)
                                           : 0;
    if (refused) {
        decided->dynamic_shared = refused;
        if (!(facts->launch.flags & OVERLAP_LAUNCH_COMMUNICATION))
            decided->reason = OVERLAP_REASON_invalid_as_asked;
    }
    return refused;
}

/* Claims the page's row that counts launches with this decision. */
static uint32_t row_of(const struct facts *facts, const struct overlap_decision *decided) {
    const struct overlap_row row = {.rule = decided->rule,
                                    .device = facts->device->page_slot,
                                    .launched = decided->dynamic_shared,
                                    .footprint = facts->launch.footprint,
                                    .blocks = facts->launch.blocks,
                                    .resident_blocks = decided->native_blocks};
    return handle_row(facts->handle, &row, facts->library, decided->reason);
}

static uint32_t at_most_32_bits(uint64_t number) {
    return number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

static bool decide_here(const struct request *request, struct handle *handle, struct device *device,
                        struct decision *decision) {
    struct facts facts = {.kernel = {.communicates = false}};
    struct overlap_decision decided = {.reason = OVERLAP_REASON_communication,
                                       .dynamic_shared = request->config.sharedMemBytes,
                                       .rule = OVERLAP_NO_RULE,
                                       .maximum_blocks = UINT64_MAX};
    if (handle)
        handle_assign_context(handle, request->context, device->ordinal);
    gather(&facts, request, handle, device);
    const bool communicates = facts.launch.flags & OVERLAP_LAUNCH_COMMUNICATION;
    if (communicates)
        communicate(&facts, &decided);
    else
        compute(&facts, &decided);
    const bool exceeds = exceeds_limit(&facts, &decided);
    const bool counted = overlap_page_start(); /* false: no page yet, or only the parent's */
    decision->reason = (uint16_t)decided.reason;
    decision->row = (uint16_t)(counted ? row_of(&facts, &decided) : decided.reason);
    decision->size = decided.dynamic_shared;
    decision->communicates = communicates;
    decision->changes = decided.dynamic_shared != request->config.sharedMemBytes;
    decision->windowed = decided.windowed && !exceeds;
    decision->proven = exceeds; /* nothing to prove: the driver shall refuse */
    decision->block_work = overlap_block_work(facts.launch.footprint.threads, facts.launch.footprint.registers);
    decision->least = at_most_32_bits(decided.minimum_blocks);
    decision->most = at_most_32_bits(decided.maximum_blocks);
    return handle && counted && !facts.later && !exceeds; /* the program may set another limit */
}

/* Set in a forked child of a process that has initialised a driver. Nothing is decided there: the driver refuses every
 * call. */
bool is_forked_child;

bool decide(const struct request *request, struct handle *handle, struct decision *decision) {
    struct device *const device = request->device;
    if (!device || (handle && handle_is_ending(handle))) { /* its address may already belong to another kernel */
        decision->row = decision->reason = OVERLAP_REASON_unknown_footprint;
        decision->size = request->config.sharedMemBytes;
        return false;
    }
    return decide_here(request, handle, device, decision);
}
