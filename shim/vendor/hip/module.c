/* Calls that create and destroy kernels. */
#include "../../core/core.h"
#include "../../sys/sys.h"
#include "../common/device.h"
#include "../common/handle.h"
#include "../common/streams.h"
#include "hip.h"

hipError_t hip_module_function_body(ENTRY, hipFunction_t *function, hipModule_t module, const char *name) {
    REAL_OR_RETURN(hipModuleGetFunction);
    const hipError_t result = real(function, module, name);
    if (result == VENDOR_SUCCESS && function && overlap_armed())
        handle_learn(*function, HANDLE_HIP_FUNCTION, module, name, NULL);
    return result;
}

/* Handles that end: kernels of the module or library, and functions known by their launches only, which may belong
 * to any. */
struct ending {
    struct handle_scope owned, met;
};

static struct ending ends(const void *owner) {
    return (struct ending){handle_ends(HANDLES_OF_OWNER, (uintptr_t)owner),
                           handle_ends(HANDLES_UNOWNED, HANDLE_HIP_FUNCTION)};
}

static hipError_t ended(const struct ending *ending, hipError_t result) {
    handle_ended(&ending->owned, result == VENDOR_SUCCESS);
    handle_ended(&ending->met, result == VENDOR_SUCCESS);
    return result;
}

hipError_t hip_module_unload_body(ENTRY, hipModule_t module) {
    REAL_OR_RETURN(hipModuleUnload);
    const struct ending ending = ends(module);
    return ended(&ending, real(module));
}

/* ---- Libraries (7.2), symbols ---- */

hipError_t hip_library_kernel_body(ENTRY, hipKernel_t *kernel, hipLibrary_t library, const char *name) {
    REAL_OR_RETURN(hipLibraryGetKernel);
    const hipError_t result = real(kernel, library, name);
    if (result == VENDOR_SUCCESS && kernel && overlap_armed())
        handle_learn(*kernel, HANDLE_HIP_FUNCTION, library, name, NULL);
    return result;
}

hipError_t hip_library_unload_body(ENTRY, hipLibrary_t library) {
    REAL_OR_RETURN(hipLibraryUnload);
    const struct ending ending = ends(library); /* hipLibraryEnumerateKernels: known by their launches */
    return ended(&ending, real(library));
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

/* A library of the program is unloaded, and its kernels with it. Ownership is not tracked (hip_ops.c), so all
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
    streams_context_ends(VENDOR_HIP, context, NO_DEVICE);
    const hipError_t result = real();
    handle_ended(&ending, result == VENDOR_SUCCESS);
    streams_context_ended(VENDOR_HIP, context, NO_DEVICE, result == VENDOR_SUCCESS);
    return result;
}
