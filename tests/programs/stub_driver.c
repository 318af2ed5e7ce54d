/* A driver of a few bytes: an H100 that does nothing. For tests of what the library itself takes.
 * STUB_ANSWERS: what every cuLaunchKernelEx answers. STUB_REFUSES: large blocks, but only on the default stream; any
 * other stream captures. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int cuInit(unsigned flags) {
    return (int)flags * 0;
}
int cuDriverGetVersion(int *version) {
    return *version = 13000, 0;
}
int cuDeviceGetCount(int *count) {
    return *count = 1, 0;
}
int cuDeviceGetName(char *name, int size, int device) {
    return strncpy(name, "NVIDIA H100 80GB HBM3", (size_t)size), device;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
    return *context = (void *)16, device;
}
int cuCtxSetCurrent(void *context) {
    return context == 0;
}
int cuCtxGetDevice(int *device) {
    return *device = 0;
}
int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    return *greatest = -5, *least = 0;
}
int cuStreamGetPriority(void *stream, int *priority) {
    return *priority = 0, stream != 0;
}
int cuStreamIsCapturing(void *stream, int *status) {
    return *status = stream != 0, 0;
}
int cuModuleLoadData(void **module, const void *image) {
    return *module = (void *)32, image == 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    /* k, k1, k2... are kernels of their own */
    return *function = (void *)(name[0] == 'n' ? 0x100000L : 0x200000L + 16L * atoi(name + 1)), module == 0;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
    return function == 0 || attribute < 0 || value < 0;
}
int cuFuncGetAttribute(int *value, int attribute, void *function) {
    *value = attribute == 4 ? 32 : attribute == 8 ? 49152 : attribute == 0 ? 1024 : attribute == 9 ? -1 : 0;
    return function == 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    static const int known[][2] = {{1, 1024}, {8, 49152},   {10, 32},    {12, 65536},  {16, 132}, {39, 2048}, {75, 9},
                                   {76, 0},   {81, 233472}, {82, 65536}, {97, 232448}, {106, 32}, {111, 1024}};
    *value = 0;
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i][0] == attribute)
            *value = known[i][1];
    return device || getenv("STUB_NO_LIMITS");
}
static unsigned largest;
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)parameters, (void)extra;
    if (stream == 0 && shared > 50000 && getenv("STUB_REFUSES"))
        return 701;
    largest = shared > largest ? shared : largest;
    return function == 0;
}
static int extended;
int cuLaunchKernelEx(const void *config, void *function, void **parameters, void **extra) {
    (void)config, (void)parameters, (void)extra;
    extended++;
    return function == 0 ? 400 : getenv("STUB_ANSWERS") ? atoi(getenv("STUB_ANSWERS")) : 0;
}
unsigned stub_largest(void);
unsigned stub_largest(void) {
    return largest;
}
int stub_extended(void);
int stub_extended(void) {
    return extended;
}
