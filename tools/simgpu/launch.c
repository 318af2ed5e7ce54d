/* Launches: cuLaunchKernel and its family become operations of a stream, or nodes of the graph that captures it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

enum { MOST_SIMULATED_BLOCKS = 32768 };

/* A grid of more than 32,768 blocks is simulated with fewer, longer ones, so that huge grids end soon. */
static void set_blocks(struct launch *launch, int cluster) {
    const unsigned long long each = (unsigned long long)cluster;
    launch->simulated = launch->blocks;
    if (launch->blocks > MOST_SIMULATED_BLOCKS) {
        const unsigned long long per = (launch->blocks + MOST_SIMULATED_BLOCKS - 1) / MOST_SIMULATED_BLOCKS;
        launch->simulated = ((launch->blocks + per - 1) / per + each - 1) / each * each;
    }
    launch->scale = (double)launch->blocks / (double)launch->simulated;
}

/* An idle multiprocessor is divided as the kernel prefers, or else (SIMGPU_CARVEOUT) so that as many of its blocks fit
 * as ever do. A busy one must have that much, and no more than a preference that is less than all. */
static void set_division(struct launch *launch, const struct launch_request *request) {
    const struct gpu *const gpu = sim_gpu_of(request->function);
    const struct footprint footprint = sim_launch_footprint(request);
    const bool bounded = footprint.prefers && footprint.carveout < 100;
    launch->room = sim_shared_room(gpu, &footprint);
    launch->least = sim_shared_division(gpu, (size_t)sim_occupancy(gpu, &footprint) * launch->shared);
    launch->most = bounded ? launch->room : (size_t)gpu->shared;
    if (sim_config.divides && !footprint.prefers)
        launch->room = launch->least;
}

void sim_launch_fill(struct op *op, const struct launch_request *request, const struct stream *stream, int priority,
                     const struct sm_set *usable) {
    const struct kernel_image *const image = request->function->image;
    struct launch *const launch = calloc(1, sizeof *launch);
    if (launch == NULL)
        abort();
    launch->threads = (int)(request->block[0] * request->block[1] * request->block[2]);
    launch->work = sim_work_class(sim_gpu_of(request->function), image, launch->threads);
    launch->blocks = (unsigned long long)request->grid[0] * request->grid[1] * request->grid[2];
    memcpy(launch->grid, request->grid, sizeof launch->grid);
    launch->usable = *usable;
    launch->cluster = request->cluster > 1 ? request->cluster : 1;
    set_blocks(launch, launch->cluster);
    launch->warps = sim_warps(launch->threads);
    launch->registers_of_warp = sim_registers_of_warp(image->registers);
    launch->scalars_of_warp = sim_scalars_of_warp(image->scalars);
    launch->dynamic = request->dynamic;
    launch->shared = sim_shared_of_block(image->static_shared, request->dynamic);
    set_division(launch, request);
    launch->priority = priority;
    launch->seed = launch->work->seed + launch->work->launches++ * 0x2545f4914f6cdd1du;
    launch->stream_number = sim_stream_number(stream);
    launch->context_number = sim_handle_number(stream->context->handle);
    op->launch = launch;
}

static bool is_programmatic(const CUlaunchConfig *config) {
    bool found = false; /* of several attributes the last one wins */
    for (unsigned int i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == LAUNCH_PROGRAMMATIC_SERIALIZATION)
            found = config->attrs[i].value.integer != 0;
    return found;
}

/* A node that a capture makes: with the attributes of its launch, and the priority of its stream if none was given (on AMD
 * launches and nodes have no priority: hipLaunchAttributePriority is refused). */
static CUresult capture(const struct launch_request *request, struct stream *stream, const CUlaunchConfig *config) {
    struct node *const node = sim_capture_node(stream, NODE_KERNEL);
    if (node == NULL || !sim_node_set_launch(node, request))
        return CUDA_ERROR_OUT_OF_MEMORY;
    node->context = stream->green != NULL ? stream->green : stream->context->handle;
    if (!IS_AMD && !request->has_priority)
        node->launch.priority = node->launch.asked_priority = stream->priority;
    for (unsigned int i = 0; i < config->numAttrs; i++)
        if (!sim_node_keep_attribute(node, config->attrs[i].id, &config->attrs[i].value))
            return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; is_programmatic(config) && i < node->before_count; i++)
        if (node->before[i].from->type == NODE_KERNEL && !sim_edge_has_data(&node->before[i]))
            node->before[i].data = (CUgraphEdgeData){.from_port = PORT_PROGRAMMATIC, .type = EDGE_PROGRAMMATIC};
    return CUDA_SUCCESS;
}

