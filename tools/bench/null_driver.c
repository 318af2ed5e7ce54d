/* libcuda.so.1 that does nothing: what a launch costs here is the call itself, so the difference with the shim is the
 * shim.
 *
 * NULL_DEVICES: how many devices it claims (default 1). NULL_CAPTURING=1: every stream captures, so that no changed
 * launch is ever proven. Kernels are called by number; those whose name begins with "nccl" are communication to the
 * shim.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default"), noinline))

enum { KERNELS = 1 << 18 };
static struct {
    char name[64];
    int limit;
} kernels[KERNELS];
static uint32_t used;

static int devices = 1, capturing;

__attribute__((constructor)) static void read_settings(void) {
    devices = getenv("NULL_DEVICES") ? atoi(getenv("NULL_DEVICES")) : 1;
    capturing = getenv("NULL_CAPTURING") ? atoi(getenv("NULL_CAPTURING")) : 0;
}

API int cuInit(unsigned flags) {
    return (int)flags;
}
API int cuDriverGetVersion(int *version) {
    return *version = 13000, 0;
}
API int cuDeviceGetCount(int *count) {
    return *count = devices, 0;
}
API int cuDeviceGetName(char *name, int size, int device) {
    (void)device;
    strncpy(name, "NVIDIA H100 80GB HBM3", (size_t)size);
    return 0;
}
API int cuDeviceGetUuid_v2(void *uuid, int device) {
    return memset(uuid, device, 16), 0;
}
API int cuDeviceGetAttribute(int *value, int attribute, int device) {
    static const int values[][2] = {{1, 1024}, {8, 49152},   {10, 32},    {12, 65536},  {16, 132}, {39, 2048}, {75, 9},
                                    {76, 0},   {81, 233472}, {82, 65536}, {97, 232448}, {106, 32}, {111, 1024}};
    (void)device;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i][0] == attribute)
            return *value = values[i][1], 0;
    return 1;
}
API int cuCtxGetDevice(int *device) {
    return *device = 0, 0;
}
API int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    return *least = 0, *greatest = -5, 0;
}
API int cuStreamGetPriority(void *stream, int *priority) {
    (void)stream;
    return *priority = 0, 0;
}
API int cuStreamIsCapturing(void *stream, int *status) {
    (void)stream;
    return *status = capturing, 0;
}
API int cuStreamGetFlags(void *stream, unsigned *flags) {
    (void)stream;
    return *flags = 1, 0;
}
API int cuStreamGetCtx(void *stream, void **context) {
    (void)stream;
    return *context = kernels, 0;
}
API int cuCtxGetCurrent(void **context) {
    return *context = kernels, 0;
}
API int cuEventRecord(void *event, void *stream) {
    (void)event, (void)stream;
    return 0;
}
API int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    (void)stream, (void)event, (void)flags;
    return 0;
}
API int cuStreamSynchronize(void *stream) {
    (void)stream;
    return 0;
}
API int cuEventQuery(void *event) {
    (void)event;
    return 0;
}
API int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
    (void)to, (void)from, (void)bytes;
    return 0;
}
API int cuStreamSetAttribute(void *stream, int attribute, const void *value) {
    (void)stream, (void)attribute, (void)value;
    return 0;
}
API int cuModuleGetFunction(void **function, void *module, const char *name) {
    (void)module;
    uint32_t index = used++ % KERNELS;
    strncpy(kernels[index].name, name, sizeof kernels[index].name - 1);
    kernels[index].limit = 49152;
    return *function = &kernels[index], 0;
}
API int cuLibraryGetKernel(void **kernel, void *library, const char *name) {
    return cuModuleGetFunction(kernel, library, name);
}
API int cuFuncGetAttribute(int *value, int attribute, void *function) {
    *value = attribute == 0   ? 1024
             : attribute == 4 ? 64
             : attribute == 8 ? ((__typeof__(&kernels[0]))function)->limit
             : attribute == 9 ? -1 /* the driver's choice: no carve-out was asked for */
                              : 0;
    return 0;
}
API int cuKernelGetAttribute(int *value, int attribute, void *kernel, int device) {
    (void)device;
    return cuFuncGetAttribute(value, attribute, kernel);
}
API int cuFuncSetAttribute(void *function, int attribute, int value) {
    if (attribute == 8)
        ((__typeof__(&kernels[0]))function)->limit = value;
    return 0;
}
API int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                       unsigned shared, void *stream, void **parameters, void **extra) {
    (void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)stream, (void)parameters,
        (void)extra;
    return 0;
}
API int cuLaunchKernelEx(const void *config, void *f, void **parameters, void **extra) {
    (void)config, (void)f, (void)parameters, (void)extra;
    return 0;
}
API int cuGetProcAddress_v2(const char *symbol, void **pfn, int version, uint64_t flags, int *status) {
    (void)version, (void)flags;
    *pfn = strcmp(symbol, "cuLaunchKernel") == 0        ? (void *)cuLaunchKernel
           : strcmp(symbol, "cuLaunchKernelEx") == 0    ? (void *)cuLaunchKernelEx
           : strcmp(symbol, "cuEventRecord") == 0       ? (void *)cuEventRecord
           : strcmp(symbol, "cuStreamWaitEvent") == 0   ? (void *)cuStreamWaitEvent
           : strcmp(symbol, "cuStreamSynchronize") == 0 ? (void *)cuStreamSynchronize
           : strcmp(symbol, "cuEventQuery") == 0        ? (void *)cuEventQuery
           : strcmp(symbol, "cuMemcpyDtoH") == 0        ? (void *)cuMemcpyDtoH_v2
                                                        : NULL;
    if (status)
        *status = *pfn ? 0 : 1;
    return *pfn ? 0 : 500;
}
