/* Bodies of the launch calls that programs repeat. Inline, because a call would move all arguments once more. frame: of the
 * thunk (entry.c). */
#pragma once

#include "../gpu/launch.h"
#include "hip.h"

#pragma GCC visibility push(hidden)

/* Arguments that only some launch calls have. */
struct hip_more {
    uint32_t items[3]; /* for calls that give work-items instead of workgroups */
    uint32_t flags;
    hipEvent_t start, stop;          /* recorded before and after the kernel; may be NULL */
    const hipLaunchConfig_t *config; /* hipLaunchKernelExC: the program's own */
};

/* A launch whose answer is known: the runtime's function, and the size. real: NULL: it is not. */
struct hip_cached {
    void *real;
    size_t shared;
};
/* Counts the launch, if it is the program's. A launch that records events has a `shared` of HIP_NEVER_KNOWN. */
#define HIP_NEVER_KNOWN SIZE_MAX
static inline __attribute__((always_inline)) struct hip_cached
hip_cached_inline(ENTRY, const void *function, uint64_t threads, uint64_t blocks, size_t shared, hipStream_t stream) {
    void *const real = real_cached(hook, route);
    if (!real || shared > OVERLAP_LARGEST_SIZE)
        return (struct hip_cached){NULL, 0};
    uint32_t size = (uint32_t)shared;
    const bool known = launch_cached(function, 0, (uint32_t)threads, blocks, &size, stream, hook_default(hook), site);
    return (struct hip_cached){known ? real : NULL, size};
}
/* The same as a function: 50 instructions more for each launch, 200 less for each thunk. */
struct hip_cached hip_cached(ENTRY, const void *function, uint64_t threads, uint64_t blocks, size_t shared,
                             hipStream_t stream);

/* Makes any other launch. */
hipError_t hip_launch(ENTRY, uint32_t flags, const void *function, dim3 grid, dim3 block, size_t shared,
                      hipStream_t stream, void **parameters, void **extra, const struct hip_more *more);

/* The body of a launch: `call` are the arguments of a known one, `other` makes any other. hot: spend code on speed. */
#define HIP_LAUNCH(name, threads, blocks, key, call, other)                                                            \
    const struct hip_cached known = hot ? hip_cached_inline(route, hook, site, function, threads, blocks, key, stream) \
                                        : hip_cached(route, hook, site, function, threads, blocks, key, stream);       \
    const uintptr_t before = hip_enter(frame);                                                                         \
    const hipError_t result = known.real ? ((type_##name *)known.real)call : other;                                    \
    this_thread.inside = before;                                                                                       \
    return result
#define HIP_BODY static inline __attribute__((always_inline)) hipError_t

static inline uint64_t hip_volume(dim3 size) {
    return (uint64_t)size.x * size.y * size.z;
}

HIP_BODY hip_host_body(bool hot, ENTRY, uintptr_t frame, const void *function, dim3 grid, dim3 block, void **arguments,
                       size_t shared, hipStream_t stream) {
    HIP_LAUNCH(hipLaunchKernel, hip_volume(block), hip_volume(grid), shared,
               (function, grid, block, arguments, known.shared, stream),
               hip_launch(route, hook, site, 0, function, grid, block, shared, stream, arguments, NULL, NULL));
}

HIP_BODY hip_module_body(bool hot, ENTRY, uintptr_t frame, hipFunction_t function, uint32_t grid_x, uint32_t grid_y,
                         uint32_t grid_z, uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared,
                         hipStream_t stream, void **parameters, void **extra) {
    const dim3 grid = {grid_x, grid_y, grid_z}, block = {block_x, block_y, block_z};
    HIP_LAUNCH(hipModuleLaunchKernel, hip_volume(block), hip_volume(grid), shared,
               (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, (uint32_t)known.shared, stream, parameters,
                extra),
               hip_launch(route, hook, site, 0, function, grid, block, shared, stream, parameters, extra, NULL));
}

HIP_BODY hip_ext_body(bool hot, ENTRY, uintptr_t frame, const void *function, dim3 grid, dim3 block, void **arguments,
                      size_t shared, hipStream_t stream, hipEvent_t start, hipEvent_t stop, int flags) {
    const struct hip_more more = {.flags = (uint32_t)flags, .start = start, .stop = stop};
    HIP_LAUNCH(hipExtLaunchKernel, hip_volume(block), hip_volume(grid), start || stop ? HIP_NEVER_KNOWN : shared,
               (function, grid, block, arguments, known.shared, stream, start, stop, flags),
               hip_launch(route, hook, site, 0, function, grid, block, shared, stream, arguments, NULL, &more));
}

static inline uint32_t hip_groups(uint32_t items, uint32_t group) {
    return group ? items / group + (items % group != 0) : 0;
}

HIP_BODY hip_items_body(bool hot, ENTRY, uintptr_t frame, hipFunction_t function, uint32_t items_x, uint32_t items_y,
                        uint32_t items_z, uint32_t block_x, uint32_t block_y, uint32_t block_z, size_t shared,
                        hipStream_t stream, void **parameters, void **extra, hipEvent_t start, hipEvent_t stop,
                        uint32_t flags) {
    const struct hip_more more = {.items = {items_x, items_y, items_z}, .flags = flags, .start = start, .stop = stop};
    const dim3 grid = {hip_groups(items_x, block_x), hip_groups(items_y, block_y), hip_groups(items_z, block_z)};
    const dim3 block = {block_x, block_y, block_z};
    HIP_LAUNCH(hipExtModuleLaunchKernel, hip_volume(block), hip_volume(grid), start || stop ? HIP_NEVER_KNOWN : shared,
               (function, items_x, items_y, items_z, block_x, block_y, block_z, known.shared, stream, parameters, extra,
                start, stop, flags),
               hip_launch(route, hook, site, 0, function, grid, block, shared, stream, parameters, extra, &more));
}

#pragma GCC visibility pop
