/* Modules: code loaded into one context. Their functions are handles of their own, made when first asked for. */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

struct module *sim_module_new(struct context *context, struct image *image, struct library *library) {
    struct module *const module = sim_new(1, sizeof *module);
    module->functions = sim_new(image->kernels, sizeof *module->functions);
    module->handle = sim_handle_new(KIND_MODULE, module);
    module->context = context;
    module->image = image;
    module->library = library;
    image->references++;
    module->next = context->modules;
    context->modules = module;
    return module;
}

void sim_module_free(struct module *module) {
    if (module->library != NULL)
        sim_library_forget_module(module->library, module);
    SIM_UNLINK(module->context->modules, module);
    for (uint32_t i = 0; i < module->image->kernels; i++)
        if (module->functions[i] != NULL) {
            sim_handle_free(module->functions[i]->handle);
            free(module->functions[i]);
        }
    sim_image_release(module->image);
    sim_handle_free(module->handle);
    free(module->functions);
    free(module);
}

struct function *sim_module_function(struct module *module, uint32_t index) {
    if (module->functions[index] != NULL)
        return module->functions[index];
    struct function *const function = sim_new(1, sizeof *function);
    *function = (struct function){
        .handle = sim_handle_new(KIND_FUNCTION, function),
        .module = module,
        .image = &module->image->kernel[index],
        .kernel =
            module->library != NULL ? sim_library_kernel(module->library, module->image->kernel[index].name) : NULL,
    };
    sim_settings_clear(&function->settings);
    module->functions[index] = function;
    return function;
}

static CUresult load(CUmodule *out, const void *data, size_t bytes, bool size_known) {
    SIM_CALL_IN_CONTEXT(context);
    if (out == NULL || data == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    struct image *image;
    const CUresult result = sim_image_load(data, bytes, size_known, sim_gpu(context->device), &image);
    if (result != CUDA_SUCCESS)
        return result;
    *out = sim_module_new(context, image, NULL)->handle;
    sim_image_release(image);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuModuleLoad(CUmodule *out, const char *path) {
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

SIM_ENTRY(cuModuleLoadData, load, (CUmodule * out, const void *data), out, data, 0, false)
SIM_ENTRY(cuModuleLoadFatBinary, load, (CUmodule * out, const void *data), out, data, 0, false)

SIM_API CUresult cuModuleLoadDataEx(CUmodule *out, const void *data, unsigned int count, int *options, void **values) {
    (void)options;
    (void)values;
    return count < 64 ? load(out, data, 0, false) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuModuleUnload(CUmodule handle) {
    SIM_CALL();
    const CUresult forbidden = sim_capture_forbids();
    if (forbidden != CUDA_SUCCESS)
        return forbidden;
    struct module *const module = sim_handle_get(handle, KIND_MODULE);
    if (module == NULL || module->library != NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_module_free(module);
    return CUDA_SUCCESS;
}

SIM_API CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name) {
    SIM_CALL();
    struct module *const module = sim_handle_get(handle, KIND_MODULE);
    if (out == NULL || name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (module == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    for (uint32_t i = 0; i < module->image->kernels; i++)
        if (strcmp(module->image->kernel[i].name, name) == 0) {
            *out = sim_module_function(module, i)->handle;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

SIM_API CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule handle) {
    SIM_CALL();
    const struct module *const module = sim_handle_get(handle, KIND_MODULE);
    if (count == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (module == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    *count = module->image->kernels;
    return CUDA_SUCCESS;
}

SIM_API CUresult cuModuleEnumerateFunctions(CUfunction *out, unsigned int count, CUmodule handle) {
    SIM_CALL();
    struct module *const module = sim_handle_get(handle, KIND_MODULE);
    if (out == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (module == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    for (uint32_t i = 0; i < count && i < module->image->kernels; i++)
        out[i] = sim_module_function(module, i)->handle;
    return CUDA_SUCCESS;
}
