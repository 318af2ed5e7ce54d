/* A program whose driver somebody else has initialised. */
#include "driver.h"

int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : NULL;
    int (*init)(void) = library ? (int (*)(void))dlsym(library, "unseen_init") : NULL;
    void *context, *module, *function;
    uint64_t a = 0;
    uint32_t b = 0;
    void *parameters[] = {&a, &b};
    char *text = ptx_of("k");
    int bad = init ? init() : -1;
    driver_open();
    bad += CU(cuDevicePrimaryCtxRetain)(&context, 0) + CU(cuCtxSetCurrent)(context) +
           CU(cuModuleLoadData)(&module, text) + CU(cuModuleGetFunction)(&function, module, "k");
    for (int i = 0; i < 3; i++)
        bad += CU(cuLaunchKernel)(function, 4000, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL);
    printf("bad: %d\n", bad);
    free(text);
    return 0;
}
