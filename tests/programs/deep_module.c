/* A module of Python that launches by calls of the driver; PyInit is all that an import looks for. */
#define WAY_LINKED
#include "driver.h"

/* Made without the headers of Python: no module, which the import says after it has opened the library. */
void *PyInit_overlapping_plugin(void);
void *PyInit_overlapping_plugin(void) {
    return NULL;
}

int launches(int count);
int launches(int count) {
    int done = 0;
    driver_start();
    void *const function = kernel_of("k");
    while (done < count && launch_kernel(function, 4000, 256, NULL) == 0)
        done++;
    return done;
}
