/* Launches whose attributes are said to be there and are not. Prints what each answered. */
#define WAY_LINKED
#include "driver.h"

int main(void) {
    static const char *const names[] = {"k", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"};
    driver_start();
    for (int i = 0; i < 2; i++) {
        char *text = ptx_of(names[i]);
        void *module, *function;
        uint64_t a = 0;
        uint32_t b = 0;
        void *parameters[] = {&a, &b};
        int bad = cuModuleLoadData(&module, text) + cuModuleGetFunction(&function, module, names[i]);
        free(text);
        printf("%d:", bad);
        for (uint32_t count = 3; count <= 3; count--) {
            const Config config = {{4000, 1, 1}, {256, 1, 1}, 0, 0, NULL, NULL, count, 0};
            printf(" %d %d", cuLaunchKernelEx(&config, function, parameters, NULL),
                   cuLaunchKernelEx_ptsz(&config, function, parameters, NULL));
        }
        printf("\n");
    }
    return 0;
}
