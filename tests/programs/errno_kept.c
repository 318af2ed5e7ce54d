/* Sets errno before each call of the driver, and before it looks a function up, and prints what errno and dlerror are afterwards:
 * against a driver that changes neither (stub_driver.c). */
#include "driver.h"

#include <errno.h>

static void say(const char *what, int result, int error) {
    const char *loader = dlerror();
    printf("%s: %d, errno %d, %s\n", what, result, error, loader ? loader : "no error of the loader");
}

#define ASK(name, ...)                                                                                                 \
    do {                                                                                                               \
        errno = 77;                                                                                                    \
        const int result = CU(name)(__VA_ARGS__);                                                                      \
        say(#name, result, errno);                                                                                     \
    } while (0)

int main(void) {
    void *context, *module, *function, *library = dlopen("libcuda.so.1", RTLD_NOW);
    uint64_t a = 0;
    uint32_t b = 0;
    void *parameters[] = {&a, &b};
    dlerror();
    driver_open();
    for (int i = 0; i < 2; i++) {
        errno = 77;
        const int found = library && dlsym(library, "cuInit");
        say("dlsym", found, errno);
        ASK(cuInit, 0);
        ASK(cuDevicePrimaryCtxRetain, &context, 0);
        ASK(cuCtxSetCurrent, context);
        ASK(cuModuleLoadData, &module, "x");
        ASK(cuModuleGetFunction, &function, module, "k");
        ASK(cuLaunchKernel, function, 4000, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL);
        ASK(cuModuleGetFunction, &function, module, "nccl");
        ASK(cuLaunchKernel, function, 16, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL);
    }
    void *other = dlopen("libm.so.6", RTLD_NOW);
    errno = 77;
    const int closed = other ? dlclose(other) : 0;
    say("dlclose", closed, errno);
    return 0;
}
