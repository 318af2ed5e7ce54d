/* Launches: every entry point becomes one kind of launch, in blocks. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "hip.h"

/* What a launch asks for besides its kernel. Work-items: the grid counts them, not blocks. */
struct launch_of {
    dim3 grid, block;
    size_t shared;
    hipStream_t stream;
    void **parameters, **extra;
    hipEvent_t start, stop;
    bool cooperative, per_thread, work_items;
};

/* The part that every launch has. */
#define LAUNCH_OF(grid_, block_, shared_, stream_, parameters_)                                                        \
    .grid = grid_, .block = block_, .shared = shared_, .stream = stream_, .parameters = parameters_
#define GRID ((dim3){grid_x, grid_y, grid_z})
#define BLOCK ((dim3){block_x, block_y, block_z})

static unsigned int blocks_of(unsigned int items, unsigned int block) {
    return block > 0 ? items / block + (items % block != 0) : items;
}

/* A block is never larger than the grid, and a kernel that says so has whole ones only. */
static hipError_t to_blocks(struct launch_of *what, const struct kernel_image *image) {
    unsigned int *const grid[] = {&what->grid.x, &what->grid.y, &what->grid.z};
    unsigned int *const block[] = {&what->block.x, &what->block.y, &what->block.z};
    for (size_t i = 0; i < 3; i++) {
        if (*grid[i] > 0 && *grid[i] < *block[i])
            *block[i] = *grid[i];
        if (image->uniform && *block[i] > 0 && *grid[i] % *block[i] != 0)
            return hipErrorInvalidValue;
        *grid[i] = blocks_of(*grid[i], *block[i]);
    }
    return hipSuccess;
}

static hipError_t launch_locked(hipFunction_t function, struct launch_of *what) {
    SIM_CALL();
    struct stream *stream;
    struct function *found;
    if (sim_stream_of(what->stream, what->per_thread, &stream) != CUDA_SUCCESS)
        return hipErrorInvalidValue;
    if (sim_function_of(function, stream->context, true, &found) != CUDA_SUCCESS)
        return hipErrorInvalidHandle;
    const hipError_t result = what->work_items ? to_blocks(what, found->image) : hipSuccess;
    if (result != hipSuccess)
        return result;
    /* More than fits an unsigned int is refused as too much; the log says as much as there is room for. */
    const unsigned int shared = what->shared > UINT32_MAX ? UINT32_MAX : (unsigned int)what->shared;
    const CUlaunchConfig config = {what->grid.x,  what->grid.y, what->grid.z, what->block.x, what->block.y,
                                   what->block.z, shared,       what->stream, NULL,          0};
    return sim_launch_locked(&(struct call){.config = &config,
                                            .handle = function,
                                            .parameters = what->parameters,
                                            .extra = what->extra,
                                            .cooperative = what->cooperative,
                                            .per_thread = what->per_thread});
}

static bool captures(const struct launch_of *what) {
    struct stream *stream;
    sim_lock();
    const bool found = sim_stream_of(what->stream, what->per_thread, &stream) == CUDA_SUCCESS;
    const bool is = found && stream->capture != NULL;
    sim_unlock();
    return is;
}

/* In a capture, nodes of the graph record the events of a launch. */
static hipError_t record(hipEvent_t event, const struct launch_of *what) {
    enum { EXTERNAL = 1 };
    return event != NULL ? cuEventRecordWithFlags(event, what->stream, captures(what) ? EXTERNAL : 0) : hipSuccess;
}

static hipError_t launch(hipFunction_t function, struct launch_of what) {
    hipError_t result = hip_ready();
    if (result == hipSuccess && function == NULL)
        result = hipErrorInvalidHandle;
    if (result == hipSuccess)
        result = record(what.start, &what);
    if (result == hipSuccess)
        result = launch_locked(function, &what);
    return result != hipSuccess ? result : record(what.stop, &what);
}

/* ---- by an exported function, so that whoever stands in front of it sees the launch again ---- */

HIP_API hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
                                         unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                         unsigned int block_z, unsigned int shared, hipStream_t stream,
                                         void **parameters, void **extra);

struct through_module {
    const struct launch_of *what;
    hipFunction_t function;
    hipError_t result;
};

static void *launch_module(void *argument) {
    struct through_module *const step = argument;
    const struct launch_of *const what = step->what;
    step->result =
        hipModuleLaunchKernel(step->function, what->grid.x, what->grid.y, what->grid.z, what->block.x, what->block.y,
                              what->block.z, (unsigned int)what->shared, what->stream, what->parameters, NULL);
    return NULL;
}

/* SIMGPU_HIP_ITSELF=module: a launch of a host function goes through that function, as in ROCm 7; thread: in another thread. */
static hipError_t through_module(hipFunction_t function, struct launch_of *what, const char *how) {
    enum { LEGACY = 1, PER_THREAD = 2 };
    struct through_module step = {what, function, hipErrorOutOfMemory};
    pthread_t thread;
    if (what->stream == NULL) /* there it means the legacy stream */
        what->stream = (hipStream_t)(uintptr_t)(what->per_thread ? PER_THREAD : LEGACY);
    if (strcmp(how, "thread") != 0)
        launch_module(&step);
    else if (pthread_create(&thread, NULL, launch_module, &step) == 0)
        pthread_join(thread, NULL);
    return step.result;
}

