/* Asks a driver for functions of version 14000, and calls them as that version declares them. */
#include <dlfcn.h>
#include <stdint.h>

int main(void) {
    void *const driver = dlopen("libcuda.so.1", RTLD_NOW), *context;
    int (*get)(const char *, void **, int, uint64_t, int *) =
        (int (*)(const char *, void **, int, uint64_t, int *))dlsym(driver, "cuGetProcAddress_v2");
    int (*start)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    int (*retain)(void **, int) = (int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
    int (*destroy)(void *, unsigned);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                  void **, unsigned long);
    if (start(0) || retain(&context, 0) || get("cuStreamDestroy", (void **)&destroy, 14000, 0, 0) ||
        get("cuLaunchKernel", (void **)&launch, 14000, 0, 0))
        return 1;
    return destroy((void *)0x1000, 0x77) || launch((void *)0x200010, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0, 0x1234);
}
