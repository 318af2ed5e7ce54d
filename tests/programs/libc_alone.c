/* Launches through a driver that it is linked to, and needs libc alone: before glibc 2.34 there is no dlsym in such a
 * process, and no thread. Says whether that is so. */
#define WAY_LINKED
#include "driver.h"

int main(void) {
    char line[512];
    int others = 0, bad = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        others += strstr(line, "/libdl") != NULL || strstr(line, "/libpthread") != NULL;
    driver_start();
    void *const function = kernel_of("k");
    for (int i = 0; i < 3; i++)
        bad += launch_kernel(function, 4000, 256, NULL) != 0;
    printf("libdl or libpthread: %d, bad: %d\n", others, bad);
    return 0;
}
