/* The stub driver with kernels that take what the environment says: STUB_REGISTERS, STUB_STATIC, STUB_LIMIT; with as
 * many kernels as anybody asks for, by their numbers (k17); and with a count of what was launched for odd and even
 * ones. */
#define cuFuncGetAttribute base_get_attribute
#define cuModuleGetFunction base_get_function
#define cuLaunchKernel base_launch
#include "stub_driver.c"
#undef cuFuncGetAttribute
#undef cuModuleGetFunction
#undef cuLaunchKernel

enum { FIRST = 0x200000, STEP = 0x40 };
static int launched[2], changed[2];

static int number(const char *variable, int usual) {
    const char *text = getenv(variable);
    return text ? atoi(text) : usual;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = (void *)(uintptr_t)(FIRST + (name[0] == 'k' ? atoi(name + 1) : 1) * STEP);
    return module == 0;
}
int cuFuncGetAttribute(int *value, int attribute, void *function) {
    int result = base_get_attribute(value, attribute, function);
    if (attribute == 4)
        *value = number("STUB_REGISTERS", 32);
    if (attribute == 1)
        *value = number("STUB_STATIC", 0);
    if (attribute == 8)
        *value = number("STUB_LIMIT", 49152);
    return result;
}
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    const int odd = ((uintptr_t)function - FIRST) / STEP % 2;
    __atomic_fetch_add(&launched[odd], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&changed[odd], shared > 0, __ATOMIC_RELAXED);
    return base_launch(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
}
int stub_launched(int odd);
int stub_launched(int odd) {
    return launched[odd];
}
int stub_changed(int odd);
int stub_changed(int odd) {
    return changed[odd];
}
