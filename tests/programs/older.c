/* older BYTES: a launch by cuLaunchKernel while another one of the same kernel is made with BYTES by cuLaunchGrid, as another thread might. Prints
 * what the driver says to both, to both once more, and the limit that is read back. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

extern int cuInit(unsigned), cuModuleGetFunction(void **, void *, const char *),
    cuFuncSetBlockShape(void *, int, int, int), cuFuncSetSharedSize(void *, unsigned), cuLaunchGrid(void *, int, int),
    cuFuncGetAttribute(int *, int, void *),
    cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);
extern void older_meanwhile(void (*)(void));

static void *function;

static void older(void) {
    printf("older: %d\n", cuLaunchGrid(function, 8, 1));
}

static void both(void) {
    printf("launch: %d\n", cuLaunchKernel(function, 8192, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL));
}

int main(int argc, char **argv) {
    int limit = 0;
    cuInit(0);
    cuModuleGetFunction(&function, NULL, "k");
    for (int i = 0; i < 3; i++) /* until it is shaped, and known to be taken */
        both();
    cuFuncSetBlockShape(function, 256, 1, 1);
    cuFuncSetSharedSize(function, argc > 1 ? (unsigned)atoi(argv[1]) : 0);
    for (int i = 0; i < 2; i++) {
        older_meanwhile(older);
        both();
    }
    cuFuncGetAttribute(&limit, 8, function);
    printf("limit: %d\n", limit);
    return 0;
}
