/* A process that loads a module, launches its kernel and unloads it, for ever, on a driver that does nothing (stub_driver.c).
 *
 *   reloads COUNT
 * Prints how many calls failed, and how often the driver was asked about the last kernel once it had been launched.
 */
#define WAY_LINKED
#include "driver.h"

extern int stub_asked(void);

int main(int argc, char **argv) {
    const long count = argc > 1 ? atol(argv[1]) : 1;
    void *module, *function;
    int asked = 0, failed = 0;
    driver_start();
    for (long i = 0; i < count; i++) {
        failed += cuModuleLoadData(&module, "x") + cuModuleGetFunction(&function, module, "k");
        failed += launch_kernel(function, 4000, 128, NULL);
        asked = stub_asked();
        failed += launch_kernel(function, 4000, 128, NULL);
        asked = stub_asked() - asked;
        failed += cuModuleUnload(module);
    }
    printf("failed: %d\nasked: %d\n", failed, asked);
    return 0;
}
