/* A program whose own functions and objects have names of libc's that ISO C leaves to the program (C11 7.1.3): whoever else calls
 * one of them is bound to it. Each says so and ends the process. It launches through a library that is opened, as its
 * arguments say: DRIVER KERNELS. */
#include <stddef.h>
#include <stdint.h>

extern void *dlopen(const char *path, int mode), *dlsym(void *handle, const char *name);
extern int puts(const char *line), atoi(const char *text), fflush(void *file);
_Noreturn extern void _Exit(int status);

#define OWN(name)                                                                                                      \
    long name(void) {                                                                                                  \
        puts("called: " #name);                                                                                        \
        fflush(NULL);                                                                                                  \
        _Exit(99);                                                                                                     \
    }
#include "own_names.h"
#undef OWN
int environ = 1;
int program_invocation_name = 1, program_invocation_short_name = 1;

typedef int Init(unsigned), Retain(void **, int), Current(void *), Load(void **, const void *);
typedef int Function(void **, void *, const char *);
typedef int Launch(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

int main(int count, char **words) {
    if (count != 3)
        return 2;
    void *driver = dlopen(words[1], 2), *context, *module, *kernel;
    int result = !driver;
    if (result)
        return 3;
    result |= ((Init *)dlsym(driver, "cuInit"))(0);
    result |= ((Retain *)dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, 0);
    result |= ((Current *)dlsym(driver, "cuCtxSetCurrent"))(context);
    result |= ((Load *)dlsym(driver, "cuModuleLoadData"))(&module, "");
    result |= ((Function *)dlsym(driver, "cuModuleGetFunction"))(&kernel, module, "k");
    Launch *launch = (Launch *)dlsym(driver, "cuLaunchKernel");
    for (int i = 0; i < atoi(words[2]); i++)
        result |= launch(kernel, 4000, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL);
    result |=
        ((Function *)dlsym(driver, "cuModuleGetFunction"))(&kernel, module, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    result |= launch(kernel, 16, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL);
    puts(result ? "failed" : "launched");
    return result;
}
