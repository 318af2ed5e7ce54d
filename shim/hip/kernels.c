/* Kernels: their handles, footprints and ends, and what the program asks about them. */
#include <string.h>

#include "../core/core.h"
#include "../sys/sys.h"
#include "../gpu/device.h"
#include "../gpu/handle.h"
#include "../gpu/launch.h"
#include "../gpu/captures.h"
#include "../gpu/streams.h"
#include "hip.h"

enum { VECTOR_REGISTERS = 256 /* of a wave, without accumulation registers (LLVM: AMDGPUUsage.rst) */ };

/* ---- What the shared part asks ---- */

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
        return hip.hipKernelNameRefByPtr ? hip.hipKernelNameRefByPtr(handle_value(handle), NULL) : NULL;
    return hip.hipKernelNameRef ? hip.hipKernelNameRef(handle_value(handle)) : NULL;
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
        known = HIP_ASK(hip.hipFuncGetAttributes(&told, handle_value(handle))) == VENDOR_SUCCESS;
        registers = told.numRegs;
        shared = told.sharedSizeBytes <= INT32_MAX ? (int)told.sharedSizeBytes : -1;
    } else if (handle_is(handle, HANDLE_HIP_FUNCTION) && hip.hipFuncGetAttribute) {
        hipFunction_t function = handle_value(handle);
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

/* ---- Creation and end. An owner is a module, or a library (7.2) ---- */

hipError_t hip_get_function_body(ENTRY, hipFunction_t *function, void *owner, const char *name) {
    REAL_OR_RETURN(hipModuleGetFunction);
    const hipError_t result = real(function, owner, name);
    if (result == VENDOR_SUCCESS && function && overlap_armed())
        handle_learn(*function, HANDLE_HIP_FUNCTION, owner, name, NULL);
    return result;
}

/* Functions that are known by their launches only may belong to any owner, so they end, too. */
hipError_t hip_unload_body(ENTRY, void *owner) {
    REAL_OR_RETURN(hipModuleUnload);
    const struct handle_scope owned = handle_ends(HANDLES_OF_OWNER, (uintptr_t)owner);
    const struct handle_scope met = handle_ends(HANDLES_UNOWNED, HANDLE_HIP_FUNCTION);
    const hipError_t result = real(owner);
    handle_ended(&owned, result == VENDOR_SUCCESS);
    handle_ended(&met, result == VENDOR_SUCCESS);
    return result;
}

/* From then on both handles are forms of the same kernel. */
hipError_t hip_function_of_symbol_body(ENTRY, hipFunction_t *function, const void *symbol) {
    REAL_OR_RETURN(hipGetFuncBySymbol);
    const hipError_t result = real(function, symbol);
    if (result != VENDOR_SUCCESS || !function || !armed_and_ready(VENDOR_HIP))
        return result;
    if (!handle_find(symbol))
        handle_learn((void *)(uintptr_t)symbol, HANDLE_HIP_SYMBOL, NULL, NULL, NULL);
    handle_learn(*function, HANDLE_HIP_FUNCTION, NULL, NULL, (void *)(uintptr_t)symbol);
    return result;
}

/* A library of the program is unloaded, and its kernels with it. Which symbols it has is not tracked, so all
 * symbols are forgotten, and then the functions made from them. */
hipError_t hip_unregister_body(ENTRY, void **modules) {
    REAL_OR_RETURN(__hipUnregisterFatBinary);
    const struct handle_scope symbols = handle_ends(HANDLES_UNOWNED, HANDLE_HIP_SYMBOL);
    const struct handle_scope functions = handle_ends(HANDLES_UNOWNED, HANDLE_HIP_FUNCTION);
    const hipError_t result = real(modules);
    handle_ended(&symbols, true); /* the call returns nothing */
    handle_ended(&functions, true);
    return result;
}

hipError_t hip_device_reset_body(ENTRY) {
    REAL_OR_RETURN(hipDeviceReset);
    const uint64_t context = armed_and_ready(VENDOR_HIP) ? hip_context() : 0;
    const struct handle_scope ending = handle_ends(HANDLES_OF_CONTEXT, context);
    const uint32_t captures = context ? captures_of_context(context, NO_DEVICE) : 0;
    streams_context_ends(VENDOR_HIP, context, NO_DEVICE);
    const hipError_t result = real();
    handle_ended(&ending, result == VENDOR_SUCCESS);
    captures_context_ended(context, NO_DEVICE, result == VENDOR_SUCCESS ? captures : 0);
    streams_context_ended(VENDOR_HIP, context, NO_DEVICE, result == VENDOR_SUCCESS);
    return result;
}

/* ---- Occupancy ---- */

/* The program sizes grids by the answer, and blocks of some grids wait for each other, so the answer must stay true: the
 * function is left alone from then on. Called before the runtime answers: launches that follow come later. */
static void note_query(const void *function, enum handle_kind kind) {
    if (!function || !(streams_wanted() & STREAMS_SHAPES) || !armed_and_ready(VENDOR_HIP))
        return;
    if (!handle_find(function))
        handle_learn((void *)(uintptr_t)function, kind, NULL, NULL, NULL);
    struct handle *handle = handle_find(function);
    if (handle && !handle_is_marked(handle, HANDLE_OCCUPANCY_ASKED))
        handle_mark(handle, HANDLE_OCCUPANCY_ASKED);
}

#define DRIVER(name, ...)
#define QUERY(name, kind, ...)                                                                                         \
    hipError_t query_##name(ENTRY, PARAMETERS(__VA_ARGS__)) {                                                          \
        REAL_OR_RETURN(name);                                                                                          \
        note_query(function, kind);                                                                                    \
        return real(ARGUMENTS(__VA_ARGS__));                                                                           \
    }
#include "driver.def"
