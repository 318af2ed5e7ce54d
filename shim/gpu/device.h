/* Devices: limits, policy, and the footprint of communication. */
#pragma once

#include "../core/core.h"
#include "current.h"
#include "hook.h"

#pragma GCC visibility push(hidden)

struct device {
    uint32_t state; /* 2: ready */
    enum vendor vendor;
    int ordinal;
    uint32_t page_slot; /* of the statistics page; OVERLAP_DEVICES: all slots are in use */
    uint32_t policy;    /* index in the policy table; OVERLAP_NO_POLICY: none matches */
    bool observes;      /* its policy judges streams, and raises none */
    bool programs;      /* a stream to which the program gave a priority has carried a launch */
    uint32_t open;      /* streams on which an overlap window is open */
    /* Of all threads, for its streams: */
    uint64_t waits;  /* so far; added to by each thread that waits */
    uint64_t judged; /* at the latest judgement; under the lock */
    uint64_t due; /* at the next judgement; exchanged by the thread that will judge, set by the judge under the lock */
    int32_t least, greatest; /* priorities, once `ranged` (device_range) */
    uint32_t ranged;
    bool unreadable; /* the driver does not report the limits, so no policy applies although one may match */
    struct overlap_gpu gpu;
    /* The footprint of communication: the maximum of each component over all kernels so far. `seen` is stored last. */
    uint32_t seen;
    struct overlap_footprint communication;
};

/* Returns the current device of the calling thread, ready for decisions. NULL: there is none, or it is unknown. */
struct device *current_device(enum vendor vendor);
struct device *device_get(enum vendor vendor, int ordinal);
/* The same without a call of the driver: NULL also if nothing has asked for that device yet. */
struct device *device_cached(enum vendor vendor, int ordinal);

/* In a forked child: discards all devices, so that they are queried and recorded again. */
void device_forked(void);

/* Adds a communication kernel to the footprint of communication. True: the footprint has grown. */
bool device_learn(struct device *device, const struct overlap_footprint *footprint);

/* Copies the footprint of communication. NULL: no communication kernel was seen yet. */
const struct overlap_footprint *device_communication(const struct device *device, struct overlap_footprint *copy);

/* Returns the policy of the device, or NULL. */
const struct overlap_policy *device_policy(const struct device *device);

/* Is its policy one that judges streams and raises none? */
static inline bool device_observes(const struct device *device) {
    return device->observes;
}

/* Queries the range of priorities, once; context: one of the device, or 0 for the current one. False: it is not known, or
 * there is only one priority. */
bool device_range(struct device *device, uint64_t context);
/* Has that found one? */
static inline bool device_is_ranged(const struct device *device) {
    return device && OVERLAP_LOAD(device->ranged) &&
           OVERLAP_RELAXED(device->greatest) != OVERLAP_RELAXED(device->least);
}

#pragma GCC visibility pop
