/* SPDX-License-Identifier: Apache-2.0
 * The driver by dlopen, the first device, and the kernels built for it. */
#include "beside.h"
#include "demo.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTRIBUTE_MAJOR = 75, ATTRIBUTE_MINOR = 76 }; /* CU_DEVICE_ATTRIBUTE_COMPUTE_... */
enum { FUNCTION_STATIC_SHARED = 1, FUNCTION_REGISTERS = 4, FUNCTION_MAX_DYNAMIC = 8 }; /* CU_FUNC_ATTRIBUTE_... */
enum { CUBIN_LIMIT = 1 << 20 };

bool demo_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("demo-step: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return false;
}

bool demo_ok(const struct demo_api *api, int status, const char *what) {
    if (status == 0)
        return true;
    const char *name = NULL;
    if (api->error_name(status, &name) != 0 || name == NULL)
        name = "unknown error";
    return demo_fail("%s: %s (%d)", what, name, status);
}

static bool open_driver(struct demo_api *api) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver == NULL)
        return demo_fail("no driver: libcuda.so.1 is not found");
#define X(field, symbol, parameters)                                                                                   \
    void *const address_of_##field = dlsym(driver, #symbol);                                                           \
    if (address_of_##field == NULL)                                                                                    \
        return demo_fail("no driver: libcuda.so.1 has no " #symbol);                                                   \
    memcpy(&api->field, &address_of_##field, sizeof api->field);
#include "demo_api.def"
#undef X
    return true;
}

/* folder: NULL for that of this program. */
static const char *cubin_path(const char *folder, int major) {
    static char path[PATH_SIZE];
    char name[32];
    snprintf(name, sizeof name, "demo_sm%d0.cubin", major);
    if (folder == NULL)
        return beside(name);
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && length < PATH_SIZE ? path : NULL;
}

static bool load_module(struct demo_gpu *gpu, const char *folder, void **module) {
    if (gpu->major != 8 && gpu->major != 9)
        return demo_fail("%s has compute capability %d.%d; the kernels of the demo are for 8.x and 9.x", gpu->name,
                         gpu->major, gpu->minor);
    const char *const path = cubin_path(folder, gpu->major);
    if (path == NULL)
        return demo_fail("the folder's name is too long");
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return demo_fail("cannot read %s", path);
    unsigned char *image = malloc(CUBIN_LIMIT);
    const size_t size = image == NULL ? 0 : fread(image, 1, CUBIN_LIMIT, file);
    fclose(file);
    const bool loaded = (size > 0 && size < CUBIN_LIMIT) ? demo_ok(&gpu->api, gpu->api.module_load(module, image), path)
                                                         : demo_fail("cannot read %s", path);
    free(image);
    return loaded;
}

static bool open_kernel(const struct demo_api *api, void *module, struct demo_kernel *kernel) {
    const int opt_in = (int)kernel->dynamic_shared;
    return demo_ok(api, api->module_function(&kernel->function, module, kernel->name), kernel->name) &&
           demo_ok(api, api->function_get(&kernel->registers, FUNCTION_REGISTERS, kernel->function), kernel->name) &&
           demo_ok(api, api->function_get(&kernel->static_shared, FUNCTION_STATIC_SHARED, kernel->function),
                   kernel->name) &&
           (opt_in == 0 ||
            demo_ok(api, api->function_set(kernel->function, FUNCTION_MAX_DYNAMIC, opt_in), kernel->name));
}

bool demo_gpu_open(struct demo_gpu *gpu, const char *cubins) {
    const struct demo_api *api = &gpu->api;
    void *context = NULL;
    void *module = NULL;
    int count = 0;
    int device = 0;
    use_own_costs();
    if (!open_driver(&gpu->api) || !demo_ok(api, api->initialise(0), "no GPU") ||
        !demo_ok(api, api->device_count(&count), "no GPU"))
        return false;
    if (count == 0)
        return demo_fail("no GPU: the driver has no device");
    return demo_ok(api, api->device_get(&device, 0), "no GPU") &&
           demo_ok(api, api->device_name(gpu->name, sizeof gpu->name, device), "no GPU") &&
           demo_ok(api, api->device_attribute(&gpu->major, ATTRIBUTE_MAJOR, device), gpu->name) &&
           demo_ok(api, api->device_attribute(&gpu->minor, ATTRIBUTE_MINOR, device), gpu->name) &&
           demo_ok(api, api->context_retain(&context, device), gpu->name) &&
           demo_ok(api, api->context_set(context), gpu->name) && load_module(gpu, cubins, &module) &&
           open_kernel(api, module, &gpu->gemm) && open_kernel(api, module, &gpu->all_reduce) &&
           open_kernel(api, module, &gpu->optimizer);
}
