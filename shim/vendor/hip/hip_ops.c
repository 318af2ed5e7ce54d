/* What the shared part of the frontends needs from HIP (common/vendor_ops.def). A device stands for its context: HIP
 * has no other. */
#include <string.h>

#include "../../sys/sys.h"
#include "../common/device.h"
#include "../common/handle.h"
#include "../common/launch.h"
#include "hip.h"

enum { VECTOR_REGISTERS = 256 /* of a wave, without accumulation registers (LLVM: AMDGPUUsage.rst) */ };

struct hip_calls hip;

static const char names[] =
#define CALL(result, name, parameters) #name "\0"
#include "api.def"
#undef CALL
    ;

void hip_met(const struct overlap_object *object) {
    driver_functions(object, names, &hip);
}

hipError_t hip_pending(void) {
    return hip.hipPeekAtLastError ? hip.hipPeekAtLastError() : VENDOR_NOT_INITIALIZED;
}

hipError_t hip_settle(hipError_t pending, hipError_t answer) {
    if (answer != VENDOR_SUCCESS && pending == VENDOR_SUCCESS && hip.hipGetLastError)
        hip.hipGetLastError();
    return answer;
}

/* ---- Contexts and streams ---- */

/* Even, and far enough apart that the keys of default streams cannot collide (common/windows.c). */
static uint64_t context_of(int ordinal) {
    return ordinal < 0 ? 0 : (uint64_t)(ordinal + 1) << 8;
}

uint64_t hip_context(void) {
    return context_of(hip_device());
}

static int device_of(hipStream_t stream) {
    int ordinal = NO_DEVICE;
    if (hip.hipStreamGetDevice) /* 5.6 */
        return HIP_ASK(hip.hipStreamGetDevice(stream, &ordinal)) == VENDOR_SUCCESS ? ordinal : NO_DEVICE;
    return hip.hipGetStreamDeviceId ? hip.hipGetStreamDeviceId(stream) : hip_device();
}

/* On NVIDIA such a query would invalidate a capture of the stream. This has not been checked on AMD, so the same
 * caution applies. */
bool hip_stream_facts(hipStream_t stream, uint64_t *context, uint32_t *flags, int *priority) {
    const int mode = hip_relax();
    const bool told = !hip_captures(stream, STREAM_OF_HIP_DEVICE) && hip.hipStreamGetFlags &&
                      HIP_ASK(hip.hipStreamGetFlags(stream, flags)) == VENDOR_SUCCESS;
    *context = told ? context_of(device_of(stream)) : 0;
    *priority = 0;
    hip_restore(mode);
    return told && *context;
}

/* A stream's priority is fixed when it is created. */
bool hip_stream_set_priority(hipStream_t stream, int priority) {
    (void)stream, (void)priority;
    return false;
}

int hip_captures(hipStream_t stream, enum default_stream null_stream) {
    int status = STREAM_CAPTURES_NOT;
    if (!stream && default_is_thread(null_stream))
        stream = (hipStream_t)STREAM_PER_THREAD;
    return !hip.hipStreamIsCapturing || HIP_ASK(hip.hipStreamIsCapturing(stream, &status)) != VENDOR_SUCCESS ||
           status != STREAM_CAPTURES_NOT;
}

/* After a failure the runtime must not be queried. But a call on the wrong stream or thread does not end the
 * capture; any other failure does. */
bool hip_capture_ended(hipStream_t stream, enum default_stream null_stream, hipError_t result) {
    (void)stream, (void)null_stream;
    return result != VENDOR_INVALID_VALUE && result != hipErrorInvalidHandle && result != hipErrorIllegalState &&
           result != hipErrorStreamCaptureWrongThread;
}

int hip_relax(void) {
    int mode = CAPTURE_MODE_RELAXED;
    return hip.hipThreadExchangeStreamCaptureMode &&
                   HIP_ASK(hip.hipThreadExchangeStreamCaptureMode(&mode)) == VENDOR_SUCCESS
               ? mode
               : -1;
}

void hip_restore(int mode) {
    if (mode >= 0)
        hip.hipThreadExchangeStreamCaptureMode(&mode);
}

/* ---- Devices ---- */

int hip_device(void) {
    int ordinal = NO_DEVICE;
    return hip.hipGetDevice && HIP_ASK(hip.hipGetDevice(&ordinal)) == VENDOR_SUCCESS ? ordinal : NO_DEVICE;
}

int hip_device_count(void) {
    int count = 0;
    return hip.hipGetDeviceCount && HIP_ASK(hip.hipGetDeviceCount(&count)) == VENDOR_SUCCESS ? count : 0;
}

bool hip_priorities(int *least, int *greatest) {
    return hip.hipDeviceGetStreamPriorityRange &&
           HIP_ASK(hip.hipDeviceGetStreamPriorityRange(least, greatest)) == VENDOR_SUCCESS;
}

static uint32_t number_at(const char *properties, uint32_t offset) {
    int32_t value;
    memcpy(&value, properties + offset, sizeof value);
    return value > 0 ? (uint32_t)value : 0;
}

/* gfx90a:sramecc+:xnack- is a gfx90a. */
static void copy_until_colon(uint8_t *to, size_t size, const char *from) {
    size_t at = 0;
    for (; at < size - 1 && from[at] && from[at] != ':'; at++)
        to[at] = (uint8_t)from[at];
    to[at] = 0;
}

/* Fill in what the runtime does not report from the table of GPUs, by architecture. */
static bool fill_known(struct overlap_gpu *gpu) {
    struct overlap_gpu known;
    for (uint32_t i = 0; overlap_gpu_known(i, &known); i++)
        if (known.vendor == OVERLAP_VENDOR_AMD &&
            strcmp((const char *)known.architecture, (const char *)gpu->architecture) == 0) {
            gpu->blocks = known.blocks;
            gpu->registers = known.registers;
            gpu->registers_per_block = known.registers_per_block;
            return true;
        }
    return false;
}

