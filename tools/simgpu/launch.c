/* Launches: cuLaunchKernel and its family become operations of a stream, or nodes of the graph that captures it. Whether one is
 * refused: launch_nvidia.c, hip/check.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

/* ---- what a launch is given: attributes and parameters ---- */

CUresult sim_launch_attributes(struct launch_request *request, const CUlaunchAttribute *attributes,
                               unsigned int count) {
    if (count > 0 && attributes == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; i < count; i++) {
        const CUlaunchAttributeValue *const value = &attributes[i].value;
        switch (attributes[i].id) {
        case LAUNCH_COOPERATIVE:
            request->set.cooperative = value->integer != 0;
            break;
        case LAUNCH_CLUSTER:
            request->set.has_cluster = true;
            memcpy(request->set.cluster_size, value->dimension, sizeof request->set.cluster_size);
            break;
        case LAUNCH_CARVEOUT:
            if (value->integer < -1 || value->integer > 100)
                return CUDA_ERROR_INVALID_VALUE;
            request->set.has_carveout = true;
            request->set.carveout = value->integer;
            break;
        case LAUNCH_PRIORITY:
            if (sim_config.driver_version < FIRST_VERSION_WITH_PRIORITY)
                return CUDA_ERROR_INVALID_VALUE;
            request->set.has_priority = true; /* of several the last one wins */
            request->set.priority = sim_clamp_priority(value->integer);
            break;
        default: /* nothing follows from the others */
            if (attributes[i].id < 0 || attributes[i].id > NEWEST_LAUNCH_ATTRIBUTE)
                return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult copy_from_buffer(struct launch_request *request, void **extra) {
    const void *buffer = NULL;
    const size_t *bytes = NULL;
    for (size_t i = 0; extra[i] != (void *)LAUNCH_PARAM_END; i += 2) {
        if (i >= 16)
            return CUDA_ERROR_INVALID_VALUE;
        if ((uintptr_t)extra[i] == LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[i + 1];
        else if ((uintptr_t)extra[i] == LAUNCH_PARAM_BUFFER_SIZE)
            bytes = extra[i + 1];
        else
            return CUDA_ERROR_INVALID_VALUE;
    }
    const struct kernel_image *const image = request->function->image;
    const size_t size = bytes != NULL ? *bytes : 0;
    if (size > 65536 || (size > 0 && buffer == NULL) || (image->layout_known && size < sim_parameter_bytes(image)))
        return CUDA_ERROR_INVALID_VALUE;
    request->parameters = sim_new(size, 1);
    if (!image->layout_known && size > 0)
        memcpy(request->parameters, buffer, size);
    for (uint32_t i = 0; i < image->parameters; i++) { /* not the padding, nor what follows the last one */
        const struct parameter *const parameter = &image->parameter[i];
        memcpy(request->parameters + parameter->offset, (const uint8_t *)buffer + parameter->offset, parameter->size);
    }
    request->parameter_bytes = image->layout_known ? sim_parameter_bytes(image) : (uint32_t)size;
    return CUDA_SUCCESS;
}

CUresult sim_launch_parameters(struct launch_request *request, void **pointers, void **extra) {
    const struct kernel_image *const image = request->function->image;
    if (pointers != NULL && extra != NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (extra != NULL)
        return copy_from_buffer(request, extra);
    if (image->parameters > 0 && pointers == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    request->parameter_bytes = sim_parameter_bytes(image);
    request->parameters = sim_new(request->parameter_bytes, 1);
    for (uint32_t i = 0; i < image->parameters; i++) {
        const struct parameter *const parameter = &image->parameter[i];
        if (pointers[i] == NULL)
            return CUDA_ERROR_INVALID_VALUE;
        memcpy(request->parameters + parameter->offset, pointers[i], parameter->size);
    }
    return CUDA_SUCCESS;
}

struct footprint sim_footprint(const struct function *function, int threads, size_t dynamic) {
    const int carveout = sim_setting(function, FUNC_CARVEOUT);
    return (struct footprint){.threads = threads,
                              .registers = function->image->registers,
                              .scalars = function->image->scalars,
                              .static_shared = function->image->static_shared,
                              .dynamic = dynamic,
                              .prefers = carveout >= 0,
                              .carveout = carveout};
}

struct footprint sim_launch_footprint(const struct launch_request *request) {
    const int threads = (int)(request->block[0] * request->block[1] * request->block[2]);
    struct footprint footprint = sim_footprint(request->function, threads, request->dynamic);
    if (request->set.has_carveout) {
        footprint.prefers = request->set.carveout >= 0;
        footprint.carveout = request->set.carveout;
    }
    return footprint;
}

/* One that ends its queue does so when it would run (hip/check.c). */
enum op_kind sim_launch_kind(const struct launch_request *request) {
    if (request->overshoots)
        sim_queue_died = true;
    return request->overshoots ? OP_NOTHING : OP_KERNEL;
}

bool sim_is_refused(const struct launch_request *request) {
    const struct limit *const limit = &sim_config.refuse;
    return limit->glob != NULL && request->dynamic > limit->number &&
           sim_glob(limit->glob, request->function->image->name);
}

/* ---- what becomes of it ---- */

enum { MOST_SIMULATED_BLOCKS = 32768 };

/* A grid of more than 32,768 blocks is simulated with fewer, longer ones, so that huge grids end soon. */
static void set_blocks(struct launch *launch) {
    launch->simulated = launch->blocks;
    if (launch->blocks > MOST_SIMULATED_BLOCKS) {
        const unsigned long long per = (launch->blocks + MOST_SIMULATED_BLOCKS - 1) / MOST_SIMULATED_BLOCKS;
        launch->simulated = (launch->blocks + per - 1) / per;
    }
    launch->scale = (double)launch->blocks / (double)launch->simulated;
}

void sim_launch_fill(struct op *op, const struct launch_request *request, int priority) {
    const struct kernel_image *const image = request->function->image;
    struct launch *const launch = sim_new(1, sizeof *launch);
    launch->threads = (int)(request->block[0] * request->block[1] * request->block[2]);
    launch->work = sim_work_class(sim_gpu_of(request->function), image, launch->threads);
    launch->blocks = (unsigned long long)request->grid[0] * request->grid[1] * request->grid[2];
    memcpy(launch->grid, request->grid, sizeof launch->grid);
    set_blocks(launch);
    launch->warps = sim_warps(launch->threads);
    launch->registers_of_warp = sim_registers_of_warp(image->registers);
    launch->scalars_of_warp = sim_scalars_of_warp(image->scalars);
    launch->dynamic = request->dynamic;
    launch->shared = sim_shared_of_block(image->static_shared, request->dynamic);
    const struct footprint footprint = sim_launch_footprint(request);
    launch->room = sim_shared_room(sim_gpu_of(request->function), &footprint);
    launch->priority = priority;
    launch->seed = launch->work->seed + launch->work->launches++ * 0x2545f4914f6cdd1du;
    op->launch = launch;
}

/* A node that a capture makes: with the attributes of its launch, and the priority of its stream if none was given (on AMD
 * launches and nodes have no priority: hipLaunchAttributePriority is refused). */
static void capture(const struct launch_request *request, struct stream *stream) {
    struct node *const node = sim_capture_node(stream, NODE_KERNEL);
    sim_node_set_launch(node, request);
    node->context = stream->green != NULL ? stream->green : stream->context->handle;
    if (!IS_AMD && !request->set.has_priority)
        node->launch.set.priority = stream->priority;
}

static CUresult submit(const struct launch_request *request, struct stream *stream, bool *captured) {
    CUresult result = sim_capture_check(stream, captured);
    if (result != CUDA_SUCCESS)
        return result;
    if (*captured) {
        capture(request, stream);
        return CUDA_SUCCESS;
    }
    struct op *const op = sim_stream_op(stream, sim_launch_kind(request));
    if (op->kind == OP_KERNEL)
        sim_launch_fill(op, request, request->set.has_priority ? request->set.priority : stream->priority);
    sim_stream_submit(stream, op);
    return CUDA_SUCCESS;
}

/* In the context of the stream, which need not be current. */
static CUresult prepare(const struct call *call, struct launch_request *request, struct stream **stream) {
    const CUlaunchConfig *const config = call->config;
    CUresult result = sim_stream_of(config->hStream, call->per_thread, stream);
    if (result == CUDA_SUCCESS)
        result = sim_function_of(call->handle, (*stream)->context, true, &request->function);
    if (result == CUDA_SUCCESS && request->function->module->context != (*stream)->context)
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS)
        result = sim_launch_attributes(request, config->attrs, config->numAttrs);
    if (result == CUDA_SUCCESS)
        result = sim_launch_check(request);
    if (result == CUDA_SUCCESS)
        result = sim_launch_parameters(request, call->parameters, call->extra);
    return result;
}

CUresult sim_launch_locked(const struct call *call) {
    const CUlaunchConfig *const config = call->config;
    struct launch_request request = {.handle = call->handle,
                                     .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                                     .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                                     .dynamic = config->sharedMemBytes,
                                     .set.cooperative = call->cooperative};
    struct stream *stream = NULL;
    bool captured = false;
    CUresult result = prepare(call, &request, &stream);
    if (result == CUDA_SUCCESS)
        result = submit(&request, stream, &captured);
    const bool refused = result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_HANDLE;
    if (refused && stream != NULL && stream->capture != NULL)
        sim_capture_invalidate(stream->capture); /* as on the real driver (measured: 580.159) */
    char text[32];
    snprintf(text, sizeof text, "0x%llx",
             stream != NULL ? sim_stream_number(stream) : sim_handle_number(config->hStream));
    const int inherited = stream != NULL ? stream->priority : NORMAL_PRIORITY;
    sim_log_launch(&(struct launch_line){.request = &request,
                                         .stream = text,
                                         .result = result,
                                         .priority = request.set.has_priority ? request.set.priority : inherited,
                                         .captured = captured});
    free(request.parameters);
    return result;
}

static CUresult launch(const struct call *call) {
    SIM_CALL();
    return sim_launch_locked(call);
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
        SIM_NAMED(#name);                                                                                              \
        return launch(&(struct call){.config = &config,                                                                \
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
    SIM_NAMED(__func__);
    return launch(&(struct call){
        .config = config, .handle = function, .parameters = parameters, .extra = extra, .per_thread = false});
}

SIM_API CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **parameters,
                                       void **extra) {
    if (config == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    SIM_NAMED(__func__);
    return launch(&(struct call){
        .config = config, .handle = function, .parameters = parameters, .extra = extra, .per_thread = true});
}
