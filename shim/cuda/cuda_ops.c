/* What the shared part of the frontends needs from NVIDIA's driver (gpu/vendor_ops.def). */
#include <string.h>

#include "../core/core.h"
#include "../sys/sys.h"
#include "../gpu/device.h"
#include "../gpu/handle.h"
#include "../gpu/launch.h"
#include "../gpu/streams.h"
#include "cuda.h"

struct driver_calls driver;

/* One text: the loader would have to relocate an array of pointers in every process. */
static const char names[] =
#define CALL(name, parameters) #name "\0"
#include "api.def"
#undef CALL
    ;

void cuda_adopted(const struct overlap_object *object) {
    driver_functions(object, names, &driver);
}

/* ---- Contexts and streams ---- */

uint64_t cuda_context(void) {
    CUcontext context = NULL;
    return driver.cuCtxGetCurrent && driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS ? (uint64_t)(uintptr_t)context
                                                                                      : 0;
}

uint64_t cuda_stream_context(CUstream stream) {
    CUcontext context = NULL;
    return driver.cuStreamGetCtx && driver.cuStreamGetCtx(stream, &context) == CUDA_SUCCESS
               ? (uint64_t)(uintptr_t)context
               : 0;
}

/* Must not query the flags of a stream that captures: that would invalidate the capture in every mode (seen on
 * driver 580). */
bool cuda_stream_facts(CUstream stream, uint64_t *context, uint32_t *flags, int *priority) {
    const int mode = cuda_relax();
    const bool told = !cuda_captures(stream, STREAM_OF_CONTEXT) && (*context = cuda_stream_context(stream)) != 0 &&
                      driver.cuStreamGetFlags && driver.cuStreamGetFlags(stream, flags) == CUDA_SUCCESS &&
                      driver.cuStreamGetPriority && driver.cuStreamGetPriority(stream, priority) == CUDA_SUCCESS;
    cuda_restore(mode);
    return told;
}

int cuda_captures(CUstream stream, enum default_stream null_stream) {
    CUresult (*ask)(CUstream, int *) =
        default_is_thread(null_stream) ? driver.cuStreamIsCapturing_ptsz : driver.cuStreamIsCapturing;
    int status = CU_STREAM_CAPTURE_STATUS_NONE;
    return !ask || ask(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* The driver keeps no last error, so there is nothing to preserve. */
CUresult cuda_last_error(void) {
    return CUDA_SUCCESS;
}

CUresult cuda_restore_last_error(CUresult pending, CUresult answer) {
    (void)pending;
    return answer;
}

bool cuda_capture_ended(CUstream stream, enum default_stream null_stream, CUresult result) {
    (void)result;
    return !cuda_captures(stream, null_stream);
}

int cuda_relax(void) {
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return driver.cuThreadExchangeStreamCaptureMode && driver.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS
               ? mode
               : -1;
}

void cuda_restore(int mode) {
    if (mode >= 0)
        driver.cuThreadExchangeStreamCaptureMode(&mode);
}

/* ---- Devices ---- */

int cuda_device(void) {
    CUdevice ordinal = 0;
    return driver.cuCtxGetDevice && driver.cuCtxGetDevice(&ordinal) == CUDA_SUCCESS ? ordinal : NO_DEVICE;
}

/* What needs a current context is asked in that of the object in question. */
static bool push(uint64_t context) {
    return driver.cuCtxPushCurrent_v2 && driver.cuCtxPopCurrent_v2 &&
           driver.cuCtxPushCurrent_v2((CUcontext)(uintptr_t)context) == CUDA_SUCCESS;
}

static void pop(void) {
    CUcontext context;
    driver.cuCtxPopCurrent_v2(&context);
}

int cuda_context_device(uint64_t context) {
    CUdevice ordinal = NO_DEVICE;
    if (driver.cuCtxGetDevice_v2) /* since CUDA 13 */
        return driver.cuCtxGetDevice_v2(&ordinal, (CUcontext)(uintptr_t)context) == CUDA_SUCCESS ? ordinal : NO_DEVICE;
    if (push(context)) {
        ordinal = cuda_device();
        pop();
    }
    return ordinal;
}

int cuda_device_count(void) {
    int count = 0;
    return driver.cuDeviceGetCount && driver.cuDeviceGetCount(&count) == CUDA_SUCCESS ? count : 0;
}

static uint32_t attribute(int which, int ordinal) {
    int value = 0;
    return driver.cuDeviceGetAttribute && driver.cuDeviceGetAttribute(&value, which, ordinal) == CUDA_SUCCESS &&
                   value > 0
               ? (uint32_t)value
               : 0;
}

/* False for limits that make no sense, from a driver that does not report them: they must not reach the planner. */
static bool usable(const struct overlap_gpu *gpu) {
    return gpu->major >= 7 && gpu->multiprocessors && gpu->warp_size == 32 && gpu->threads && gpu->blocks &&
           gpu->registers && gpu->registers_per_block && gpu->threads_per_block && gpu->shared && gpu->shared_optin;
}

bool cuda_limits(int ordinal, struct overlap_gpu *gpu, uint8_t *uuid) {
    if (!driver.cuDeviceGetName || driver.cuDeviceGetName((char *)gpu->name, sizeof gpu->name, ordinal) != CUDA_SUCCESS)
        gpu->name[0] = 0;
    gpu->name[sizeof gpu->name - 1] = 0;
    gpu->major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ordinal);
    gpu->minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, ordinal);
    gpu->multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, ordinal);
    gpu->warp_size = attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE, ordinal);
    gpu->threads = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, ordinal);
    gpu->blocks = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, ordinal);
    gpu->registers = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, ordinal);
    gpu->registers_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, ordinal);
    gpu->threads_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, ordinal);
    gpu->shared = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, ordinal);
    gpu->shared_default = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, ordinal);
    gpu->shared_optin = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, ordinal);
    gpu->shared_reserved = attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, ordinal);
    overlap_gpu_units(gpu);
    CUuuid told = {{0}};
    if (driver.cuDeviceGetUuid_v2)
        driver.cuDeviceGetUuid_v2(&told, ordinal);
    else if (driver.cuDeviceGetUuid)
        driver.cuDeviceGetUuid(&told, ordinal);
    memcpy(uuid, told.bytes, sizeof told.bytes);
    return usable(gpu);
}

bool cuda_priorities(uint64_t context, int *least, int *greatest) {
    const bool pushed = context && context != cuda_context() && push(context);
    const bool known =
        driver.cuCtxGetStreamPriorityRange && driver.cuCtxGetStreamPriorityRange(least, greatest) == CUDA_SUCCESS;
    if (pushed)
        pop();
    return known;
}

/* ---- Launches ---- */

bool cuda_enter_launch(void) {
    const uint64_t context = this_thread.launches_in;
    return context && context != cuda_context() && push(context);
}

void cuda_leave_launch(void) {
    pop();
}
