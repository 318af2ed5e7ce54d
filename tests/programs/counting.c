/* Launches on the stub driver that counts; before each of the later ones an attribute is set that makes no difference.
 * Prints what failed, the largest size that was launched, and how many questions those later launches cost. */
#define WAY_LINKED
#include "driver.h"

extern unsigned stub_largest(void);
extern int stub_asked(void);

int main(int argc, char **argv) {
    int attribute = argc > 1 ? atoi(argv[1]) : 8, before = 0, bad = 0;
    driver_start();
    void *k = kernel_of("k0");
    for (int i = 0; i < 100; i++) {
        if (i == 10)
            before = stub_asked();
        bad += cuFuncSetAttribute(k, attribute, attribute == 9 ? 100 : 49152);
        bad += launch_kernel(k, 4000, 256, NULL);
    }
    printf("bad: %d, largest size: %u, asked: %d\n", bad, stub_largest(), stub_asked() - before);
    return 0;
}
