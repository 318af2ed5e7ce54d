/* A parent that looks at the driver, and a child that launches: as packages do that ask for the driver's version when they
 * are imported, in programs whose workers are forked.
 *
 *   fork_after_look [look]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *driver;
#define ASK(name, ...) ((int (*)(__VA_ARGS__))dlsym(driver, #name))

static int child(void) {
    static const char kernel[] = ".version 7.0\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";
    void *context, *module, *function;
    int failed = ASK(cuInit, unsigned)(0) || ASK(cuDevicePrimaryCtxRetain, void **, int)(&context, 0) ||
                 ASK(cuCtxSetCurrent, void *)(context) ||
                 ASK(cuModuleLoadData, void **, const void *)(&module, kernel) ||
                 ASK(cuModuleGetFunction, void **, void *, const char *)(&function, module, "k");
    for (int i = 0; i < 3 && !failed; i++)
        failed = ASK(cuLaunchKernel, void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     void *, void **, void **)(function, 4000, 1, 1, 256, 1, 1, 0, (void *)0, (void *)0, (void *)0);
    printf("failed: %d\n", failed);
    fflush(stdout);
    return failed;
}

int main(int argc, char **argv) {
    int version = 0, status = 0;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (argc > 1 && strcmp(argv[1], "look") == 0 &&
        (dlsym(driver, "cuLaunchKernel") == NULL || ASK(cuDriverGetVersion, int *)(&version)))
        return 2;
    if (fork() == 0)
        _exit(child());
    wait(&status);
    return WEXITSTATUS(status);
}