static CUresult submit(const struct launch_request *request, struct stream *stream, const CUlaunchConfig *config,
                       bool *captured) {
    CUresult result = sim_capture_check(stream, captured);
    if (result != CUDA_SUCCESS)
        return result;
    if (*captured)
        return capture(request, stream, config);
    struct op *const op = sim_stream_op(stream, sim_launch_kind(request));
    if (op->kind == OP_KERNEL)
        sim_launch_fill(op, request, stream, request->has_priority ? request->priority : stream->priority,
                        &stream->usable);
    sim_stream_submit(stream, op);
    return CUDA_SUCCESS;
}

CUresult sim_launch_prepare(const struct call *call, struct context *context, struct launching *out) {
    const CUlaunchConfig *const config = call->config;
    struct launch_request *const request = &out->request;
    *out = (struct launching){.request = {
                                  .handle = call->handle,
                                  .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                                  .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                                  .dynamic = config->sharedMemBytes,
                                  .cooperative = call->cooperative,
                              }};
    CUresult result = sim_function_of(call->handle, context, true, &request->function);
    if (result == CUDA_SUCCESS)
        result = sim_stream_of(config->hStream, call->per_thread, context, &out->stream);
    if (result == CUDA_SUCCESS && request->function->module->context != out->stream->context)
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        request->usable = &out->stream->usable;
    if (result == CUDA_SUCCESS)
        result = sim_launch_attributes(request, config->attrs, config->numAttrs);
    if (result == CUDA_SUCCESS)
        result = sim_launch_check(request);
    if (result == CUDA_SUCCESS)
        result = sim_launch_parameters(request, call->parameters, call->extra);
    return result;
}

/* After it was done or refused: what follows from that, and the log. */
void sim_launch_end(const struct call *call, struct launching *launching, CUresult result) {
    struct launch_request *const request = &launching->request;
    const struct stream *const stream = launching->stream;
    if (result != CUDA_SUCCESS && stream != NULL && stream->capture != NULL)
        sim_capture_invalidate(stream->capture); /* as on the real driver (measured: 580.159) */
    if (result == CUDA_SUCCESS && !call->older)
        sim_older_state_forget(request->function);
    char text[32];
    snprintf(text, sizeof text, "0x%llx",
             stream != NULL ? sim_stream_number(stream) : sim_handle_number(call->config->hStream));
    const int inherited = stream != NULL ? stream->priority : NORMAL_PRIORITY;
    sim_log_launch(&(struct launch_line){
        .entry = call->entry,
        .request = request,
        .stream = text,
        .result = result,
        .priority = request->has_priority ? request->priority : inherited,
        .captured = launching->captured,
    });
    free(request->parameters);
}

CUresult sim_launch_locked(const struct call *call, struct context *context) {
    struct launching launching;
    CUresult result = sim_launch_prepare(call, context, &launching);
    if (result == CUDA_SUCCESS)
        result = submit(&launching.request, launching.stream, call->config, &launching.captured);
    sim_launch_end(call, &launching, result);
    return result;
}

static CUresult launch(const struct call *call) {
    SIM_CALL_IN_CONTEXT(context);
    return sim_launch_locked(call, context);
}

#define KERNEL_ARGUMENTS                                                                                               \
    (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,         \
     unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream stream, void **parameters,              \
     void **extra)
#define COOPERATIVE_ARGUMENTS                                                                                          \
    (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,         \
     unsigned int block_y, unsigned int block_z, unsigned int shared, CUstream stream, void **parameters)

#define LAUNCH(name, arguments, extra_value, is_cooperative, is_per_thread)                                            \
    SIM_API CUresult name arguments {                                                                                  \
        const CUlaunchConfig config = {grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, NULL, 0};    \
        return launch(&(struct call){.entry = #name,                                                                   \
                                     .config = &config,                                                                \
                                     .handle = function,                                                               \
                                     .parameters = parameters,                                                         \
                                     .extra = extra_value,                                                             \
                                     .cooperative = is_cooperative,                                                    \
                                     .per_thread = is_per_thread});                                                    \
    }

LAUNCH(cuLaunchKernel, KERNEL_ARGUMENTS, extra, false, false)
LAUNCH(cuLaunchKernel_ptsz, KERNEL_ARGUMENTS, extra, false, true)
LAUNCH(cuLaunchCooperativeKernel, COOPERATIVE_ARGUMENTS, NULL, true, false)
LAUNCH(cuLaunchCooperativeKernel_ptsz, COOPERATIVE_ARGUMENTS, NULL, true, true)

SIM_API CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    if (config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return launch(&(struct call){.entry = __func__,
                                 .config = config,
                                 .handle = function,
                                 .parameters = parameters,
                                 .extra = extra,
                                 .per_thread = false});
}

SIM_API CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **parameters,
                                       void **extra) {
    if (config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return launch(&(struct call){.entry = __func__,
                                 .config = config,
                                 .handle = function,
                                 .parameters = parameters,
                                 .extra = extra,
                                 .per_thread = true});
}
