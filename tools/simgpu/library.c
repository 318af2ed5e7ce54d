/* Libraries: code that belongs to no context. Each context that uses one gets a module of it, when it needs it. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static void library_free(struct library *library) {
    while (library->used > 0)
        sim_module_free(library->modules[0]); /* takes itself out of the list */
    for (uint32_t i = 0; i < library->count; i++)
        if (library->kernels[i] != NULL) {
            sim_handle_free(library->kernels[i]->handle);
            free(library->kernels[i]);
        }
    for (size_t i = 0; i < MAX_DEVICES; i++)
        if (library->images[i] != NULL)
            sim_image_release(library->images[i]);
    sim_handle_free(library->handle);
    free(library->kernels);
    free(library->modules);
    free(library);
}

struct kernel *sim_library_kernel(const struct library *library, const char *name) {
    for (uint32_t i = 0; i < library->count; i++)
        if (strcmp(library->kernels[i]->name, name) == 0)
            return library->kernels[i];
    return NULL;
}

void sim_library_forget_module(struct library *library, const struct module *module) {
    for (uint32_t i = 0; i < library->used; i++)
        if (library->modules[i] == module) {
            library->modules[i] = library->modules[--library->used];
            return;
        }
}

static struct kernel *kernel_new(struct library *library, const char *name) {
    struct kernel *const kernel = sim_new(1, sizeof *kernel);
    kernel->handle = sim_handle_new(KIND_KERNEL, kernel);
    kernel->library = library;
    kernel->name = name;
    for (size_t device = 0; device < MAX_DEVICES; device++) {
        sim_settings_clear(&kernel->settings[device]);
        const struct image *const image = library->images[device];
        for (uint32_t i = 0; image != NULL && i < image->kernels; i++)
            if (strcmp(image->kernel[i].name, name) == 0)
                kernel->images[device] = &image->kernel[i];
    }
    return kernel;
}

/* The code for each device: a fat binary may hold some for one kind of GPU and none for another. */
static CUresult load_images(struct library *library, const void *data, size_t bytes, bool size_known) {
    CUresult first = CUDA_SUCCESS;
    bool any = false;
    for (int device = 0; device < sim_config.devices; device++) {
        const CUresult result = sim_image_load(data, bytes, size_known, sim_gpu(device), &library->images[device]);
        any = any || result == CUDA_SUCCESS;
        first = device == 0 ? result : first;
    }
    return any ? CUDA_SUCCESS : first;
}

/* Of all devices: the first image that there is names the kernels. */
static void make_kernels(struct library *library) {
    const struct image *image = NULL;
    for (size_t i = 0; image == NULL; i++)
        image = library->images[i];
    library->kernels = sim_new(image->kernels, sizeof *library->kernels);
    for (; library->count < image->kernels; library->count++)
        library->kernels[library->count] = kernel_new(library, image->kernel[library->count].name);
}

static CUresult load(CUlibrary *out, const void *data, size_t bytes, bool size_known) {
    SIM_CALL();
    if (out == NULL || data == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct library *const library = sim_new(1, sizeof *library);
    const CUresult result = load_images(library, data, bytes, size_known);
    if (result != CUDA_SUCCESS) {
        library_free(library);
        return result;
    }
    make_kernels(library);
    library->handle = sim_handle_new(KIND_LIBRARY, library);
    *out = library->handle;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuLibraryLoadData(CUlibrary *out, const void *code, int *options, void **values, unsigned int count,
                                   int *library_options, void **library_values, unsigned int library_count) {
    (void)options, (void)values, (void)count;
    (void)library_options, (void)library_values, (void)library_count;
    return load(out, code, 0, false);
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
    const struct kernel *const kernel = sim_library_kernel(library, name);
    if (kernel == NULL)
        return CUDA_ERROR_NOT_FOUND;
    *out = kernel->handle;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary handle) {
    SIM_CALL();
    const struct library *const library = sim_handle_get(handle, KIND_LIBRARY);
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (library == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *count = library->count;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuLibraryEnumerateKernels(CUkernel *out, unsigned int count, CUlibrary handle) {
    SIM_CALL();
    const struct library *const library = sim_handle_get(handle, KIND_LIBRARY);
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (library == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    for (uint32_t i = 0; i < count && i < library->count; i++)
        out[i] = library->kernels[i]->handle;
    return CUDA_SUCCESS;
}

static CUresult module_of(struct library *library, struct context *context, struct module **out) {
    for (uint32_t i = 0; i < library->used; i++)
        if (library->modules[i]->context == context) {
            *out = library->modules[i];
            return CUDA_SUCCESS;
        }
    struct image *const image = library->images[context->device];
    if (image == NULL)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    library->modules = sim_grow(library->modules, library->used + 1u, sizeof *library->modules);
    *out = sim_module_new(context, image, library);
    library->modules[library->used++] = *out;
    return CUDA_SUCCESS;
}

CUresult sim_kernel_function(struct kernel *kernel, struct context *context, struct function **out) {
    struct module *module;
    const CUresult result = module_of(kernel->library, context, &module);
    if (result != CUDA_SUCCESS)
        return result;
    const struct kernel_image *const image = kernel->images[context->device];
    if (image == NULL)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    *out = sim_module_function(module, (uint32_t)(image - module->image->kernel));
    return CUDA_SUCCESS;
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
