/* Launches on AMD: from a call to a request, and from the request back to the call, with the decided size. */
#include "../core/core.h"
#include "../gpu/launch.h"
#include "../gpu/streams.h"
#include "../gpu/calls.h"
#include "launch.h"

/* ---- From a request to the call ---- */

/* Never `none` for the calls that read it, which the compiler cannot see. */
static const struct hip_more *more_of(const struct request *request) {
    static const struct hip_more none;
    return request->more ? request->more : &none;
}

static hipError_t launch_exc(const struct request *request, type_hipLaunchKernelExC *real, size_t dynamic) {
    const hipLaunchConfig_t *const asked = more_of(request)->config;
    if (!asked || dynamic == request->config.sharedMemBytes) /* the program's own size may exceed 32 bits */
        return real(asked, request->function, request->parameters);
    hipLaunchConfig_t config = *asked;
    config.dynamicSmemBytes = dynamic;
    return real(&config, request->function, request->parameters);
}

static hipError_t launch_drv_ex(const struct request *request, type_hipDrvLaunchKernelEx *real, uint32_t dynamic) {
    vendor_launch config = request->config;
    config.sharedMemBytes = dynamic;
    return real(&config, request->function, request->parameters, request->extra);
}

#define GRID c->gridDimX, c->gridDimY, c->gridDimZ
#define BLOCK c->blockDimX, c->blockDimY, c->blockDimZ
#define ITEMS more->items[0], more->items[1], more->items[2]

static hipError_t launch(const struct request *request, void *real, uint32_t dynamic) {
    const vendor_launch *c = &request->config;
    const struct hip_more *more = more_of(request);
    void *const function = request->function, **const parameters = request->parameters, **const extra = request->extra;
    const dim3 grid = {GRID}, block = {BLOCK};
    switch ((int)request->hook) {
    case HOOK_hipLaunchKernel:
    case HOOK_hipLaunchKernel_spt:
        return ((type_hipLaunchKernel *)real)(function, grid, block, parameters, dynamic, c->hStream);
    case HOOK_hipModuleLaunchKernel:
        return ((type_hipModuleLaunchKernel *)real)(function, GRID, BLOCK, dynamic, c->hStream, parameters, extra);
    case HOOK_hipExtLaunchKernel:
        return ((type_hipExtLaunchKernel *)real)(function, grid, block, parameters, dynamic, c->hStream, more->start,
                                                 more->stop, (int)more->flags);
    case HOOK_hipLaunchKernelExC:
        return launch_exc(request, (type_hipLaunchKernelExC *)real, dynamic);
    case HOOK_hipDrvLaunchKernelEx:
        return launch_drv_ex(request, (type_hipDrvLaunchKernelEx *)real, dynamic);
    case HOOK_hipLaunchCooperativeKernel:
    case HOOK_hipLaunchCooperativeKernel_spt:
        return ((type_hipLaunchCooperativeKernel *)real)(function, grid, block, parameters, dynamic, c->hStream);
    case HOOK_hipModuleLaunchCooperativeKernel:
        return ((type_hipModuleLaunchCooperativeKernel *)real)(function, GRID, BLOCK, dynamic, c->hStream, parameters);
    case HOOK_hipHccModuleLaunchKernel:
    case HOOK__Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_:
        return ((type_hipHccModuleLaunchKernel *)real)(function, ITEMS, BLOCK, dynamic, c->hStream, parameters, extra,
                                                       more->start, more->stop);
    default:
        return ((type_hipExtModuleLaunchKernel *)real)(function, ITEMS, BLOCK, dynamic, c->hStream, parameters, extra,
                                                       more->start, more->stop, more->flags);
    }
}

hipError_t hip_launch_with(struct request *request, uint32_t dynamic) {
    void *real = real_function(request->route, request->hook, request->site);
    if (!real)
        return VENDOR_NOT_INITIALIZED;
    const bool ours = dynamic != request->config.sharedMemBytes;
    const hipError_t pending = ours ? hip_last_error() : VENDOR_SUCCESS;
    const hipError_t result = launch(request, real, dynamic);
    return ours && hip_is_refusal(result) ? hip_restore_last_error(pending, result) : result; /* repeated as asked */
}

bool hip_is_refusal(hipError_t result) {
    return result == VENDOR_INVALID_VALUE || result == hipErrorOutOfMemory || result == hipErrorInvalidConfiguration ||
           result == VENDOR_OUT_OF_RESOURCES || result == VENDOR_NOT_SUPPORTED;
}

bool hip_launches_function(enum hook hook) {
    return !(hook == HOOK_hipLaunchKernel || hook == HOOK_hipLaunchKernel_spt || hook == HOOK_hipExtLaunchKernel ||
             hook == HOOK_hipLaunchKernelExC || hook == HOOK_hipLaunchCooperativeKernel ||
             hook == HOOK_hipLaunchCooperativeKernel_spt);
}