bool hip_limits(int ordinal, struct overlap_gpu *gpu, uint8_t *uuid) {
    static const struct hip_properties before_6 = HIP_PROPERTIES_R0000, since_6 = HIP_PROPERTIES_R0600;
    const bool newer = hip.hipGetDevicePropertiesR0600;
    const struct hip_properties *at = newer ? &since_6 : &before_6;
    hipError_t (*ask)(void *, int) = newer ? hip.hipGetDevicePropertiesR0600 : hip.hipGetDeviceProperties;
    char told[2048]; /* larger than the struct of any version */
    hipUUID its = {{0}};
    memset(told, 0, sizeof told);
    gpu->vendor = OVERLAP_VENDOR_AMD;
    if (!ask || HIP_ASK(ask(told, ordinal)) != VENDOR_SUCCESS)
        return false;
    if (hip.hipDeviceGetUuid && HIP_ASK(hip.hipDeviceGetUuid(&its, ordinal)) == VENDOR_SUCCESS)
        memcpy(uuid, its.bytes, sizeof its.bytes);
    memcpy(gpu->name, told + at->name, sizeof gpu->name - 1);
    gpu->name[sizeof gpu->name - 1] = 0;
    copy_until_colon(gpu->architecture, sizeof gpu->architecture, told + at->architecture);
    if (!gpu->name[0]) /* the machine has no list of product names, as in many containers */
        memcpy(gpu->name, gpu->architecture, sizeof gpu->architecture);
    gpu->multiprocessors = number_at(told, at->multiprocessors);
    gpu->warp_size = 64;
    gpu->threads = number_at(told, at->threads);
    gpu->threads_per_block = number_at(told, at->threads_per_block);
    gpu->shared_default = gpu->shared_optin = number_at(told, at->shared);
    gpu->shared = number_at(told, at->shared_per_multiprocessor);
    if (gpu->shared < gpu->shared_optin) /* some versions leave it 0: one workgroup may have all of it */
        gpu->shared = gpu->shared_optin;
    overlap_gpu_units(gpu);
    return fill_known(gpu) && gpu->multiprocessors && gpu->threads && gpu->threads_per_block && gpu->shared_optin;
}

/* ---- Kernels ---- */

/* The call itself tells what kind its handle is. So kernels need not be tracked where they are created, which for
 * the program's own is before main(), by the ten thousand. */
struct handle *hip_handle_of(const struct request *request) {
    struct handle *handle = handle_find(request->function);
    const bool function = hip_launches_function(request->hook);
    if (handle || !request->function)
        return handle;
    handle_learn(request->function, function ? HANDLE_HIP_FUNCTION : HANDLE_HIP_SYMBOL, NULL, NULL, NULL);
    return handle_find(request->function);
}

const char *hip_kernel_name(const struct handle *handle) {
    if (handle_is(handle, HANDLE_HIP_SYMBOL))
        return hip.hipKernelNameRefByPtr ? hip.hipKernelNameRefByPtr((const void *)(uintptr_t)handle->value, NULL)
                                         : NULL;
    return hip.hipKernelNameRef ? hip.hipKernelNameRef((hipFunction_t)(uintptr_t)handle->value) : NULL;
}

/* True if the runtime's number may lack accumulation registers. It comes from the metadata, in which the assembly kernels
 * of modules (rocBLAS, hipBLASLt) leave them out. A compiler counts all, and the kernels that host functions stand for
 * are always compiled. A kernel has at most 256 registers that are not accumulation registers, so a larger number
 * includes both. */
static bool may_be_too_few(const struct handle *handle, int registers) {
    return registers <= VECTOR_REGISTERS && handle_is(handle, HANDLE_HIP_FUNCTION) && !OVERLAP_RELAXED(handle->kernel);
}

bool hip_footprint(struct handle *handle, const struct device *device, struct overlap_launch *launch, bool *later) {
    struct hipFuncAttributes told;
    int registers = 0, shared = 0, mode = hip_relax();
    bool known = false;
    *later = false;
    memset(&told, 0, sizeof told);
    if (handle_is(handle, HANDLE_HIP_SYMBOL) && hip.hipFuncGetAttributes) {
        known = HIP_ASK(hip.hipFuncGetAttributes(&told, (const void *)(uintptr_t)handle->value)) == VENDOR_SUCCESS;
        registers = told.numRegs;
        shared = told.sharedSizeBytes <= INT32_MAX ? (int)told.sharedSizeBytes : -1;
    } else if (handle_is(handle, HANDLE_HIP_FUNCTION) && hip.hipFuncGetAttribute) {
        hipFunction_t function = (hipFunction_t)(uintptr_t)handle->value;
        known =
            HIP_ASK(hip.hipFuncGetAttribute(&registers, HIP_FUNC_ATTRIBUTE_NUM_REGS, function)) == VENDOR_SUCCESS &&
            HIP_ASK(hip.hipFuncGetAttribute(&shared, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function)) == VENDOR_SUCCESS;
    }
    hip_restore(mode);
    if (!known || registers <= 0 || shared < 0 || may_be_too_few(handle, registers))
        return false;
    launch->footprint.registers = (uint32_t)registers;
    launch->footprint.static_shared = (uint32_t)shared;
    /* From ROCm 6.3 on the runtime checks no sum of static and dynamic bytes, and too much kills the queue: this is
     * the only limit. */
    launch->maximum_dynamic =
        device->gpu.shared_optin > (uint32_t)shared ? device->gpu.shared_optin - (uint32_t)shared : 0;
    return true;
}
