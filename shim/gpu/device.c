/* Devices: limits from the driver, the policy that applies, and the footprint of communication. */
#include <string.h>

#include "../core/core.h"
#include "../sys/sys.h"
#include "device.h"
#include "page.h"
#include "resolve.h"
#include "streams.h"
#include "vendor_ops.h"

static struct device devices[VENDORS][OVERLAP_DEVICES]; /* by the driver's ordinal */

/* Claim a slot of the page: slot `ordinal`, or the last free one if a device of the other vendor holds that. */
static struct overlap_device *place_for(struct device *device) {
    for (uint32_t i = 0; i <= OVERLAP_DEVICES; i++) {
        const uint32_t page_slot = i == 0 ? (uint32_t)device->ordinal : OVERLAP_DEVICES - i;
        struct overlap_device *entry = &overlap_current_page->devices[page_slot];
        uint32_t free = 0;
        if (__atomic_compare_exchange_n(&entry->state, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            device->page_slot = page_slot;
            return entry;
        }
    }
    device->page_slot = OVERLAP_DEVICES;
    return NULL;
}

static void record(struct device *device, const struct overlap_settings *settings, const uint8_t *uuid) {
    struct overlap_device *entry = place_for(device);
    if (!entry)
        return;
    memcpy(entry->uuid, uuid, sizeof entry->uuid);
    memcpy(entry->name, device->gpu.name, sizeof entry->name);
    entry->index = (uint32_t)device->ordinal;
    entry->multiprocessors = device->gpu.multiprocessors;
    entry->observes = device->observes;
    if (device->policy != OVERLAP_NO_POLICY) {
        struct overlap_view view = overlap_table_view(settings->table);
        const char *name = view.strings + view.policies[device->policy].name;
        strncpy((char *)entry->policy, name, sizeof entry->policy - 1);
    }
    __atomic_store_n(&entry->state, 2, __ATOMIC_RELEASE);
}

/* Write the rules of the device's policy to the page, unless another device has done so. */
static void record_rules(const struct device *device, const struct overlap_policy *policy,
                         const struct overlap_settings *settings) {
    const struct overlap_view view = overlap_table_view(settings->table);
    for (uint32_t i = policy->first_rule; i < policy->first_rule + policy->rule_count; i++) {
        struct overlap_page_rule *entry = &overlap_current_page->rules[i];
        const struct overlap_rule *rule = &view.rules[i];
        uint8_t free = 0;
        if (!__atomic_compare_exchange_n(&entry->state, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        entry->device = (uint8_t)device->page_slot;
        entry->line = rule->line;
        entry->shape = (uint8_t)rule->shape;
        entry->value = rule->value;
        entry->when = (uint8_t)rule->when;
        entry->guard = (uint8_t)rule->guard;
        __atomic_store_n(&entry->state, 2, __ATOMIC_RELEASE);
    }
}

/* An empty table or a policy without rules asks for observation only: no message then. */
static bool asks_for_more(const struct overlap_settings *settings, uint32_t policy) {
    const struct overlap_view view = overlap_table_view(settings->table);
    const struct overlap_policy *const fits = policy == OVERLAP_NO_POLICY ? NULL : &view.policies[policy];
    return fits ? fits->rule_count || overlap_raises(fits) || fits->stream_creators.count
                : ((const struct overlap_table *)settings->table)->policy_count > 0;
}

static void set_up(struct device *device, const struct overlap_settings *settings) {
    uint8_t uuid[16] = {0};
    overlap_page_opened(); /* HIP may reach this without an earlier call; the record belongs to the page */
    const bool usable = OPERATION_OF(device->vendor, limits)(device->ordinal, &device->gpu, uuid);
    device->policy =
        overlap_policy_for(settings->table, (const char *)device->gpu.name, (const char *)device->gpu.architecture);
    const bool asks = asks_for_more(settings, device->policy);
    const char *const name = device->gpu.name[0] ? (const char *)device->gpu.name : "a GPU without a name";
    if (asks && !usable)
        overlap_say("the driver does not tell the limits of ", name, ": its launches are counted and left alone");
    else if (asks && device->policy == OVERLAP_NO_POLICY)
        overlap_say("no policy is for ", name, ": its launches are counted and left alone");
    device->unreadable = asks && !usable;
    if (!usable)
        device->policy = OVERLAP_NO_POLICY;
    device->observes = overlap_observes(device_policy(device));
    record(device, settings, uuid);
    if (device->policy == OVERLAP_NO_POLICY)
        return;
    if (device->page_slot < OVERLAP_DEVICES)
        record_rules(device, &overlap_table_view(settings->table).policies[device->policy], settings);
}

void device_forked(void) {
    memset(devices, 0, sizeof devices);
}

struct device *device_get(enum vendor vendor, int ordinal) {
    const struct overlap_settings *settings = overlap_armed();
    if (!settings || !driver_ready(vendor) || ordinal < 0 || ordinal >= OVERLAP_DEVICES)
        return NULL;
    struct device *device = &devices[vendor][ordinal];
    uint32_t now = __atomic_load_n(&device->state, __ATOMIC_ACQUIRE);
    if (now == 2) /* load first: some launches come here each time, and a failed exchange takes the cache line, too */
        return device;
    if (now == 0 && __atomic_compare_exchange_n(&device->state, &now, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
        device->vendor = vendor;
        device->ordinal = ordinal;
        set_up(device, settings);
        __atomic_store_n(&device->state, 2, __ATOMIC_RELEASE);
        return device;
    }
    return overlap_wait(&device->state, 2) ? device : NULL;
}

struct device *device_cached(enum vendor vendor, int ordinal) {
    struct device *const device = ordinal >= 0 && ordinal < OVERLAP_DEVICES ? &devices[vendor][ordinal] : NULL;
    return device && __atomic_load_n(&device->state, __ATOMIC_ACQUIRE) == 2 ? device : NULL;
}

struct device *current_device(enum vendor vendor) {
    return driver_ready(vendor) ? device_get(vendor, current_ordinal(vendor)) : NULL;
}

const struct overlap_policy *device_policy(const struct device *device) {
    const struct overlap_settings *settings = overlap_armed();
    if (!settings || !device || device->policy == OVERLAP_NO_POLICY)
        return NULL;
    return &overlap_table_view(settings->table).policies[device->policy];
}

/* Threads that ask at once get, and store, the same. */
bool device_range(struct device *device, uint64_t context) {
    int least = 0, greatest = 0;
    if (device && !OVERLAP_LOAD(device->ranged) &&
        OPERATION_OF(device->vendor, priorities)(context, &least, &greatest)) {
        __atomic_store_n(&device->least, least, __ATOMIC_RELAXED);
        __atomic_store_n(&device->greatest, greatest, __ATOMIC_RELAXED);
        __atomic_store_n(&device->ranged, 1, __ATOMIC_RELEASE);
    }
    return device_is_ranged(device);
}

/* ---- Communication's footprint ---- */

static bool raise_to(uint32_t *component, uint32_t value) {
    uint32_t known = __atomic_load_n(component, __ATOMIC_RELAXED);
    while (known < value)
        if (__atomic_compare_exchange_n(component, &known, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return true;
    return false;
}

bool device_learn(struct device *device, const struct overlap_footprint *footprint) {
    /* Kernels that use nearly all of a block's shared memory (NCCL's TMA kernels) would leave no room for anything, and do
     * not show what a usual communication block needs. */
    uint64_t shared = (uint64_t)footprint->static_shared + footprint->dynamic_shared;
    if (shared * 10 > (uint64_t)device->gpu.shared_optin * 9)
        return false;
    struct overlap_footprint *known = &device->communication;
    bool grown = raise_to(&known->threads, footprint->threads);
    grown |= raise_to(&known->registers, footprint->registers);
    grown |= raise_to(&known->static_shared, footprint->static_shared);
    grown |= raise_to(&known->dynamic_shared, footprint->dynamic_shared);
    __atomic_store_n(&device->seen, 1, __ATOMIC_RELEASE);
    return grown;
}

const struct overlap_footprint *device_communication(const struct device *device, struct overlap_footprint *copy) {
    if (!__atomic_load_n(&device->seen, __ATOMIC_ACQUIRE))
        return NULL;
    *copy = (struct overlap_footprint){0}; /* the driver reports neither barriers nor scalar registers */
    copy->threads = OVERLAP_RELAXED(device->communication.threads);
    copy->registers = OVERLAP_RELAXED(device->communication.registers);
    copy->static_shared = OVERLAP_RELAXED(device->communication.static_shared);
    copy->dynamic_shared = OVERLAP_RELAXED(device->communication.dynamic_shared);
    return copy;
}