/* ---- From a call to a request ---- */

struct hip_cached hip_cached(ENTRY, const void *function, uint64_t threads, uint64_t blocks, size_t shared,
                             hipStream_t stream) {
    return hip_cached_inline(route, hook, site, function, threads, blocks, shared, stream);
}

/* Makes a launch that is not known, or that is not the program's. */
static hipError_t launch_request(struct request *request) {
    const struct hip_more *more = request->more;
    void *const passes = request->route == ROUTE_TABLE
                             ? NULL /* the thunk has asked */
                             : hip_passes_by_name(request->route, request->hook, request->site);
    if (passes)
        return launch(request, passes, request->config.sharedMemBytes);
    const hipError_t result = launch_slow(request);
    if (more && more->stop && result == VENDOR_SUCCESS && streams_tracked())
        event_recorded(more->stop, request->config.hStream, hook_default(request->hook));
    return result;
}

hipError_t hip_launch(ENTRY, uint32_t flags, const void *function, dim3 grid, dim3 block, size_t shared,
                      hipStream_t stream, void **parameters, void **extra, const struct hip_more *more) {
    struct request request = {
        .route = route,
        .hook = hook,
        .site = site,
        .flags = flags,
        .function = (void *)(uintptr_t)function,
        .parameters = parameters,
        .extra = extra,
        /* Sizes that do not fit are left for the runtime to refuse; any large value will do. */
        .config = {grid.x, grid.y, grid.z, block.x, block.y, block.z,
                   .sharedMemBytes = shared > UINT32_MAX ? UINT32_MAX : (uint32_t)shared, .hStream = stream},
        .more = more,
    };
    return launch_request(&request);
}

hipError_t hip_cooperative_body(ENTRY, const void *function, dim3 grid, dim3 block, void **arguments, uint32_t shared,
                                hipStream_t stream) {
    return hip_launch(route, hook, site, OVERLAP_LAUNCH_COOPERATIVE, function, grid, block, shared, stream, arguments,
                      NULL, NULL);
}

hipError_t hip_module_cooperative_body(ENTRY, hipFunction_t function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                                       uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared,
                                       hipStream_t stream, void **parameters) {
    return hip_launch(route, hook, site, OVERLAP_LAUNCH_COOPERATIVE, function, (dim3){grid_x, grid_y, grid_z},
                      (dim3){block_x, block_y, block_z}, shared, stream, parameters, NULL, NULL);
}

hipError_t hip_items_old_body(ENTRY, hipFunction_t function, uint32_t items_x, uint32_t items_y, uint32_t items_z,
                              uint32_t block_x, uint32_t block_y, uint32_t block_z, size_t shared, hipStream_t stream,
                              void **parameters, void **extra, hipEvent_t start, hipEvent_t stop) {
    const struct hip_more more = {.items = {items_x, items_y, items_z}, .start = start, .stop = stop};
    const dim3 grid = {hip_groups(items_x, block_x), hip_groups(items_y, block_y), hip_groups(items_z, block_z)};
    return hip_launch(route, hook, site, 0, function, grid, (dim3){block_x, block_y, block_z}, shared, stream,
                      parameters, extra, &more);
}

static uint32_t flags_of(const vendor_attribute *attributes, uint32_t count) {
    for (uint32_t i = 0; attributes && i < count; i++)
        if (attributes[i].id == LAUNCH_ATTRIBUTE_COOPERATIVE && attributes[i].value.cooperative)
            return OVERLAP_LAUNCH_COOPERATIVE;
    return 0;
}

hipError_t hip_exc_body(ENTRY, const hipLaunchConfig_t *config, const void *function, void **arguments) {
    REAL_OR_RETURN(hipLaunchKernelExC);
    if (!config) /* left for the runtime to refuse */
        return real(config, function, arguments);
    const struct hip_more more = {.config = config};
    return hip_launch(route, hook, site, flags_of(config->attrs, config->numAttrs), function, config->gridDim,
                      config->blockDim, config->dynamicSmemBytes, config->stream, arguments, NULL, &more);
}

hipError_t hip_drv_ex_body(ENTRY, const HIP_LAUNCH_CONFIG *config, hipFunction_t function, void **parameters,
                           void **extra) {
    REAL_OR_RETURN(hipDrvLaunchKernelEx);
    if (!config)
        return real(config, function, parameters, extra);
    struct request request = {.route = route,
                              .hook = hook,
                              .site = site,
                              .flags = flags_of(config->attrs, config->numAttrs),
                              .function = function,
                              .parameters = parameters,
                              .extra = extra,
                              .config = *config};
    return launch_request(&request);
}
