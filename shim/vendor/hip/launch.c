/* Launches on AMD: from a call to a request, and from the request back to the call, with the decided size.
 *
 * There are many launch functions, and inside the runtime one may reach another through the procedure linkage table,
 * where our hooks are, too. Every launch is decided once: at the program's call, or, if that cannot be decided
 * (hipLaunchByPtr), at the call that it reaches.
 */
#include "../../core/core.h"
#include "../common/launch.h"
#include "../common/streams.h"
#include "../common/thread.h"
#include "../common/wait_calls.h"
#include "launch.h"

/* Is one of our own launch calls in progress? A siglongjmp out of it leaves the mark of a frame behind that is not above
 * ours. */
static bool is_inside(void) {
    return this_thread.inside && (uintptr_t)__builtin_frame_address(0) < this_thread.inside;
}

/* ---- The program's call with another size ---- */

static dim3 grid_of(const vendor_launch *c) {
    return (dim3){c->gridDimX, c->gridDimY, c->gridDimZ};
}
static dim3 block_of(const vendor_launch *c) {
    return (dim3){c->blockDimX, c->blockDimY, c->blockDimZ};
}
/* x and y in one register, as a dim3 is passed. */
static uint64_t both(uint32_t x, uint32_t y) {
    return (uint64_t)y << 32 | x;
}

/* Never `none` for the calls that read it, which the compiler cannot see. */
static const struct hip_more *more_of(const struct request *request) {
    static const struct hip_more none;
    return request->more ? request->more : &none;
}

static hipError_t launch_items(const struct request *request, void *real, uint32_t dynamic) {
    const vendor_launch *c = &request->config;
    const struct hip_more *more = more_of(request);
    if (request->hook == HOOK_hipHccModuleLaunchKernel ||
        request->hook ==
            HOOK__Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_)
        return ((type_hipHccModuleLaunchKernel *)real)(
            request->function, more->items[0], more->items[1], more->items[2], c->blockDimX, c->blockDimY, c->blockDimZ,
            dynamic, c->hStream, request->parameters, request->extra, more->start, more->stop);
    return ((type_hipExtModuleLaunchKernel *)real)(
        request->function, more->items[0], more->items[1], more->items[2], c->blockDimX, c->blockDimY, c->blockDimZ,
        dynamic, c->hStream, request->parameters, request->extra, more->start, more->stop, more->flags);
}

static hipError_t launch_exc(const struct request *request, void *real, uint32_t dynamic) {
    type_hipLaunchKernelExC *const call = (type_hipLaunchKernelExC *)real;
    hipLaunchConfig_t config = more_of(request)->config;
    if (dynamic == request->config.sharedMemBytes) /* pass the program's config: its size may exceed 32 bits */
        return call(more_of(request)->asked, request->function, request->parameters);
    config.dynamicSmemBytes = dynamic;
    return call(&config, request->function, request->parameters);
}

static hipError_t launch(const struct request *request, void *real, uint32_t dynamic) {
    const vendor_launch *c = &request->config;
    const struct hip_more *more = more_of(request);
    vendor_launch changed;
    switch ((int)request->hook) {
    case HOOK_hipLaunchKernel:
    case HOOK_hipLaunchKernel_spt:
        return ((type_hipLaunchKernel *)real)(request->function, both(c->gridDimX, c->gridDimY), c->gridDimZ,
                                              both(c->blockDimX, c->blockDimY), c->blockDimZ, request->parameters,
                                              dynamic, c->hStream);
    case HOOK_hipModuleLaunchKernel:
        return ((type_hipModuleLaunchKernel *)real)(request->function, c->gridDimX, c->gridDimY, c->gridDimZ,
                                                    c->blockDimX, c->blockDimY, c->blockDimZ, dynamic, c->hStream,
                                                    request->parameters, request->extra);
    case HOOK_hipExtLaunchKernel:
        return ((type_hipExtLaunchKernel *)real)(request->function, both(c->gridDimX, c->gridDimY), c->gridDimZ,
                                                 both(c->blockDimX, c->blockDimY), c->blockDimZ, request->parameters,
                                                 dynamic, c->hStream, more->start, more->stop, (int)more->flags);
    case HOOK_hipLaunchKernelExC:
        return launch_exc(request, real, dynamic);
    case HOOK_hipDrvLaunchKernelEx:
        changed = *c;
        changed.sharedMemBytes = dynamic;
        return ((type_hipDrvLaunchKernelEx *)real)(&changed, request->function, request->parameters, request->extra);
    case HOOK_hipLaunchCooperativeKernel:
    case HOOK_hipLaunchCooperativeKernel_spt:
        return ((type_hipLaunchCooperativeKernel *)real)(request->function, grid_of(c), block_of(c),
                                                         request->parameters, dynamic, c->hStream);
    case HOOK_hipModuleLaunchCooperativeKernel:
        return ((type_hipModuleLaunchCooperativeKernel *)real)(request->function, c->gridDimX, c->gridDimY, c->gridDimZ,
                                                               c->blockDimX, c->blockDimY, c->blockDimZ, dynamic,
                                                               c->hStream, request->parameters);
    default:
        return launch_items(request, real, dynamic);
    }
}

