/* Calls that create and destroy kernels. Decisions about a kernel are invalidated before the driver destroys it,
 * because the driver may reuse the address at once. */
#include "../core/core.h"
#include "../gpu/handle.h"
#include "cuda.h"

/* A module belongs to the context that was current when it was loaded, and so do its functions, wherever they are asked
 * for. */
static CUresult loaded(const CUmodule *module, CUresult result) {
    if (result == CUDA_SUCCESS && module && overlap_armed())
        handle_learn(*module, HANDLE_MODULE, (void *)HANDLE_OWNER_PROGRAM, NULL, NULL);
    return result;
}

CUresult module_load_body(ENTRY, CUmodule *module, const char *name) {
    REAL_OR_RETURN(cuModuleLoad);
    return loaded(module, real(module, name));
}

CUresult module_load_data_body(ENTRY, CUmodule *module, const void *image) {
    REAL_OR_RETURN(cuModuleLoadData);
    return loaded(module, real(module, image));
}

CUresult module_load_ex_body(ENTRY, CUmodule *module, const void *image, uint32_t count, int *options, void **values) {
    REAL_OR_RETURN(cuModuleLoadDataEx);
    return loaded(module, real(module, image, count, options, values));
}

/* Track a function of a module by its name (NULL: not known yet). A function of a library's module is a form of the
 * library's CUkernel, whether or not the program has asked for that. A function known to be one stays so: its module
 * may be untracked (cuFuncGetModule). */
static void learn_function(CUfunction function, CUmodule module, const char *name) {
    type_cuLibraryGetKernel *get = real_export(HOOK_cuLibraryGetKernel);
    const struct handle *alias = handle_find(module), *known = handle_find(function);
    const bool stays = !alias && known && handle_is(known, HANDLE_FUNCTION) && !handle_is_ending(known);
    const struct handle *origin = stays ? handle_origin(known) : NULL;
    CUkernel kernel = origin ? (CUkernel)(uintptr_t)origin->value : NULL;
    if (alias && handle_is(alias, HANDLE_MODULE) && alias->owner != HANDLE_OWNER_PROGRAM && get) {
        CUlibrary library = (CUlibrary)(uintptr_t)alias->owner;
        if (!name && driver.cuFuncGetName && driver.cuFuncGetName(&name, function) != CUDA_SUCCESS)
            name = NULL;
        if (name && get(&kernel, library, name) == CUDA_SUCCESS && !handle_find(kernel))
            handle_learn(kernel, HANDLE_KERNEL, library, name, NULL);
    }
    handle_learn(function, HANDLE_FUNCTION, module, name, kernel);
}

CUresult module_get_function_body(ENTRY, CUfunction *function, CUmodule module, const char *name) {
    REAL_OR_RETURN(cuModuleGetFunction);
    CUresult result = real(function, module, name);
    if (result == CUDA_SUCCESS && function && overlap_armed())
        learn_function(*function, module, name);
    return result;
}

CUresult library_get_kernel_body(ENTRY, CUkernel *kernel, CUlibrary library, const char *name) {
    REAL_OR_RETURN(cuLibraryGetKernel);
    CUresult result = real(kernel, library, name);
    if (result == CUDA_SUCCESS && kernel && overlap_armed())
        handle_learn(*kernel, HANDLE_KERNEL, library, name, NULL);
    return result;
}

/* The driver fills at most as many entries as there are functions. */
CUresult module_enumerate_body(ENTRY, CUfunction *functions, uint32_t count, CUmodule module) {
    REAL_OR_RETURN(cuModuleEnumerateFunctions);
    CUresult result = real(functions, count, module);
    uint32_t there = 0;
    if (result == CUDA_SUCCESS && functions && armed_and_ready(VENDOR_CUDA) && driver.cuModuleGetFunctionCount &&
        driver.cuModuleGetFunctionCount(&there, module) == CUDA_SUCCESS)
        for (uint32_t i = 0; i < count && i < there; i++)
            learn_function(functions[i], module, NULL);
    return result;
}

CUresult library_enumerate_body(ENTRY, CUkernel *kernels, uint32_t count, CUlibrary library) {
    REAL_OR_RETURN(cuLibraryEnumerateKernels);
    CUresult result = real(kernels, count, library);
    uint32_t there = 0;
    if (result == CUDA_SUCCESS && kernels && armed_and_ready(VENDOR_CUDA) && driver.cuLibraryGetKernelCount &&
        driver.cuLibraryGetKernelCount(&there, library) == CUDA_SUCCESS)
        for (uint32_t i = 0; i < count && i < there; i++)
            handle_learn(kernels[i], HANDLE_KERNEL, library, NULL, NULL);
    return result;
}

CUresult kernel_get_function_body(ENTRY, CUfunction *function, CUkernel kernel) {
    REAL_OR_RETURN(cuKernelGetFunction);
    CUresult result = real(function, kernel);
    struct handle *from = result == CUDA_SUCCESS && function && overlap_armed() ? handle_find(kernel) : NULL;
    if (from)
        handle_learn(*function, HANDLE_FUNCTION, (void *)(uintptr_t)from->owner, NULL, kernel);
    return result;
}

CUresult module_unload_body(ENTRY, CUmodule module) {
    REAL_OR_RETURN(cuModuleUnload);
    const struct handle_scope ending = handle_ends(HANDLES_OF_OWNER, (uintptr_t)module);
    CUresult result = real(module);
    handle_ended(&ending, result == CUDA_SUCCESS);
    return result;
}

CUresult library_unload_body(ENTRY, CUlibrary library) {
    REAL_OR_RETURN(cuLibraryUnload);
    const struct handle_scope ending = handle_ends(HANDLES_OF_OWNER, (uintptr_t)library);
    CUresult result = real(library);
    handle_ended(&ending, result == CUDA_SUCCESS);
    return result;
}

/* Functions of this module end with the library. */
CUresult library_get_module_body(ENTRY, CUmodule *module, CUlibrary library) {
    REAL_OR_RETURN(cuLibraryGetModule);
    CUresult result = real(module, library);
    if (result == CUDA_SUCCESS && module && overlap_armed())
        handle_learn(*module, HANDLE_MODULE, library, NULL, NULL);
    return result;
}
