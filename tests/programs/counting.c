/* Launches on the stub driver that counts; before each of the later ones an attribute is set that makes no difference.
 * Prints what failed, the largest size that was launched, and how many questions those later launches cost. */
#include <stdio.h>
#include <stdlib.h>

extern int cuInit(unsigned), cuCtxSetCurrent(void *), cuDevicePrimaryCtxRetain(void **, int);
extern int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *);
extern int cuFuncSetAttribute(void *, int, int);
extern int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);
extern unsigned stub_largest(void);
extern int stub_asked(void);

int main(int argc, char **argv) {
    int attribute = argc > 1 ? atoi(argv[1]) : 8, before = 0;
    void *context, *module, *k;
    int bad = cuInit(0) + cuDevicePrimaryCtxRetain(&context, 0) + cuCtxSetCurrent(context);
    bad += cuModuleLoadData(&module, "x") + cuModuleGetFunction(&k, module, "k0");
    for (int i = 0; i < 100; i++) {
        if (i == 10)
            before = stub_asked();
        bad += cuFuncSetAttribute(k, attribute, attribute == 9 ? 100 : 49152);
        bad += cuLaunchKernel(k, 4000, 1, 1, 256, 1, 1, 0, 0, 0, 0);
    }
    printf("bad: %d, largest size: %u, asked: %d\n", bad, stub_largest(), stub_asked() - before);
    return 0;
}
