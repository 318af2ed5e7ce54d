/* Does by hand what nvcc writes into a program: registers a fat binary, and launches by the calls behind <<<>>>.
 *
 * As crt/host_runtime.h of CUDA 12.9 and 13.0: with 12 the stub calls cudaLaunchKernel with the host's address, with 13
 * __cudaGetKernel once and __cudaLaunchKernel with the handle. The code inside is tests/simgpu/data/kernels.fatbin.
 */
#include <stdlib.h>

#include "../../../tools/simgpu/runtime/runtime_abi.h"

#define OWN(name, result, parameters) result name parameters;
#define BODY(name, parameters, ...) cudaError_t name parameters;
#define BODY_STREAM(name, suffix, parameters, ...) cudaError_t name parameters, name##suffix parameters;
#define DRIVER(name, function, parameters, ...) cudaError_t name parameters;
#define DRIVER_STREAM(name, suffix, function, parameters, ...) cudaError_t name parameters, name##suffix parameters;
#include "../../../tools/simgpu/runtime/api.def"

#ifndef IMAGE /* from the root of the repository */
#define IMAGE "tests/simgpu/data/kernels.fatbin"
#endif
__asm__(".section .nv_fatbin, \"a\"\n"
        ".balign 8\n"
        "fat_binary: .incbin \"" IMAGE "\"\n"
        ".previous\n");
extern const char fat_binary[];

static struct {
    int magic, version;
    const void *data;
    void *more;
} wrapper = {0x466243b1, 1, fat_binary, NULL};
static void **handle;

/* The host's side of the kernels: addresses that stand for them, and what <<<>>> calls. */
static int launch(const void *host, cudaKernel_t *kernel, void **arguments) {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    if (__cudaPopCallConfiguration(&grid, &block, &shared, &stream) != cudaSuccess)
        return 1;
#if defined PER_THREAD
    (void)kernel;
    return cudaLaunchKernel_ptsz(host, grid, block, arguments, shared, stream);
#elif RUNTIME == 12
    (void)kernel;
    return cudaLaunchKernel(host, grid, block, arguments, shared, stream);
#else
    if (*kernel == NULL)
        __cudaGetKernel(kernel, host);
    return __cudaLaunchKernel(*kernel, grid, block, arguments, shared, stream);
#endif
}

static void saxpy(int n, float a, const float *x, float *y) {
    static cudaKernel_t kernel;
    void *arguments[] = {&n, &a, &x, &y};
    launch((const void *)saxpy, &kernel, arguments);
}

static void bounded(int *p) {
    static cudaKernel_t kernel;
    void *arguments[] = {&p};
    launch((const void *)bounded, &kernel, arguments);
}

static int counter;

static void unregister(void) {
    __cudaUnregisterFatBinary(handle);
}

__attribute__((constructor)) static void register_all(void) {
    handle = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, (const char *)saxpy, (char *)"saxpy", "saxpy", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFunction(handle, (const char *)bounded, (char *)"bounded", "bounded", -1, NULL, NULL, NULL, NULL,
                           NULL);
    __cudaRegisterVar(handle, (char *)&counter, (char *)"counter", "counter", 0, sizeof counter, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
    atexit(unregister);
}

static int push(unsigned int blocks, unsigned int threads, size_t shared, cudaStream_t stream) {
    return (int)__cudaPushCallConfiguration((dim3){blocks, 1, 1}, (dim3){threads, 1, 1}, shared, stream);
}

#if RUNTIME == 12 /* as the header of CUDA 12 does */
#define cudaGetDeviceProperties cudaGetDeviceProperties_v2
#endif
#ifdef PER_THREAD /* and both with --default-stream per-thread, for some that matter here */
#define cudaGraphLaunch cudaGraphLaunch_ptsz
#define cudaLaunchKernel cudaLaunchKernel_ptsz
#define cudaLaunchKernelExC cudaLaunchKernelExC_ptsz
#define cudaLaunchCooperativeKernel cudaLaunchCooperativeKernel_ptsz
#define cudaMemsetAsync cudaMemsetAsync_ptsz
#define cudaMemcpy cudaMemcpy_ptds
#endif
enum {
    cudaStreamNonBlocking = 1,
    cudaStreamCaptureModeGlobal = 0,
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaLaunchAttributePriority = 8
};

#define SAXPY(blocks, shared, stream) (push(blocks, 256, shared, stream) ? (void)0 : saxpy(0, 2.f, NULL, NULL))
#define BOUNDED(blocks, shared, stream) (push(blocks, 128, shared, stream) ? (void)0 : bounded(NULL))
#define ATTRIBUTE(attribute, number) (attribute).id = cudaLaunchAttributePriority, (attribute).value.integer = (number)
#include "steps.h"

int main(void) {
    return steps();
}
