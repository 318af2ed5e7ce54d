/* The doors. Every row of driver.def becomes three functions around one body: the exported symbol, the one that dlsym
 * gives out, and the one that cuGetProcAddress gives out. So launches can be counted by way, and each way calls what is
 * behind itself.
 */
#ifdef __x86_64__
#include "launch_x86_64.h"
#else
#include "launch_portable.h"
#endif

/* ---- Bodies that only pass on and take note ---- */

#define NO_DRIVER_UNLESS(real)                                                                                         \
    if (!(real))                                                                                                       \
    return CUDA_ERROR_NOT_INITIALIZED

DRIVER_BODY init_body(enum overlap_way way, enum hook hook, uintptr_t site, uint32_t flags) {
    type_cuInit *real = REAL(cuInit);
    NO_DRIVER_UNLESS(real);
    CUresult result = real(flags);
    if (result == CUDA_SUCCESS)
        overlap_page_opened();
    return result;
}

DRIVER_BODY proc_address_body(enum overlap_way way, enum hook hook, uintptr_t site, const char *symbol, void **pfn,
                              int version, uint64_t flags) {
    type_cuGetProcAddress *real = REAL(cuGetProcAddress);
    NO_DRIVER_UNLESS(real);
    CUresult result = real(symbol, pfn, version, flags);
    if (result == CUDA_SUCCESS && pfn)
        *pfn = real_replace(symbol, version, flags, *pfn);
    return result;
}

DRIVER_BODY proc_address_v2_body(enum overlap_way way, enum hook hook, uintptr_t site, const char *symbol, void **pfn,
                                 int version, uint64_t flags, int *status) {
    type_cuGetProcAddress_v2 *real = REAL(cuGetProcAddress_v2);
    NO_DRIVER_UNLESS(real);
    CUresult result = real(symbol, pfn, version, flags, status);
    if (result == CUDA_SUCCESS && pfn)
        *pfn = real_replace(symbol, version, flags, *pfn);
    return result;
}

DRIVER_BODY stream_create_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream *stream, uint32_t flags) {
    return stream_create(way, hook, site, stream, flags, 0, false);
}

DRIVER_BODY stream_create_priority_body(enum overlap_way way, enum hook hook, uintptr_t site, CUstream *stream,
                                        uint32_t flags, int priority) {
    return stream_create(way, hook, site, stream, flags, priority, true);
}

/* Its kernels are not seen one by one; how often graphs run is at least said. */
DRIVER_BODY graph_launch_body(enum overlap_way way, enum hook hook, uintptr_t site, CUgraphExec graph,
                              CUstream stream) {
    type_cuGraphLaunch *real = REAL(cuGraphLaunch);
    NO_DRIVER_UNLESS(real);
    if (overlap_armed())
        launch_count(OVERLAP_COUNTER_GRAPH_LAUNCHES);
    return real(graph, stream);
}

DRIVER_BODY module_get_function_body(enum overlap_way way, enum hook hook, uintptr_t site, CUfunction *function,
                                     CUmodule module, const char *name) {
    type_cuModuleGetFunction *real = REAL(cuModuleGetFunction);
    NO_DRIVER_UNLESS(real);
    CUresult result = real(function, module, name);
    if (result == CUDA_SUCCESS && function && overlap_armed())
        handle_learn(*function, HANDLE_FUNCTION, module, name, NULL);
    return result;
}

DRIVER_BODY library_get_kernel_body(enum overlap_way way, enum hook hook, uintptr_t site, CUkernel *kernel,
                                    CUlibrary library, const char *name) {
    type_cuLibraryGetKernel *real = REAL(cuLibraryGetKernel);
    NO_DRIVER_UNLESS(real);
    CUresult result = real(kernel, library, name);
    if (result == CUDA_SUCCESS && kernel && overlap_armed())
        handle_learn(*kernel, HANDLE_KERNEL, library, name, NULL);
    return result;
}

