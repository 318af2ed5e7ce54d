/* A parent that looks at the driver, and a child that launches: as packages do that ask for the driver's version when they
 * are imported, in programs whose workers are forked.
 *
 *   fork_after_look [look]
 */
#include "driver.h"

#include <sys/wait.h>
#include <unistd.h>

static int child(void) {
    int failed = 0;
    driver_start();
    void *const function = kernel_of("k");
    for (int i = 0; i < 3; i++)
        failed += launch_kernel(function, 4000, 256, NULL);
    printf("failed: %d\n", failed);
    fflush(stdout);
    return failed;
}

int main(int argc, char **argv) {
    int version = 0, status = 0;
    void *const driver = driver_library();
    if (argc > 1 && strcmp(argv[1], "look") == 0) {
        int (*ask)(int *) = (int (*)(int *))dlsym(driver, "cuDriverGetVersion");
        if (dlsym(driver, "cuLaunchKernel") == NULL || ask(&version))
            return 2;
    }
    if (fork() == 0)
        _exit(child());
    wait(&status);
    return WEXITSTATUS(status);
}
