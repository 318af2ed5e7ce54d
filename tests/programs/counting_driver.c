/* The stub driver with a limit of dynamic shared memory for each kernel, as real ones have; with clusters compiled into
 * its kernels (STUB_CLUSTER: the width); and with a count of questions. Kernels are called k0, k1, ..., or by their address
 * behind an underscore. All limits end with any module. */
#define cuFuncGetAttribute base_get_attribute
#define cuFuncSetAttribute base_set_attribute
#define cuModuleGetFunction base_get_function
#define cuLaunchKernel base_launch
#include "stub_driver.c"
#undef cuFuncGetAttribute
#undef cuFuncSetAttribute
#undef cuModuleGetFunction
#undef cuLaunchKernel

#include <unistd.h>

enum { KERNELS = 1024, USUAL = 49152, MOST = 232448 };
static int asked, above[KERNELS]; /* how much more than usual */
static int carveout = -1;         /* of all */

static int *above_of(void *function) {
    return &above[((uintptr_t)function - 0x200000) / 0x1000 % KERNELS];
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    const char *address = strchr(name, '_');
    *function = (void *)(uintptr_t)(address ? strtoull(address + 1, NULL, 16)
                                            : (unsigned long long)(0x200000 + atoi(name + 1) * 0x1000));
    return module == 0;
}
int cuModuleUnload(void *module) {
    memset(above, 0, sizeof above);
    return module == 0;
}
int cuFuncGetAttribute(int *value, int attribute, void *function) {
    int result = base_get_attribute(value, attribute, function);
    if (attribute == 8)
        *value = USUAL + __atomic_load_n(above_of(function), __ATOMIC_SEQ_CST);
    if (attribute == 9)
        *value = __atomic_load_n(&carveout, __ATOMIC_SEQ_CST);
    if (attribute == 11 && getenv("STUB_CLUSTER"))
        *value = atoi(getenv("STUB_CLUSTER"));
    __atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
    return result;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
    if (attribute == 8 && (value < 0 || value > MOST))
        return 1;
    if (attribute == 8) { /* slow, so that other threads launch before and after it takes effect */
        usleep(50);
        __atomic_store_n(above_of(function), value - USUAL, __ATOMIC_SEQ_CST);
        usleep(50);
    }
    if (attribute == 9)
        __atomic_store_n(&carveout, value, __ATOMIC_SEQ_CST);
    return base_set_attribute(function, attribute, value);
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    if ((int)shared > USUAL + __atomic_load_n(above_of(function), __ATOMIC_SEQ_CST))
        return 1;
    return base_launch(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}
int stub_asked(void);
int stub_asked(void) {
    return asked;
}
