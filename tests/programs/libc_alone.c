/* Launches through a driver that it is linked to, and needs libc alone: before glibc 2.34 there is no dlsym in such a
 * process, and no thread. Says whether that is so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
extern int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *);
extern int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);

int main(void) {
    char line[512];
    int others = 0, bad = 0;
    void *context = NULL, *module = NULL, *function = NULL;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        others += strstr(line, "/libdl") != NULL || strstr(line, "/libpthread") != NULL;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
        cuModuleLoadData(&module, "") || cuModuleGetFunction(&function, module, "k"))
        return 2;
    for (int i = 0; i < 3; i++)
        bad += cuLaunchKernel(function, 4000, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL) != 0;
    printf("libdl or libpthread: %d, bad: %d\n", others, bad);
    return 0;
}
