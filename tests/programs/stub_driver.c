/* A driver of a few bytes: an H100 that does nothing. For tests of what the library itself takes.
 * STUB_ANSWERS: what every cuLaunchKernelEx answers. STUB_REFUSES: large blocks, but only on the default stream; any
 * other stream captures.
 *
 * COUNTS: with kernels k0, k1, ... of which each has a limit of dynamic shared memory of its own, as real ones have; with
 * clusters compiled into them (STUB_CLUSTER: the width); which take STUB_REGISTERS and STUB_STATIC, and have STUB_LIMIT for
 * ever; and with counts: of questions, and of launches of odd and even kernels. SLOW: limits are set slowly, so that other
 * threads launch before and after that takes effect. ADDRESSES: kernels are by modules, whose handles come back after so many
 * others. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef COUNTS
#define cuFuncGetAttribute base_get_attribute
#define cuFuncSetAttribute base_set_attribute
#define cuLaunchKernel base_launch
#endif

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
#ifdef ADDRESSES
int cuModuleLoadData(void **module, const void *image) {
    static long modules;
    return *module = (void *)(0x10000000 + 32 * (++modules % ADDRESSES)), image == 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    return *function = (void *)((char *)module + 16), name == 0;
}
#else
int cuModuleLoadData(void **module, const void *image) {
    return *module = (void *)32, image == 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    /* k, k1, k2... are kernels of their own */
    return *function = (void *)(name[0] == 'n' ? 0x100000L : 0x200000L + 16L * atoi(name + 1)), module == 0;
}
#endif
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

#ifdef COUNTS
#undef cuFuncGetAttribute
#undef cuFuncSetAttribute
#undef cuLaunchKernel
enum { KERNELS = 1 << 18, USUAL = 49152, MOST = 232448 };
static int asked, launched[2], changed[2], above[KERNELS]; /* how much more than usual */
static int carveout = -1;                                  /* of all */

static int number(const char *variable, int usual) {
    return getenv(variable) ? atoi(getenv(variable)) : usual;
}
static uintptr_t number_of(void *function) {
    return ((uintptr_t)function - 0x200000) / 16 % KERNELS;
}
static int limit_of(void *function) {
    return number("STUB_LIMIT", USUAL + __atomic_load_n(&above[number_of(function)], __ATOMIC_SEQ_CST));
}
int cuModuleUnload(void *module) {
    return module == 0;
}
int cuFuncGetAttribute(int *value, int attribute, void *function) {
    const int result = base_get_attribute(value, attribute, function);
    __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
    *value = attribute == 1    ? number("STUB_STATIC", *value)
             : attribute == 4  ? number("STUB_REGISTERS", *value)
             : attribute == 8  ? limit_of(function)
             : attribute == 9  ? __atomic_load_n(&carveout, __ATOMIC_SEQ_CST)
             : attribute == 11 ? number("STUB_CLUSTER", *value)
                               : *value;
    return result;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
    if (attribute == 8 && (value < 0 || value > MOST))
        return 1;
#ifdef SLOW
    usleep(50);
#endif
    if (attribute == 8)
        __atomic_store_n(&above[number_of(function)], value - USUAL, __ATOMIC_SEQ_CST);
    if (attribute == 9)
        __atomic_store_n(&carveout, value, __ATOMIC_SEQ_CST);
#ifdef SLOW
    usleep(50);
#endif
    return base_set_attribute(function, attribute, value);
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    const uintptr_t odd = number_of(function) % 2;
    __atomic_fetch_add(&launched[odd], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&changed[odd], shared > 0, __ATOMIC_RELAXED);
    if (!getenv("STUB_LIMIT") && (int)shared > limit_of(function))
        return 1;
    return base_launch(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}
int stub_asked(void);
int stub_asked(void) {
    return __atomic_load_n(&asked, __ATOMIC_RELAXED);
}
int stub_launched(int odd);
int stub_launched(int odd) {
    return launched[odd];
}
int stub_changed(int odd);
int stub_changed(int odd) {
    return changed[odd];
}
#endif