/* The driver fills at most as many entries as there are. */
DRIVER_BODY module_enumerate_body(enum overlap_way way, enum hook hook, uintptr_t site, CUfunction *functions,
                                  uint32_t count, CUmodule module) {
    type_cuModuleEnumerateFunctions *real = REAL(cuModuleEnumerateFunctions);
    NO_DRIVER_UNLESS(real);
    CUresult result = real(functions, count, module);
    uint32_t there = 0;
    if (result == CUDA_SUCCESS && functions && overlap_armed() && driver_ready() && driver.cuModuleGetFunctionCount &&
        driver.cuModuleGetFunctionCount(&there, module) == CUDA_SUCCESS)
        for (uint32_t i = 0; i < count && i < there; i++)
            handle_learn(functions[i], HANDLE_FUNCTION, module, NULL, NULL);
    return result;
}

DRIVER_BODY library_enumerate_body(enum overlap_way way, enum hook hook, uintptr_t site, CUkernel *kernels,
                                   uint32_t count, CUlibrary library) {
    type_cuLibraryEnumerateKernels *real = REAL(cuLibraryEnumerateKernels);
    NO_DRIVER_UNLESS(real);
    CUresult result = real(kernels, count, library);
    uint32_t there = 0;
    if (result == CUDA_SUCCESS && kernels && overlap_armed() && driver_ready() && driver.cuLibraryGetKernelCount &&
        driver.cuLibraryGetKernelCount(&there, library) == CUDA_SUCCESS)
        for (uint32_t i = 0; i < count && i < there; i++)
            handle_learn(kernels[i], HANDLE_KERNEL, library, NULL, NULL);
    return result;
}

DRIVER_BODY kernel_get_function_body(enum overlap_way way, enum hook hook, uintptr_t site, CUfunction *function,
                                     CUkernel kernel) {
    type_cuKernelGetFunction *real = REAL(cuKernelGetFunction);
    NO_DRIVER_UNLESS(real);
    CUresult result = real(function, kernel);
    struct handle *from = result == CUDA_SUCCESS && function && overlap_armed() ? handle_find(kernel) : NULL;
    if (from)
        handle_learn(*function, HANDLE_FUNCTION, (void *)(uintptr_t)from->owner, handle_name(from), kernel);
    return result;
}

/* Before the driver is called: it may give the same addresses out again at once. */
DRIVER_BODY module_unload_body(enum overlap_way way, enum hook hook, uintptr_t site, CUmodule module) {
    type_cuModuleUnload *real = REAL(cuModuleUnload);
    NO_DRIVER_UNLESS(real);
    handle_forget_owner(module);
    return real(module);
}

DRIVER_BODY library_unload_body(enum overlap_way way, enum hook hook, uintptr_t site, CUlibrary library) {
    type_cuLibraryUnload *real = REAL(cuLibraryUnload);
    NO_DRIVER_UNLESS(real);
    handle_forget_owner(library);
    return real(library);
}

/* A context takes its functions with it, and what is made next may have their addresses. cuCtxDetach may leave it
 * alive; then its functions are left alone from now on, unless the program asks for them again. */
DRIVER_BODY context_destroy_body(enum overlap_way way, enum hook hook, uintptr_t site, CUcontext context) {
    type_cuCtxDestroy *real = REAL(cuCtxDestroy);
    NO_DRIVER_UNLESS(real);
    handle_forget_context(context, NO_DEVICE);
    return real(context);
}

/* The primary context lives until its last user releases it, which only the driver knows. */
DRIVER_BODY primary_end_body(enum overlap_way way, enum hook hook, uintptr_t site, CUdevice device) {
    type_cuDevicePrimaryCtxReset *real = REAL(cuDevicePrimaryCtxReset);
    NO_DRIVER_UNLESS(real);
    CUresult result = real(device);
    uint32_t flags = 0;
    int active = 1;
    if (overlap_armed() && driver_ready() && driver.cuDevicePrimaryCtxGetState &&
        driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && !active)
        handle_forget_context(NULL, device);
    return result;
}

/* Told to the driver again if another thread has come to need more meanwhile. */
DRIVER_BODY function_set_attribute_body(enum overlap_way way, enum hook hook, uintptr_t site, CUfunction function,
                                        int attribute, int value) {
    type_cuFuncSetAttribute *real = REAL(cuFuncSetAttribute);
    NO_DRIVER_UNLESS(real);
    int told;
    CUresult result;
    do
        result = real(function, attribute, told = limit_for_driver(function, 0, attribute, value));
    while (result == CUDA_SUCCESS && told != limit_for_driver(function, 0, attribute, value));
    if (result == CUDA_SUCCESS)
        limit_believe(function, 0, attribute, value);
    return result;
}

