/* Calls that create and destroy kernels. */
#include "../../core/core.h"
#include "../../sys/sys.h"
#include "../common/device.h"
#include "../common/handle.h"
#include "../common/streams.h"
#include "hip.h"

/* ---- Modules: their images hold more than the runtime reports ---- */

static const char *architecture(void) {
    const struct device *device = overlap_armed() ? device_current(VENDOR_HIP) : NULL;
    return device && device_policy(device) ? (const char *)device->gpu.architecture : NULL;
}

static hipError_t loaded(const hipModule_t *module, const void *image, hipError_t result) {
    const char *its = result == VENDOR_SUCCESS && module && image ? architecture() : NULL;
    if (its)
        code_learn(*module, image, UINT64_MAX, its);
    return result;
}

/* Read the file again, just after the runtime has. A compressed file is not even mapped, because code.c cannot read
 * it. */
hipError_t hip_module_load_body(ENTRY, hipModule_t *module, const char *file) {
    REAL_OR_RETURN(hipModuleLoad);
    const hipError_t result = real(module, file);
    const char *its = result == VENDOR_SUCCESS && module && file ? architecture() : NULL;
    size_t size = 0;
    const void *image = its ? overlap_map_file(file, "CCOB", &size) : NULL;
    if (image) {
        code_learn(*module, image, size, its);
        overlap_unmap((void *)(uintptr_t)image, size);
    }
    return result;
}

hipError_t hip_module_data_body(ENTRY, hipModule_t *module, const void *image) {
    REAL_OR_RETURN(hipModuleLoadData);
    return loaded(module, image, real(module, image));
}

hipError_t hip_module_data_ex_body(ENTRY, hipModule_t *module, const void *image, uint32_t count, void *options,
                                   void **values) {
    REAL_OR_RETURN(hipModuleLoadDataEx);
    return loaded(module, image, real(module, image, count, options, values));
}

hipError_t hip_module_function_body(ENTRY, hipFunction_t *function, hipModule_t module, const char *name) {
    REAL_OR_RETURN(hipModuleGetFunction);
    const hipError_t result = real(function, module, name);
    if (result != VENDOR_SUCCESS || !function || !overlap_armed())
        return result;
    handle_learn(*function, HANDLE_HIP_FUNCTION, module, name, NULL);
    struct handle *handle = handle_find(*function);
    if (handle && name)
        __atomic_store_n(&handle->registers, code_registers(module, name), __ATOMIC_RELAXED);
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
    const uint32_t learned = code_learned();
    const hipError_t result = ended(&ending, real(module));
    if (result == VENDOR_SUCCESS)
        code_forget(module, learned);
    return result;
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

uint32_t hip_unregistered;

/* A library of the program is unloaded, and its kernels with it. Ownership is not tracked (hip_ops.c), so all
 * symbols are forgotten, and then the functions made from them. */
hipError_t hip_unregister_body(ENTRY, void **modules) {
    REAL_OR_RETURN(__hipUnregisterFatBinary);
    const struct handle_scope symbols = handle_ends(HANDLES_UNOWNED, HANDLE_HIP_SYMBOL);
    const struct handle_scope functions = handle_ends(HANDLES_UNOWNED, HANDLE_HIP_FUNCTION);
    const hipError_t result = real(modules);
    __atomic_store_n(&hip_unregistered, 1, __ATOMIC_RELAXED);
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