/* Calls that the runtime makes meanwhile belong to this launch. */
hipError_t hip_launch_with(struct request *request, uint32_t dynamic) {
    void *real = real_function(request->route, request->hook, request->site);
    if (!real)
        return VENDOR_NOT_INITIALIZED;
    const bool ours = dynamic != request->config.sharedMemBytes;
    const hipError_t pending = ours ? hip_pending() : VENDOR_SUCCESS;
    const uintptr_t before = this_thread.inside;
    this_thread.inside = (uintptr_t)__builtin_frame_address(0);
    const hipError_t result = launch(request, real, dynamic);
    this_thread.inside = before;
    return ours && hip_is_refusal(result) ? hip_settle(pending, result) : result; /* repeated as asked */
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

/* ---- A request ---- */

hipError_t hip_launch(struct request *request) {
    const struct hip_more *more = request->more;
    const bool unnoted = request->site & HIP_UNNOTED;
    request->site &= ~HIP_UNNOTED;
    /* Part of a launch that was decided. A signal handler of the program may launch here, too. */
    if (is_inside() && (unnoted || in_driver(VENDOR_HIP, request->site)))
        return hip_launch_with(request, request->config.sharedMemBytes);
    if (this_thread.from && in_driver(VENDOR_HIP, request->site))
        request->site = hip_table_site(request->site);
    const hipError_t result = launch_slow(request);
    if (more && more->stop && result == VENDOR_SUCCESS && streams_tracked())
        event_recorded(more->stop, request->config.hStream, hook_default(request->hook));
    return result;
}

/* ---- From a call to a request ---- */

RARE hipError_t hip_items_old_body(ENTRY, hipFunction_t function, uint32_t items_x, uint32_t items_y, uint32_t items_z,
                                   uint32_t block_x, uint32_t block_y, uint32_t block_z, size_t shared,
                                   hipStream_t stream, void **parameters, void **extra, hipEvent_t start,
                                   hipEvent_t stop) {
    return hip_items_body_miss(route, hook, site, function, items_x, items_y, items_z, block_x, block_y, block_z,
                               shared, stream, parameters, extra, start, stop, 0);
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
    const struct hip_more more = {.config = *config, .asked = config};
    const dim3 grid = config->gridDim, block = config->blockDim;
    REQUEST(flags_of(config->attrs, config->numAttrs), arguments, NULL, &more, config->dynamicSmemBytes,
            config->stream);
    hip_shape(&request, grid.x, grid.y, grid.z, block.x, block.y, block.z);
    return hip_launch(&request);
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
    return hip_launch(&request);
}

RARE hipError_t hip_cooperative_body(ENTRY, const void *function, dim3 grid, dim3 block, void **arguments,
                                     uint32_t shared, hipStream_t stream) {
    REQUEST(OVERLAP_LAUNCH_COOPERATIVE, arguments, NULL, NO_MORE, shared, stream);
    hip_shape(&request, grid.x, grid.y, grid.z, block.x, block.y, block.z);
    return hip_launch(&request);
}

RARE hipError_t hip_module_cooperative_body(ENTRY, hipFunction_t function, uint32_t grid_x, uint32_t grid_y,
                                            uint32_t grid_z, uint32_t block_x, uint32_t block_y, uint32_t block_z,
                                            uint32_t shared, hipStream_t stream, void **parameters) {
    REQUEST(OVERLAP_LAUNCH_COOPERATIVE, parameters, NULL, NO_MORE, shared, stream);
    hip_shape(&request, grid_x, grid_y, grid_z, block_x, block_y, block_z);
    return hip_launch(&request);
}

/* ---- Launches that are counted and passed on ---- */

/* One kernel for each of several devices. The runtime refuses a count that exceeds the number of devices. */
static void count_several(enum route route, uint32_t count, uint32_t reason) {
    for (uint32_t i = 0; overlap_armed() && !is_inside() && count <= OVERLAP_DEVICES && i < count; i++)
        count_launch(reason);
}

RARE hipError_t hip_multi_body(ENTRY, hipLaunchParams *launches, int count, uint32_t flags) {
    REAL_OR_RETURN(hipLaunchCooperativeKernelMultiDevice);
    count_several(route, (uint32_t)count,
                  hook == HOOK_hipExtLaunchMultiKernelMultiDevice ? OVERLAP_REASON_unknown_footprint
                                                                  : OVERLAP_REASON_cooperative);
    const uintptr_t before = this_thread.inside;
    this_thread.inside = (uintptr_t)__builtin_frame_address(0);
    const hipError_t result = real(launches, count, flags);
    this_thread.inside = before;
    return result;
}

RARE hipError_t hip_module_multi_body(ENTRY, hipFunctionLaunchParams *launches, uint32_t count, uint32_t flags) {
    REAL_OR_RETURN(hipModuleLaunchCooperativeKernelMultiDevice);
    count_several(route, count, OVERLAP_REASON_cooperative);
    const uintptr_t before = this_thread.inside;
    this_thread.inside = (uintptr_t)__builtin_frame_address(0);
    const hipError_t result = real(launches, count, flags);
    this_thread.inside = before;
    return result;
}

/* Only the runtime has what hipConfigureCall set up. It calls hipModuleLaunchKernel, where the launch is decided,
 * for the caller recorded here. If the record is still there afterwards, the runtime has made the launch by a path
 * that we do not hook. */
RARE hipError_t hip_by_pointer_body(ENTRY, const void *function) {
    REAL_OR_RETURN(hipLaunchByPtr);
    this_thread.from = site;
    const hipError_t result = real(function);
    if (this_thread.from && overlap_armed() && result == VENDOR_SUCCESS)
        count_launch(OVERLAP_REASON_unknown_footprint);
    this_thread.from = 0;
    return result;
}