DRIVER_BODY kernel_set_attribute_body(enum overlap_way way, enum hook hook, uintptr_t site, int attribute, int value,
                                      CUkernel kernel, CUdevice device) {
    type_cuKernelSetAttribute *real = REAL(cuKernelSetAttribute);
    NO_DRIVER_UNLESS(real);
    int told;
    CUresult result;
    do
        result = real(attribute, told = limit_for_driver(kernel, device, attribute, value), kernel, device);
    while (result == CUDA_SUCCESS && told != limit_for_driver(kernel, device, attribute, value));
    if (result == CUDA_SUCCESS)
        limit_believe(kernel, device, attribute, value);
    return result;
}

DRIVER_BODY function_get_attribute_body(enum overlap_way way, enum hook hook, uintptr_t site, int *value, int attribute,
                                        CUfunction function) {
    type_cuFuncGetAttribute *real = REAL(cuFuncGetAttribute);
    NO_DRIVER_UNLESS(real);
    CUresult result = real(value, attribute, function);
    if (result == CUDA_SUCCESS && value)
        limit_answer(function, 0, attribute, value);
    return result;
}

DRIVER_BODY kernel_get_attribute_body(enum overlap_way way, enum hook hook, uintptr_t site, int *value, int attribute,
                                      CUkernel kernel, CUdevice device) {
    type_cuKernelGetAttribute *real = REAL(cuKernelGetAttribute);
    NO_DRIVER_UNLESS(real);
    CUresult result = real(value, attribute, kernel, device);
    if (result == CUDA_SUCCESS && value)
        limit_answer(kernel, device, attribute, value);
    return result;
}

/* ---- The thunks ---- */

#define SITE ((uintptr_t)__builtin_return_address(0))

/* Exported, and two that others hand out. */
#define DRIVER(name, body, parameters, ...)                                                                            \
    OVERLAP_EXPORT CUresult name parameters;                                                                           \
    OVERLAP_EXPORT CUresult name parameters {                                                                          \
        return body(OVERLAP_WAY_symbol, HOOK_##name, SITE, __VA_ARGS__);                                               \
    }                                                                                                                  \
    static CUresult dlsym_##name parameters {                                                                          \
        return body(OVERLAP_WAY_dlsym, HOOK_##name, SITE, __VA_ARGS__);                                                \
    }                                                                                                                  \
    static CUresult proc_##name parameters {                                                                           \
        return body(OVERLAP_WAY_proc_address, HOOK_##name, SITE, __VA_ARGS__);                                         \
    }

/* The slow functions behind the hot thunks: jumped to, so SITE is the program's return address there too. */
#define SLOW(way, name, body, parameters, ...)                                                                         \
    CUresult slow_##way##_##name parameters;                                                                           \
    __attribute__((cold, noinline)) CUresult slow_##way##_##name parameters {                                          \
        return body##_slow(OVERLAP_WAY_##way, HOOK_##name, SITE, __VA_ARGS__);                                         \
    }
#define HOT(linkage, prefix, way, name, body, parameters, ...)                                                         \
    linkage CUresult prefix##name parameters {                                                                         \
        return body(OVERLAP_WAY_##way, HOOK_##name, SITE, slow_##way##_##name, __VA_ARGS__);                           \
    }
#define DRIVER_LAUNCH(name, body, parameters, ...)                                                                     \
    SLOW_##body(symbol, name, parameters, __VA_ARGS__) SLOW_##body(dlsym, name, parameters, __VA_ARGS__)               \
        SLOW_##body(proc_address, name, parameters, __VA_ARGS__) HOT_##body(name, parameters)
#include "driver.def"
#undef DRIVER

void *entry_thunk(enum overlap_way way, enum hook hook) {
    static void *const thunks[][HOOK_COUNT] = {
#define DRIVER(name, body, parameters, ...) (void *)dlsym_##name,
        {
#include "driver.def"
        },
#undef DRIVER
#define DRIVER(name, body, parameters, ...) (void *)proc_##name,
        {
#include "driver.def"
        },
#undef DRIVER
    };
    return thunks[way - OVERLAP_WAY_dlsym][hook];
}
