/* A program without a runtime that looks whether there is one: by weak references, and by dlsym. */
#include "runtime_rows.h"

#define EACH_ROW(name, parameters, ...) extern int name parameters __attribute__((weak));
#include "../../shim/cuda/runtime.def"
#undef EACH_ROW

int main(int argc, char **argv) {
    const dim3 grid = {1, 1, 1}, block = {1, 1, 1};
    const uint64_t config[8] = {0};
    const void *function = argv;
    void **arguments = NULL;
    size_t shared = 0;
    if (argc > 1) /* a driver */
        printf("library %d\n", dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) != NULL);
#define EACH_ROW(name, ...)                                                                                            \
    {                                                                                                                  \
        void *found = dlsym(RTLD_DEFAULT, #name);                                                                      \
        const char *text = dlerror();                                                                                  \
        printf("%s %d %s\n", #name, found != NULL, text ? text : "no error");                                          \
    }
#include "../../shim/cuda/runtime.def"
#undef EACH_ROW
    void *made = NULL;
    CUstream none = NULL;
#define EACH_ROW(name, parameters, ...)                                                                                \
    if (name)                                                                                                          \
        printf("%s is linked\n", #name);
#include "../../shim/cuda/runtime.def"
#undef EACH_ROW
    if (!cudaLaunchKernel)
        return 0;
    printf("%d", cudaLaunchKernel(function, grid, block, arguments, shared, none));
    printf(" %d", cudaLaunchKernel_ptsz(function, grid, block, arguments, shared, none));
    printf(" %d", __cudaLaunchKernel(function, grid, block, arguments, shared, none));
    printf(" %d", __cudaLaunchKernel_ptsz(function, grid, block, arguments, shared, none));
    printf(" %d", cudaLaunchCooperativeKernel(function, grid, block, arguments, shared, none));
    printf(" %d", cudaLaunchCooperativeKernel_ptsz(function, grid, block, arguments, shared, none));
    printf(" %d %d", cudaLaunchKernelExC(config, function, arguments),
           cudaLaunchKernelExC_ptsz(config, function, NULL));
    printf(" %d %d", cudaStreamCreate(&made), cudaStreamCreateWithFlags(&made, 1));
    printf(" %d %d\n", cudaStreamCreateWithPriority(&made, 1, 0), made != NULL);
    return 0;
}
