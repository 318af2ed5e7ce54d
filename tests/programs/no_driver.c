/* A program that looks for the driver before it uses it: by a weak symbol, and by dlsym. */
#pragma weak cuInit
#pragma weak cuLaunchKernel
#pragma weak cuLaunchKernelEx
#pragma weak cuLaunchCooperativeKernel
#pragma weak cuGetProcAddress_v2
#pragma weak cuModuleUnload
#pragma weak cuStreamCreate
#pragma weak cuFuncSetAttribute
#define WAY_LINKED
#include "driver.h"

int main(void) {
    static const char *const names[] = {"cuInit", "cuLaunchKernel", "cuLaunchKernelEx_ptsz", "cuGetProcAddress",
                                        "cuGetProcAddress_v2"};
    for (int i = 0; i < 5; i++) {
        void *found = dlsym(RTLD_DEFAULT, names[i]);
        const char *text = dlerror();
        printf("%s %d %s\n", names[i], found != NULL, text ? text : "no error");
    }
    printf("library %d\n", dlopen("libcuda.so.1", RTLD_NOW) != NULL);
    if (!cuInit) {
        printf("not linked\n");
        return 0;
    }
    static const Config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
    void *out = NULL;
    for (int i = 0; i < 2; i++)
        printf("%d %d %d %d %d %d %d %d\n", cuInit(0), cuLaunchKernel(&out, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
               cuLaunchKernelEx(&config, &out, NULL, NULL),
               cuLaunchCooperativeKernel(&out, 1, 1, 1, 1, 1, 1, 0, NULL, NULL),
               cuGetProcAddress_v2("cuInit", &out, 12000, 0, NULL), cuModuleUnload(&out), cuStreamCreate(&out, 0),
               cuFuncSetAttribute(&out, 8, 1));
    return 0;
}
