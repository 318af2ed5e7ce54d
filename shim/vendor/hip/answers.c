/* What the shared half asks about HIP (common/question.def). A device is its own context: HIP has no other. */
#include <string.h>

#include "hip.h"

enum { TRIES = 1000, VECTOR_REGISTERS = 256 /* of a wave, besides accumulation registers (LLVM: AMDGPUUsage.rst) */ };

struct hip_calls hip;

void hip_met(const struct overlap_object *object) {
#define CALL(result, name, parameters) hip.name = (result(*) parameters)overlap_object_symbol(object, #name);
#include "api.def"
#undef CALL
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

/* Even, and far enough from each other that the numbers of default streams do not meet (common/windows.c). */
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

/* On NVIDIA such a question would spoil a capture of the stream. Nobody has looked on AMD: the same caution. */
bool hip_stream_facts(hipStream_t stream, bool unseen, uint64_t *context, uint32_t *flags) {
    const int mode = unseen ? hip_relax() : -1;
    const bool told = !(unseen && hip_captures(stream, STREAM_OF_HIP_DEVICE)) && hip.hipStreamGetFlags &&
                      HIP_ASK(hip.hipStreamGetFlags(stream, flags)) == VENDOR_SUCCESS;
    *context = told ? context_of(device_of(stream)) : 0;
    hip_restore(mode);
    return told && *context;
}

int hip_captures(hipStream_t stream, enum default_stream whose) {
    int status = STREAM_CAPTURES_NOT;
    if (!stream && default_is_thread(whose))
        stream = (hipStream_t)STREAM_PER_THREAD;
    return !hip.hipStreamIsCapturing || HIP_ASK(hip.hipStreamIsCapturing(stream, &status)) != VENDOR_SUCCESS ||
           status != STREAM_CAPTURES_NOT;
}

/* Nothing may be asked behind a failure; but a call on the wrong stream or thread ends no capture, and any other does. */
bool hip_capture_ended(hipStream_t stream, enum default_stream whose, hipError_t result) {
    (void)stream, (void)whose;
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

static uint32_t number_at(const char *properties, uint32_t place) {
    int32_t value;
    memcpy(&value, properties + place, sizeof value);
    return value > 0 ? (uint32_t)value : 0;
}

/* gfx90a:sramecc+:xnack- is a gfx90a. */
static void copy_until_colon(uint8_t *to, size_t size, const char *from) {
    size_t at = 0;
    for (; at < size - 1 && from[at] && from[at] != ':'; at++)
        to[at] = (uint8_t)from[at];
    to[at] = 0;
}

/* What the runtime does not tell follows from the architecture: that of a GPU in the table. */
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
    char told[2048]; /* more than any version fills */
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
    if (!gpu->name[0]) /* no list of names of products on this machine, as in many containers */
        memcpy(gpu->name, gpu->architecture, sizeof gpu->architecture);
    gpu->multiprocessors = number_at(told, at->multiprocessors);
    gpu->warp_size = 64;
    gpu->threads = number_at(told, at->threads);
    gpu->threads_per_block = number_at(told, at->threads_per_block);
    gpu->shared_default = gpu->shared_optin = number_at(told, at->shared);
    gpu->shared = number_at(told, at->shared_per_multiprocessor);
    if (gpu->shared < gpu->shared_optin) /* some versions do not fill it in: one workgroup may have all of it */
        gpu->shared = gpu->shared_optin;
    overlap_gpu_units(gpu);
    return fill_known(gpu) && gpu->multiprocessors && gpu->threads && gpu->threads_per_block && gpu->shared_optin;
}

/* No priority of a launch: hipLaunchAttributePriority is refused by every version that has attributes. */
bool hip_raises(void) {
    return false;
}

/* ---- Kernels ---- */

/* The call tells what its handle is, so that kernels need not be learnt where they are made, which for those of the program
 * itself is before main(), by the ten thousand. */
struct handle *hip_handle_of(const struct request *request) {
    struct handle *handle = handle_find(request->function);
    const bool function = hip_launches_function(request->hook);
    if (handle || !request->function)
        return handle;
    /* A form of which symbol's kernel was known before a library ended (module.c): sizes of the two must not be mixed up. */
    if (function && __atomic_load_n(&hip_unregistered, __ATOMIC_RELAXED))
        return NULL;
    handle_learn(request->function, function ? HANDLE_HIP_FUNCTION : HANDLE_HIP_SYMBOL, NULL, NULL, NULL);
    /* Another thread may be about it: its kernel must not be kept as an unknown one for that. */
    for (int tries = 0; !(handle = handle_find(request->function)) && tries < TRIES; tries++)
        overlap_pause();
    return handle;
}

void hip_forget(const struct handle *handle) {
    (void)handle;
}

const char *hip_kernel_name(const struct handle *handle) {
    if (handle_is(handle, HANDLE_HIP_SYMBOL))
        return hip.hipKernelNameRefByPtr ? hip.hipKernelNameRefByPtr((const void *)(uintptr_t)handle->value, NULL)
                                         : NULL;
    return hip.hipKernelNameRef ? hip.hipKernelNameRef((hipFunction_t)(uintptr_t)handle->value) : NULL;
}

/* May the runtime's number leave out accumulation registers? It is that of the metadata, which assembly kernels (rocBLAS,
 * hipBLASLt) fill in without them; descriptors count all registers (code.c). A compiler counts all in the metadata, too,
 * and only a compiler makes the kernels of the program's own binaries. Without accumulation registers there are at most
 * 256, so a larger number counts both. */
static bool may_be_too_few(const struct handle *handle, int registers) {
    return registers <= VECTOR_REGISTERS && handle_is(handle, HANDLE_HIP_FUNCTION) &&
           __atomic_load_n(&handle->owner, __ATOMIC_RELAXED) && !__atomic_load_n(&handle->registers, __ATOMIC_RELAXED);
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
    const uint32_t more = __atomic_load_n(&handle->registers, __ATOMIC_RELAXED);
    launch->footprint.registers = more > (uint32_t)registers ? more : (uint32_t)registers;
    launch->footprint.static_shared = (uint32_t)shared;
    /* From 6.3 on the runtime lets every sum pass, and the queue dies of it: this is the only limit there is. */
    launch->maximum_dynamic =
        device->gpu.shared_optin > (uint32_t)shared ? device->gpu.shared_optin - (uint32_t)shared : 0;
    return true;
}

bool hip_prepare(struct handle *handle, uint64_t word) {
    (void)handle, (void)word;
    return true;
}

uint32_t hip_beyond(struct handle *handle, int device, uint32_t dynamic) {
    (void)handle, (void)device, (void)dynamic;
    return 0;
}

void hip_prefer_shared(struct handle *handle, int device) {
    (void)handle, (void)device;
}

bool hip_prefers_cache(struct handle *handle, int device) {
    (void)handle, (void)device;
    return false;
}