/* By the host's address for a kernel, on the device of the stream. */
static hipError_t launch_host(const void *host, struct launch_of what) {
    const char *const how = getenv("SIMGPU_HIP_ITSELF");
    hipFunction_t function;
    const hipError_t result = hip_function(host, hip_device_of(what.stream), &function);
    if (result != hipSuccess)
        return result;
    return how == NULL || what.cooperative || what.start || what.stop ? launch(function, what)
                                                                      : through_module(function, &what, how);
}

/* ---- by each entry point ---- */

hipError_t hip_hipLaunchKernel(bool per_thread, const void *function, dim3 grid, dim3 block, void **arguments,
                               size_t shared, hipStream_t stream) {
    return launch_host(function,
                       (struct launch_of){LAUNCH_OF(grid, block, shared, stream, arguments), .per_thread = per_thread});
}

hipError_t hip_hipLaunchCooperativeKernel(bool per_thread, const void *function, dim3 grid, dim3 block,
                                          void **arguments, unsigned int shared, hipStream_t stream) {
    return launch_host(function, (struct launch_of){LAUNCH_OF(grid, block, shared, stream, arguments),
                                                    .cooperative = true, .per_thread = per_thread});
}

hipError_t hip_hipExtLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                  hipStream_t stream, hipEvent_t start, hipEvent_t stop, int flags) {
    (void)flags; /* "any order" is a permission */
    return launch_host(
        function, (struct launch_of){LAUNCH_OF(grid, block, shared, stream, arguments), .start = start, .stop = stop});
}

hipError_t hip_hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
                                     unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                     unsigned int block_z, unsigned int shared, hipStream_t stream, void **parameters,
                                     void **extra) {
    return launch(function, (struct launch_of){LAUNCH_OF(GRID, BLOCK, shared, stream, parameters), .extra = extra});
}

hipError_t hip_hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
                                                unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                                unsigned int block_z, unsigned int shared, hipStream_t stream,
                                                void **parameters) {
    return launch(function,
                  (struct launch_of){LAUNCH_OF(GRID, BLOCK, shared, stream, parameters), .cooperative = true});
}

#define WORK_ITEMS                                                                                                     \
    (struct launch_of) {                                                                                               \
        LAUNCH_OF(((dim3){items_x, items_y, items_z}), BLOCK, shared, stream, parameters), .extra = extra,             \
            .start = start, .stop = stop, .work_items = true                                                           \
    }

hipError_t hip_hipExtModuleLaunchKernel(hipFunction_t function, uint32_t items_x, uint32_t items_y, uint32_t items_z,
                                        uint32_t block_x, uint32_t block_y, uint32_t block_z, size_t shared,
                                        hipStream_t stream, void **parameters, void **extra, hipEvent_t start,
                                        hipEvent_t stop, uint32_t flags) {
    (void)flags;
    return launch(function, WORK_ITEMS);
}

hipError_t hip_hipHccModuleLaunchKernel(hipFunction_t function, uint32_t items_x, uint32_t items_y, uint32_t items_z,
                                        uint32_t block_x, uint32_t block_y, uint32_t block_z, size_t shared,
                                        hipStream_t stream, void **parameters, void **extra, hipEvent_t start,
                                        hipEvent_t stop) {
    return launch(function, WORK_ITEMS);
}

/* The first of them, as C++ names it. */
hipError_t hip__Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j(
    hipFunction_t function, uint32_t items_x, uint32_t items_y, uint32_t items_z, uint32_t block_x, uint32_t block_y,
    uint32_t block_z, size_t shared, hipStream_t stream, void **parameters, void **extra, hipEvent_t start,
    hipEvent_t stop, uint32_t flags) {
    (void)flags;
    return hip_done(launch(function, WORK_ITEMS));
}

/* ---- with attributes ---- */

/* The one attribute that counts is that of a cooperative launch. */
static hipError_t read_attributes(const hipLaunchAttribute *attributes, unsigned int count, bool *cooperative) {
    if (count > 0 && attributes == NULL)
        return hipErrorInvalidValue;
    for (unsigned int i = 0; i < count; i++) {
        if (attributes[i].id != LAUNCH_COOPERATIVE)
            return hipErrorInvalidValue;
        *cooperative = attributes[i].value.integer != 0;
    }
    return hipSuccess;
}

hipError_t hip_hipLaunchKernelExC(const hipLaunchConfig_t *config, const void *function, void **arguments) {
    if (config == NULL)
        return hipErrorInvalidConfiguration;
    struct launch_of what = {
        LAUNCH_OF(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream, arguments)};
    const hipError_t result = read_attributes(config->attrs, config->numAttrs, &what.cooperative);
    return result != hipSuccess ? result : launch_host(function, what);
}

hipError_t hip_hipDrvLaunchKernelEx(const HIP_LAUNCH_CONFIG *config, hipFunction_t function, void **parameters,
                                    void **extra) {
    if (config == NULL)
        return hipErrorInvalidConfiguration;
    const dim3 grid = {config->gridDimX, config->gridDimY, config->gridDimZ};
    const dim3 block = {config->blockDimX, config->blockDimY, config->blockDimZ};
    struct launch_of what = {LAUNCH_OF(grid, block, config->sharedMemBytes, config->hStream, parameters),
                             .extra = extra};
    const hipError_t result = read_attributes(config->attrs, config->numAttrs, &what.cooperative);
    return result != hipSuccess ? result : launch(function, what);
}
