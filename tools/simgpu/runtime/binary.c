/* What nvcc's code registers before main: fat binaries, and host addresses that stand for kernels.
 *
 * Nothing is told to the driver until a kernel is used, as with the real runtime's lazy loading.
 */
#include "../symbols.h"
#include "runtime.h"

enum { WRAPPER_MAGIC = 0x466243b1, RELAXED = 2 };

/* What __cudaRegisterFatBinary gets (fatbinary_section.h of CUDA 13.0). */
struct wrapper {
    int magic, version;
    const void *data;
    void *more;
};

struct binary {
    const void *image;
    CUlibrary library;
    CUresult failed; /* why it could not be loaded: that stays so, and is said once */
};

void **__cudaRegisterFatBinary(void *wrapper) {
    const struct wrapper *const given = wrapper;
    struct binary *const binary = calloc(1, sizeof *binary);
    if (binary != NULL)
        binary->image = given->magic == WRAPPER_MAGIC ? given->data : wrapper;
    return (void **)(void *)binary;
}

void __cudaRegisterFatBinaryEnd(void **binary) {
    (void)binary;
}

void __cudaUnregisterFatBinary(void **handle) {
    struct binary *const binary = (struct binary *)(void *)handle;
    if (binary == NULL)
        return;
    pthread_mutex_lock(&lock);
    forget_symbols(binary);
    if (binary->library != NULL)
        rt_calls[0].cuLibraryUnload(binary->library);
    pthread_mutex_unlock(&lock);
    free(binary);
}

void __cudaRegisterFunction(void **binary, const char *host, char *device, const char *name, int limit, void *thread,
                            void *block, dim3 *block_size, dim3 *grid_size, int *warp) {
    (void)device, (void)limit, (void)thread, (void)block, (void)block_size, (void)grid_size, (void)warp;
    add(binary, host, name);
}

/* Nothing here asks for a variable. */
void __cudaRegisterVar(void **binary, char *host, char *device, const char *name, int external, size_t bytes,
                       int constant, int global) {
    (void)binary, (void)host, (void)device, (void)name, (void)external, (void)bytes, (void)constant, (void)global;
}

/* Managed variables would be made here. Not zero: done. */
char __cudaInitModule(void **binary) {
    (void)binary;
    return 1;
}

/* Loading is allowed while a stream captures, as with lazy loading in the real runtime. */
static cudaError_t load(struct binary *binary) {
    if (binary->library != NULL || binary->failed != CUDA_SUCCESS)
        return binary->failed;
    int mode = RELAXED;
    rt_calls[0].cuThreadExchangeStreamCaptureMode(&mode);
    binary->failed = rt_calls[0].cuLibraryLoadData(&binary->library, binary->image, NULL, NULL, 0, NULL, NULL, 0);
    rt_calls[0].cuThreadExchangeStreamCaptureMode(&mode);
    return binary->failed;
}

/* An address that nobody has registered may be a kernel's handle; the driver knows. */
cudaError_t rt_kernel(const void *function, CUkernel *kernel) {
    cudaError_t result = cudaSuccess;
    pthread_mutex_lock(&lock);
    struct symbol *const symbol = find(function);
    if (symbol == NULL)
        *kernel = (CUkernel)(uintptr_t)function;
    else {
        if (symbol->found[0] == NULL)
            result = load(symbol->binary);
        if (result == cudaSuccess && symbol->found[0] == NULL)
            result = rt_calls[0].cuLibraryGetKernel((CUkernel *)(void *)&symbol->found[0], symbol->binary->library,
                                                    symbol->name);
        *kernel = symbol->found[0];
    }
    pthread_mutex_unlock(&lock);
    return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidDeviceFunction : result;
}
