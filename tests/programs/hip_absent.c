/* A program that is linked to HIP's names, on a machine without HIP: what is called answers "not initialized", and nothing that
 * is asked for by name is there. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#pragma weak hipLaunchKernel
#pragma weak hipModuleLaunchKernel
#pragma weak hipInit
#pragma weak hipMalloc
#pragma weak hipStreamCreate
#pragma weak hipGraphLaunch
extern int hipLaunchKernel(const void *, uint64_t, uint32_t, uint64_t, uint32_t, void **, uint64_t, void *);
extern int hipModuleLaunchKernel(void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, void *,
                                 void **, void **);
extern int hipInit(uint32_t), hipMalloc(void **, uint64_t), hipStreamCreate(void **), hipGraphLaunch(void *, void *);

int main(void) {
    static const char *const names[] = {"hipLaunchKernel", "hipInit", "hipGetProcAddress", "rocprofiler_configure",
                                        "rocprofiler_set_api_table"};
    void *made = NULL;
    if (hipInit) {
        printf("%d %d %d", hipInit(0), hipMalloc(&made, 8), hipStreamCreate(&made));
        printf(" %d", hipLaunchKernel("k", 1, 1, 1, 1, NULL, 0, NULL));
        printf(" %d", hipModuleLaunchKernel("k", 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
        printf(" %d\n", hipGraphLaunch("g", NULL));
    }
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        printf("%s: %s\n", names[i], dlsym(RTLD_DEFAULT, names[i]) ? "found" : "none");
    return 0;
}
