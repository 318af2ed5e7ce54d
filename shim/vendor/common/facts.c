/* The decision for a launch that the cache does not hold: gather the facts, ask core, cache the word. */
#include <string.h>

#include "../../core/core.h"
#include "../../sys/sys.h"
#include "device.h"
#include "facts.h"
#include "handle.h"
#include "launch_slow.h"
#include "page.h"
#include "request.h"
#include "resolve.h"
#include "state.h"
#include "streams.h"
#include "this_thread.h"
#include "vendor_ops.h"

/* 0 marks an entry of a thread's table that is being written. */
uint32_t launch_epoch = 1;

void invalidate_decisions(void) {
    if (__atomic_add_fetch(&launch_epoch, 1, __ATOMIC_SEQ_CST) == 0)
        __atomic_add_fetch(&launch_epoch, 1, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* before the caller searches the cache for decisions to invalidate */
}

void library_of(uintptr_t site, char *name, size_t size) {
    struct overlap_object object;
    name[0] = 0;
    if (overlap_object_at(site, &object)) {
        strncpy(name, object.name, size - 1);
        name[size - 1] = 0;
    }
}

static uint64_t word_of(uint32_t row, uint32_t reason, uint32_t dynamic, uint64_t flags) {
    return (uint64_t)row << OVERLAP_WORD_ROW_SHIFT | (dynamic & OVERLAP_WORD_SIZE_MASK) |
           (uint64_t)reason << OVERLAP_WORD_REASON_SHIFT | OVERLAP_WORD_VALID | flags;
}

static bool is_communication(const struct overlap_policy *policy, const char *kernel, const char *library) {
    if (overlap_is_communication_library(library) || (kernel && overlap_is_communication(kernel)))
        return true;
    if (!policy)
        return false;
    struct overlap_view view = overlap_table_view(overlap_armed()->table);
    return overlap_match_any(&view, policy->libraries, library) ||
           (kernel && overlap_match_kernel(&view, policy->kernels, kernel));
}

/* Narrows the decision's grid interval to grids that are all wide, or all not: wide communication is not raised. */
static void separate_wide(const struct request *request, const struct overlap_gpu *gpu,
                          struct overlap_decision *decision) {
    const uint64_t most = gpu->multiprocessors / OVERLAP_WIDE_PART;
    if (blocks_of(request) <= most)
        decision->maximum_blocks = most;
    else
        decision->minimum_blocks = most + 1;
}

struct facts {
    const struct request *request;
    struct handle *handle; /* may be NULL */
    struct device *device;
    const struct overlap_policy *policy; /* may be NULL */
    const char *kernel;                  /* may be NULL */
    char library[256];
    struct overlap_launch launch;
    bool later; /* the driver may report more at a later call */
};

/* Claim the page row that counts launches with this decision. */
static uint32_t row_of(const struct facts *facts, const struct overlap_decision *decision) {
    const struct overlap_row row = {.rule = decision->rule,
                                    .device = facts->device->page_slot,
                                    .launched = decision->dynamic_shared,
                                    .footprint = facts->launch.footprint,
                                    .blocks = facts->launch.blocks,
                                    .resident_blocks = decision->native_blocks};
    return overlap_row_claim(overlap_current_page, &row, facts->kernel, facts->library, decision->reason);
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
    facts->kernel = handle ? handle_name(handle) : NULL;
    facts->later = handle && is_got_elsewhere(handle, device);
    library_of(request->site, facts->library, sizeof facts->library);
    facts->launch = (struct overlap_launch){.blocks = blocks_of(request), .flags = request->flags};
    facts->launch.footprint.threads = (uint32_t)threads_of(request);
    facts->launch.footprint.dynamic_shared = request->config.sharedMemBytes;
    if (!handle || !facts->kernel || facts->later || handle_is_marked(handle, HANDLE_PROGRAMS_OWN) ||
        !OPERATION_OF(device->vendor, footprint)(handle, device, &facts->launch, &facts->later))
        facts->launch.flags |= OVERLAP_LAUNCH_UNKNOWN;
    if (handle && request->flags & OVERLAP_LAUNCH_COOPERATIVE)
        __atomic_fetch_or(&handle->marks, (uint32_t)HANDLE_COOPERATES, __ATOMIC_RELAXED);
    if (handle && handle_is_marked(handle, HANDLE_REFUSED))
        facts->launch.flags |= OVERLAP_LAUNCH_REFUSED;
    if (handle && handle_is_marked(handle, HANDLE_OCCUPANCY_ASKED))
        facts->launch.flags |= OVERLAP_LAUNCH_OCCUPANCY_ASKED;
    if (is_communication(facts->policy, facts->kernel, facts->library))
        facts->launch.flags |= OVERLAP_LAUNCH_COMMUNICATION;
    else if (handle && facts->policy && facts->policy->rule_count &&
             OPERATION_OF(device->vendor, prefers_cache)(handle, device->ordinal))
        facts->launch.flags |= OVERLAP_LAUNCH_SMALL_CARVEOUT;
}

/* Communication: learn its footprint. Returns flags of the word. */
static uint64_t communicate(const struct facts *facts, struct overlap_decision *decision, uint32_t *epoch) {
    if (facts->handle)
        __atomic_fetch_or(&facts->handle->marks, (uint32_t)HANDLE_COMMUNICATES, __ATOMIC_RELAXED);
    separate_wide(facts->request, &facts->device->gpu, decision);
    const bool known = !(facts->launch.flags & OVERLAP_LAUNCH_UNKNOWN);
    if (known && facts->policy && facts->policy->carveout == OVERLAP_CARVEOUT_MAX)
        OPERATION_OF(facts->device->vendor, prefer_shared)(facts->handle, facts->device->ordinal);
    if (known && device_learn(facts->device, facts->kernel, &facts->launch.footprint)) {
        invalidate_decisions();
        overlap_cache_forget_all(&launch_cache);
        *epoch = __atomic_load_n(&launch_epoch, __ATOMIC_ACQUIRE);
    }
    return OVERLAP_WORD_COMMUNICATION;
}

/* Computation: change the size if the rule asks for it and the launch allows it. Returns flags of the word. */
static uint64_t compute(struct facts *facts, struct overlap_decision *decision) {
    const struct request *request = facts->request;
    struct overlap_footprint copy;
    const void *table = overlap_armed()->table;
    const struct overlap_footprint *communication = device_communication(facts->device, &copy);
    const struct overlap_view view = overlap_table_view(table);
    const bool cluster = facts->launch.flags & OVERLAP_LAUNCH_CLUSTER;
    facts->launch.flags |= OVERLAP_LAUNCH_CLUSTER_CHECKED;
    overlap_decide(table, facts->policy ? (uint32_t)(facts->policy - view.policies) : OVERLAP_NO_POLICY,
                   &facts->device->gpu, facts->kernel ? facts->kernel : "", facts->library, &facts->launch,
                   communication, decision);
    const struct overlap_rule *rule = decision->rule == OVERLAP_NO_RULE ? NULL : &view.rules[decision->rule];
    if (cluster && decision->dynamic_shared != request->config.sharedMemBytes &&
        !OPERATION_OF(facts->device->vendor, cluster_fits)(request, facts->handle, rule, decision->dynamic_shared)) {
        decision->reason = OVERLAP_REASON_cluster;
        decision->dynamic_shared = request->config.sharedMemBytes;
    }
    const bool changed = decision->dynamic_shared != request->config.sharedMemBytes;
    /* Where communication already fits, it does so only with the largest shared-memory carve-out. But a kernel that
     * depends on its L1 cache may take three times as long with that (H200: tools/gpu/results), so the policy
     * decides. */
    const bool fits =
        decision->control == OVERLAP_CONTROL_ROOM_ALREADY || decision->control == OVERLAP_CONTROL_ENTRY_ALREADY;
    uint64_t flags = changed ? OVERLAP_WORD_CHANGED : 0;
    /* The program asks for a smaller carve-out, which ours would not override. */
    const bool small = facts->launch.flags & OVERLAP_LAUNCH_SMALL_CARVEOUT;
    if (rule && !small && changed && decision->windowed && rule->carveout != OVERLAP_CARVEOUT_KEEP)
        flags |= OVERLAP_WORD_CARVEOUT; /* only inside windows */
    else if (rule && !small &&
             ((changed && rule->carveout != OVERLAP_CARVEOUT_KEEP) ||
              (fits && rule->carveout == OVERLAP_CARVEOUT_ALWAYS)))
        OPERATION_OF(facts->device->vendor, prefer_shared)(facts->handle, facts->device->ordinal);
    if (changed && decision->windowed)
        flags |= OVERLAP_WORD_WINDOWED;
    if (changed && cluster)
        flags |= OVERLAP_WORD_CLUSTER;
    return flags;
}

/* An unknown kernel: left alone, not cached. */
static uint64_t unknown(const struct request *request, uint64_t *cache_handle) {
    *cache_handle = 0;
    return word_of(OVERLAP_REASON_unknown_footprint, OVERLAP_REASON_unknown_footprint, request->config.sharedMemBytes,
                   0);
}

/* Make the decision, and cache it if cache_handle is not 0. */
static uint64_t decide(const struct request *request, struct handle *handle, struct device *device,
                       uint64_t *cache_handle, uint64_t *grid) {
    struct facts facts;
    struct overlap_decision decision = {.reason = OVERLAP_REASON_communication,
                                        .dynamic_shared = request->config.sharedMemBytes,
                                        .rule = OVERLAP_NO_RULE,
                                        .maximum_blocks = UINT64_MAX};
    uint32_t epoch = __atomic_load_n(&launch_epoch, __ATOMIC_ACQUIRE);
    if (handle && handle_is_ending(handle)) /* its address may already belong to another kernel */
        return unknown(request, cache_handle);
    if (handle)
        handle_settle(handle);
    gather(&facts, request, handle, device);
    uint64_t flags = facts.launch.flags & OVERLAP_LAUNCH_COMMUNICATION ? communicate(&facts, &decision, &epoch)
                                                                       : compute(&facts, &decision);
    if (device->unreadable && decision.reason == OVERLAP_REASON_observe_only)
        decision.reason = OVERLAP_REASON_unknown_limits;
    uint32_t over_app_limit =
        handle ? OPERATION_OF(device->vendor, over_app_limit)(handle, device->ordinal, request->config.sharedMemBytes)
               : 0;
    if (over_app_limit) {
        decision.reason = flags & OVERLAP_WORD_COMMUNICATION ? decision.reason : OVERLAP_REASON_invalid_as_asked;
        decision.dynamic_shared = over_app_limit;
        flags = (flags & OVERLAP_WORD_COMMUNICATION) | OVERLAP_WORD_DIRECT; /* nothing to prove */
        *cache_handle = 0;                                                  /* the program may set another limit */
        if (over_app_limit != request->config.sharedMemBytes)
            flags |= OVERLAP_WORD_CHANGED;
    }
    if (!(flags & ~OVERLAP_WORD_COMMUNICATION))
        flags |= OVERLAP_WORD_DIRECT;
    const bool made = overlap_page_start(); /* false: no page yet, or only the parent's */
    const uint32_t row = made ? row_of(&facts, &decision) : decision.reason;
    uint64_t word = word_of(row, decision.reason, decision.dynamic_shared, flags);
    if (!made || facts.later || !overlap_cacheable(threads_of(request), request->config.sharedMemBytes))
        *cache_handle = 0;
    if (*cache_handle) {
        const uint64_t most = decision.maximum_blocks > UINT32_MAX ? UINT32_MAX : decision.maximum_blocks;
        *grid = decision.minimum_blocks > UINT32_MAX ? 0 : overlap_cache_grid(decision.minimum_blocks, most);
        state_renew_cache();
        overlap_cache_keep(&launch_cache, *cache_handle, key_of(request), decision.minimum_blocks,
                           decision.maximum_blocks, word);
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        /* An input of the decision changed while it was made. */
        if (epoch != __atomic_load_n(&launch_epoch, __ATOMIC_ACQUIRE))
            overlap_cache_forget(&launch_cache, *cache_handle);
    }
    return word;
}

static uint64_t find_or_decide(const struct request *request, uint64_t *cache_handle, uint64_t *grid) {
    uint64_t threads = threads_of(request), word = 0;
    const enum vendor vendor = hook_vendor(request->hook);
    struct handle *handle = OPERATION_OF(vendor, handle_of)(request);
    struct device *device = device_current(vendor);
    if (!device)
        return unknown(request, cache_handle);
    if (*cache_handle && (!handle || handle_is_everywhere(handle)) && !device_only_one(vendor)) {
        /* The kernel serves every device, or is unknown: cache decisions by device. */
        *cache_handle =
            device->ordinal + 1 < OVERLAP_DEVICES ? *cache_handle | (uint64_t)(device->ordinal + 1) << DEVICE_SHIFT : 0;
        if (*cache_handle && overlap_cacheable(threads, request->config.sharedMemBytes))
            word = overlap_cache_find(&launch_cache, *cache_handle, key_of(request), blocks_of(request), grid);
    }
    return word ? word : decide(request, handle, device, cache_handle, grid);
}

/* Set in a forked child of a process that has initialised a driver. Nothing is decided there: the driver refuses
 * every call, and another thread of the parent may have held the loader's lock, which glibc does not release in a
 * child. */
bool facts_forked;

/* A signal handler may launch while this thread decides. The interrupted code may be acquiring or holding the
 * loader's lock, so waiting for it would deadlock. (If our frame is not below the recorded one, a handler has jumped
 * out of that call, unless we run on a signal stack.) */
uint64_t facts_word(const struct request *request, uint64_t *cache_handle, uint64_t *grid) {
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0), before = this_thread.deciding;
    if (facts_forked || (before && (here < before || overlap_on_signal_stack())))
        return unknown(request, cache_handle);
    this_thread.deciding = here;
    const uint64_t word = find_or_decide(request, cache_handle, grid);
    this_thread.deciding = 0;
    return word;
}
