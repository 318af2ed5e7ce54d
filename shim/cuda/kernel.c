/* Kernels as NVIDIA's driver tells of them: names, footprints, attributes; and what the program has set (struct setting). */
#include <string.h>

#include "../core/core.h"
#include "../gpu/device.h"
#include "../gpu/handle.h"
#include "../gpu/launch.h"
#include "../gpu/table.h"
#include "cuda.h"

/* ---- What the driver tells ---- */

/* A handle that came from a private table of the driver (cuFFT) has a record, too, so that its launches are decided
 * once. */
struct handle *cuda_handle_of(const struct request *request) {
    struct handle *const known = handle_find(request->function);
    if (known || !request->function)
        return known;
    handle_learn(request->function, HANDLE_UNKNOWN, NULL, NULL, NULL);
    return handle_find(request->function);
}

const char *cuda_kernel_name(const struct handle *handle) {
    const char *answer = NULL;
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    if (handle_is(handle, HANDLE_FUNCTION) && driver.cuFuncGetName)
        result = driver.cuFuncGetName(&answer, handle_value(handle));
    else if (handle_is(handle, HANDLE_KERNEL) && driver.cuKernelGetName)
        result = driver.cuKernelGetName(&answer, handle_value(handle));
    return result == CUDA_SUCCESS ? answer : NULL;
}

CUresult handle_get(const struct handle *handle, int attribute, int device, int *value) {
    type_cuFuncGetAttribute *function_get = (type_cuFuncGetAttribute *)real_export(HOOK_cuFuncGetAttribute);
    type_cuKernelGetAttribute *kernel_get = (type_cuKernelGetAttribute *)real_export(HOOK_cuKernelGetAttribute);
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    int mode = cuda_relax();
    if (handle_is(handle, HANDLE_FUNCTION) && function_get)
        result = function_get(value, attribute, handle_value(handle));
    else if (handle_is(handle, HANDLE_KERNEL) && kernel_get)
        result = kernel_get(value, attribute, handle_value(handle), device);
    cuda_restore(mode);
    return result;
}

CUresult handle_set(const struct handle *handle, int attribute, int device, int value) {
    type_cuFuncSetAttribute *function_set = (type_cuFuncSetAttribute *)real_export(HOOK_cuFuncSetAttribute);
    type_cuKernelSetAttribute *kernel_set = (type_cuKernelSetAttribute *)real_export(HOOK_cuKernelSetAttribute);
    CUresult result = CUDA_ERROR_NOT_SUPPORTED;
    int mode = cuda_relax();
    if (handle_is(handle, HANDLE_FUNCTION) && function_set)
        result = function_set(handle_value(handle), attribute, value);
    else if (handle_is(handle, HANDLE_KERNEL) && kernel_set)
        result = kernel_set(attribute, value, handle_value(handle), device);
    cuda_restore(mode);
    return result;
}

struct handle *cuda_function_of(const struct handle *kernel) {
    type_cuKernelGetFunction *get = real_export(HOOK_cuKernelGetFunction);
    CUfunction value = NULL;
    int mode = cuda_relax();
    const bool entered = cuda_enter_launch();
    struct handle *function =
        get && get(&value, (CUkernel)(uintptr_t)kernel->value) == CUDA_SUCCESS ? handle_find(value) : NULL;
    if (entered)
        cuda_leave_launch();
    cuda_restore(mode);
    return function;
}

bool cuda_footprint(struct handle *handle, const struct device *device, struct overlap_launch *launch, bool *later) {
    int registers = 0, shared = 0;
    CUresult result = handle_get(handle, CU_FUNC_ATTRIBUTE_NUM_REGS, device->ordinal, &registers);
    if (result == CUDA_SUCCESS)
        result = handle_get(handle, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, device->ordinal, &shared);
    *later = result == CUDA_ERROR_FUNCTION_NOT_LOADED;
    if (result != CUDA_SUCCESS || registers < 0 || shared < 0)
        return false;
    /* Clusters may be compiled in (__cluster_dims__); the launch then needs no attribute. */
    for (int which = CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
         streams_wanted() & STREAMS_SHAPES && which <= CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH; which++) {
        int size = 0;
        if (handle_get(handle, which, device->ordinal, &size) == CUDA_SUCCESS && size > 1)
            launch->flags |= OVERLAP_LAUNCH_CLUSTER;
    }
    launch->footprint.registers = (uint32_t)registers;
    launch->footprint.static_shared = (uint32_t)shared;
    launch->maximum_dynamic =
        device->gpu.shared_optin > (uint32_t)shared ? device->gpu.shared_optin - (uint32_t)shared : 0;
    return true;
}

/* ---- What the program has set ---- */

uint32_t setting_bit(const struct handle *handle, int device) {
    if (handle_kind(handle) != HANDLE_KERNEL)
        return 1;
    return device >= 0 && device < OVERLAP_DEVICES ? UINT32_C(1) << device : 0;
}

struct setting setting_read(const struct setting *setting) {
    struct setting copy = {0};
    if (lock_take()) { /* which those who write `fixed` do not hold */
        copy.has_own = setting->has_own;
        copy.ours = setting->ours;
        copy.fixed = OVERLAP_RELAXED(setting->fixed);
        memcpy(copy.own, setting->own, sizeof copy.own);
        lock_leave();
    }
    return copy;
}

int setting_value(const struct setting *setting, uint32_t bit) {
    return bit ? setting->own[__builtin_ctz(bit) % OVERLAP_DEVICES] : 0;
}

void setting_own(struct setting *setting, uint32_t bits, int own) {
    setting->has_own |= bits;
    for (int i = 0; i < OVERLAP_DEVICES; i++)
        if (bits >> i & 1)
            setting->own[i] = own;
}
