/* A function of which cuGetProcAddress gives out another one from some versions on: each is called with exactly the parameters
 * of the version that was asked for. */
#define WAY_PROC2
#define QUIET
#include "driver.h"

static Find find;

static void *at(const char *name, int version) {
    void *function = NULL;
    int result = find(name, &function, version, 0, NULL);
    printf("%s@%d: %d\n", name, version, result);
    return result ? NULL : function;
}

int main(void) {
    driver_start();
    find = (Find)dlsym(driver_library(), FIRST);
    void *context = NULL;
    int (*two)(void **, unsigned, int) = (int (*)(void **, unsigned, int))at("cuCtxCreate", 11030);
    printf("%d\n", two ? two(&context, 0, 0) : -1);
    int (*three)(void **, void *, int, unsigned, int) =
        (int (*)(void **, void *, int, unsigned, int))at("cuCtxCreate", 11040);
    printf("%d\n", three ? three(&context, NULL, 0, 0, 0) : -1);
    int (*four)(void **, void *, unsigned, int) = (int (*)(void **, void *, unsigned, int))at("cuCtxCreate", 12050);
    printf("%d\n", four ? four(&context, NULL, 0, 0) : -1);

    printf("%d\n", launch_kernel(kernel_of("k"), 4000, 256, NULL));
    printf("%d\n", CU(cuCtxSynchronize)());
    return 0;
}
