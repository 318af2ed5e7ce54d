/* From a launch call to a request: the slow path of the thunks. Inline, because a call would move all arguments once
 * more. */
#pragma once

#include <string.h>

#include "../../core/core.h"
#include "../common/launch.h"
#include "../common/thread.h"
#include "hip.h"

#define LAUNCH_BODY static inline __attribute__((always_inline)) vendor_result
#define ROUTE_OF_symbol ROUTE_SYMBOL
#define ROUTE_OF_dlsym ROUTE_LOOKED_UP
#define ROUTE_OF_proc_address ROUTE_LOOKED_UP
#define ROUTE_OF_dispatch_table ROUTE_TABLE

static inline uint32_t hip_groups(uint32_t items, uint32_t group) {
    return group ? items / group + (items % group != 0) : 0;
}

/* Set every field one by one: a designated initialiser would zero the whole struct first. */
static inline __attribute__((always_inline)) void hip_request(struct request *request, ENTRY, uint32_t flags,
                                                              const void *function, void **parameters, void **extra,
                                                              const struct hip_more *more, size_t shared,
                                                              hipStream_t stream) {
    request->route = route;
    request->hook = hook;
    request->site = site;
    request->flags = flags;
    request->function = (void *)(uintptr_t)function;
    request->parameters = parameters;
    request->extra = extra;
    request->more = more;
    /* Sizes that do not fit are left for the runtime to refuse; any large value will do. */
    request->config.sharedMemBytes = shared > UINT32_MAX ? UINT32_MAX : (uint32_t)shared;
    request->config.pad = 0;
    request->config.hStream = stream;
    request->config.attrs = NULL;
    request->config.numAttrs = 0;
    request->config.pad2 = 0;
}

static inline void hip_shape(struct request *request, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                             uint32_t block_x, uint32_t block_y, uint32_t block_z) {
    request->config.gridDimX = grid_x;
    request->config.gridDimY = grid_y;
    request->config.gridDimZ = grid_z;
    request->config.blockDimX = block_x;
    request->config.blockDimY = block_y;
    request->config.blockDimZ = block_z;
}

/* From dim3s as they are passed. x and y are stored at once because they are loaded at once: two stores before one
 * load stall the processor. */
static inline void hip_shape_pairs(struct request *request, uint64_t grid_xy, uint32_t grid_z, uint64_t block_xy,
                                   uint32_t block_z) {
    memcpy(&request->config.gridDimX, &grid_xy, sizeof grid_xy);
    request->config.gridDimZ = grid_z;
    memcpy(&request->config.blockDimX, &block_xy, sizeof block_xy);
    request->config.blockDimZ = block_z;
}
_Static_assert(offsetof(vendor_launch, gridDimY) == offsetof(vendor_launch, gridDimX) + 4 &&
                   offsetof(vendor_launch, blockDimY) == offsetof(vendor_launch, blockDimX) + 4,
               "pairs");

/* In a body: a request without grid and block. */
#define NO_MORE NULL
#define REQUEST(flags, parameters, extra, more, shared, stream)                                                        \
    struct request request;                                                                                            \
    hip_request(&request, route, hook, site, flags, function, parameters, extra, more, shared, stream)

LAUNCH_BODY hip_host_body_miss(ENTRY, const void *function, uint64_t grid_xy, uint32_t grid_z, uint64_t block_xy,
                               uint32_t block_z, void **arguments, size_t shared, hipStream_t stream) {
    REQUEST(0, arguments, NULL, NO_MORE, shared, stream);
    hip_shape_pairs(&request, grid_xy, grid_z, block_xy, block_z);
    return hip_launch(&request);
}

LAUNCH_BODY hip_module_body_miss(ENTRY, hipFunction_t function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                                 uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared,
                                 hipStream_t stream, void **parameters, void **extra) {
    REQUEST(0, parameters, extra, NO_MORE, shared, stream);
    hip_shape(&request, grid_x, grid_y, grid_z, block_x, block_y, block_z);
    return hip_launch(&request);
}

LAUNCH_BODY hip_ext_body_miss(ENTRY, const void *function, uint64_t grid_xy, uint32_t grid_z, uint64_t block_xy,
                              uint32_t block_z, void **arguments, size_t shared, hipStream_t stream, hipEvent_t start,
                              hipEvent_t stop, int flags) {
    const struct hip_more more = {.flags = (uint32_t)flags, .start = start, .stop = stop};
    REQUEST(0, arguments, NULL, &more, shared, stream);
    hip_shape_pairs(&request, grid_xy, grid_z, block_xy, block_z);
    return hip_launch(&request);
}

LAUNCH_BODY hip_items_body_miss(ENTRY, hipFunction_t function, uint32_t items_x, uint32_t items_y, uint32_t items_z,
                                uint32_t block_x, uint32_t block_y, uint32_t block_z, size_t shared, hipStream_t stream,
                                void **parameters, void **extra, hipEvent_t start, hipEvent_t stop, uint32_t flags) {
    const struct hip_more more = {.items = {items_x, items_y, items_z}, .flags = flags, .start = start, .stop = stop};
    REQUEST(0, parameters, extra, &more, shared, stream);
    hip_shape(&request, hip_groups(items_x, block_x), hip_groups(items_y, block_y), hip_groups(items_z, block_z),
              block_x, block_y, block_z);
    return hip_launch(&request);
}
