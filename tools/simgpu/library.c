/* Libraries: code that belongs to no context. Each context that uses one gets a module of it, when it needs it. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static void library_free(struct library *library) {
    while (library->used > 0)
        sim_module_free(library->modules[0]); /* takes itself out of the list */
    for (uint32_t i = 0; library->kernels != NULL && i < library->image->kernels; i++)
        if (library->kernels[i] != NULL) {
            sim_handle_free(library->kernels[i]->handle);
            free(library->kernels[i]);
        }
    sim_image_release(library->image);
    sim_handle_free(library->handle);
    free(library->kernels);
    free(library->modules);
    free(library);
}

void sim_library_forget_module(struct library *library, const struct module *module) {
    for (uint32_t i = 0; i < library->used; i++)
        if (library->modules[i] == module) {
            library->modules[i] = library->modules[--library->used];
            return;
        }
}

static struct kernel *kernel_new(struct library *library, uint32_t index) {
    struct kernel *const kernel = calloc(1, sizeof *kernel);
    if (kernel == NULL)
        return NULL;
    kernel->handle = sim_handle_new(KIND_KERNEL, kernel);
    kernel->library = library;
    kernel->image = &library->image->kernel[index];
    kernel->index = index;
    for (size_t i = 0; i < MAX_DEVICES; i++)
        kernel->max_dynamic[i] = kernel->carveout[i] = -1;
    return kernel;
}

static CUresult load(CUlibrary *out, const void *data, size_t bytes, bool size_known) {
    SIM_CALL();
    const CUresult forbidden = sim_capture_forbids();
    if (forbidden != CUDA_SUCCESS)
        return forbidden;
    if (out == NULL || data == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct image *image;
    const CUresult result = sim_image_load(data, bytes, size_known, &image);
    if (result != CUDA_SUCCESS)
        return result;
    struct library *const library = calloc(1, sizeof *library);
    if (library == NULL) {
        sim_image_release(image);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    library->image = image;
    library->handle = sim_handle_new(KIND_LIBRARY, library);
    library->kernels = calloc(image->kernels + 1, sizeof(struct kernel *));
    bool complete = library->handle != NULL && library->kernels != NULL;
    for (uint32_t i = 0; complete && i < image->kernels; i++) {
        library->kernels[i] = kernel_new(library, i);
        complete = library->kernels[i] != NULL;
    }
    if (!complete) {
        library_free(library);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *out = library->handle;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuLibraryLoadData(CUlibrary *out, const void *code, int *options, void **values, unsigned int count,
                                   int *library_options, void **library_values, unsigned int library_count) {
    (void)options, (void)values, (void)count;
    (void)library_options, (void)library_values, (void)library_count;
    return load(out, code, 0, false);
}

SIM_API CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *path, int *options, void **values,
                                       unsigned int count, int *library_options, void **library_values,
                                       unsigned int library_count) {
    (void)options, (void)values, (void)count;
    (void)library_options, (void)library_values, (void)library_count;
    uint8_t *data;
    size_t bytes;
    if (!sim_is_initialized())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (out == NULL || path == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = sim_read_file(path, &data, &bytes);
    if (result != CUDA_SUCCESS)
        return result;
    result = load(out, data, bytes, true);
    free(data);
    return result;
}

SIM_API CUresult cuLibraryUnload(CUlibrary handle) {
    SIM_CALL();
    const CUresult forbidden = sim_capture_forbids();
    if (forbidden != CUDA_SUCCESS)
        return forbidden;
    struct library *const library = sim_handle_get(handle, KIND_LIBRARY);
    if (library == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    library_free(library);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary handle, const char *name) {
    SIM_CALL();
    const struct library *const library = sim_handle_get(handle, KIND_LIBRARY);
    if (out == NULL || name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (library == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    for (uint32_t i = 0; i < library->image->kernels; i++)
        if (strcmp(library->image->kernel[i].name, name) == 0) {
            *out = library->kernels[i]->handle;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

SIM_API CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary handle) {
    SIM_CALL();
    const struct library *const library = sim_handle_get(handle, KIND_LIBRARY);
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (library == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *count = library->image->kernels;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuLibraryEnumerateKernels(CUkernel *out, unsigned int count, CUlibrary handle) {
    SIM_CALL();
    const struct library *const library = sim_handle_get(handle, KIND_LIBRARY);
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (library == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    for (uint32_t i = 0; i < count && i < library->image->kernels; i++)
        out[i] = library->kernels[i]->handle;
    return CUDA_SUCCESS;
}

static CUresult module_of(struct library *library, struct context *context, struct module **out) {
    for (uint32_t i = 0; i < library->used; i++)
        if (library->modules[i]->context == context) {
            *out = library->modules[i];
            return CUDA_SUCCESS;
        }
    struct module **const grown = realloc(library->modules, (library->used + 1) * sizeof *grown);
    if (grown == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    library->modules = grown;
    *out = sim_module_new(context, library->image, library);
    if (*out == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    grown[library->used++] = *out;
    return CUDA_SUCCESS;
}

CUresult sim_kernel_function(struct kernel *kernel, struct context *context, struct function **out) {
    struct module *module;
    const CUresult result = module_of(kernel->library, context, &module);
    if (result != CUDA_SUCCESS)
        return result;
    *out = sim_module_function(module, kernel->index);
    return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API CUresult cuLibraryGetModule(CUmodule *out, CUlibrary handle) {
    SIM_CALL_IN_CONTEXT(context);
    struct library *const library = sim_handle_get(handle, KIND_LIBRARY);
    struct module *module;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (library == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    const CUresult result = module_of(library, context, &module);
    if (result == CUDA_SUCCESS)
        *out = module->handle;
    return result;
}

SIM_API CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary handle, const char *name) {
    SIM_CALL_IN_CONTEXT(context);
    struct library *const library = sim_handle_get(handle, KIND_LIBRARY);
    struct module *module;
    if (name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (library == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    const CUresult result = module_of(library, context, &module);
    return result == CUDA_SUCCESS ? sim_global_of(module, name, address, bytes) : result;
}

SIM_API CUresult cuKernelGetFunction(CUfunction *out, CUkernel handle) {
    SIM_CALL_IN_CONTEXT(context);
    struct kernel *const kernel = sim_handle_get(handle, KIND_KERNEL);
    struct function *function;
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (kernel == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    const CUresult result = sim_kernel_function(kernel, context, &function);
    if (result == CUDA_SUCCESS)
        *out = function->handle;
    return result;
}

SIM_API CUresult cuKernelGetLibrary(CUlibrary *out, CUkernel handle) {
    SIM_CALL();
    const struct kernel *const kernel = sim_handle_get(handle, KIND_KERNEL);
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (kernel == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *out = kernel->library->handle;
    return CUDA_SUCCESS;
}
