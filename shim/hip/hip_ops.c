/* Streams and devices: what the shared part needs of them from HIP (gpu/vendor_ops.def), and the calls that HIP does
 * not share with CUDA. A device stands for its context: HIP has no other. */
#include <string.h>

#include "../core/core.h"
#include "../sys/sys.h"
#include "../gpu/device.h"
#include "../gpu/handle.h"
#include "../gpu/launch.h"
#include "../gpu/calls.h"
#include "../gpu/streams.h"
#include "hip.h"

struct hip_calls hip;

static const char names[] =
#define CALL(result, name, parameters) #name "\0"
#include "api.def"
#undef CALL
    ;

void hip_adopted(const struct overlap_object *object) {
    driver_functions(object, names, &hip);
}

hipError_t hip_last_error(void) {
    return hip.hipPeekAtLastError ? hip.hipPeekAtLastError() : VENDOR_NOT_INITIALIZED;
}

hipError_t hip_restore_last_error(hipError_t pending, hipError_t answer) {
    if (answer != VENDOR_SUCCESS && pending == VENDOR_SUCCESS && hip.hipGetLastError)
        hip.hipGetLastError();
    return answer;
}

/* ---- Contexts and streams ---- */

/* Even, and far enough apart that the keys of default streams cannot collide (stream_key). */
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

uint64_t hip_stream_context(hipStream_t stream) {
    return context_of(device_of(stream));
}

int hip_context_device(uint64_t context) {
    return context ? (int)(context >> 8) - 1 : NO_DEVICE;
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
hipError_t hip_stream_set_priority(hipStream_t stream, int priority) {
    (void)stream, (void)priority;
    return VENDOR_NOT_SUPPORTED;
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

/* Without a priority. The rest is in ../gpu/stream_calls.c. */
hipError_t hip_stream_create_body(ENTRY, hipStream_t *stream) {
    REAL_OR_RETURN(hipStreamCreate);
    bool raised;
    const hipError_t result =
        stream_create_at(VENDOR_HIP, site, stream, 0, 0, real_export(HOOK_hipStreamCreateWithPriority), &raised);
    return raised ? result : stream_created(VENDOR_HIP, site, stream, 0, 0, real(stream));
}

hipError_t hip_stream_flags_body(ENTRY, hipStream_t *stream, uint32_t flags) {
    REAL_OR_RETURN(hipStreamCreateWithFlags);
    bool raised;
    const hipError_t result =
        stream_create_at(VENDOR_HIP, site, stream, flags, 0, real_export(HOOK_hipStreamCreateWithPriority), &raised);
    return raised ? result : stream_created(VENDOR_HIP, site, stream, flags, 0, real(stream, flags));
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

bool hip_priorities(uint64_t context, int *least, int *greatest) {
    (void)context; /* of every device the same */
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

/* ---- Use of the GPU ---- */

static hipError_t opened(hipError_t result) {
    if (result == VENDOR_SUCCESS)
        thread_opens_gpu();
    return result;
}

static hipError_t initialised(hipError_t result) {
    if (result == VENDOR_SUCCESS)
        overlap_page_initialised();
    return result;
}

hipError_t hip_init_body(ENTRY, uint32_t flags) {
    REAL_OR_RETURN(hipInit);
    return initialised(real(flags));
}

/* Launchers call this before they start their ranks, and use no GPU themselves. */
hipError_t hip_device_count_body(ENTRY, int *count) {
    REAL_OR_RETURN(hipGetDeviceCount);
    return initialised(real(count));
}

hipError_t hip_set_device_body(ENTRY, int device) {
    REAL_OR_RETURN(hipSetDevice);
    const hipError_t result = opened(real(device));
    current_is_unknown(VENDOR_HIP);
    return result;
}

hipError_t hip_malloc_body(ENTRY, void **address, size_t bytes) {
    REAL_OR_RETURN(hipMalloc);
    return opened(real(address, bytes));
}

/* ---- What HIP does not have ---- */

bool hip_prepare(struct handle *handle, const struct device *device, uint32_t dynamic) {
    (void)handle, (void)device, (void)dynamic;
    return true;
}

uint32_t hip_over_app_limit(struct handle *handle, int device, uint32_t dynamic) {
    (void)handle, (void)device, (void)dynamic;
    return 0;
}

bool hip_prefers_cache(struct handle *handle, int device) {
    (void)handle, (void)device;
    return false;
}
