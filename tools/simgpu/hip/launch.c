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

/* ---- by the exported functions, so that whoever stands in front of them sees the launch again ---- */

HIP_API hipError_t hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                   hipStream_t stream);
HIP_API hipError_t hipLaunchKernel_spt(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                       hipStream_t stream);
HIP_API hipError_t hipExtLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                      hipStream_t stream, hipEvent_t start, hipEvent_t stop, int flags);
HIP_API hipError_t hipModuleLaunchKernel(hipFunction_t function, unsigned int grid_x, unsigned int grid_y,
                                         unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                         unsigned int block_z, unsigned int shared, hipStream_t stream,
                                         void **parameters, void **extra);

/* SIMGPU_HIP_ITSELF=WORD[+WORD...]: through which of its own functions a launch of a host function goes. */
enum step { OWN, SPT, EXT, MODULE, THREAD, STEPS, MOST_STEPS = 16 };
static const char *const step_words[STEPS] = {"own", "spt", "ext", "module", "thread"};
static enum step steps[MOST_STEPS];
static int step_count;
static pthread_once_t steps_once = PTHREAD_ONCE_INIT;
static _Thread_local int steps_taken;

static void read_steps(void) {
    const char *at = getenv("SIMGPU_HIP_ITSELF");
    while (at != NULL && *at != '\0' && step_count < MOST_STEPS) {
        const size_t length = strcspn(at, "+");
        enum step step = OWN;
        while (step < STEPS && (strlen(step_words[step]) != length || strncmp(step_words[step], at, length) != 0))
            step++;
        if (step == STEPS)
            sim_say("SIMGPU_HIP_ITSELF: `%.*s` is not own, spt, ext, module or thread", (int)length, at);
        else
            steps[step_count++] = step;
        at += length + (at[length] == '+');
    }
}

struct elsewhere {
    const void *host;
    const struct launch_of *what;
    int taken;
    hipError_t result;
};

static hipError_t take_step(const void *host, const struct launch_of *what);

static void *go_on(void *argument) {
    struct elsewhere *const elsewhere = argument;
    steps_taken = elsewhere->taken;
    elsewhere->result = take_step(elsewhere->host, elsewhere->what);
    return NULL;
}

static hipError_t in_thread(const void *host, const struct launch_of *what) {
    struct elsewhere elsewhere = {host, what, steps_taken, hipErrorOutOfMemory};
    pthread_t thread;
    if (pthread_create(&thread, NULL, go_on, &elsewhere) == 0)
        pthread_join(thread, NULL);
    return elsewhere.result;
}

static hipError_t by_module(const void *host, const struct launch_of *what) {
    hipFunction_t function;
    const hipError_t result = hip_function(host, hip_device_of(what->stream), &function);
    return result != hipSuccess
               ? result
               : hipModuleLaunchKernel(function, what->grid.x, what->grid.y, what->grid.z, what->block.x, what->block.y,
                                       what->block.z, (unsigned int)what->shared, what->stream, what->parameters, NULL);
}

/* By the host's address for a kernel, on the device of the stream. */
static hipError_t take_step(const void *host, const struct launch_of *what) {
    hipError_t result;
    hipFunction_t function;
    if (steps_taken == step_count || what->cooperative || what->start || what->stop) {
        result = hip_function(host, hip_device_of(what->stream), &function);
        return result != hipSuccess ? result : launch(function, *what);
    }
    switch (steps[steps_taken++]) {
    case OWN:
        result = hipLaunchKernel(host, what->grid, what->block, what->parameters, what->shared, what->stream);
        break;
    case SPT:
        result = hipLaunchKernel_spt(host, what->grid, what->block, what->parameters, what->shared, what->stream);
        break;
    case EXT:
        result = hipExtLaunchKernel(host, what->grid, what->block, what->parameters, what->shared, what->stream, NULL,
                                    NULL, 0);
        break;
    case MODULE:
        result = by_module(host, what);
        break;
    default:
        result = in_thread(host, what);
    }
    steps_taken--;
    return result;
}

static hipError_t launch_host(const void *host, struct launch_of what) {
    enum { LEGACY = 1, PER_THREAD = 2 };
    pthread_once(&steps_once, read_steps);
    if (step_count > 0 && what.stream == NULL) /* the other entry points may mean another stream by NULL */
        what.stream = (hipStream_t)(uintptr_t)(what.per_thread ? PER_THREAD : LEGACY);
    return take_step(host, &what);
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

/* ---- configured first, launched then ---- */

enum { MOST_ARGUMENTS = 4096 };

static _Thread_local struct {
    dim3 grid, block;
    size_t shared, bytes;
    hipStream_t stream;
    bool given;
    uint8_t arguments[MOST_ARGUMENTS];
} configured;

hipError_t hip_hipConfigureCall(dim3 grid, dim3 block, size_t shared, hipStream_t stream) {
    const hipError_t result = hip_start();
    if (result != hipSuccess)
        return result;
    configured.grid = grid;
    configured.block = block;
    configured.shared = shared;
    configured.stream = stream;
    configured.bytes = 0;
    configured.given = true;
    return hipSuccess;
}

hipError_t hip_hipSetupArgument(const void *argument, size_t bytes, size_t offset) {
    if (!configured.given)
        return hipErrorMissingConfiguration;
    if (bytes > MOST_ARGUMENTS || offset > MOST_ARGUMENTS - bytes)
        return hipErrorInvalidValue;
    memcpy(configured.arguments + offset, argument, bytes);
    configured.bytes = offset + bytes > configured.bytes ? offset + bytes : configured.bytes;
    return hipSuccess;
}

/* The real one calls the exported function by name, too. */
hipError_t hip_hipLaunchByPtr(const void *host) {
    hipFunction_t function;
    if (!configured.given)
        return hipErrorMissingConfiguration;
    configured.given = false;
    if (hip_function(host, hip_device_of(configured.stream), &function) != hipSuccess)
        return hipErrorInvalidDeviceFunction;
    const dim3 grid = configured.grid, block = configured.block;
    void *extra[] = {(void *)LAUNCH_PARAM_BUFFER_POINTER, configured.arguments, (void *)LAUNCH_PARAM_BUFFER_SIZE,
                     &configured.bytes, (void *)LAUNCH_PARAM_END};
    return hipModuleLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                 (unsigned int)configured.shared, configured.stream, NULL, extra);
}
